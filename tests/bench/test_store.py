"""Tests that `icl bench bench=store` measures a folder of runs that every command can read."""

import json
from pathlib import Path

import pytest

from icl.bench import store
from icl.runs.record import load_run


@pytest.mark.slow
def test_commands_beside_some_runs(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(store, "TRAINED", (*store.TRAINED, "checks=[]", "train.steps=20", "train.batch=8"))
    monkeypatch.setattr(store, "RATES", store.RATES[:3])
    swept = store.fill(tmp_path, 6)
    folders = [path.parent for path in tmp_path.glob("runs/*/*/*/run.json")]
    found = [load_run(folder) for folder in folders]
    assert len({run.run["fingerprint"] for run in found}) == len(found) == 6
    asked = {(run.config["optimizer"]["lr"], *run.config["seeds"]) for run in found}
    assert asked == {(rate, seed) for rate in store.RATES for seed in (0, 1)}
    for run in found:
        (seed,) = run.run["seeds"]
        assert set(run.metrics["seed"]) == {seed} == set(run.weights["seeds"].tolist())
        assert all(entry["by_seed"] == {str(seed): entry["mean"]} for entry in run.run["metrics"].values())

    rows = list(store.measured(6, 3))
    assert [row["name"].split(",")[0] for row in rows] == [
        "a sweep of 6 jobs that are done", "icl sweep of 6 jobs", "first icl runs beside 6 runs",
        "icl runs beside 6 runs", "icl list beside 6 runs", "icl report beside 6 runs",
        "icl clean beside 6 runs",
    ]  # fmt: skip
    # And of the command alone: torch, which this process has loaded, takes more.
    assert all("exit code 0" in row["name"] and 1 < row["peak_mb"] < 200 for row in rows)
    assert swept[-1] == "hydra/launcher=vectorized" and json.dumps(rows)
