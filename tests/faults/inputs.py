"""Campaign of wrong inputs: `python -m tests.faults.inputs seconds=600 seed=0` gives hostile values to every
key that the configs have, one command each, until the time is over or `count=200` are given. `only=SEED`
repeats one.

Property: 0, or 2 with at most two lines on stderr, nothing on stdout and nothing written anywhere, within 5
CPU seconds; 1 and 3 of what has a verdict; 4 of what was begun, with a reason that is no programming error's.
"""

import contextlib
import functools
import io
import json
import math
import os
import random
import re
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from icl.cli import main as icl
from icl.config.compose import compose, leaves
from icl.config.search_path import ConfigDirs
from tests.faults.forked import Ended, started

REFUSED_WITHIN, DONE_WITHIN = 5, 40  # CPU seconds
SMALL = ["train.steps=2", "train.batch=4", "train.steps_per_batch=2", "train.log_every=1",
         "callbacks.gradient.count=0", "checks=[]"]  # fmt: skip
COMMON = ["scale=smoke", "logger=none", "format=json"]
_OPTIONS = {"train": ConfigDirs().options("experiment"), "check": ConfigDirs().options("check"),
            "figure": ConfigDirs().options("figure")}  # fmt: skip
_OURS = ("TypeError", "KeyError", "AttributeError", "IndexError", "NameError", "AssertionError",
         "UnboundLocalError", "RecursionError", "ZeroDivisionError", "UnicodeEncodeError",
         "UnicodeDecodeError")  # fmt: skip
ANY = [
    "null", "true", "false", "0", "-1", "1", "2", "0.5", "1000000000000", "10000000000000000000000000000000",
    "-9223372036854775809", "1e308", "1e-320", "nan", "inf", "-inf", "[]", "[1]", "[null]", "[nan]",
    "[[1,2],[3]]", "[1,2,3,4,5]", "{}", "{a:1}", "{_target_:os.system}", "{_target_:icl.models.SparseA}",
    "''", "x", "'a b'", "../x",
    "/dev/null", "/nope/x.npy", "'grüße 🙂'", "'\\\\n'", "'a\nb'", "'%s%n{0}'", "'<script>alert(1)</script>'",
    "???", "icl", "icl.", "hydra_plugins.nope.X", "hydra_plugins.icl.launcher.Before", "[pkg://antigravity]",
    "[structured://this]",
    "'" + "y" * 5000 + "'", "[" + ",".join("1" * 1000) + "]", "[" * 200 + "]" * 200,
    "'${oc.env:HOME}'", "'${nope}'", "'${oc.env:NOPE}'", "'${scale}'", "'${at:1,2}'", "'${at:1,2,3}'", "'${'",
]  # fmt: skip


class Wrong(Exception):
    """A violation of the property by an input."""


def near(value: Any, rng: random.Random) -> list[str]:
    """Return values of the type that a key has, beside those that are hostile to any."""
    if isinstance(value, bool):
        return ["1", "yes", str(not value).lower()]
    if isinstance(value, int):
        return [
            str(value + 1),
            str(-value),
            f"{value}.0",
            str(value * 10 ** rng.randint(3, 18)),
            f"'{value}'",
        ]
    if isinstance(value, float):
        return [str(-value), str(value * 1e300), str(value * 1e-300), str(math.nextafter(value, math.inf))]
    if isinstance(value, str):
        return (
            [value.upper(), f"{value}{value}", f"' {value}'", f"[{value}]"]
            if value.isalnum()
            else [f"{value}x"]
        )
    if isinstance(value, list):
        written = json.dumps(value).replace(" ", "").replace('"', "")
        return [f"[{written}]", "[" + written[1:-1] + "," + written[1:], written[:-1] + ",null]"]
    return []


def argument(rng: random.Random, settings: dict[str, Any], prefix: str = "") -> str:
    """Return an override of some key."""
    names = [
        name
        for name in leaves(settings)
        if (name not in ("paths", "paths.outputs") and "." in name) or rng.random() < 0.1
    ]
    name = rng.choice([n for n in names if not n.startswith("paths")])
    node: Any = settings
    for part in name.split("."):
        node = node[part]
    own = near(node, rng)
    value = rng.choice(own) if own and rng.random() < 0.4 else rng.choice(ANY)
    what = rng.random()
    if what < 0.02:
        return f"~{name}"
    if what < 0.05:
        return f"+{name}.{rng.choice(['x', '_target_', '_partial_', '_args_'])}={value}"
    if what < 0.08:
        return f"{name.rpartition('.')[0] or name}={value}"
    return f"{rng.choice(['', '', '++'])}{name}={value}"


HYDRA = [
    "hydra.mode", "hydra.run.dir", "hydra.sweep.dir", "hydra.sweep.subdir", "hydra.output_subdir",
    "hydra.job.chdir", "hydra.job.name", "hydra.job.env_set", "hydra.job.config", "hydra.launcher",
    "hydra.sweeper", "hydra.callbacks", "hydra.job_logging", "hydra.hydra_logging", "hydra.verbose",
    "hydra.searchpath", "hydra.env", "hydra.runtime", "hydra.overrides.task", "hydra/launcher",
    "hydra/sweeper", "hydra/output", "hydra/job_logging", "hydra", "hydra/env", "hydra.sweeper.params",
    "hydra.launcher._target_", "hydra.sweeper._target_", "+hydra.foo", "+hydra.job.foo",
    "hydra.sweeper.max_batch_size", "hydra.runtime.choices", "hydra.help", "hydra.job.num",
]  # fmt: skip


@functools.cache
def _settings(verb: str, overrides: tuple[str, ...]) -> dict[str, Any]:
    return dict(compose(ConfigDirs(), verb, overrides).settings)


def command(rng: random.Random) -> list[str]:
    """Return some command that runs, with one or two things wrong."""
    verb = rng.choices(["train", "check", "figure", "report", "sweep", "other"], [10, 6, 2, 1, 1, 1])[0]
    if verb == "other":
        verb = rng.choice(["list", "clean", "completion", "bench", "reproduce", "trian", "--version"])
        return [
            verb,
            *(rng.choice([*ANY, "format=x", "yes=1", "--help x"]) for _ in range(rng.randint(1, 2))),
        ]
    if verb in ("report", "sweep"):
        base = [verb, "scale=smoke", "format=json"]
    else:
        kind = "experiment" if verb == "train" else verb
        base = [verb, f"{kind}={rng.choice(_OPTIONS[verb])}", *COMMON, *(SMALL if verb == "train" else [])]
    settings = _settings(verb, tuple(base[1:]))
    if verb == "figure":  # each value else would have it drawn
        settings = {"figure": settings["figure"]}
    wrong = [argument(rng, settings) for _ in range(1 + (rng.random() < 0.2))]
    if rng.random() < 0.08:
        wrong = [f"{rng.choice(HYDRA)}={rng.choice(ANY)}"]
    if rng.random() < 0.08:
        wrong += rng.choice([["-m"], ["-m", "seed=0,1"], ["-m", "hydra/launcher=vectorized"]])
    return [*base, *wrong]


@contextlib.contextmanager
def places(base: Path) -> Iterator[Path]:
    folder = base / "input"
    for name in ("home", "tmp", "cwd"):
        (folder / name).mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def written(folder: Path) -> list[str]:
    found = (
        os.path.join(top, name) for top, folders, files in os.walk(folder) for name in [*folders, *files]
    )
    # W&B makes two temporary folders on import, and one for each table, which an interpreter removes as it
    # ends; a fork does not. The folder of its service's socket goes with the service, which may outlive the
    # command by a moment.
    return sorted(
        os.path.relpath(name, folder)
        for name in found
        if not re.search(r"wandb-(artifacts$|media$|\d+-\d+-)|tmp/tmp\w{8}(/\w+\.table\.json)?$", name)
    )


def given(base: Path, argv: list[str]) -> Ended:
    """Run the command; raise Wrong where it breaks the property."""
    with places(base) as folder:

        def prepare() -> None:
            os.environ |= {"HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp")}
            tempfile.tempdir = None
            os.chdir(folder / "cwd")
            resource.setrlimit(resource.RLIMIT_CPU, (DONE_WITHIN, DONE_WITHIN + 5))

        before, used = written(folder), _children()
        with started(argv, folder / "outputs", prepare=prepare) as process:
            ended = process.wait()
        used = _children() - used
        left = sorted({*written(folder)} - {*before})
    what = f"exit {ended.code} after {used:.1f} s: {ended.err.strip()[-400:]!r}"
    many_steps = re.compile(r"\+*(train|figure\.experiment)\.\w*steps='?\d{4,}")
    much = argv[0] in ("bench", "reproduce") or "=all" in " ".join(argv) or any(map(many_steps.match, argv))
    if ended.code is None or ended.code < 0:
        if not (much and ended.code in (-24, None)):  # the CPU time was over, or the time on a busy machine
            raise Wrong(what)
        return ended
    if ended.code == 2:
        if ended.out or not 1 <= ended.err.count("\n") <= 2 or not ended.err.startswith("icl: "):
            raise Wrong(f"{what}; stdout {ended.out[:100]!r}")
        if left:
            raise Wrong(f"{what}; has written {left[:5]}")
        if used > REFUSED_WITHIN:
            raise Wrong(what)
    elif ended.code == 4:
        reason = re.search(r"^icl: (?:job failed: )?(\w+): (.+)", ended.err, re.MULTILINE)
        if reason is None or reason[1] in _OURS or "Traceback" in ended.err:
            raise Wrong(what)
    elif ended.code not in (0, 1, 3) or (ended.code in (1, 3) and argv[0] not in ("check", "figure")):
        raise Wrong(what)
    elsewhere = [name for name in left if name.partition("/")[0] != "outputs"]
    if elsewhere:
        raise Wrong(f"{what}; has written {elsewhere[:5]}")
    return ended


def _children() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def campaign(
    seconds: float, seed: int, count: int, only: int | None, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Return totals by verb and exit code, the reasons of exit 4, and every failure in a line."""
    codes: Counter[str] = Counter()
    failures: list[str] = []
    reasons: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="icl-inputs-") as name:
        base = Path(name)
        os.environ["HOME"] = name
        for verb, kind, id in (("train", "experiment", "ahn/theorem3"), ("check", "check", "lds/lemma3_1"),
                               ("train", "experiment", "giannou/logistic")):  # fmt: skip
            small = SMALL if verb == "train" else []
            with contextlib.redirect_stdout(
                io.StringIO()
            ):  # which imports everything, for the forked processes
                icl([verb, f"{kind}={id}", *COMMON, *small, f"paths.outputs={base / 'imports'}"])
        began = time.monotonic()
        numbers = [only] if only is not None else range(seed * 1_000_000, seed * 1_000_000 + count)
        for number in numbers:
            if time.monotonic() - began > seconds:
                break
            argv = command(random.Random(number))
            try:
                ended = given(base, argv)
                codes[f"{argv[0]}: {ended.code}"] += 1
                if ended.code == 4:
                    reasons[re.sub(r"\d+", "N", ended.err.strip().splitlines()[-1])[:120]] += 1
                if only is not None:
                    tell(f"{ended}")
            except Wrong as wrong:
                codes[f"{argv[0]}: wrong"] += 1
                shown = " ".join(
                    argument if len(argument) < 120 else argument[:120] + "..." for argument in argv
                )
                failures.append(f"icl {shown}: {wrong} [only={number}]")
                tell(failures[-1])
    inputs = sum(codes.values())
    return {"inputs": inputs, "failures": failures, "codes": dict(sorted(codes.items())),
            "reasons": dict(reasons.most_common()), "seconds": round(time.monotonic() - began)}  # fmt: skip


def main(arguments: list[str]) -> int:
    os.environ["OMP_NUM_THREADS"] = "1"  # a fork has no threads of its parent's pool, and waits for them
    told = dict(argument.split("=", 1) for argument in arguments)
    only = int(told["only"]) if "only" in told else None
    sizes = float(told.get("seconds", 600)), int(told.get("seed", 0)), int(told.get("count", 10**6))
    found = campaign(*sizes, only, lambda text: print(text, file=sys.stderr, flush=True))
    print(json.dumps({"seed": int(told.get("seed", 0)), **found}, indent=2))
    return 1 if found["failures"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
