import pytest
import torch

from icl.checks.lds.lemma4_1 import Lemma41
from icl.checks.lds.support.checkerboard import forced_zeros
from icl.theory import dynamical_system as theory
from tests.checks.asking import held


@pytest.mark.parametrize("settings", [{"window": w} for w in (1, 2, 3)] + [{"setting": s} for s in "bcd"])
def test_lemma_4_1_holds(settings):
    finding = held(Lemma41(**({"window": 2, "length": 9, "dim": 2, "samples": 800} | settings)))
    measured = finding.measured
    if settings.get("window") == 1:
        assert measured["gradient_in_X_at_best_head"] < 1e-9
    elif "setting" not in settings:
        assert measured["gradient_in_X_at_best_head"] > 1e-4 > measured["gradient_in_weights_at_best_head"]


def test_lemma_4_1_counts_the_zeros_of_12():
    """Count zeros of (12): for odd s + j free at m + n even, for even s + j at m + n odd."""
    for window in (1, 2, 3):
        a, b = theory.pairs(window)
        for j in range(1, window + 1):
            free = (a + b) % 2 == (0 if (window + j) % 2 else 1)
            assert torch.equal(forced_zeros(window)[j - 1], ~free)


def test_lemma_4_1_s_control_is_the_largest_of_eight_draws(monkeypatch):
    """Draw weights eight times: one draw may have as good as no forced entry, which would decide nothing."""
    right = Lemma41._head

    def head(self, pattern, step):
        return right(self, pattern or step < 7, step)

    monkeypatch.setattr(Lemma41, "_head", head)
    assert Lemma41(window=2, length=8, dim=2).measure().verdict == "holds"
    monkeypatch.setattr(Lemma41, "_head", lambda self, pattern, step: right(self, True, step))
    finding = Lemma41(window=2, length=8, dim=2).measure()
    assert finding.verdict == "undecided" and not finding.control.rejected
