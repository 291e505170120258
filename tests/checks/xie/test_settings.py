"""What tests/conformance cannot know: the limits of each check, and settings that exclude each other."""

from __future__ import annotations

import pytest

from icl.checks.xie.gd_forward import GDForward
from icl.checks.xie.gd_lower_bound import GdLowerBound
from icl.checks.xie.initial_guess import AroundPrior, WithGuess, law_around
from icl.checks.xie.lemma1 import Lemma1
from icl.checks.xie.lemma3 import Lemma3
from icl.checks.xie.prior_gap import PriorGap
from icl.checks.xie.theorem1 import Theorem1
from icl.checks.xie.theorem2 import Theorem2
from icl.checks.xie.theorem4 import Theorem4
from icl.errors import InputError
from tests.checks import refused

REFUSED = {
    AroundPrior: [
        *[("dim", {"dim": dim}) for dim in (0, 41)],
        ("context", {"context": 0}),
        ("context", {"context": [3, 4]}),
        ("prior_mean", {"prior_mean": [1, 2]}),
        ("prior_mean_norm", {"prior_mean_norm": -1}),
        ("prior_mean", {"dim": 2, "prior_mean": [1, 2], "prior_mean_norm": 1}),
    ],
    WithGuess: [
        ("guess_vector", {"guess_vector": [1, 2]}),
        ("guess_vector_norm", {"guess_vector_norm": -1}),
        ("guess_vector", {"dim": 2, "guess_vector": [1, 2], "guess_vector_norm": 1}),
        ("guess_bias", {"guess_bias": float("inf")}),
    ],
    GDForward: [
        *[("eta", {"eta": eta}) for eta in (0, [], [1, -1], "large")],
        ("context", {"context": 10_000}),
        *[("samples", {"samples": samples}) for samples in (0, 10**6)],
    ],
    GdLowerBound: [("prior_mean", {"prior_mean_norm": 0.0})],
    Lemma1: [("heads", {"heads": heads}) for heads in (0, 10**4)],
    Lemma3: [
        *[("hidden", {"hidden": hidden}) for hidden in (0, 10**5)],
        ("context", {"context": 10_000}),
        ("samples", {"samples": 0}),
    ],
    PriorGap: [
        ("prior_mean", {"prior_mean_norm": 0.0}),
        ("guess_vector", {"guess_vector_norm": 0}),
        ("guess_bias", {"guess_bias": 0}),
    ],
    Theorem1: [("dim", {"dim": 15}), ("restarts", {"restarts": 0})],
    Theorem2: [
        *[("dim", {"dim": dim}) for dim in (0, 41)],
        *[
            ("contexts", {"contexts": contexts})
            for contexts in ([10], 10, "10", [10, 10], [0, 10], [1, 2.5], [1, 10**12])
        ],
        ("prior_mean", {"prior_mean_norm": 0.0}),
        ("prior_mean", {"dim": 2, "prior_mean": [0, 0]}),
    ],
    Theorem4: [("context", {"context": 10**7})],
}
WITH_A_PRIOR = [
    AroundPrior, GDForward, GdLowerBound, Lemma1, Lemma3, PriorGap, Theorem1, Theorem2, Theorem4
]  # fmt: skip


@pytest.mark.parametrize("check", REFUSED)
def test_refuses_impossible_settings(check):
    refused.insist(check, REFUSED[check])


@pytest.mark.parametrize("key", ["guess_vector_norm", "guess_bias"])
def test_refuses_a_guess_beyond_its_arithmetic(key):
    WithGuess(dim=3, **{key: 1e6})
    with pytest.raises(InputError, match=rf"^check\.{key.removesuffix('_norm')}: .* must be at most 1e\+06"):
        WithGuess(dim=3, **{key: 2e6})


@pytest.mark.parametrize("check", WITH_A_PRIOR)
def test_refuses_a_prior_mean_beyond_its_arithmetic(check):
    check(dim=3, prior_mean_norm=1e6)  # spread over three entries, it may come back a few ulps larger
    for size in (1.001e6, 1e300):
        with pytest.raises(InputError, match=r"^check\.prior_mean: .* must be at most 1e\+06"):
            check(dim=3, prior_mean_norm=size)


def test_the_prior_mean_is_ones_unless_given():
    assert law_around(3, 5, 0, None, None).mean_RD.tolist() == [[1, 1, 1]]
    assert law_around(2, 5, 0, [3, -1], None).mean_RD.tolist() == [[3, -1]]
    assert law_around(4, 5, 0, None, 6.0).mean_RD.tolist() == [[3, 3, 3, 3]]
    assert law_around(4, 5, 0, None, 0).mean_RD.tolist() == [[0, 0, 0, 0]]


def test_the_guess_has_norm_and_bias_one_unless_given():
    assert WithGuess(dim=4).guess_D.tolist() == [0.5] * 4 and WithGuess(dim=4).guess_bias == 1
    assert WithGuess(dim=4, guess_vector_norm=6).guess_D.tolist() == [3] * 4
    assert WithGuess(dim=2, guess_vector=[3, -1], guess_bias=-2).guess_D.tolist() == [3, -1]
