from __future__ import annotations

import pytest

from icl.checks.ahn.lemma1 import Lemma1
from icl.checks.ahn.lemma4 import Lemma4
from icl.checks.ahn.theorem1 import Theorem1
from icl.checks.ahn.theorem3 import Theorem3


@pytest.mark.parametrize(
    ("check", "inverse"), [(Lemma1, False), (Theorem1, False), (Lemma4, True), (Theorem3, True)]
)
def test_w_has_the_covariance_that_the_statement_takes(check, inverse):
    law = check(dim=2, covariance=[[2, 1], [1, 1]]).law
    Sigma_w = law.Sigma_RDD[0].inverse() if inverse else law.Sigma_RDD.new_ones(2).diag()
    assert law.Sigma_w_RDD[0].allclose(Sigma_w)
