import torch

from icl.checks.xie import lemma2
from icl.checks.xie.lemma2 import Lemma2
from icl.random import generator


def test_the_second_derivative_in_v():
    """Compare with 2 E (1 + <G, X_p>)^2, by sampling."""
    check = Lemma2(dim=3, context=4)
    rng = generator(0, "control")
    P_PP, Q_PP = torch.from_numpy(rng.standard_normal((2, 4, 4))) / 4
    G_BPP = check.law.gram_prompts([generator(0, "eval")], 200_000).gram_RBPP[0]
    factor_B = 2 * (1 + G_BPP @ Q_PP[:, -1] @ P_PP[-1]).square()
    measured = check.measure().measured["smallest_eigenvalue_in_v"]
    assert abs(float(factor_B.mean()) - measured) < 5 * float(factor_B.std()) / 200_000**0.5


def no_violation(right, risk, first, second):
    return 0 * risk(*first)


def test_points_without_a_violation_prove_nothing(mutate):
    mutate(lemma2, "violation", no_violation)
    mutate(lemma2, "gd_risk", lambda *_: 10.0)
    assert Lemma2().measure().verdict == "undecided"
