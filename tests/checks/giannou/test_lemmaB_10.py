import pytest
import torch

from icl.checks.giannou.lemmaB_10 import LemmaB10
from icl.checks.giannou.support.one_step import BEND, beyond, constant_of, growth_bounds


@pytest.mark.parametrize(
    "mu, verdict",
    [
        *((mu, "holds") for mu in (1e-4, 0.01, 0.1, 1.4, 1.414213)),
        *((mu, "fails") for mu in (1.414214, 1.43, 30, 1e3)),
    ],
)
def test_lemma_b10_is_true_below_the_root_of_two(mu, verdict):
    finding = LemmaB10(mu=mu, samples=8, steps=60).measure()
    assert finding.verdict == verdict and finding.control.rejected


def test_growth_does_not_stop():
    measured = LemmaB10(mu=2.0, samples=4, steps=500).measure().measured
    assert measured["least_growth_in_a_step"] > 1 and measured["constant"] is None


def test_bounds_on_one_step():
    """Compare rho and the bend with a fine grid of margins; growth is positive from `beyond` on."""
    m = torch.linspace(-60, 60, 240_001, dtype=torch.float64)
    p = torch.sigmoid(-m)
    assert float((p + p * (1 - p) * m).abs().max()) <= 1
    assert 0 <= BEND - float((p * (1 - p) * m**2).max()) < 1e-6
    for mu, error in ((1.42, 1.42**2), (2.0, 4.0), (0.01, 3.0), (2**0.5, 2 + 1e-9)):
        r = beyond(mu, error) * 2.0 ** torch.arange(30).double()
        assert bool((error > 2 * (r + 1 / mu) / (2 + r - 1 / mu)).all())
        assert bool((growth_bounds(mu, r)[0] + error > 0).all())
    assert constant_of(1.5, 1.5**2) is None
    for mu in (0.01, 0.1, 1.4):
        r = constant_of(mu, mu**2)
        assert 2 * (r - 1 / mu) / (2 + r + 1 / mu + (BEND / mu) ** 0.5) == pytest.approx(mu**2, rel=1e-10)
