"""Tests of Bartlett's draws against exact Wishart moments (icl.theory.wishart)."""

import numpy as np
import pytest

from icl.random import generator
from icl.tasks.wishart import draw_wishart
from icl.theory.wishart import product_moment

DRAWS = 40_000
SIGMAS = 4.5  # two-sided 7e-6 for each comparison


def _within(sample, exact):
    return bool(abs(sample.mean() - exact) < SIGMAS * sample.std() / np.sqrt(len(sample)))


@pytest.mark.parametrize(("n", "dim"), [(7, 3), (3, 3), (20, 5), (2, 4), (1, 3), (1, 1), (3, 17)])
def test_moments_of_traces(n, dim):
    W_BDD = draw_wishart(generator(0, "check", n), n, dim, DRAWS)
    traces = {1: np.trace(W_BDD, axis1=1, axis2=2)}
    power = W_BDD
    for k in (2, 3):
        power = power @ W_BDD
        traces[k] = np.trace(power, axis1=1, axis2=2)
    for partition in ([1], [2], [3], [1, 1], [2, 1], [1, 1, 1]):
        sample = np.prod([traces[part] for part in partition], axis=0)
        assert _within(sample, product_moment(partition, dim, n)), partition
