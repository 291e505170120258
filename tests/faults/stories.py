"""Stories of the campaign: each begins in an empty outputs folder, harms it or the command that runs in
it, repeats the command, and raises what is wrong then. Property: the same command ends with the same
bytes, or says in one line why it cannot.
"""

import contextlib
import json
import os
import pickle
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from icl.jobs.requests.request import SMOKE
from icl.runs import layout
from icl.runs.lock import is_live
from icl.runs.record import VERDICTS
from tests.commands import other_code
from tests.faults.forked import Ended, Fault, by, call, counting, started
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
    "figure": [
        "figure", "figure=lds/fig3", "scale=smoke", "logger=none", "format=json",
    ],
    "reproduce": [
        "reproduce", "--config-dir", str(Path(__file__).parent / "conf"), "only=[story]", "scale=smoke",
        "logger=none", "jobs=1", "format=json",
    ],
}  # fmt: skip
WHEN = {"seconds", "drawing_seconds", "cached", "resumed", "results", "left"}
SAYS = "icl: interrupted; the same command continues from what is saved\n"
ENDED_BY = {signal.SIGKILL: (-9,), signal.SIGTERM: (143, -15), signal.SIGINT: (130,)}


class Wrong(Exception):
    """A violation of the property by a story."""


@dataclass(frozen=True)
class Place:
    """A folder for one story, in which commands are as good as new."""

    folder: Path
    name: str

    @property
    def outputs(self) -> Path:
        return self.folder / "outputs"

    @property
    def argv(self) -> list[str]:
        return COMMANDS[self.name]

    def ends_well(
        self, what: str, *more: str, prepare: Callable[[], None] | None = None, codes: Sequence[int] = (0,)
    ) -> Ended:
        """Give the command, with more overrides, in a process that is prepared so."""
        with started([*self.argv, *more], self.outputs, prepare=prepare) as process:
            ended = process.wait()
        if ended.code not in codes:
            raise Wrong(f"{what}; then exit {ended.code}: {ended.err.strip()[-500:]}")
        return ended

    def said(self, ended: Ended) -> Any:
        """Return a document without its times."""
        return _timeless(json.loads(ended.out), str(self.outputs))

    def again(self, what: str, expected: dict[str, bytes]) -> None:
        """Repeat the command undisturbed, and compare with the expected bytes."""
        self.ends_well(what)
        found = science(self.outputs)
        if found != expected:
            differing = sorted(k for k in {*found, *expected} if found.get(k) != expected.get(k))
            raise Wrong(f"{what}; then other bytes in {differing}")
        held = [str(path) for path in self.outputs.rglob("*lock") if is_live(path)]
        if held:  # the file of one who was killed may lie there: nobody waits for it
            raise Wrong(f"{what}; locks held: {held}")


def science(outputs: Path) -> dict[str, bytes]:
    """Return the stored results by file, without times and without what tells one attempt from another. The
    report shows both."""
    found = {}
    for path in sorted(outputs.rglob("*")):
        name = path.relative_to(outputs).as_posix()
        if not path.is_file() or re.search(r"(^|/)(cache|wandb|report|superseded|\..*\.tmp)(/|$)", name):
            continue
        if path.suffix in (".npz", ".csv", ".yaml"):
            found[name] = path.read_bytes().replace(str(outputs).encode(), b"OUTPUTS")
        elif path.suffix == ".json":
            with contextlib.suppress(ValueError):
                found[name] = json.dumps(_timeless(json.loads(path.read_text()), str(outputs))).encode()
    return found


def _timeless(node: Any, outputs: str) -> Any:
    made = {
        "written", "provenance", "started", "ended", "attempt", "seal", "files", "git", "versions",
        "hardware", "host", "threads",
    }  # fmt: skip
    if isinstance(node, dict):
        return {k: _timeless(v, outputs) for k, v in node.items() if k not in made | WHEN}
    if isinstance(node, list):
        return [_timeless(entry, outputs) for entry in node]
    return node.replace(outputs, "OUTPUTS") if isinstance(node, str) else node


@contextlib.contextmanager
def fresh(base: Path, name: str) -> Iterator[Place]:
    folder = base / "story"
    folder.mkdir()
    try:
        yield Place(folder, name)
    finally:
        shutil.rmtree(folder)


def straight(base: Path, name: str) -> tuple[dict[str, bytes], int]:
    """Return the results of the undisturbed command, and how often it writes."""
    with fresh(base, name) as place:
        ended = call(place.argv, place.outputs, counting())
        if ended.code != 0:
            raise Wrong(f"undisturbed: exit {ended.code}: {ended.err[-500:]}")
        return science(place.outputs), ended.writes


def stopped(base: Path, name: str, at: int, signum: int, expected: dict[str, bytes]) -> None:
    """Send a signal before write number `at`."""
    with fresh(base, name) as place:
        what = f"{name}: {signal.Signals(signum).name} before write {at}"
        ended = call(place.argv, place.outputs, Fault(at, by(signum)))
        lines = [line for line in ended.err.splitlines() if SMOKE not in line]
        ends = lines[-1:] if name in ("sweep", "reproduce") else lines  # those two tell what they do
        if ended.code not in (*ENDED_BY[signal.Signals(signum)], 0):
            raise Wrong(f"{what}: exit {ended.code}: {ended.err[-500:]}")
        if ended.code in (130, 143) and ends != [SAYS.rstrip()]:
            raise Wrong(f"{what}: says {ended.err!r}")
        place.again(what, expected)


def stopped_twice(base: Path, name: str, first: int, second: int, expected: dict[str, bytes]) -> None:
    """Send SIGKILL, and again while the command recovers."""
    with fresh(base, name) as place:
        call(place.argv, place.outputs, Fault(first, by(signal.SIGKILL)))
        call(place.argv, place.outputs, Fault(second, by(signal.SIGKILL)))
        place.again(f"{name}: SIGKILL before writes {first} and, continued, {second}", expected)


def together(base: Path, name: str, count: int, expected: dict[str, bytes]) -> None:
    """Start as many processes with the same command at once."""
    with fresh(base, name) as place, contextlib.ExitStack() as running:
        waits = [running.enter_context(started(place.argv, place.outputs)) for _ in range(count)]
        ended = [process.wait() for process in waits]
        if any(one.code != 0 for one in ended):
            raise Wrong(
                f"{name}: {count} at once: exits {[one.code for one in ended]}: {ended[0].err[-500:]}"
            )
        place.again(f"{name}: {count} at once", expected)


def beside(base: Path, name: str, expected: dict[str, bytes]) -> None:
    """Run `icl clean`, `icl list` and `icl report` while the command runs."""
    with fresh(base, name) as place, contextlib.ExitStack() as running:
        argvs = [place.argv, ["clean", "yes=true"], ["report", "scale=smoke"], ["clean", "yes=true"]]
        waits = [running.enter_context(started(argv, place.outputs)) for argv in argvs]
        ended = [process.wait() for process in waits]
        if any(one.code != 0 for one in ended):
            raise Wrong(f"{name} beside clean and report: exits {[one.code for one in ended]}: {ended}")
        shutil.rmtree(place.outputs / "report", ignore_errors=True)
        place.again(f"{name} beside clean and report", expected)


def held_and_resumed(base: Path, name: str, at: int, expected: dict[str, bytes]) -> None:
    """Freeze the process with SIGSTOP: another with the same command waits for it, or takes over, and both
    end well."""
    with fresh(base, name) as place:

        def stop() -> None:
            os.kill(os.getpid(), signal.SIGSTOP)

        with started(place.argv, place.outputs, Fault(at, stop)) as first:
            while not first.poll() and not is_stopped(first.pid):
                time.sleep(0.002)
            with started(place.argv, place.outputs) as second:
                time.sleep(0.5)
                if not first.is_over:
                    os.kill(first.pid, signal.SIGCONT)
                ended = [first.wait(), second.wait()]
        if any(one.code != 0 for one in ended):
            raise Wrong(f"{name}: SIGSTOP before write {at}: exits {[one.code for one in ended]}: {ended}")
        place.again(f"{name}: SIGSTOP before write {at}", expected)


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


HARMS: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "a digit changed": lambda content: re.sub(
        rb"[0-8](?=[^0-9]*$)", lambda m: bytes([m[0][0] + 1]), content, count=1
    ),
    "a bit flipped": lambda content: (
        content[: len(content) // 2]
        + bytes([content[len(content) // 2] ^ 1])
        + content[len(content) // 2 + 1 :]
    ),
    "a pickle": lambda content: pickle.dumps({"harmless": True}),
}


def harmed(base: Path, name: str, file: int, harm: str, expected: dict[str, bytes]) -> None:
    """Damage one file of finished output: it is reported or unused, and made again."""
    with fresh(base, name) as place:
        call(place.argv, place.outputs)
        kept = [p for p in sorted(place.outputs.rglob("*")) if p.is_file() and "cache" not in p.parts]
        kept = [path for path in kept if path.stat().st_size]
        if name in ("figure", "reproduce"):
            kept = [path for path in kept if path.name != VERDICTS]  # of a run, which neither reads
        path = kept[file % len(kept)]
        before = path.read_bytes()
        path.write_bytes(HARMS[harm](before))
        shown = f"{name}: {path.relative_to(place.outputs)} {harm}"
        place.again(shown, expected)
        listed = call(["report", "scale=smoke"], place.outputs)
        if listed.code != 0:
            raise Wrong(f"{shown}; then icl report exits {listed.code}: {listed.err[-300:]}")


def no_room(base: Path, name: str, kilobytes: int, expected: dict[str, bytes]) -> None:
    """Fill a file system, and then enlarge it: needs the right to mount one."""
    with fresh(base, name) as place:
        place.outputs.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(place.outputs)]
        subprocess.run(mount, check=True, capture_output=True)
        try:
            ended = call(place.argv, place.outputs)
            what = f"{name}: a disk of {kilobytes} kB"
            if ended.code not in (0, 2, 4):
                raise Wrong(f"{what}: exit {ended.code}: {ended.err[-500:]}")
            if ended.code and str(place.outputs) not in ended.err:
                raise Wrong(f"{what}: exit {ended.code} and does not say where: {ended.err[-500:]}")
            subprocess.run(["mount", "-o", "remount,size=64m", str(place.outputs)], check=True)
            place.again(what, expected)
        finally:
            subprocess.run(["umount", str(place.outputs)], check=True)


def no_long_files(base: Path, name: str, size: int, expected: dict[str, bytes]) -> None:
    """Limit files to `size` bytes, as a quota does: any user may set that."""
    with fresh(base, name) as place:

        def limit() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

        with started(place.argv, place.outputs, prepare=limit) as process:
            ended = process.wait()
        what = f"{name}: files of at most {size} bytes"
        if ended.code is None or ended.code < 0:
            raise Wrong(f"{what}: exit {ended.code}: {ended.err[-500:]}")
        place.again(what, expected)


OTHERS = {"train": "seed=7", "check": "check.seed=7"}  # what makes another record of the same kind


def swapped(base: Path, name: str, expected: dict[str, bytes]) -> None:
    """Exchange two finished records: each is made again at its own place."""
    with fresh(base, name) as place:
        place.ends_well(name)
        own = records(place.outputs)
        if name in OTHERS:
            place.ends_well(name, OTHERS[name])
            pair = own[0], next(path for path in records(place.outputs) if path not in own)
        else:
            pair = own[0], own[-1]
        aside = place.outputs / "aside"
        for source, target in ((pair[0], aside), (pair[1], pair[0]), (aside, pair[1])):
            source.rename(target)
        listed = call(["clean"], place.outputs)
        if any(str(path.relative_to(place.outputs)) not in listed.out for path in pair):
            raise Wrong(f"{name}: swapped, and icl clean lists {listed.out}")
        if name in OTHERS:
            if json.loads(place.ends_well(name, OTHERS[name]).out)["cached"]:
                raise Wrong(f"{name}: swapped, and the other's was cached")
            shutil.rmtree(pair[1]) if pair[1].is_dir() else pair[1].unlink()
        place.again(f"{name}: two records exchanged", expected)


def records(outputs: Path) -> list[Path]:
    """Return the folders of runs and the files of checks and figures."""
    return [place.path.parent if place.kind == layout.RUNS else place.path for place in layout.walk(outputs)]


def unsealed(base: Path, name: str, file: int, expected: dict[str, bytes]) -> None:
    """Remove the seal of a finished record."""
    with fresh(base, name) as place:
        place.ends_well(name)
        kept = [path for path in sorted(place.outputs.rglob("*.json")) if '"seal"' in path.read_text()]
        if name in ("figure", "reproduce"):
            kept = [path for path in kept if path.name != VERDICTS]
        path = kept[file % len(kept)]
        path.write_text(re.sub(r',\s*"seal": "\w+"', "", path.read_text()))
        place.again(f"{name}: {path.relative_to(place.outputs)} without its seal", expected)


def two_codes(base: Path, name: str, pause: float, expected: dict[str, bytes]) -> None:
    """Run another version of the code in the same folder at the same time."""
    what = f"{name}: beside other code, {pause} s later"
    with fresh(base, name) as place, contextlib.ExitStack() as running:
        first = running.enter_context(started(place.argv, place.outputs))
        time.sleep(pause)
        other = running.enter_context(started(place.argv, place.outputs, prepare=be_other_code))
        ended, others = first.wait(), other.wait()
        gave_way = "the same command starts over"  # a figure whose runs were made again under its hands
        for one in (ended, others):
            if one.code != 0 and not (
                one.code == 4 and gave_way in one.err and name in ("figure", "reproduce")
            ):
                raise Wrong(f"{what}: exit {one.code}: {one.err[-500:]}")
        place.again(what, expected)
        reference = place.ends_well(what)
        if ended.code == 0 and place.said(ended) != place.said(reference):
            raise Wrong(f"{what}: said {ended.out[:2000]} and not {reference.out[:2000]}")


def be_other_code() -> None:
    contextlib.ExitStack().enter_context(other_code())


SECRETS = (
    "icl.models",
    "icl.checks",
    "ahn/theorem3",
    "lds/lemma3_1",
    "undecided",
    "holds, for",
    "interrupted",
    "population",
    "identity",
    "theorem3",
    "LinearRegression",
    "correct-horse-battery",
    "hunter2hunter2",
)


def secret(base: Path, name: str, value: str, variable: str, expected: dict[str, bytes]) -> None:
    """Have a secret in the environment: the same bytes, and a name that holds it is refused."""
    with fresh(base, name) as place:

        def prepare() -> None:
            os.environ[variable] = value

        what = f"{name}: {variable}={value}"
        place.ends_well(what, prepare=prepare)
        if science(place.outputs) != expected:
            raise Wrong(f"{what}: other bytes")
        if value in SECRETS[:-2]:
            place.again(what, expected)
            return
        before = sorted(place.outputs.rglob("*"))
        keys = {"train": ("name", "logger.project"), "sweep": ("name", "sweep.name", "logger.project")}
        for key in keys.get(name, ()):
            refused = place.ends_well(f"{what} {key}", f"{key}={value}", prepare=prepare, codes=(2,))
            if value in refused.err + refused.out or sorted(place.outputs.rglob("*")) != before:
                raise Wrong(f"{what}: {key}: {refused}")
        place.again(what, expected)


def searched(base: Path, name: str, scheme: str, expected: dict[str, bytes]) -> None:
    """Name a module in hydra.searchpath: it is not imported."""
    with fresh(base, name) as place:
        (place.folder / "story_lab.py").write_text(f"open({str(place.folder / 'imported')!r}, 'w')\n")
        what, path = f"{name}: {scheme}://story_lab", f"hydra.searchpath=[{scheme}://story_lab]"
        place.ends_well(what, path, prepare=lambda: sys.path.insert(0, str(place.folder)), codes=(2,))
        if place.outputs.exists() or (place.folder / "imported").exists():
            raise Wrong(f"{what}: was imported, or something was written")
        place.again(what, expected)


def jumping_clock(base: Path, name: str, seed: int, expected: dict[str, bytes]) -> None:
    """Let the wall clock jump by up to years, back and forth, in one of two processes at once."""
    rng = random.Random(seed)
    real, real_ns = time.time, time.time_ns

    def jump() -> None:
        time.time = lambda: real() + rng.choice((0, 1, -1)) * 10 ** rng.uniform(0, 8)  # type: ignore[assignment]
        time.time_ns = lambda: real_ns() + int(rng.choice((0, 1, -1)) * 10 ** rng.uniform(9, 17))  # type: ignore[assignment]

    with fresh(base, name) as place, contextlib.ExitStack() as running:
        both = [running.enter_context(started(place.argv, place.outputs, prepare=p)) for p in (jump, None)]
        ended = [process.wait() for process in both]
        if any(one.code != 0 for one in ended):
            raise Wrong(f"{name}: a clock that jumps: {ended}")
        place.again(f"{name}: a clock that jumps", expected)


def worker_killed(base: Path, name: str, pause: float, expected: dict[str, bytes]) -> None:
    """Kill one of joblib's workers: its job fails, and is made by the next command."""
    with fresh(base, name) as place:
        argv = [*place.argv, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
        with started(argv, place.outputs, prepare=jobs_are_forked) as process:
            while not process.poll() and not (workers := children(process.pid)):
                time.sleep(0.01)
            time.sleep(pause)
            for pid in [] if process.is_over else workers[-1:]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            ended = process.wait()
        what = f"{name}: a worker of joblib's killed after {pause} s"
        if ended.code not in (0, 4) or (ended.code == 4 and "Traceback" in ended.err):
            raise Wrong(f"{what}: exit {ended.code}: {ended.err[-500:]}")
        for lock in place.outputs.rglob("*lock"):
            while is_live(lock):
                time.sleep(0.01)
        place.again(what, expected)


def children(pid: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def may_mount() -> bool:
    probe = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False)
    return os.geteuid() == 0 and probe.returncode == 0 and shutil.which("mount") is not None


Drawn = tuple[str, Callable[..., None], tuple[Any, ...], str]


def choose(number: int, names: Sequence[str], writes_by_name: Mapping[str, int]) -> Drawn:
    """Return a command, a story and its arguments, all drawn by the number, and what repeats it."""
    rng = random.Random(number)
    name = rng.choice(names)
    writes = writes_by_name[name]
    kinds: list[Callable[[], tuple[Callable[..., None], tuple[Any, ...]]]] = [
        lambda: (stopped, (rng.randint(1, writes), rng.choice(list(ENDED_BY)))),
        lambda: (stopped, (rng.randint(1, writes), signal.SIGKILL)),
        lambda: (stopped_twice, (rng.randint(1, writes), rng.randint(1, writes))),
        lambda: (together, (rng.randint(2, 6),)),
        lambda: (beside, ()),
        lambda: (held_and_resumed, (rng.randint(1, writes // 2),)),
        lambda: (no_long_files, (rng.choice([0, 100, 1000, 4000, 20_000]),)),
    ]
    kinds += [
        lambda: (secret, (rng.choice(SECRETS), rng.choice(("MY_TOKEN", "MYTOKEN", "NETRC_PASS", "API_KEY")))),
        lambda: (searched, (rng.choice(("pkg", "structured")),)),
        lambda: (jumping_clock, (rng.randrange(1000),)),
    ]
    if name != "vectorized":  # a job that is made again is made alone: the same to rounding, not to the byte
        kinds.append(lambda: (harmed, (rng.randrange(1000), rng.choice(list(HARMS)))))
        kinds.append(lambda: (unsealed, (rng.randrange(1000),)))
        kinds.append(lambda: (two_codes, (round(rng.uniform(0, 1), 2),)))
    if name in ("train", "check", "sweep"):
        kinds.append(lambda: (swapped, ()))
    if name == "sweep":
        kinds.append(lambda: (worker_killed, (round(rng.uniform(0, 2), 2),)))
    if may_mount():
        kinds.append(lambda: (no_room, (rng.choice([4, 16, 40, 80, 160]),)))
    story, told = rng.choice(kinds)()
    return name, story, told, f"only={number}"


# The stories of the tests, by command. A fraction is a write's place among all.
TABLE: dict[str, list[tuple[Callable[..., None], tuple[Any, ...]]]] = {
    "train": [
        *((stopped, (at, signal.SIGKILL)) for at in (0.15, 0.5, 0.95)),
        (stopped, (0.3, signal.SIGTERM)), (stopped, (0.7, signal.SIGINT)), (stopped_twice, (0.4, 0.3)),
        (together, (3,)), (beside, ()), (held_and_resumed, (0.3,)),
        (no_long_files, (1000,)), (no_room, (40,)), (two_codes, (0.1,)), (secret, ("icl.models", "MY_TOKEN")),
        (jumping_clock, (0,)),
    ],
    "check": [
        *((stopped, (0.6, signum)) for signum in ENDED_BY), (together, (4,)), (held_and_resumed, (0.3,)),
        *((harmed, (0, harm)) for harm in HARMS), (no_room, (4,)),
    ],
    "sweep": [
        (stopped, (0.6, signal.SIGKILL)), (stopped_twice, (0.2, 0.7)), (worker_killed, (0.1,)),
    ],
    "vectorized": [
        *((stopped, (at, signal.SIGKILL)) for at in (0.5, 0.95)), (stopped, (0.4, signal.SIGTERM)),
        (stopped_twice, (0.5, 0.4)),
    ],
}  # fmt: skip


def tabled(names: Sequence[str], writes: Mapping[str, int]) -> Iterator[Drawn]:
    """Yield the table's stories of these commands; those of a full disk only where one can be mounted."""
    for name in names:
        for number, (story, told) in enumerate(TABLE[name]):
            if story is not no_room or may_mount():
                at = [max(1, round(a * writes[name])) if isinstance(a, float) else a for a in told]
                yield name, story, tuple(at), f"table: {name} {number}"
