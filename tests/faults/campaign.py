"""Campaign of faults: `python -m tests.faults.campaign seconds=600 seed=0` harms commands while they run,
until the time is over or `stories=30` are done, with `commands=train,check` of these commands alone.

Each line of what fails ends in the numbers that repeat it: `python -m tests.faults.campaign only=SEED`.
"""

import contextlib
import io
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from icl.cli import main as icl
from tests.faults.stories import COMMANDS, Wrong, choose, straight


def campaign(
    names: list[str], seconds: float, seed: int, stories: int, only: int | None, tell: Any
) -> dict[str, Any]:
    """Return the totals: the stories tried by kind, and every failure in a line."""
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
        numbers = [only] if only is not None else range(seed * 1_000_000, seed * 1_000_000 + stories)
        for number in numbers:
            if time.monotonic() - began > seconds:
                break
            rng = random.Random(number)
            name = rng.choice(names)
            expected, writes = undisturbed[name]
            story, told = choose(rng, name, writes)
            tried[f"{name}: {story.__name__}"] += 1
            try:
                story(base, name, *told, expected)
            except Wrong as wrong:
                failures.append(f"{wrong} [only={number}]")
                tell(failures[-1])
            tell(f"{sum(tried.values())} stories, {len(failures)} failures, {time.monotonic() - began:.0f} s")
        writes_by_name = {name: writes for name, (_, writes) in undisturbed.items()}
    return {
        "stories": sum(tried.values()),
        "failures": failures,
        "tried": dict(sorted(tried.items())),
        "writes": writes_by_name,
        "seconds": round(time.monotonic() - began),
    }


def main(arguments: list[str]) -> int:
    given = dict(argument.split("=", 1) for argument in arguments)
    only = int(given["only"]) if "only" in given else None
    sizes = float(given.get("seconds", 600)), int(given.get("seed", 0)), int(given.get("stories", 10**6))
    names = given["commands"].split(",") if "commands" in given else list(COMMANDS)
    found = campaign(names, *sizes, only, lambda text: print(text, file=sys.stderr, flush=True))
    print(json.dumps(found, indent=2))
    return 1 if found["failures"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
