from icl.checks.giannou.ridge import Ridge
from tests.checks.asking import held, holds


def test_it_ends_at_ridge():
    ridge = held(Ridge(steps=30, mu=0.5))
    assert ridge.measured["distance_to_least_squares"] < 1e-12


@holds(Ridge, *({"mu": mu, "steps": 1} for mu in (1e-8, 1.0, 1e4)), dim=4, context=40, samples=2, margin=100)
def test_a_large_ridge_is_no_refutation(check, finding):
    assert finding.measured["layers"] == 4
