from icl.checks.xie import lemma1
from icl.checks.xie.lemma1 import Lemma1


def no_violation(right, risk, first, second):
    return 0 * risk(*first)


def test_points_without_a_violation_prove_nothing(mutate):
    mutate(lemma1, "violation", no_violation)
    mutate(lemma1, "gd_risk", lambda *_: 20.0)
    mutate(lemma1, "gap", lambda *_: 0.0)
    assert Lemma1().measure().verdict == "undecided"
