"""`icl train` from nothing with the compiled kernel and with torch's own operations, in turns.

    python scripts/bench/train.py [experiment=ahn/theorem3 KEY=VALUE ...] [--repeats 3]

Imports and exact risks are in both; the end values are compared, too.
"""

from __future__ import annotations

import argparse
from typing import Any

from timing import Measured, compare, icl


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("overrides", nargs="*", default=["experiment=ahn/theorem3"])
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    ends: dict[str, dict[str, Any]] = {}

    def run(kernel: str) -> Measured:
        document, seconds = icl(
            "train", *args.overrides, f"trainer.kernel={kernel}", "logger=none", "checks=[]"
        )
        ends[kernel] = {name: metric["mean"] for name, metric in document["metrics"].items()}
        return seconds

    works = {"eager": lambda: run("eager"), "kernel": lambda: run("tile")}
    compare(" ".join(args.overrides), works, args.repeats)
    for name, eager in ends["eager"].items():
        print(f"  {name}: eager {eager}, kernel {ends['tile'][name]}")


if __name__ == "__main__":
    main()
