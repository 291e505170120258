from __future__ import annotations

from typing import Any

import pytest

from icl.experiments.ahn.theorem4 import Theorem4
from tests.records import Asking


@pytest.mark.parametrize(
    ("scale", "experiment"),
    [("smoke", "ahn/theorem4_lbfgs"), ("laptop", "ahn/theorem4_lbfgs"), ("paper", "ahn/theorem4")],
)
def test_the_papers_own_protocol_is_that_of_the_paper_scale(scale: str, experiment: str) -> None:
    def enough(*asked: Any) -> None:
        raise StopIteration

    runner = Asking(enough, scale)
    with pytest.raises(StopIteration):
        Theorem4(context=20).records(runner)
    assert runner.asked == [(experiment, {"task.context": 20})]
