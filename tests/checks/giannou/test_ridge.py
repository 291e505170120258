from icl.checks.giannou.ridge import Ridge
from tests.checks.asking import held


def test_it_ends_at_ridge():
    ridge = held(Ridge(steps=30, mu=0.5))
    assert ridge.measured["distance_to_least_squares"] < 1e-12
