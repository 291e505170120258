import numpy as np

from icl.checks.giannou import corollaryE_2
from icl.checks.giannou.corollaryE_2 import CorollaryE2
from tests.checks.asking import Mutant, holds, seen
from tests.checks.giannou.losses import wrong_losses


@holds(CorollaryE2, *({"mu": mu} for mu in (1e-3, 0.1, 5.0)), samples=200)
def test_corollary_e2(check, finding):
    assert finding.measured["inverse"] > 0.9  # E.2 is sharp


test_a_tighter_bound_fails = seen(
    CorollaryE2,
    Mutant(corollaryE_2, "inverse_share", lambda right, H, E, mu: 1.2 * right(H, E, mu)),
    *wrong_losses("step_off"),
    samples=200,
)


def test_the_least_size():
    assert np.isfinite(CorollaryE2(samples=1, dim=1, context=1).measure().measured["inverse"])
