"""Tests of tilted Wishart draws: unbiased for what is known exactly, with weights whose mean is 1."""

import numpy as np
import pytest
from scipy.stats import norm

from icl.random import generator
from icl.stats import effective_size, tail_share
from icl.tasks.tilted import INFLATIONS, density_ratios, draw_tilted
from icl.theory.wishart import trace_moment

SIZES = [(1, 1), (1, 7), (2, 2), (3, 2), (5, 4), (5, 5), (5, 10), (5, 20), (6, 3)]
BATCH, COMPONENTS = 20_000, len(INFLATIONS)
QUANTILE = float(norm.isf(0.0005 / 40))  # 99.9 % over all tests of this file together


def mean_and_error(values_B, components=COMPONENTS):
    """Return mean and error; stratified: the error is that of the components' own means."""
    strata = [values_B[i::components] for i in range(components)]
    variance = sum(len(stratum) * stratum.var(ddof=1) for stratum in strata) / len(values_B) ** 2
    return float(values_B.mean()), float(np.sqrt(variance))


@pytest.mark.parametrize(("dim", "n"), SIZES)
def test_weights_have_mean_1_and_exact_moments(dim, n):
    W_BDD, weight_B = draw_tilted(generator(1, "train"), n, dim, BATCH)
    assert weight_B.max() <= len(INFLATIONS) * (1 + 1e-12) and weight_B.min() >= 0
    powers = {0: np.ones(BATCH)}
    for k in (1, 2, 3, 6):
        powers[k] = np.linalg.matrix_power(W_BDD, k).trace(axis1=1, axis2=2)
    for k, trace_B in powers.items():
        exact = 1.0 if k == 0 else float(trace_moment(k, dim, n)) / n**k
        mean, error = mean_and_error(weight_B * trace_B)
        assert error < (0.02 if k < 6 else 0.2) * exact
        assert abs(mean - exact) < QUANTILE * error, (k, mean, exact, error)


def test_a_component_of_its_own_has_the_density_ratio_of_its_draws():
    """Reweight plain draws by r_c, which gives the means of inflated ones: the ratio alone, the other way."""
    n, dim, c = 10, 3, 1.3
    s_BD = np.linalg.eigvalsh(draw_tilted(generator(4, "train"), n, dim, 100_000, (1,))[0])
    ratio_B = density_ratios(s_BD, n, (c,))[:, 0]
    inflated_BD = np.linalg.eigvalsh(draw_tilted(generator(5, "train"), n, dim, 100_000, (1,))[0])
    inflated_BD[:, -1] *= c
    for bounded in (np.tanh, np.cos):
        wanted, error = mean_and_error(bounded(inflated_BD).prod(1), 1)
        found, own = mean_and_error(ratio_B * bounded(s_BD).prod(1), 1)
        assert own < 0.02 and abs(found - wanted) < QUANTILE * np.hypot(error, own)


def test_summaries():
    assert effective_size(np.ones(7)) == pytest.approx(7) and effective_size(np.array([1.0, 0, 0])) == 1
    assert tail_share(np.ones(1000)) == pytest.approx(0.1) and tail_share(np.zeros(5)) == 0
