"""Tests of descents of many starts at once."""

from itertools import pairwise

import numpy as np
import torch
from scipy.optimize import rosen

from icl.models.ahn.descent import descend_each


def rosenbrock(theta_KV, index):
    x, y = theta_KV[:, :-1], theta_KV[:, 1:]
    return (100 * (y - x.square()).square() + (1 - x).square()).sum(1)


def test_every_row_finds_its_own_minimum():
    start_KV = torch.from_numpy(np.random.default_rng(0).uniform(-1, 1.5, (6, 4)))
    end_KV, value_K, _ = descend_each(rosenbrock, start_KV, 200)
    for end_V, value in zip(end_KV, value_K, strict=True):
        assert float(value) == float(torch.tensor(rosen(end_V.numpy()))) or value < 1e-12
    # Rosenbrock's function of 4 variables has a second, local minimum near (-1, 1, 1, 1).
    local_K = end_KV[:, 0] < 0
    torch.testing.assert_close(
        end_KV[~local_K], torch.ones(int((~local_K).sum()), 4).double(), atol=1e-5, rtol=0
    )


def test_rows_do_not_know_of_each_other():
    start_KV = torch.from_numpy(np.random.default_rng(1).uniform(-1, 1.5, (5, 3)))
    together, *_ = descend_each(rosenbrock, start_KV, 15)
    alone = torch.cat([descend_each(rosenbrock, row_V[None], 15)[0] for row_V in start_KV])
    torch.testing.assert_close(together, alone, rtol=1e-6, atol=1e-8)


def test_no_step_raises_a_value_and_a_row_without_a_finite_one_stays():
    def risk(theta_KV, index):
        value_K = theta_KV.pow(4).sum(1)
        return torch.where(index == 1, value_K * float("nan"), value_K)

    start_KV = torch.full((2, 2), 2.0).double()
    values = [descend_each(risk, start_KV, steps)[1][0] for steps in range(1, 6)]
    assert all(after <= before for before, after in pairwise(values))
    assert torch.equal(descend_each(risk, start_KV, 5)[0][1], start_KV[1])


def test_rows_are_told_apart_where_only_some_are_tried_again():
    """Give each row its own function, by index; the first steps of steep ones are halved, others' not."""
    scale_K = torch.tensor([1.0, 1e4, 1e-3]).double()

    def risk(theta_KV, index):
        return (scale_K[index, None] * (theta_KV - index[:, None]).pow(4)).sum(1)

    end_KV, *_ = descend_each(risk, torch.full((3, 2), 5.0).double(), 60)
    torch.testing.assert_close(end_KV, torch.arange(3.0).double()[:, None].expand(-1, 2), atol=1e-2, rtol=0)
