from dataclasses import replace

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as how
from hypothesis import strategies as st

from icl.algorithms import LogisticLoss
from icl.checks.giannou.support import step_error
from icl.checks.giannou.support.problems import draw_classification
from icl.checks.giannou.support.step_error import StepSetting, Trajectory, inversion_steps, step_error_bound
from icl.checks.giannou.theorem5_2 import Theorem5_2
from icl.constructions.giannou import logistic, piecewise
from icl.models.giannou.columns import ColumnStack, Head
from tests.checks.asking import Mutant, blinded, holds, seen


@holds(
    Theorem5_2,
    {"width": 500, "steps": 3},
    {"width": 300, "steps": 2, "mu": 1.0, "dim": 3, "context": 3},
    {"width": 1000, "steps": 2, "dim": 1, "context": 4, "mu": 0.02, "seed": 5},
    {"width": 500, "steps": 2, "mu": 1e-3},
    {"width": 300, "steps": 2, "mu": 30.0, "dim": 2, "context": 2},
)
def test_holds(check, finding):
    measured = finding.measured
    assert measured["layers"] == 11 + 2 * measured["inversion"] and measured["heads"] == 3
    assert measured["width"] == 6 * check.dim + 4
    assert len(measured["error_by_width"]["widths"]) == len(measured["error_by_width"]["errors"])
    assert measured["slope"] < -1.4
    errors = measured["error_by_inversion"]["errors"]
    assert errors[0] > 10 * errors[-1]


def negated(head):
    return Head(-head.V_PP, head.K_PP, head.Q_PP)


def wrongly(from_end, change):
    """The heads changed so many layers from the end; -3 is the fourth from the start."""

    def build(right, *args):
        stack = right(*args)
        layers = list(stack.layers)
        layers[-from_end] = replace(layers[-from_end], heads=change(list(layers[-from_end].heads)))
        return ColumnStack(stack.rows, layers)

    return build


test_a_wrong_construction_is_seen = seen(
    Theorem5_2,
    *(
        Mutant(step_error, "newton_step", wrongly(*of))
        for of in (
            (5, lambda heads: heads[:2]),  # no mu x
            (4, lambda heads: heads[:1]),  # the direction is not cleared
            (3, lambda heads: heads[1:]),  # no decrement
            (1, lambda heads: heads[:1]),  # not restored
            (-3, lambda heads: heads[:1]),  # not transposed
        )
    ),
    # of a head that is negated the control's negative is the right one
    *(
        blinded(step_error, "newton_step", wrongly(from_end, lambda heads: [negated(heads[0]), *heads[1:]]))
        for from_end in (5, 1, 0)  # gradient, forward, s of which p (1 - p) is even
    ),
    width=500,
    steps=2,
)


def stated(factor):
    """A function's error, `factor` times as large as it is."""
    return lambda right, *of: replace(right(*of), error=factor * right(*of).error)


test_a_stated_error_or_radius_that_is_not_so_is_seen = seen(
    Theorem5_2,
    *(
        Mutant(piecewise, name, stated(factor), of="interpolation_off")
        for name in ("variance_of_label", "half_square", "probability", "step_size")
        for factor in (0.3, 10.0)
    ),
    Mutant(step_error, "radius_of_iterates", lambda right, *of: 0.9 * right(*of), of="knots_end_off"),
    Mutant(logistic.Approximations, "product_error", lambda right, by, n: right(by, n) * 4),
    width=500,
    steps=2,
)


@pytest.mark.parametrize("inversion", [1, 3])
def test_too_few_inversion_steps_do_not_refute(inversion):
    finding = Theorem5_2(width=500, steps=2, inversion=inversion).measure()
    assert finding.verdict == "undecided" and finding.measured["layers"] == 11 + 2 * inversion
    assert finding.control.rejected and "check.inversion=null" in finding.notes[-1]


@how(max_examples=12, deadline=None)
@given(
    st.integers(1, 4),
    st.integers(0, 6),
    st.sampled_from([0.05, 0.3, 5.0]),
    st.integers(100, 600),
    st.integers(0, 999),
)
def test_the_bound_holds_at_random(dim, more, mu, width, seed):
    setting = StepSetting(dim, dim + more, mu, 1.0, inversion_steps(mu))
    rng = np.random.default_rng(seed)
    loss = LogisticLoss(*draw_classification(rng, 2, dim + more, dim), mu)
    x_BD = torch.from_numpy(rng.standard_normal((2, dim)))
    x_BD = x_BD / x_BD.norm(dim=1, keepdim=True).clamp_min(1)
    errors_B = Trajectory.of(setting.step(width), loss.A_BND, loss.y_BN, x_BD, 1).step_errors(loss)[0]
    assert (errors_B <= step_error_bound(setting, width, loss, x_BD).numpy()).all()


@pytest.mark.parametrize("mu", [0.02, 0.1, 1.0])
def test_steps_of_inversion_are_those_that_the_worst_hessian_takes(mu):
    """With eigenvalues mu and mu + 1/4, each inverted by Newton's iteration in 60 digits."""
    with mpmath.workdps(60):
        low, high = mpmath.mpf(mu), mpmath.mpf(mu) + 0.25
        x, residuals = 2 * low / (low**2 + high**2), []
        for _ in range(inversion_steps(mu)):
            x = 2 * x - x * low * x
            residuals.append(1 - x * low)
    assert residuals[-1] <= 2.0**-52 * min(mu, 1) < residuals[-2]
