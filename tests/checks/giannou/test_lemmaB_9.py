import pytest

from icl.algorithms import LogisticLoss
from icl.checks.giannou.lemmaB_9 import LemmaB9
from tests.checks.asking import Mutant, seen


@pytest.mark.parametrize(
    "mu, verdict", [(0.1, "holds"), (1.4, "holds"), (1.43, "fails"), (2, "fails"), (30, "fails")]
)
def test_lemma_b9_is_true_below_the_root_of_two(mu, verdict):
    finding = LemmaB9(mu=mu, samples=8).measure()
    assert finding.verdict == verdict and finding.control.rejected
    assert finding.measured["growth_far_out"] == pytest.approx(mu**2 - 2, abs=1e-3)


test_a_step_that_stays_put_fails = seen(
    LemmaB9, Mutant(LogisticLoss, "damped_step", lambda right, loss, x_BD: x_BD), mu=0.1
)
