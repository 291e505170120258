"""Figure 7 asks for the right runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from icl.errors import InputError
from icl.experiments.ahn import fig7


def test_every_depth_is_trained_on_both_kinds_of_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    class Runner:
        scale = "smoke"

        def train(self, experiment: str, overrides: Any = None) -> Any:
            asked.append((experiment, overrides))
            return SimpleNamespace(run={"seeds": [4, 7]}, config={"task": {"context": 9}})

    monkeypatch.setattr(fig7, "compare", lambda runner, name, trained, plain, sizes: name)
    records = fig7.Fig7([1, 3], test_contexts=5, search_contexts=6).records(Runner())  # type: ignore[arg-type]
    for depth, (plain, trained) in zip([1, 3], [asked[:2], asked[2:]], strict=True):
        assert plain == ("ahn/fig7", {"model.layers": depth})
        assert trained == ("ahn/tail", {"model.layers": depth, "task.context": 9, "seeds": [4, 7]})
    assert records["losses_L3"] == "ahn/fig7_losses"
    assert list(records) == [
        f"{kind}_L{depth}" for depth in (1, 3) for kind in ("trained", "plain", "losses")
    ]


@pytest.mark.parametrize("layers", [[], [0], [5], [2, 2], "12"])
def test_depths_are_validated(layers: Any) -> None:
    with pytest.raises(InputError, match=r"figure.experiment.layers"):
        fig7.Fig7(layers, 5, 6)
