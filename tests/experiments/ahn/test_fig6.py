"""Figure 6 asks for the right runs."""

from __future__ import annotations

from typing import Any

import pytest

from icl.experiments.ahn import fig6
from tests.records import Asking

SETTINGS: dict[str, Any] = {
    "contexts": [2, 4, 20],
    "replicas": 2,
    "contexts_per_run": 2,
    "lr": 0.01,
    "lr_below_5": 0.001,
    "test_contexts": 5,
    "search_contexts": 6,
}


Asked = list[tuple[str, dict[str, Any]]]


def trained_with(monkeypatch: pytest.MonkeyPatch, **changed: Any) -> tuple[Asked, list[str]]:
    """Every run's experiment and overrides, and the names of the records."""
    runner = Asking()

    def compare(runner: Any, name: str, trained: Any, plain: Any, sizes: Any, *, least_squares: bool) -> Any:
        assert (trained, plain) == ("ahn/tail", "ahn/fig6")
        assert (name, least_squares, sizes.test, sizes.search) == ("ahn/fig6_losses", True, 5, 6)

    monkeypatch.setattr(fig6, "compare", compare)
    records = fig6.Fig6(**SETTINGS | changed).records(runner)
    return runner.asked, list(records)


def test_every_length_is_trained_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, names = trained_with(monkeypatch)
    four = {"seeds": [2, 1002, 4, 1004], "task.context": [2, 2, 4, 4]}
    two = {"seeds": [20, 1020], "task.context": [20, 20]}
    assert asked == [
        ("ahn/tail", four),
        ("ahn/fig6", four | {"optimizer.lr": [0.001] * 4}),
        ("ahn/tail", two),
        ("ahn/fig6", two | {"optimizer.lr": [0.01] * 2}),
    ]
    kinds = ("trained", "plain", "losses")
    assert names == [f"{kind}_N{label}" for label in ("2_4", "20") for kind in kinds]


def test_a_replicas_seed_does_not_depend_on_what_else_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    together, _ = trained_with(monkeypatch, contexts_per_run=3)
    alone, _ = trained_with(monkeypatch, contexts=[4])
    seeds = dict(zip(together[0][1]["seeds"], together[0][1]["task.context"], strict=True))
    assert len(seeds) == 6 and [seeds[seed] for seed in alone[0][1]["seeds"]] == [4, 4]
