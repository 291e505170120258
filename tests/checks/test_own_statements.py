"""24 statements that are not in the product, 12 true and 12 false, written with the vocabulary alone."""

import inspect
from pathlib import Path

import pytest

from icl.checks.files import statements_of
from icl.checks.tries import decided

FILES = sorted((Path(__file__).parent / "own").glob("*.py"))
STATEMENTS = {cls.__name__: (path, cls) for path in FILES for cls in statements_of(path)}
TRUE = (
    "TrainedLayer", "LongPrompts", "QueryShift", "OneStep", "RiskOfOneStep", "Preconditioned", "Plateau",
    "SaddleOfHeads", "Flow", "Pretrained", "TestTasks", "RateOfOneLayer",
)  # fmt: skip
FALSE = {  # with settings at which each is refuted
    "TrainedLayerWithoutOneOverN": {"a": 1, "b": 1, "n": 1}, "LongPromptsLearnAll": {"d": 1, "n": 1},
    "CovariateShift": {"a": 2, "n": 1}, "OneStepOfAnotherSize": {"d": 1, "n": 1, "s": 0},
    "NoiseAddsToTheRisk": {"d": 1, "n": 1, "s": 1}, "PreconditionedForAllTasks": {"d": 2, "n": 1, "s": 0},
    "PlateauOfLongPrompts": {"a": 2, "b": 1, "n": 1}, "MinimumOfHeads": {"a": 2, "b": 1, "n": 1},
    "FlowOfLongPrompts": {"d": 1, "n": 1}, "PretrainedWithoutNoise": {"a": 1, "b": 1, "s": 1, "n": 1},
    "TestTasksWithNoise": {"a": 1, "b": 1, "s": 1, "n": 1}, "RateOfTwoLayers": {"d": 1},
}  # fmt: skip


def test_there_are_24_of_twenty_lines_at_most():
    assert {*TRUE, *FALSE} == {*STATEMENTS} and len(TRUE) == len(FALSE) == 12
    assert max(len(inspect.getsource(cls).splitlines()) for _, cls in STATEMENTS.values()) <= 20


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_is_decided_right(name):
    path, cls = STATEMENTS[name]
    found = decided(cls(), 4, 0, str(path))
    assert found["verdict"] == ("fails" if name in FALSE else "holds") and found["control"]["rejected"]
    assert found["tries"]["smallest_counterexample"] == FALSE.get(name)
    assert found["tries"]["undecided"] == 0
