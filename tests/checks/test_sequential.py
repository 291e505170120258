import numpy as np
import pytest
import torch
from scipy.stats import norm

from icl.checks.sequential import ALPHA, ROUNDS, compare, size_for
from icl.progress import listening

ZERO = torch.zeros(1, dtype=torch.float64)


def normal(*means, seed=0, spread=1.0):
    """Return draws of normal quantities; `means` may be functions of how many values were drawn before."""
    rng, drawn = np.random.default_rng(seed), [0]

    def draw(batch):
        now = [mean(drawn[0]) if callable(mean) else mean for mean in means]
        drawn[0] += batch
        return torch.tensor(spread * rng.standard_normal((batch, len(means))) + now)

    return draw


def test_a_true_formula_holds_on_the_first_sample():
    found = compare(normal(0.0, 3.0), torch.tensor([0.0, 3.0]).double(), 300, 1000)
    assert (found.verdict, found.rounds, found.samples) == ("holds", 1, 1000)
    assert found.quantile == pytest.approx(norm.isf(ALPHA / 4), rel=5e-3)  # shared by two means


def in_the_first(drawn):
    return 0.3 * (drawn < 1000)


@pytest.mark.parametrize(
    ("means", "verdict", "rounds"),
    [
        *(((0.0, wrong), "fails", ROUNDS) for wrong in (-0.3, 0.3)),  # every sample rejects it
        ((0.0, in_the_first), "holds", 2),  # a larger sample takes it back
        ((0.0, lambda drawn: 0.3 if drawn < 1000 else -0.3), "undecided", ROUNDS),  # on both sides
        ((in_the_first, lambda drawn: 0.3 * (drawn >= 1000)), "undecided", ROUNDS),  # of different means
        ((0.0, float("nan")), "undecided", ROUNDS),
    ],
)
def test_a_formula_fails_where_every_sample_rejects_one_mean_on_one_side(means, verdict, rounds):
    found = compare(normal(*means), torch.zeros(2).double(), 500, 1000)
    assert (found.verdict, found.rounds, found.samples) == (verdict, rounds, 1000 << (rounds - 1))


@pytest.mark.parametrize(("formula", "verdict"), [(2.0, "holds"), (2 * (1 + 1e-12), "fails")])
def test_what_does_not_vary_is_compared_to_rounding(formula, verdict):
    found = compare(normal(2.0, spread=0.0), torch.tensor([formula], dtype=torch.float64), 64, 100)
    assert found.verdict == verdict


@pytest.mark.parametrize("block", [1, 7, 100, 1000])
def test_blocks_are_merged_into_the_moments_of_the_whole(block):
    values = 1e6 + np.random.default_rng(3).standard_normal((100, 2))
    rest = iter(values)
    found = compare(
        lambda batch: torch.tensor(np.array([next(rest) for _ in range(batch)])),
        torch.tensor([1e6, 1e6]).double(),
        block,
        100,
    )
    np.testing.assert_allclose(found.mean_K, values.mean(0), rtol=1e-14)
    np.testing.assert_allclose(found.stderr_K, values.std(0, ddof=1) / 10, rtol=1e-6)


def test_the_error_it_says_it_sees_is_rejected_in_39_of_40_samples():
    found = compare(normal(1.0), torch.ones(1).double(), 1000, 1000)
    shift = float(found.sees_K)
    rejected = [
        compare(normal(1.0, seed=s), torch.ones(1).double() + shift, 1000, 1000).rounds > 1
        for s in range(200)
    ]
    assert np.mean(rejected) > 0.93


@pytest.mark.parametrize(("precision", "size"), [(0.01, 10_000), (1.0, 500), (1e-4, 20_000)])
def test_the_size_is_what_the_precision_takes_within_limits(precision, size):
    found = size_for(normal(0.0), 100, torch.tensor([precision]).double(), 500, 20_000)
    assert found == pytest.approx(size, rel=0.2)


def test_the_listener_hears_of_the_blocks():
    heard = []
    with listening(lambda what, share, seconds: heard.append((what, share))):
        compare(normal(0.0), ZERO, 300, 1000, "draws")
    assert heard == [("draws", share) for share in (0.25, 0.5, 0.75, 1.0)]
