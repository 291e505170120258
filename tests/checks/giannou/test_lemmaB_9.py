import pytest

from icl.checks.giannou.lemmaB_9 import LemmaB9


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
