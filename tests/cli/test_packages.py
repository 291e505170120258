"""Tests of a user's installed package (`pip install mylab` and nothing else), and of what no config may
import.
"""

from pathlib import Path

import pytest

from icl.config import allowed_packages
from icl.config.search_path import ConfigDirs
from tests.commands import Run, assert_refused, write

CODE = '''
from icl.checks.verdict import Bound, Control, Finding
from icl.tasks import LinearRegression


class Wider(LinearRegression):
    """Our law in one more dimension."""

    def __init__(self, dim: int = 2, **rest: object) -> None:
        super().__init__(dim=dim + 1, **rest)


class Sum:
    reference, claim = "nowhere", "1 + 1 = 2."

    def measure(self):
        bound = Bound(0.5, "integers differ by 1 or not at all", of="error", direction="<")
        return Finding("holds", {"error": 1.0 + 1.0 - 2.0}, bound, Control("1 + 1 = 3", 1.0, True))
'''
CHECK = """# @package check
# paper: mylab
# reference: nowhere
_target_: mylab_icl.parts.Sum
expected: holds
"""
EXPERIMENT = """# @package _global_
# paper: mylab
# reference: nowhere
defaults:
  - ahn/theorem3
  - override /task: mylab_wider
  - _self_
name: mylab/wider
checks: []
"""


FILES = {  # on sys.path as pip leaves it: the package, its configs, its dist-info
    "mylab_icl/__init__.py": "raise AssertionError('imported for a listing')\n",
    "mylab_icl/conf/task/mylab_wider.yaml": "_target_: mylab_icl.parts.Wider\ndim: 2\ncontext: 7\n",
    "mylab_icl/conf/check/mylab/sum.yaml": CHECK,
    "mylab_icl/conf/experiment/mylab/wider.yaml": EXPERIMENT,
    "mylab_icl/parts.py": CODE,
    "mylab-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: mylab\nVersion: 1.0\n",
    "mylab-1.0.dist-info/entry_points.txt": "[icl.packages]\nmylab = mylab_icl\n",
}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return write(tmp_path / "site", FILES)


def test_it_is_found_without_being_imported(site: Path, icl: Run) -> None:
    assert allowed_packages.conf_of("mylab_icl") == site / "mylab_icl" / "conf"
    listed = icl("list", "format=json").json
    assert "mylab/sum" in [item["id"] for item in listed["checks"]]
    assert "mylab/wider" in [item["id"] for item in listed["experiments"]]


def test_its_checks_tasks_and_experiments_run(site: Path, tiny: Run, icl: Run, tmp_path: Path) -> None:
    (site / "mylab_icl" / "__init__.py").write_text("")
    assert icl("check", "check=mylab/sum", "format=json").json["verdict"] == "holds"
    assert icl("check", "check=mylab/all", "format=json").json["checks"][0]["check"] == "mylab/sum"
    ours = ["experiment=mylab/wider", "train.steps=2", "format=json"]
    found = tiny(*ours).json
    assert Path(found["run_dir"]).is_relative_to(tmp_path / "outputs" / "runs" / "mylab" / "wider")
    both = tiny("-m", *ours, "task.dim=2,3", "seed=0").json
    assert (both["done"], both["failed"]) == (2, 0)
    conf = write(tmp_path / "conf", {"experiment/mine.yaml": EXPERIMENT})  # which may build on it
    mine = tiny("--config-dir", str(conf), "experiment=mine", *ours[1:]).json
    assert mine["cached"] and mine["run_dir"] == found["run_dir"]


def test_one_that_is_broken_is_not_in_the_way(site: Path, tiny: Run) -> None:
    entries = "[icl.packages]\ngone = no_such_package\nmodule = os.path\n"
    (site / "mylab-1.0.dist-info" / "entry_points.txt").write_text(entries)
    assert ConfigDirs.of(None).installed == ()
    assert tiny("train.steps=1").code == 0


FOREIGN = {  # what an experiment may say below its defaults, and what is said to it
    "an environment that lets it in": (
        "hydra: {{job: {{env_set: {{ICL_PACKAGES: subprocess}}}}}}\ntask: {popen}",
        "hydra.job.env_set.ICL_PACKAGES: no config sets that",
    ),
    "an environment that git goes by": (
        "hydra: {{job: {{env_set: {{GIT_CONFIG_COUNT: 1, GIT_CONFIG_KEY_0: core.fsmonitor}}}}}}",
        "hydra.job.env_set.GIT_CONFIG_COUNT: no config sets that",
    ),
    "a task": ("task: {popen}", "task._target_=subprocess.Popen: must be in one of icl"),
    "what a task holds": ("task: {{law: {popen}}}", "task.law._target_=subprocess.Popen: must be in one"),
    "a class that a module of ours has imported": (
        "model: {{_target_: icl.jobs.execution.workers.Connection}}",
        "icl.jobs.execution.workers.Connection: is not a class",
    ),
    "a class that is private": (
        "model: {{_target_: icl.jobs.execution.workers._Worker}}",
        "icl.jobs.execution.workers._Worker: must be in one of",
    ),
    "a callback of Lightning's": ("callbacks: {{x: {popen}}}", "callbacks.x._target_=subprocess.Popen: must"),
    "a command line of Lightning's": (
        "callbacks: {{x: {{_target_: pytorch_lightning.cli.LightningCLI}}}}", "LightningCLI: is not a class",
    ),
    "a logger": ("logger: {{x: {popen}}}", "logger.x._target_=subprocess.Popen: must be in one of icl"),
    "an option of the Trainer's": (
        "trainer: {{profiler: {popen}}}", "trainer.profiler._target_=subprocess.Popen: must be in one of icl",
    ),
    "a callback of Hydra's": (
        "hydra: {{callbacks: {{x: {popen}}}}}", "hydra.callbacks.x._target_=subprocess.Popen: must be in one",
    ),
    "a launcher": ("hydra: {{launcher: {{_target_: subprocess.Popen}}}}", "subprocess.Popen: must be in"),
    "a sweeper": ("hydra: {{sweeper: {{_target_: subprocess.Popen}}}}", "subprocess.Popen: must be in"),
    "what a sweeper holds": (
        "hydra: {{sweeper: {{params: {{x: {{_target_: optuna.samplers._cmaes.pickle.loads}}}}}}}}",
        "hydra.sweeper.params.x._target_=optuna.samplers._cmaes.pickle.loads: must be in",
    ),
    "logging of jobs": (
        "hydra: {{job_logging: {{root: {{handlers: [x]}}, handlers: {{x: {{(): subprocess.Popen}}}}}}}}",
        "hydra.job_logging: leave it at none",
    ),
    "logging of Hydra": (
        "hydra: {{hydra_logging: {{root: {{handlers: [x]}}, handlers: {{x: {{(): subprocess.Popen}}}}}}}}",
        "hydra.hydra_logging: leave it at none",
    ),
    "more folders to search": (
        "hydra: {{searchpath: ['pkg://antigravity']}}",
        "hydra.searchpath=pkg://antigravity: must be a folder",
    ),
    "a folder elsewhere": (
        "hydra: {{sweep: {{subdir: ../../elsewhere}}, output_subdir: x}}", "hydra.output_subdir: leave it at",
    ),
    "a folder of jobs elsewhere": (
        "hydra: {{sweep: {{subdir: ../../elsewhere}}}}", "hydra.sweep.subdir: leave it at .;",
    ),
    "a resolver that there is not": ("task: {{dim: '${{sh:touch x}}'}}", "Unsupported interpolation type sh"),
}  # fmt: skip


# In a sweep Hydra's own settings are read otherwise; parts are what they are in one run.
CASES = [(what, []) for what in FOREIGN]
CASES += [(what, ["-m", "seed=0,1"]) for what in FOREIGN if "hydra" in FOREIGN[what][0] or what == "a task"]


@pytest.mark.parametrize(("what", "sweep"), CASES)
def test_no_config_has_code_of_others_run(what: str, sweep: list[str], tiny: Run, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    text, said = FOREIGN[what]
    popen = f"{{_target_: subprocess.Popen, args: [touch, {mark}]}}"
    head = "# @package _global_\ndefaults: [ahn/theorem3, _self_]\n"
    conf = write(tmp_path / "conf", {"experiment/evil.yaml": head + text.format(popen=popen)})
    found = tiny("train.steps=2", "experiment=evil", "--config-dir", str(conf), *sweep)
    assert (found.code, found.out, found.err.count("\n")) == (2, "", 1) and said in found.err, found.err
    assert not mark.exists() and not (tmp_path / "outputs").exists() and not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("scheme", ["pkg", "structured"])
@pytest.mark.parametrize("sweep", [[], ["-m", "seed=0,1"]])
def test_a_searched_module_is_not_imported(
    scheme: str, sweep: list[str], tiny: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "lib", {"searched_lab/__init__.py": "raise AssertionError('imported')\n"})
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    found = tiny(f"hydra.searchpath=[{scheme}://searched_lab]", *sweep)
    assert_refused(found, f"hydra.searchpath={scheme}://searched_lab: must be a folder", tmp_path / "outputs")
    text = f"defaults: [base, _self_]\nhydra: {{searchpath: ['{scheme}://searched_lab']}}\n"
    conf = write(tmp_path / "conf", {"train.yaml": text})
    found = tiny("--config-dir", str(conf), *sweep)
    assert_refused(found, f"hydra.searchpath={scheme}://searched_lab: must be a folder", tmp_path / "outputs")
    (tmp_path / "lib" / "searched_lab" / "__init__.py").write_text("")
    monkeypatch.setenv("ICL_PACKAGES", "searched_lab")
    assert tiny("hydra.searchpath=[pkg://searched_lab]", "train.steps=1", *sweep).code == 0


def test_no_secret_of_the_environment_is_said(
    tiny: Run, monkeypatch: pytest.MonkeyPatch, outputs: Path
) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "hush-hush-hush")
    for override in ("task.dim=${oc.env:SERVICE_TOKEN}", "name=${oc.env:SERVICE_TOKEN}"):
        for sweep in ([], ["-m", "seed=0,1"]):
            found = tiny(override, *sweep)
            assert found.code == 2 and "hush" not in found.err, found.err
            assert not outputs.exists()


def test_in_a_job_the_environment_lets_nothing_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set hydra.job.env_set, which comes after the list of allowed packages."""
    from icl.jobs.execution.hydra_multirun import HydraTask

    monkeypatch.setattr("icl.jobs.execution.hydra_multirun.resolve_in_job", lambda cfg: cfg)
    monkeypatch.setenv("ICL_PACKAGES", "mylab")
    task = HydraTask(lambda _: allowed_packages.allowed())
    monkeypatch.setenv("ICL_PACKAGES", "subprocess")
    assert "subprocess" not in task({}) and "mylab" in task({})
    assert "subprocess" in allowed_packages.allowed()
