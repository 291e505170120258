import numpy as np
import pytest

from icl.checks.ahn.conditioning import Conditioning
from icl.theory.ahn.invariant_risk import conditions
from icl.theory.numbers import Sample


def test_conditions_are_those_of_covariates_that_move():
    beta_L, X_BDM = np.array([0.2, 0.4]), np.random.default_rng(0).standard_normal((50, 3, 6))
    s_BD = np.linalg.eigvalsh(X_BDM @ X_BDM.transpose(0, 2, 1) / 6)
    for beta, kappa_B in zip([*beta_L, 0.0], conditions(beta_L, s_BD), strict=True):
        gram_BDD = X_BDM @ X_BDM.transpose(0, 2, 1)
        np.testing.assert_allclose(kappa_B, np.linalg.cond(gram_BDD), rtol=1e-9)
        X_BDM = X_BDM - beta / 6 * gram_BDD @ X_BDM


def test_at_the_best_point_most_prompts_become_worse():
    shares = Conditioning().decide().numbers["share_of_prompts_by_risk"].value
    best, *others = (share.mean for share in shares.values())
    assert best < 0.5 < max(others)


def test_the_error_of_a_median_is_that_of_repeats():
    rng = np.random.default_rng(0)
    drawn = [Sample.median(rng.standard_exponential(1000)) for _ in range(400)]
    assert np.mean([m.mean for m in drawn]) == pytest.approx(np.log(2), abs=0.005)
    assert np.std([m.mean for m in drawn]) == pytest.approx(np.mean([m.stderr for m in drawn]), rel=0.15)
