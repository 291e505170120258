from __future__ import annotations

from typing import Any

import pytest

from icl.errors import InputError
from icl.experiments.ahn.theorem4 import Theorem4


class Asked(Exception):
    pass


class Recorder:
    """Notes which run is asked for and goes no further."""

    def __init__(self, scale: str) -> None:
        self.scale = scale

    def train(self, experiment: str, overrides: dict[str, Any]) -> None:
        raise Asked(experiment, overrides)


@pytest.mark.parametrize(
    ("scale", "experiment"),
    [("smoke", "ahn/theorem4_lbfgs"), ("laptop", "ahn/theorem4_lbfgs"), ("paper", "ahn/theorem4")],
)
def test_the_papers_own_protocol_is_that_of_the_paper_scale(scale: str, experiment: str) -> None:
    with pytest.raises(Asked) as asked:
        Theorem4(context=20).records(Recorder(scale))  # type: ignore[arg-type]
    assert asked.value.args == (experiment, {"task.context": 20})


@pytest.mark.parametrize("settings", [{"context": 0}, {"starts": 0}, {"batches": 0}])
def test_impossible_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"figure.experiment.{next(iter(settings))}="):
        Theorem4(**settings)
