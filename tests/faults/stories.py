"""Stories: each begins in an empty outputs folder, harms it or the command that runs in it, repeats the
command, and raises what is wrong then. Property: the same command ends with the same bytes.
"""

import contextlib
import json
import os
import re
import resource
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from icl.jobs.requests.request import SMOKE
from icl.runs.lock import is_live
from tests.faults.forked import Fault, by, call, counting, started
from tests.processes import jobs_are_forked

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
SAYS = "icl: interrupted; the same command continues from what is saved\n"
ENDED_BY = {signal.SIGKILL: (-9,), signal.SIGTERM: (143, -15), signal.SIGINT: (130,)}


class Wrong(Exception):
    """A violation of the property by a story."""


@dataclass(frozen=True)
class Place:
    """An empty outputs folder for a command, and the bytes that it ends with when nothing disturbs it."""

    outputs: Path
    argv: list[str]
    expected: dict[str, bytes]
    writes: int  # of the undisturbed command

    def at(self, share: float) -> int:
        """Return the number of the write that is at this place among all."""
        return max(1, round(share * self.writes))

    def again(self) -> None:
        """Repeat the command undisturbed, and compare with the expected bytes."""
        ended = call(self.argv, self.outputs)
        if ended.code != 0:
            raise Wrong(f"then exit {ended.code}: {ended.err.strip()[-500:]}")
        found = science(self.outputs)
        if found != self.expected:
            names = sorted({*found, *self.expected})
            raise Wrong(f"then other bytes in {[n for n in names if found.get(n) != self.expected.get(n)]}")
        held = [str(path) for path in self.outputs.rglob("*lock") if is_live(path)]
        if held:  # the file of one who was killed may lie there: nobody waits for it
            raise Wrong(f"locks held: {held}")


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


@contextlib.contextmanager
def fresh(base: Path, name: str, expected: dict[str, bytes], writes: int) -> Iterator[Place]:
    outputs = base / "outputs"
    try:
        yield Place(outputs, COMMANDS[name], expected, writes)
    finally:
        shutil.rmtree(outputs)


def straight(base: Path, name: str) -> tuple[dict[str, bytes], int]:
    """Return the results of the undisturbed command, and how often it writes."""
    with fresh(base, name, {}, 0) as place:
        ended = call(place.argv, place.outputs, counting())
        if ended.code != 0:
            raise Wrong(f"undisturbed: exit {ended.code}: {ended.err[-500:]}")
        return science(place.outputs), ended.writes


def stopped(place: Place, share: float, signum: signal.Signals) -> None:
    """Send a signal before a write."""
    ended = call(place.argv, place.outputs, Fault(place.at(share), by(signum)))
    lines = [line for line in ended.err.splitlines() if SMOKE not in line]
    if ended.code not in (*ENDED_BY[signum], 0):
        raise Wrong(f"exit {ended.code}: {ended.err[-500:]}")
    if ended.code in (130, 143) and lines[-1:] != [SAYS.rstrip()]:
        raise Wrong(f"says {ended.err!r}")
    place.again()


def stopped_twice(place: Place, first: float, second: float) -> None:
    """Send SIGKILL, and again while the command recovers."""
    for share in (first, second):
        call(place.argv, place.outputs, Fault(place.at(share), by(signal.SIGKILL)))
    place.again()


def together(place: Place, *argvs: list[str]) -> None:
    """Start as many processes at once: the same command, or what is named."""
    with contextlib.ExitStack() as running:
        waits = [running.enter_context(started(one or place.argv, place.outputs)) for one in argvs]
        ended = [process.wait() for process in waits]
    if any(one.code != 0 for one in ended):
        raise Wrong(f"exits {[one.code for one in ended]}: {ended}")
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
    call(place.argv, place.outputs)
    (path,) = place.outputs.glob("checks/*/*/*.json")
    path.write_bytes(HARMS[harm](path.read_bytes()))
    listed = call(["report", "scale=smoke"], place.outputs)
    if listed.code != 0:
        raise Wrong(f"icl report exits {listed.code}: {listed.err[-300:]}")
    place.again()


def no_long_files(place: Place, size: int) -> None:
    """Limit files to `size` bytes, as a quota does and a full disk: any user may set that."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    with started(place.argv, place.outputs, prepare=limit) as process:
        ended = process.wait()
    if ended.code != 4 or str(place.outputs) not in ended.err:
        raise Wrong(f"exit {ended.code}: {ended.err[-500:]}")
    place.again()


def worker_killed(place: Place, pause: float) -> None:
    """Kill one of joblib's workers: its job fails, and is made by the next command."""
    argv = [*place.argv, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
    with started(argv, place.outputs, prepare=jobs_are_forked) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        workers: list[str] = []
        while not process.poll() and not workers:
            with contextlib.suppress(OSError):
                workers = children.read_text().split()
            time.sleep(0.01)
        time.sleep(pause)
        for pid in [] if process.is_over else workers[-1:]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        ended = process.wait()
    if ended.code not in (0, 4) or (ended.code == 4 and "Traceback" in ended.err):
        raise Wrong(f"exit {ended.code}: {ended.err[-500:]}")
    for lock in place.outputs.rglob("*lock"):
        while is_live(lock):
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


def tell(base: Path, name: str) -> list[str]:
    """Return what is wrong with any story of a command."""
    os.environ["OMP_NUM_THREADS"] = "1"  # a fork has no threads of its parent's pool, and waits for them
    os.environ["HOME"] = str(base)
    call(COMMANDS[name], base / "imports", here=True)  # everything, for the processes forked from this one
    undisturbed, failures = straight(base, name), []
    for story, *told in TABLE[name]:
        with fresh(base, name, *undisturbed) as place:
            try:
                story(place, *told)
            except Wrong as wrong:
                failures.append(f"{story.__name__} {told}: {wrong}")
    return failures
