"""Tests of xie's configurations of heads."""

import torch

from icl.checks.xie import configurations
from icl.checks.xie.configurations import Configurations, heads_of, made_by
from tests.checks.asking import Case, Holds, Mutant, Mutants, blinded, edited, mutants_test, settings_test

CASES = {
    Configurations: Case(
        Holds({}, {"dim": 1}, {"dim": 7, "seed": 3}),
        Mutants(
            Mutant(configurations, "heads_of", lambda right, X: right(X.mT), of="error"),
            Mutant(configurations, "made_by", lambda right, heads: right(heads).mT, of="error"),
            Mutant(Configurations, "measure", edited(Configurations.measure, "P + P * P", "P * P - P")),
            blinded(Configurations, "measure", edited(Configurations.measure, "[:, -1] /", "[:, -1] * 0 /")),
        ),
    ),
}

test_they_hold = settings_test(CASES)
test_mutants_are_seen = mutants_test(CASES)


def test_the_least_distance_is_that_of_the_best_weights_of_d_heads():
    """Compare Eckart and Young's with a search by alternating least squares over b and a."""
    P, torch_rng = 3, torch.Generator().manual_seed(0)
    X_KPP = torch.randn(P, P, P, generator=torch_rng, dtype=torch.float64)
    flat_PM = X_KPP.transpose(0, 1).flatten(1)  # row h of every X_k
    least = torch.linalg.svdvals(flat_PM)[-1] / X_KPP.norm()
    b_PH = torch.randn(P, P - 1, generator=torch_rng, dtype=torch.float64)
    for _ in range(500):
        a_HM = torch.linalg.lstsq(b_PH, flat_PM).solution
        b_PH = torch.linalg.lstsq(a_HM.T, flat_PM.T).solution.T
    assert torch.allclose((b_PH @ a_HM - flat_PM).norm() / X_KPP.norm(), least, rtol=1e-8)
    assert torch.equal(made_by(heads_of(X_KPP)), X_KPP)
