"""Tests that the same command ends with the same bytes whatever happened to it. A story begins in an empty
outputs folder, harms it or the command that runs in it, and repeats the command.
"""

import atexit
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from icl.runs.lock import is_live
from tests.processes import Command, jobs_are_forked

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")]
TRAIN = [
    "experiment=ahn/theorem3", "scale=smoke", "checks=[ahn/theorem3]", "train.steps=8", "train.batch=8",
    "train.steps_per_batch=2", "train.log_every=2", "callbacks.gradient.count=0", "logger=none",
    "callbacks.checkpoint.seconds=0",
]  # fmt: skip
COMMANDS = {
    "train": ["train", *TRAIN, "format=json"],
    "check": ["check", "check=lds/lemma3_1", "scale=smoke", "logger=none", "format=json"],
    "sweep": ["train", "-m", *TRAIN, "seed=0,1", "format=json"],
    "vectorized": ["train", "-m", *TRAIN, "seed=0,1", "hydra/launcher=vectorized", "format=json"],
}
OF_ONE_TIME = {
    "seconds", "written", "provenance", "started", "ended", "attempt", "resumed", "seal", "files", "git",
    "versions", "hardware", "threads",
}  # fmt: skip
SAYS = "icl: interrupted; the same command continues from what is saved"
ENDED_BY = {signal.SIGKILL: (-9,), signal.SIGTERM: (143, -15), signal.SIGINT: (130,)}
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate"}


def watch(outputs: Path, at: int = 0, signum: int = 0) -> None:
    """Send this process a signal before its write number `at` below a folder, from 1, and leave their number
    beside it. Every file opened for writing, renamed or removed is an event that Python tells beforehand."""
    seen = 0

    def hook(event: str, args: tuple[Any, ...]) -> None:
        nonlocal seen
        flags = args[2] if event == "open" else 0
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        is_named = bool(args) and isinstance(args[0], str | bytes | os.PathLike)
        path = os.fsdecode(args[0]) if is_named and (writes or event in CHANGES) else ""
        if path.startswith(str(outputs)):
            seen += 1
            if seen == at:
                os.kill(os.getpid(), signum)

    atexit.register(lambda: outputs.with_name("writes").write_text(str(seen)))
    sys.addaudithook(hook)


def limit(size: int) -> None:
    """Limit files to `size` bytes, as a quota does and a full disk: any user may set that."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@dataclass(frozen=True)
class Place:
    """An empty outputs folder for a command, and what it ends with when nothing disturbs it."""

    outputs: Path
    argv: list[str]
    expected: dict[str, bytes]
    writes: int = 0  # of the undisturbed command

    def start(self, argv: list[str] | None = None, prepare: Callable[[], None] | None = None) -> Command:
        told = {**os.environ, "OMP_NUM_THREADS": "1", "HOME": str(self.outputs.parent)}
        command = [*(argv or self.argv), f"paths.outputs={self.outputs}"]
        return Command(command, self.outputs.parent, told, prepare)

    def stop(self, share: float, signum: int) -> Command:
        """Run the command, with a signal at this place among its writes, and return it."""
        command = self.start(prepare=partial(watch, self.outputs, max(1, round(share * self.writes)), signum))
        command.end()
        return command

    def again(self) -> None:
        """Repeat the command undisturbed, and compare with the expected bytes."""
        command = self.start()
        assert command.end() == 0, command.err
        found = science(self.outputs)
        differ = [name for name in {*found, *self.expected} if found.get(name) != self.expected.get(name)]
        assert differ == []
        # The file of one who was killed may lie there: nobody waits for it.
        assert not [path for path in self.outputs.rglob("*lock") if is_live(path)]


def science(outputs: Path) -> dict[str, bytes]:
    """Return the stored results by file, without times and without what tells one attempt from another. The
    report shows both."""
    found = {}
    for path in sorted(outputs.rglob("*")):
        name = path.relative_to(outputs).as_posix()
        if not path.is_file() or re.search(r"(^|/)(cache|wandb|report|\..*\.tmp)(/|$)", name):
            continue
        if path.suffix in (".npz", ".csv", ".yaml"):
            found[name] = path.read_bytes().replace(str(outputs).encode(), b"OUTPUTS")
        elif path.suffix == ".json":
            with contextlib.suppress(ValueError):
                found[name] = json.dumps(_timeless(json.loads(path.read_text()), str(outputs))).encode()
    return found


def _timeless(node: Any, outputs: str) -> Any:
    if isinstance(node, dict):
        return {k: _timeless(v, outputs) for k, v in node.items() if k not in OF_ONE_TIME}
    if isinstance(node, list):
        return [_timeless(entry, outputs) for entry in node]
    return node.replace(outputs, "OUTPUTS") if isinstance(node, str) else node


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[dict[str, bytes], int]]:
    """Return a function: the results of an undisturbed command, and how often it writes."""
    known: dict[str, tuple[dict[str, bytes], int]] = {}

    def of(name: str) -> tuple[dict[str, bytes], int]:
        if name not in known:
            place = Place(tmp_path_factory.mktemp(name) / "outputs", COMMANDS[name], {})
            command = place.stop(0, 0)
            assert command.end() == 0, command.err
            known[name] = science(place.outputs), int(place.outputs.with_name("writes").read_text())
        return known[name]

    return of


def stopped(place: Place, share: float, signum: signal.Signals) -> None:
    command = place.stop(share, signum)
    assert command.end() in (*ENDED_BY[signum], 0), command.err
    assert command.end() not in (130, 143) or command.err.splitlines()[-1:] == [SAYS]
    place.again()


def stopped_twice(place: Place, first: float, second: float) -> None:
    """Send SIGKILL, and again while the command recovers."""
    for share in (first, second):
        place.stop(share, signal.SIGKILL)
    place.again()


def together(place: Place, *argvs: list[str]) -> None:
    """Start as many processes at once: the same command, or what is named."""
    commands = [place.start(argv or None) for argv in argvs]
    assert [command.end() for command in commands] == [0] * len(argvs), [one.err for one in commands]
    shutil.rmtree(place.outputs / "report", ignore_errors=True)
    place.again()


HARMS: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "a digit changed": lambda content: re.sub(
        rb"[0-8](?=[^0-9]*$)", lambda m: bytes([m[0][0] + 1]), content, count=1
    ),
}


def harmed(place: Place, harm: str) -> None:
    """Damage a finished record: it is made again, and hinders no report."""
    assert place.start().end() == 0
    (path,) = place.outputs.glob("checks/*/*/*.json")
    path.write_bytes(HARMS[harm](path.read_bytes()))
    assert place.start(["report", "scale=smoke"]).end() == 0
    place.again()


def no_long_files(place: Place, size: int) -> None:
    command = place.start(prepare=partial(limit, size))
    assert command.end() == 4 and str(place.outputs) in command.err
    place.again()


def worker_killed(place: Place, pause: float) -> None:
    """Kill one of joblib's workers: its job fails, and is made by the next command."""
    argv = [*place.argv, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
    command = place.start(argv, jobs_are_forked)
    children = Path(f"/proc/{command.pid}/task/{command.pid}/children")
    command.until(lambda: children.read_text().split())
    time.sleep(pause)
    with contextlib.suppress(OSError, IndexError):
        os.kill(int(children.read_text().split()[-1]), signal.SIGKILL)
    assert command.end() in (0, 4) and (command.end() == 0 or "Traceback" not in command.err), command.err
    while any(map(is_live, place.outputs.rglob("*lock"))):
        time.sleep(0.01)
    place.again()


# The stories of each command. A share is a write's place among all.
TABLE: dict[str, list[tuple[Any, ...]]] = {
    "train": [
        *((stopped, share, signal.SIGKILL) for share in (0.15, 0.5, 0.95)),
        (stopped, 0.3, signal.SIGTERM), (stopped, 0.7, signal.SIGINT), (stopped_twice, 0.4, 0.3),
        (together, [], [], []), (together, [], ["clean", "yes=true"], ["report", "scale=smoke"]),
        (no_long_files, 1000),
    ],
    "check": [
        *((stopped, 0.6, signum) for signum in ENDED_BY), (together, [], [], [], []),
        *((harmed, harm) for harm in HARMS),
    ],
    "sweep": [(stopped, 0.6, signal.SIGKILL), (stopped_twice, 0.2, 0.7), (worker_killed, 0.1)],
    "vectorized": [
        *((stopped, share, signal.SIGKILL) for share in (0.5, 0.95)), (stopped, 0.4, signal.SIGTERM),
        (stopped_twice, 0.5, 0.4),
    ],
}  # fmt: skip
CASES = [(name, *case) for name, cases in TABLE.items() for case in cases]
FIRST = {case[1]: case for case in reversed(CASES)}  # of each story; the others are nightly


def row(case: tuple[Any, ...]) -> Any:
    later = [pytest.mark.nightly] * (case is not FIRST[case[1]])
    return pytest.param(case, id=f"{case[0]}-{case[1].__name__}", marks=later)


@pytest.mark.parametrize("case", map(row, CASES))
def test_the_same_command_ends_with_the_same_bytes(
    case: tuple[Any, ...], straight: Any, tmp_path: Path
) -> None:
    name, story, *told = case
    story(Place(tmp_path / "outputs", COMMANDS[name], *straight(name)), *told)
