"""Figure 7 asks for the right runs."""

from __future__ import annotations

from typing import Any

import pytest

from icl.errors import InputError
from icl.experiments.ahn import fig7


def test_every_depth_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    class Runner:
        scale = "smoke"

        def train(self, experiment: str, overrides: Any = None) -> Any:
            asked.append((experiment, overrides))
            return overrides["model.layers"]

    monkeypatch.setattr(fig7, "compare", lambda runner, name, trained, sizes: (name, -trained))
    records = fig7.Fig7([1, 3], test_contexts=5, search_contexts=6).records(Runner())  # type: ignore[arg-type]
    assert asked == [("ahn/fig7", {"model.layers": 1}), ("ahn/fig7", {"model.layers": 3})]
    assert records["trained_L3"] == 3 and records["losses_L3"] == ("ahn/fig7_losses", -3)
    assert list(records) == ["trained_L1", "losses_L1", "trained_L3", "losses_L3"]


@pytest.mark.parametrize("layers", [[], [0], [5], [2, 2], "12"])
def test_depths_are_validated(layers: Any) -> None:
    with pytest.raises(InputError, match=r"figure.experiment.layers"):
        fig7.Fig7(layers, 5, 6)
