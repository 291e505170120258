import numpy as np
import pytest
import torch

from icl.checks.ahn.lemma1 import Lemma1
from icl.checks.ahn.support import descent
from icl.checks.verdict import Weights
from icl.tasks import LinearRegression
from tests.checks.asking import held, refuses


def weights(A_RLDD, law=None, **other):
    law = law or LinearRegression(3, [8, 5], eigenvalues=[1, 0.5, 2]).law([0, 1])
    return Weights(other.pop("family", "sparse_a"), {"A": A_RLDD}, law, **other)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_judges_any_weights_of_eq_8(dtype):
    A_RLDD = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 3, 3, 3))).to(dtype)
    assert len(held(Lemma1(), weights(A_RLDD)).measured["max_error_by_seed"]) == 2
    symmetric = held(Lemma1(), weights(A_RLDD + A_RLDD.mT))
    assert "A is symmetric" in symmetric.control.description
    assert Lemma1().judge(weights(0 * A_RLDD)).verdict == "holds"
    A_RLDD[1, 0, 0, 0] = float("nan")
    assert Lemma1().judge(weights(A_RLDD)).verdict == "undecided"


def test_judges_the_worst_seed(mutate):
    A_RLDD = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 3, 3, 3)))
    off = lambda right, A, prompt: right(A, prompt) * (1 + 1e-9 * torch.equal(A, A_RLDD[0]))  # noqa: E731
    mutate(descent, "label_entries", off)
    finding = Lemma1().judge(weights(A_RLDD))
    first, second = finding.measured["max_error_by_seed"]
    assert finding.verdict == "fails" and first > finding.bound.value > second


def test_judge_refuses_what_the_lemma_does_not_speak_of():
    A = torch.ones(1, 1, 2, 2, dtype=torch.float64)
    law, noisy = LinearRegression(2, 8).law([0]), LinearRegression(2, 8, label_noise=0.1).law([0])
    long = LinearRegression(2, 10**5).law([0])
    refuses(
        Lemma1(),
        (weights(A, law, family="sparse_ab"), r"^check\.weights"),
        (weights(A, law, activation="softmax"), r"^check\.weights"),
        (weights(A, noisy), r"^check\.weights"),
        (weights(A, long), r"^check\.context"),
    )
