"""Runs of `icl ARGS` in a process of their own that cost what the command costs: it is forked from a server
that has imported what takes seconds, though not W&B. So are the workers that it starts, if the test says so.
"""

import atexit
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import forkserver
from pathlib import Path

ROOT = Path(__file__).parents[1]
ICL = "import sys; from icl.cli import main; sys.exit(main())"  # for `python -c`
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(
    ["icl.cli.dispatch", "icl.jobs.requests.train", "icl.training.run", "tests.processes"]
)


class Command:
    """A command that runs in `folder` from here on, where its output goes to files. `prepare` is called
    there first; `environment` replaces its own, and its PYTHONPATH counts."""

    def __init__(
        self,
        argv: Sequence[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
        prepare: Callable[[], None] | None = None,
    ) -> None:
        number = len(list(folder.glob("command-*.out")))
        self._files = [folder / f"command-{number}.{name}" for name in ("out", "err")]
        for path in self._files:
            path.touch()
        told = dict(os.environ if environment is None else environment)
        self._process = SERVER.Process(
            target=_live, args=(list(argv), folder, told, list(map(str, self._files)), prepare)
        )
        self._process.start()
        atexit.register(self.kill)  # if the test fails
        self.pid: int = self._process.pid

    @property
    def out(self) -> str:
        return self._files[0].read_text()

    @property
    def err(self) -> str:
        return self._files[1].read_text()

    def until(self, condition: Callable[[], object]) -> None:
        """Wait however long it takes on this machine, unless the process ends without."""
        while not condition():
            assert self._process.is_alive(), (self.out, self.err)
            time.sleep(0.01)

    def send(self, signum: int) -> None:
        assert self._process.is_alive(), (self.out, self.err)
        os.kill(self.pid, signum)

    def end(self) -> int:
        """Return the exit code; the signal's number, negative, if one ended the process."""
        self._process.join(480)
        code = self._process.exitcode
        assert code is not None, f"it hangs: {self.err}"
        return code

    def kill(self) -> None:
        self._process.kill()
        self._process.join()


def _live(
    argv: list[str],
    folder: Path,
    environment: dict[str, str],
    files: list[str],
    prepare: Callable[[], None] | None,
) -> None:
    os.fsync = lambda descriptor: None
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell ignores it
    for number, name in enumerate(files, 1):
        os.dup2(os.open(name, os.O_WRONLY | os.O_APPEND), number)
    if prepare is not None:
        prepare()
    from icl.cli import main

    forkserver._forkserver.ensure_running = lambda: None  # type: ignore[attr-defined]  it does: this is its child
    sys.argv = ["icl", *argv]
    code = main()
    # As an interpreter ends. Multiprocessing would wait for joblib's idle workers instead.
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code)


def jobs_are_forked() -> None:
    """Fork joblib's workers, as `prepare` of a command: they are interpreters that import for seconds,
    else."""
    from joblib.externals.loky.backend.context import set_start_method

    set_start_method("fork")
