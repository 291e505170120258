"""What tests/conformance cannot know: the limits of each check, and settings that exclude each other."""

from __future__ import annotations

import pytest

from icl.checks.ahn.lemma1 import Lemma1
from icl.checks.ahn.lemma4 import Lemma4
from icl.checks.ahn.lemma5 import Lemma5
from icl.checks.ahn.settings import OnS, Prompts
from icl.checks.ahn.theorem1 import Theorem1
from icl.checks.ahn.theorem2 import Theorem2
from icl.checks.ahn.theorem3 import Theorem3
from icl.checks.ahn.theorem4 import Theorem4
from icl.checks.ahn.theorem5 import Theorem5
from tests.checks import refused

REFUSED = {
    Prompts: [
        ("dim", {"dim": 0}),
        ("context", {"context": 0}),
        ("context", {"context": [3, 4]}),
        ("eigenvalues", {"eigenvalues": [1, 2]}),
        ("eigenvalues", {"dim": 2, "eigenvalues": [1, 0]}),
        ("covariance", {"dim": 2, "covariance": [[1, 2], [2, 1]]}),
        ("eigenvalues", {"dim": 2, "eigenvalues": [1, 1], "covariance": [[1, 0], [0, 1]]}),
    ],
    OnS: [
        ("dim", {"dim": 33}),
        ("samples", {"samples": 999}),
        ("distortion", {"dim": 2, "distortion": [[1, 1], [1, 1]]}),
    ],
    Lemma1: [
        *[("layers", {"layers": layers}) for layers in (0, 17)],
        ("samples", {"samples": 0}),
        ("context", {"context": 10_000}),
    ],
    Lemma4: [
        *[("layers", {"layers": layers}) for layers in (1, 13)],
        ("dim", {"dim": 33}),
        ("samples", {"samples": 0}),
    ],
    Lemma5: [
        *[("layers", {"layers": layers}) for layers in (0, 5)],
        ("samples", {"samples": 0}),
        ("context", {"context": 10_000}),
    ],
    Theorem1: [("dim", {"dim": 51})],
    Theorem2: [
        *[("dim", {"dim": dim}) for dim in (1, 13)],
        *[("context", {"context": context}) for context in (0, 10**6)],
        ("starts", {"starts": 0}),
    ],
    Theorem3: [("layers", {"layers": layers}) for layers in (0, 13)],
    Theorem4: [*[("layers", {"layers": layers}) for layers in (0, 5)], ("starts", {"starts": 0})],
    Theorem5: [
        *[("dim", {"dim": dim}) for dim in (0, 65)],
        *[("context", {"context": context}) for context in (0, 513)],
        ("samples", {"samples": 4999}),
    ],
}


@pytest.mark.parametrize("check", REFUSED)
def test_refuses_impossible_settings(check):
    refused.insist(check, REFUSED[check])


def test_w_has_the_covariance_that_the_statement_takes():
    for check, inverse in ((Lemma1, False), (Theorem1, False), (Lemma4, True), (Theorem3, True)):
        law = check(dim=2, covariance=[[2, 1], [1, 1]]).law
        Sigma_w = law.Sigma_RDD[0].inverse() if inverse else law.Sigma_RDD.new_ones(2).diag()
        assert law.Sigma_w_RDD[0].allclose(Sigma_w)
