import pytest

from icl.checks.giannou.degrees import Degrees
from icl.checks.giannou.support.polynomials import best_residual, newton_residual
from tests.checks.asking import held


def test_degrees():
    finding = held(Degrees())
    assert finding.measured["degree_attention"] == [3, 9, 27, 81]
    assert finding.measured["degree_order2"] == [3, 7, 15, 31]
    assert finding.measured["degree_order3"] == [5, 17, 53, 161]
    assert all(
        a < b
        for a, b in zip(finding.measured["best_residual"], finding.measured["residual_order3"], strict=True)
    )
    counted, condition = finding.measured["degree_attention"], Degrees().condition
    assert finding.measured["best_residual"] == [best_residual(degree, condition) for degree in counted]
    assert newton_residual(2, 1, 1.0) == pytest.approx(0.25)
    assert best_residual(0, 3.0) == pytest.approx(0.5)  # 1 - a / 2 on [1, 3]


@pytest.mark.parametrize("condition", [1.0001, 1.01, 2, 1e3, 1e5, 1e8])
def test_at_any_condition(condition):
    for layers in (1, 3):
        held(Degrees(layers=layers, condition=condition))
