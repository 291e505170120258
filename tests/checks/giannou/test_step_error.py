from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import settings as how
from hypothesis import strategies as st

from icl.algorithms import LogisticLoss
from icl.checks.giannou.problems import classified
from icl.checks.giannou.step_error import Setting, Trajectory, inversion_steps, step_error_bound


@how(max_examples=12, deadline=None)
@given(
    st.integers(1, 4),
    st.integers(0, 6),
    st.sampled_from([0.05, 0.3, 5.0]),
    st.integers(100, 600),
    st.integers(0, 999),
)
def test_the_bound_holds_at_random(dim, more, mu, width, seed):
    setting = Setting(dim, dim + more, mu, 1.0, inversion_steps(mu))
    rng = np.random.default_rng(seed)
    loss = LogisticLoss(*classified(rng, 2, dim + more, dim), mu)
    x_BD = torch.from_numpy(rng.standard_normal((2, dim)))
    x_BD = x_BD / x_BD.norm(dim=1, keepdim=True).clamp_min(1)
    errors_B = Trajectory.of(setting.step(width), loss.A_BND, loss.y_BN, x_BD, 1).step_errors(loss)[0]
    assert (errors_B <= step_error_bound(setting, width, loss, x_BD).numpy()).all()
