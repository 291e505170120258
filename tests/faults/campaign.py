"""Campaign of faults: `python -m tests.faults.campaign seconds=600 seed=0` harms commands while they run,
until the time is over or `stories=30` are done, with `commands=train,check` of these commands alone;
`table=true` has the stories of the table instead, which are those of the tests.

Each line of what fails ends in the numbers that repeat it: `python -m tests.faults.campaign only=SEED`.
"""

import contextlib
import io
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from icl.cli import main as icl
from tests.faults.stories import COMMANDS, Wrong, choose, straight, tabled


def campaign(
    names: list[str], seconds: float, numbers: Iterable[int] | None, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Return the totals: the stories tried by kind, and every failure in a line. Each number draws a story;
    without numbers the stories are those of the table."""
    tried: Counter[str] = Counter()
    failures: list[str] = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="icl-faults-") as folder:
        base = Path(folder)
        os.environ["HOME"] = str(base)
        for name in names:  # which imports everything, for the processes that are forked from this one
            with contextlib.redirect_stdout(io.StringIO()):
                icl([*COMMANDS[name], f"paths.outputs={base / 'imports' / name}"])
        undisturbed = {name: straight(base, name) for name in names}
        writes = {name: count for name, (_, count) in undisturbed.items()}
        drawn = tabled(names, writes) if numbers is None else (choose(n, names, writes) for n in numbers)
        for name, story, told, where in drawn:
            if time.monotonic() - began > seconds:
                break
            tried[f"{name}: {story.__name__}"] += 1
            try:
                story(base, name, *told, undisturbed[name][0])
            except Wrong as wrong:
                failures.append(f"{wrong} [{where}]")
                tell(failures[-1])
            tell(f"{sum(tried.values())} stories, {len(failures)} failures, {time.monotonic() - began:.0f} s")
    return {
        "stories": sum(tried.values()),
        "failures": failures,
        "tried": dict(sorted(tried.items())),
        "writes": writes,
        "seconds": round(time.monotonic() - began),
    }


def main(arguments: list[str]) -> int:
    os.environ["OMP_NUM_THREADS"] = "1"  # a fork has no threads of its parent's pool, and waits for them
    given = dict(argument.split("=", 1) for argument in arguments)
    first = int(given.get("seed", 0)) * 1_000_000
    numbers: Iterable[int] | None = range(first, first + int(given.get("stories", 10**6)))
    if "only" in given:
        numbers = [int(given["only"])]
    elif "table" in given:
        numbers = None
    names = given["commands"].split(",") if "commands" in given else list(COMMANDS)
    seconds = float(given.get("seconds", 600))
    found = campaign(names, seconds, numbers, lambda text: print(text, file=sys.stderr, flush=True))
    print(json.dumps({"seed": int(given.get("seed", 0)), **found}, indent=2))
    return 1 if found["failures"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
