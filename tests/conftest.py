"""Settings and fixtures of all tests. Caches of other programs stay out of the user's home and the
repository; long tests come first. No test cuts the power, so none waits for the disk. SIGINT acts as in a
terminal.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from typing import Any

import hypothesis
import pytest
from hydra.core.global_hydra import GlobalHydra

from hydra_plugins.icl._loader import share_compositions
from tests.processes import ROOT

CACHES = [*(f"WANDB_{kind}DIR" for kind in ("ARTIFACT_", "CACHE_", "CONFIG_", "DATA_", ""))]
CACHES += ["HYPOTHESIS_STORAGE_DIRECTORY", "MPLCONFIGDIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"]


def pytest_configure(config: pytest.Config) -> None:
    """Make one directory for the whole run: xdist's workers inherit their parent's environment. They share
    the cores, so a command takes one unless a test says `jobs`. Hypothesis tries the same examples every
    time. All that Hydra composes in this process, twice for each command, is shared."""
    hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
    hypothesis.settings.load_profile("repeatable")
    os.environ["LOKY_MAX_CPU_COUNT"] = "1"
    os.fsync = lambda descriptor: None
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell ignores it
    initialize = GlobalHydra.initialize

    def with_shared_compositions(self: GlobalHydra, hydra: Any) -> None:
        initialize(self, hydra)
        share_compositions(hydra.config_loader)

    GlobalHydra.initialize = with_shared_compositions
    if hasattr(config, "workerinput"):
        return
    directory = tempfile.TemporaryDirectory(prefix="icl-tests-", ignore_cleanup_errors=True)
    config.add_cleanup(directory.cleanup)
    for name in CACHES:
        os.environ[name] = os.path.join(directory.name, name.lower())
        os.mkdir(os.environ[name])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deal the slow tests to the processes, each of which begins with an equal share of the list: what is
    left at the end is short, and any of them can take it."""

    def seconds(item: pytest.Item) -> float:
        marker = item.get_closest_marker("slow")
        return 0.0 if marker is None else next(iter(marker.args), 20.0)

    slow = sorted(filter(seconds, items), key=seconds, reverse=True)
    others = [item for item in items if not seconds(item)]
    total, processes = len(items), getattr(config, "workerinput", {}).get("workercount", 1)
    items.clear()
    for k in range(processes):
        dealt = slow[k::processes]
        more = max((total - len(items)) // (processes - k) - len(dealt), 0)  # as xdist cuts the list
        items += dealt + others[:more]
        del others[:more]


@pytest.fixture
def outputs(tmp_path):
    return tmp_path / "outputs"


@pytest.fixture
def icl(tmp_path, outputs, capfd, monkeypatch):
    """Return a function that runs `icl` in an empty working folder, with its own outputs and without W&B."""
    from hydra.core.hydra_config import HydraConfig

    from icl.cli import main
    from tests.commands import Result

    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")

    def run(verb, *args, logger="none"):
        runs_something = verb in ("train", "check", "figure", "reproduce")
        common = [f"paths.outputs={outputs}", *([f"logger={logger}"] if logger and runs_something else [])]
        capfd.readouterr()
        code = main([verb, *args, *common])
        assert not GlobalHydra.instance().is_initialized() and HydraConfig.instance().cfg is None
        return Result(code, *capfd.readouterr(), (verb, *args))

    return run


@pytest.fixture
def tiny(icl):
    """Return a function that runs `icl train` for a few steps, with more overrides."""
    from tests.commands import tiny_argv

    return lambda *more, **options: icl(*tiny_argv(*more), **options)


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Make home, temporary and working folder, all empty."""
    for name in ("home", "tmp", "cwd"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.chdir(tmp_path / "cwd")
    return tmp_path


@pytest.fixture
def spawn():
    """Return `spawn(code, *arguments)`: a Python process of its own, killed when the test ends."""
    started = []

    def start(code, *arguments):
        command = [sys.executable, "-c", code, *map(str, arguments)]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, text=True, **pipes)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def hold(spawn):
    """Return `hold(path)`: a process that holds the lock until it reads a line."""
    code = """if True:
        import sys
        from pathlib import Path
        from icl.runs.lock import locked
        with locked(Path(sys.argv[1])):
            print("held", flush=True)
            sys.stdin.readline()
    """

    def start(path):
        holder = spawn(code, path)
        assert holder.stdout.readline() == "held\n"
        return holder

    return start


@pytest.fixture
def witness(tmp_path, monkeypatch):
    """Install the callback of tests/two_processes.py, and return the folder that it writes to."""
    from tests.two_processes import LAB

    (tmp_path / "witness_lab.py").write_text(f"HERE = {str(tmp_path)!r}\n{LAB}")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "witness_lab", raising=False)  # another test's
    return tmp_path


@pytest.fixture
def make_plan(tmp_path):
    from tests.plans import plan_below

    return plan_below(tmp_path)


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Copy icl, to be edited and read anew by each digest, as if this process's code had been changed so."""
    from icl.runs import code

    folder = tmp_path / "tree" / "icl"
    shutil.copytree(ROOT / "icl", folder, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    monkeypatch.setattr(code, "_digest", code._digest.__wrapped__)
    monkeypatch.setattr(code, "_read", code._read.__wrapped__)
    monkeypatch.setattr(code, "ICL", folder)
    return folder
