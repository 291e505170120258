import math

import pytest
import torch

from icl.checks.verdict import Weights
from icl.checks.xie.support import fewer_heads
from icl.checks.xie.support.saturation import Saturation
from icl.checks.xie.theorem1 import Theorem1
from icl.tasks import LinearRegression
from icl.theory.quadratic import QuadraticRisk
from icl.theory.xie.initial_guess import lost_slope
from tests.checks.asking import Mutant, blinded, elsewhere, held, holds, refuses, seen
from tests.checks.xie.test_gd_lower_bound import WIDE


def least(d, C, error):
    return d * (d + 1) / (C + d + 1) + 2 * error / (d * C + 2)


@holds(
    Theorem1,
    {"dim": 5, "context": 10, "prior_mean": [1, 1, 1, 1, 1]},
    {"dim": 1, "context": 1},
    {"dim": 2, "context": 1, "prior_mean": [0.3, -4]},
    {"dim": 3, "context": 2, "guess_vector": [1, 0, -1], "guess_bias": -3.0},
    *({"dim": 3, "prior_mean_norm": norm} for norm in (1e-9, 1e-6, 1e-2, 1e3)),
    {"dim": 4, "context": 40, "seed": 2, "prior_mean_norm": 5.0},
    restarts=1,
    margin=1e6,
    of="largest_difference_beyond_d",
)
def test_holds_and_d_heads_are_enough_but_not_fewer(check, finding):
    d, C = check.dim, check.law.context_R[0]
    measured, w_star = finding.measured, check.law.mean_RD[0]
    risks, lower = measured["risk_by_heads"], measured["certified_lower_bound_by_heads"]
    assert len(risks) == len(lower) == d + 3
    assert risks == sorted(risks, reverse=True)
    assert all(low <= risk + 1e-12 for low, risk in zip(lower, risks, strict=True))
    square = float(w_star.square().sum())
    certified = [least(d, C, square) + lost_slope(d, C, heads) * square for heads in range(1, d + 4)]
    assert lower == pytest.approx(certified, rel=1e-12)
    assert measured["least_risk"] == pytest.approx(least(d, C, square), rel=1e-12)
    assert risks[d - 1 :] == pytest.approx([measured["least_risk"]] * 4, rel=1e-12)
    names = ("saturates_at", "saturates_at_linear_guess", "saturates_at_bias")
    assert [measured[name] for name in names] == [d, d, d]
    assert check.biased.guess_bias == (-3.0 if C == 2 else 1.0)
    assert check.linear.guess_bias == 0 and torch.equal(check.linear.guess_RD, check.biased.guess_RD)
    error = float((check.biased.guess_RD[0] - w_star).square().sum()) + check.biased.guess_bias**2
    assert measured["least_risk_bias"] == pytest.approx(least(d, C, error), rel=1e-12)
    assert any("Not tight" in remark for remark in finding.remarks)


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
    assert not any("Not tight" in remark for remark in finding.remarks)


def missed(heads, guess=None):
    """A construction that is not as good with so many heads: of every guess, or of this one alone."""

    def constructed(right, case, count, scale=1.0):
        of_this = guess is None or (case.guess_D.any() and (case.bias != 0) == (guess == "bias"))
        excess, rounding = right(case, count, scale)
        return excess + 1e-18 * bool(count == heads and of_this), rounding

    return constructed


test_a_construction_or_certificate_that_is_off_is_seen = seen(
    Theorem1,
    *(Mutant(Saturation, "constructed", missed(heads)) for heads in (4, 6)),
    *(
        Mutant(Saturation, "constructed", missed(5, guess), of=f"largest_difference_beyond_d_{guess}")
        for guess in ("linear_guess", "bias")
    ),
    Mutant(fewer_heads, "gap", lambda right, *of: (1 + 1e-10) * right(*of), of="least_risk_error"),
    Mutant(fewer_heads, "gd_risk", lambda right, *of: (1 + 1e-10) * right(*of), of="least_risk_error"),
    # bounds a million times as wide
    WIDE[0],
    blinded(QuadraticRisk, "excess", lambda right, *of: (right(*of)[0], 1e6 * right(*of)[1])),
    # too small a certificate is not attained, too large a one is undercut
    Mutant(
        fewer_heads, "lost_slope", lambda right, *of: (1 - 1e-10) * right(*of), of="largest_certificate_error"
    ),
    Mutant(
        fewer_heads, "lost_slope", lambda right, *of: (1 + 1e-10) * right(*of), of="largest_certificate_error"
    ),
    dim=3,
    context=4,
    restarts=1,
)


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
