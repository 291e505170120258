import pytest

from icl.bench import paper


def test_operations_grow_linearly_with_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count as the sum over depths between the least and the greatest supposes."""
    monkeypatch.setattr(paper, "MORE", paper.FEW + 1)
    counted = [paper._flop(paper.PLANS[2], "smoke", layers) for layers in (1, 2, 3)]
    assert counted[1] > counted[0] > 0
    assert counted[2] - counted[1] == pytest.approx(counted[1] - counted[0], rel=1e-9)


def test_hours_are_steps_times_their_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "_cpu", lambda plan, scale, layers: 0.1 * layers)
    monkeypatch.setattr(paper, "_flop", lambda plan, scale, layers: 1e9 * layers)
    monkeypatch.setattr(paper, "_train", lambda *asked: None)
    row = paper.estimated(paper.PLANS[2], 3, "paper")
    depths, seeds, steps = [1, 2, 4, 8, 12, 16, 20, 26, 32, 40], 3, 100_000  # of Figure 1
    assert (row["depths"], row["steps"], row["runs"]) == (depths, steps, seeds * len(depths))
    assert row["core_hours"] == pytest.approx(seeds * steps * 0.1 * sum(depths) / 3600)
    assert row["gpu_hours"] == pytest.approx(seeds * steps * sum(depths) * 1e9 / 1e13 / 3600)


def test_a_figure_with_a_mask_and_without_counts_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "_cpu", lambda plan, scale, layers: 1.0)
    monkeypatch.setattr(paper, "_train", lambda *asked: None)
    row = paper.estimated(paper.PLANS[0], 1, "paper")
    assert row["step_flop"] is None and row["gpu_hours"] is None
    assert row["runs"] == 2 * 5 * len(row["depths"])
    assert row["core_hours"] == pytest.approx(row["runs"] * row["steps"] / 3600)
