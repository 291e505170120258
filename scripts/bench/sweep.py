"""A sweep of 64 jobs as one program against one job after another.

    python scripts/bench/sweep.py [KEY=VALUE ...] [--jobs 4]

Jobs of the basic launcher do not know of each other: a few of them tell how long all would take.
"""

from __future__ import annotations

import argparse
import tempfile

from timing import Measured, icl_in

SEEDS, RATES = 8, "0.005,0.01,0.015,0.02,0.03,0.04,0.05,0.06"
ALL = 64


def sweep(*words: str) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        document, seconds = icl_in(
            folder, "train", "-m", "experiment=ahn/theorem3", "checks=[]", "logger=none", *words
        )
    if document["failed"]:
        raise SystemExit(f"{document['failed']} jobs have failed: {' '.join(words)}")
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("overrides", nargs="*", default=["train.batch=500", "train.steps=2000"])
    parser.add_argument("--jobs", type=int, default=4, help="jobs of the basic launcher that are timed")
    args = parser.parse_args()
    together = sweep(
        f"seed=range({SEEDS})", f"optimizer.lr={RATES}", "hydra/launcher=vectorized", *args.overrides
    )
    first = sweep("seed=0", "optimizer.lr=0.02", *args.overrides)
    more = sweep(f"seed=range(1,{args.jobs + 2})", "optimizer.lr=0.02", *args.overrides)
    for name, index in (("wall", 0), ("CPU", 1)):
        each = (more[index] - first[index]) / args.jobs
        basic = first[index] + (ALL - 1) * each
        print(
            f"{ALL} jobs, {' '.join(args.overrides)}, {name}: {basic / together[index]:.1f} times as fast; "
            f"vectorized {together[index]:.1f} s, basic {basic:.1f} s ({each:.2f} s a job)"
        )


if __name__ == "__main__":
    main()
