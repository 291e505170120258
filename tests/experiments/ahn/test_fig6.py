"""Figure 6 asks for the right runs."""

from __future__ import annotations

from typing import Any

import pytest

from icl.errors import InputError
from icl.experiments.ahn import fig6

SETTINGS: dict[str, Any] = {
    "contexts": [2, 4, 20],
    "replicas": 2,
    "contexts_per_run": 2,
    "lr": 0.01,
    "lr_below_5": 0.001,
    "test_contexts": 5,
    "search_contexts": 6,
}


def trained_with(monkeypatch: pytest.MonkeyPatch, **changed: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """The overrides of every run, and the names of the records."""
    asked: list[dict[str, Any]] = []

    class Runner:
        scale = "smoke"

        def train(self, experiment: str, overrides: Any = None) -> Any:
            assert experiment == "ahn/fig6"
            asked.append(overrides)
            return len(asked)

    def compare(runner: Any, name: str, trained: Any, sizes: Any, *, least_squares: bool) -> Any:
        assert (name, least_squares, sizes.test, sizes.search) == ("ahn/fig6_losses", True, 5, 6)
        return -trained

    monkeypatch.setattr(fig6, "compare", compare)
    records = fig6.Fig6(**SETTINGS | changed).records(Runner())  # type: ignore[arg-type]
    return asked, list(records)


def test_every_length_is_trained_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, names = trained_with(monkeypatch)
    assert asked[0] == {
        "seeds": [2, 1002, 4, 1004],
        "task.context": [2, 2, 4, 4],
        "optimizer.lr": [0.001] * 4,
    }
    assert asked[1] == {"seeds": [20, 1020], "task.context": [20, 20], "optimizer.lr": [0.01] * 2}
    assert names == ["trained_N2_4", "losses_N2_4", "trained_N20", "losses_N20"]


def test_a_replicas_seed_does_not_depend_on_what_else_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    together, _ = trained_with(monkeypatch, contexts_per_run=3)
    alone, _ = trained_with(monkeypatch, contexts=[4])
    seeds = dict(zip(together[0]["seeds"], together[0]["task.context"], strict=True))
    assert len(seeds) == 6 and [seeds[seed] for seed in alone[0]["seeds"]] == [4, 4]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"contexts": []}, "contexts"),
        ({"contexts": [4, 4]}, "duplicates"),
        ({"contexts": [0]}, "contexts"),
        ({"contexts": [1000]}, "contexts"),
        ({"replicas": 0}, "replicas"),
        ({"lr": 0}, "lr"),
        ({"search_contexts": 0}, "search_contexts"),
    ],
)
def test_settings_are_validated(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        fig6.Fig6(**SETTINGS | changed)
