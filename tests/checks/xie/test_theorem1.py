import math

import pytest
import torch

from icl.checks.verdict import Weights
from icl.checks.xie.support.saturation import Saturation
from icl.checks.xie.theorem1 import Theorem1
from icl.tasks import LinearRegression
from tests.checks.asking import elsewhere, held, refuses


def test_one_head_is_enough_for_a_guess_that_is_the_prior():
    at_zero = Theorem1(4, 6, prior_mean_norm=0.0, restarts=1).measure()
    assert at_zero.verdict == "holds" and at_zero.measured["saturates_at"] == 1
    assert at_zero.measured["saturates_at_linear_guess"] == 4
    assert at_zero.control.measured == pytest.approx(4 - 20 / 11)  # against no heads at all
    at_prior = Theorem1(4, 6, prior_mean=[1, 0, 2, 0], guess_vector=[1, 0, 2, 0], guess_bias=0, restarts=1)
    measured = at_prior.measure().measured
    assert (measured["saturates_at"], measured["saturates_at_linear_guess"]) == (4, 1)
    assert measured["saturates_at_bias"] == 1


def test_d_heads_that_miss_leave_d_plus_one(monkeypatch):
    heads = Saturation.heads
    monkeypatch.setattr(Saturation, "heads", lambda case: (heads(case)[0], (1 + 1e-5) * heads(case)[1]))
    finding = Theorem1(3, 4, restarts=1).measure()
    measured = finding.measured
    assert finding.verdict == "holds"
    assert measured["saturates_at"] == measured["saturates_at_linear_guess"] == 4
    assert not any("not tight" in remark for remark in finding.remarks)


def saturated(law, family="multihead", extra=0):
    heads = [Saturation(law.replica(r)).heads() for r in range(len(law.context_R))]
    P_RHPP, Q_RHPP = (torch.stack(matrices) for matrices in zip(*heads, strict=True))
    unused = (0, 0, 0, 0, 0, extra)
    P_RHPP, Q_RHPP = (torch.nn.functional.pad(matrix, unused) for matrix in (P_RHPP, Q_RHPP))
    return Weights(family, {"P": P_RHPP[:, None], "Q": Q_RHPP[:, None]}, law)


def test_judges_weights():
    task = LinearRegression(3, 8, prior_mean=[1, 2, 0], guess_bias=0.5, read_out=1)
    law = task.law([0, 4])
    for extra in (0, 1, 4):
        finding = held(Theorem1(), saturated(law, extra=extra))
        assert finding.measured["risk_excess"] == pytest.approx(0, abs=1e-12)
        assert finding.measured["gradient_norm"] < 1e-11
        assert finding.measured["heads"] == 3 + extra
        assert finding.measured["excess_over_gd_by_seed"] == pytest.approx([2 * 5.25 / 26] * 2)
    weights = saturated(law)
    weights.matrices["Q"][0] *= 1.5
    finding = Theorem1().judge(weights)
    elsewhere(finding)
    assert finding.measured["risk_excess_by_seed"][0] > 0.02 > finding.measured["risk_excess_by_seed"][1]
    weights.matrices["Q"][0] /= 1.5
    weights.matrices["Q"][1] *= float("nan")  # which the first seed's number must not hide
    finding = Theorem1().judge(weights)
    assert finding.verdict == "undecided" and math.isnan(finding.measured["risk_excess"])


def test_judges_a_single_head_where_one_is_enough():
    law = LinearRegression(2, 5, read_out=1).law([0])
    P, Q = torch.zeros(2, 1, 1, 3, 3, dtype=torch.float64)
    P[..., -1, -1], Q[..., :2, :2] = 1, 5 / 8 * torch.eye(2)
    finding = Theorem1().judge(Weights("full", {"P": P, "Q": Q}, law))
    assert finding.verdict == "holds"
    assert finding.measured["excess_over_gd_by_seed"] == pytest.approx([0], abs=1e-14)
    shifted = LinearRegression(2, 5, prior_mean=[1, 0], read_out=1).law([0])
    refuses(Theorem1(), (Weights("full", {"P": P, "Q": Q}, shifted), "from 2 heads on, these have 1"))
