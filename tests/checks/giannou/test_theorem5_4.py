import numpy as np

from icl.checks.giannou import theorem5_4
from icl.checks.giannou.support import inexact_newton
from icl.checks.giannou.support.inexact_newton import guaranteed_decrease
from icl.checks.giannou.theorem5_4 import Theorem5_4
from tests.checks.asking import Mutant, blinded, holds, seen
from tests.checks.giannou.losses import wrong_losses


@holds(
    Theorem5_4,
    *({"mu": mu} for mu in (1e-3, 0.1, 1e3)),
    {"mu": 0.25, "dim": 2, "context": 3},
    {"mu": 10.0, "seed": 1},
    {"dim": 1, "context": 1},
    samples=24,
)
def test_theorem5_4(check, finding):
    measured = finding.measured
    assert measured["min_decrease_phase1"] >= measured["guaranteed_decrease"] > 0.01
    assert measured["min_decrease_exact"] >= 0.25 - np.log(1.25)
    assert measured["steps_in_phase1"] > 20 and measured["steps_in_phase2"] > 20


def test_guaranteed_decrease_is_above_a_hundredth_for_every_mu():
    assert min(guaranteed_decrease(mu) for mu in np.geomspace(1e-4, 1e4, 400)) > 0.01


test_errors_too_large_too_few_steps_and_wrong_losses_are_seen = seen(
    Theorem5_4,
    Mutant(inexact_newton, "constant_times_error", lambda right, mu, eps_B: 0 * eps_B),
    # no phase two is reached, nor by the control
    blinded(inexact_newton, "largest_error", lambda right, mu, x_BD: 300 * right(mu, x_BD)),
    Mutant(
        inexact_newton, "largest_error", lambda right, *of: right(*of), "undecided", settings={"steps": 3}
    ),
    Mutant(theorem5_4, "guaranteed_decrease", lambda right, mu: 1.5 * right(mu), of="guaranteed_decrease"),
    Mutant(theorem5_4, "guaranteed_decrease", lambda right, mu: 0.8 * right(mu), "undecided"),
    *wrong_losses("step_off"),
    steps=60,
    samples=8,
)
