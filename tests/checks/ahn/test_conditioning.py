from itertools import pairwise

import numpy as np
import pytest
import torch

from icl.checks.ahn.conditioning import Conditioning
from icl.checks.ahn.support import covariates
from icl.checks.ahn.support.covariates import better_conditioned
from tests.checks.asking import held


def test_holds_where_most_searches_end_and_not_at_the_best_point():
    finding = held(Conditioning())
    best, *others = finding.measured["share_of_prompts_by_risk"].values()
    assert best < 0.5 < max(others)
    assert any("best point" in remark for remark in finding.remarks)


def test_two_layers():
    assert Conditioning(dim=2, context=20, layers=2, starts=8, samples=1000).measure().verdict == "holds"


def test_conditions_are_those_of_the_tokens():
    """Compare with attention on tokens, whitened, at a Sigma that is not I."""
    check = Conditioning(dim=3, context=6, layers=3, eigenvalues=[1, 0.3, 2], samples=1000)
    x_BND = check.law.token_prompts([np.random.default_rng(0)], 50).context_RBNP[0, ..., :3]
    inverse_DD = torch.linalg.inv(check.law.Sigma_RDD[0])
    beta_L = [0.2, 0.4]
    white_DD = torch.linalg.inv(check.law.root_RDD[0])
    X_BDM = torch.cat([x_BND.mT, torch.zeros(50, 3, 1).double()], -1)
    conditions = []
    for moved_BDM in (X_BDM, *covariates.observed(beta_L, inverse_DD, X_BDM)):
        white_BDM = white_DD @ moved_BDM
        conditions.append(torch.linalg.cond(white_BDM @ white_BDM.mT))
    s_BD = torch.linalg.eigvalsh(white_DD @ x_BND.mT @ x_BND @ white_DD.mT / 6)
    share, medians = better_conditioned(beta_L, s_BD)
    np.testing.assert_allclose(medians, [float(c.median()) for c in conditions], rtol=1e-9)
    shares = [float((b < a).double().mean()) for a, b in pairwise(conditions)]
    assert share == min(shares)


@pytest.mark.parametrize("share, verdict", [(0.6, "holds"), (0.51, "undecided"), (0.4, "fails")])
def test_most_prompts(share, verdict):
    (number,) = Conditioning(samples=1000).most(share=share)
    assert number.verdict == verdict and number.bound.value == pytest.approx(0.549, abs=1e-3)
