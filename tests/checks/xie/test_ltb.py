import pytest

from icl.checks.xie import ltb
from icl.checks.xie.ltb import Ltb
from icl.checks.xie.support import blocks
from tests.checks.asking import Mutant, holds, seen


@holds(
    Ltb,
    {},
    {"dim": 1, "context": 1, "samples": 5},
    {"dim": 3, "context": 30, "prior_mean": [0.0, -3.0, 1.0], "samples": 7},
    {"dim": 4, "prior_mean_norm": 20.0, "samples": 7},
    *({"dim": 3, "prior_mean_norm": norm, "samples": 7} for norm in (1e-12, 1e-9, 1e-6, 1e6)),
    verdict="fails",
)
def test_fails_since_the_best_block_is_the_gradient_step(check, finding):
    measured, d, C = finding.measured, check.dim, check.context
    assert measured["gd_risk"] == pytest.approx(d * (d + 1) / (C + d + 1), rel=1e-9)
    assert measured["gap_left_by_block"] < finding.bound.value < measured["gap_of_lsa"]


test_another_block_or_step_refutes_nothing = seen(
    Ltb,
    Mutant(ltb, "isotropic_step", lambda right, *sizes: 1.01 * right(*sizes), "undecided"),
    Mutant(ltb, "block_of", lambda right, descent: ltb.wrong_blocks(descent)[1], "undecided"),
    Mutant(blocks, "gradient_step", lambda right, w, eta, its: right(w, eta * (1 + 1e-9), its), "undecided"),
    Mutant(ltb.Saturation, "descent_risk", 0.1, "holds"),  # a step of lower risk
    dim=3,
)
