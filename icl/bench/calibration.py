"""`icl bench bench=calibration`: how often a sampled test calls a true formula false.

Each seed draws its own prompts. ahn/theorem5 as a whole at smoke scale; and Theorem 1's formula on the least
sample there is, at sizes where a prompt's loss has the heaviest tail.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from icl.checks.ahn.theorem5 import Theorem5
from icl.checks.sequential import ALPHA, LEAST
from icl.checks.settings import law_of
from icl.checks.token_evidence import compare_eq_8
from icl.random import generator
from icl.theory.closed_forms import theorem1_preconditioner, theorem1_risk

SEEDS = 112  # for each repeat: 1008 with the nine of the default
SMOKE = 5000  # samples, as in conf/check/ahn/theorem5.yaml
DIM, CONTEXT = 2, 3


def run(repeats: int) -> Iterator[dict[str, Any]]:
    """Rows as they are measured."""
    yield calibrated("ahn/theorem5 at smoke", _theorem5, SEEDS * repeats)
    yield calibrated(f"eq. (6)'s risk, {LEAST} prompts, d = {DIM}, N = {CONTEXT}", _eq_6, SEEDS * repeats)


def calibrated(name: str, test: Callable[[int], tuple[str, int]], seeds: int) -> dict[str, Any]:
    """`test` answers a seed's verdict and how many samples it took."""
    started = time.monotonic()
    found = [test(seed) for seed in range(seeds)]
    fails, undecided = (sum(verdict == which for verdict, _ in found) for which in ("fails", "undecided"))
    again = sum(rounds > 1 for _, rounds in found)
    return {
        "name": f"{name}, {seeds} seeds: {fails} fail, {undecided} undecided; {again} took a second sample, "
        f"{ALPHA * seeds:.2g} expected of normal means",
        "fails": fails,
        "undecided": undecided,
        "second_samples": again,
        "seeds": seeds,
        "seconds": time.monotonic() - started,
        "target": "none fails",
        "met": fails == 0,
    }


def _theorem5(seed: int) -> tuple[str, int]:
    finding = Theorem5(seed=seed, samples=SMOKE).measure()
    return finding.verdict, finding.measured["token_rounds"]


def _eq_6(seed: int) -> tuple[str, int]:
    law, rng = law_of(DIM, CONTEXT, seed), generator(seed, "check")
    A_DD = theorem1_preconditioner(law.Sigma_RDD[0], CONTEXT)
    formula = [float(theorem1_risk(law.Sigma_RDD[0], CONTEXT))]
    found = compare_eq_8(law, [A_DD[None]], formula, rng, most=LEAST)
    return found.verdict, found.rounds
