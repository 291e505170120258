import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as how
from hypothesis import strategies as st

from icl.algorithms import LogisticLoss
from icl.checks.giannou.support.problems import draw_classification
from icl.checks.giannou.support.step_error import StepSetting, Trajectory, inversion_steps, step_error_bound
from icl.checks.giannou.theorem5_2 import Theorem5_2


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
    """Invert eigenvalues mu and mu + 1/4 by Newton's iteration in 60 digits."""
    with mpmath.workdps(60):
        low, high = mpmath.mpf(mu), mpmath.mpf(mu) + 0.25
        x, residuals = 2 * low / (low**2 + high**2), []
        for _ in range(inversion_steps(mu)):
            x = 2 * x - x * low * x
            residuals.append(1 - x * low)
    assert residuals[-1] <= 2.0**-52 * min(mu, 1) < residuals[-2]
