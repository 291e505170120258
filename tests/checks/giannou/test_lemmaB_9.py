import pytest

from icl.algorithms import LogisticLoss
from icl.checks.giannou import lemmaB_9
from icl.checks.giannou.lemmaB_9 import LemmaB9
from icl.checks.giannou.support import one_step
from tests.checks.asking import Mutant, seen
from tests.checks.giannou.losses import wrong_losses


@pytest.mark.parametrize(
    "mu, verdict",
    [
        *((mu, "holds") for mu in (1e-4, 0.1, 1.4, 1.414213, 1.4142135)),
        *((mu, "fails") for mu in (2**0.5, 1.4142136, 1.414214, 1.43, 2, 30)),
    ],
)
def test_lemma_b9_is_true_below_the_root_of_two(mu, verdict):
    finding = LemmaB9(mu=mu, samples=8).measure()
    assert finding.verdict == verdict and finding.control.rejected
    assert finding.measured["growth_far_out"] == pytest.approx(mu**2 - 2, abs=1e-3)


test_a_wrong_step_or_bound_decides_nothing = seen(
    LemmaB9,
    Mutant(LogisticLoss, "damped_move", lambda right, loss, x_BD, g=None: 0 * x_BD, "undecided"),
    *wrong_losses("step_off", "undecided"),
    Mutant(lemmaB_9, "constant_of", lambda right, *of: right(*of) + 0.01, "undecided", "constant_off"),
    Mutant(one_step, "BEND", 0.44, "undecided", "bend_off"),
    Mutant(one_step, "growth_bounds", lambda right, mu, r: tuple(b - 1 for b in right(mu, r)), "undecided"),
    mu=0.1,
    samples=8,
)
