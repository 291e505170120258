"""The arrays a figure is drawn from, stored and read back."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from icl.figures import arrays
from icl.runs.record import RunRecord


def record() -> RunRecord:
    made = RunRecord(Path("runs/a/b/0"), {"experiment": "a/b", "fingerprint": "0" * 12, "seeds": [3, 4]})
    weights = {"first": np.arange(6.0).reshape(2, 3), "unread": np.zeros(9), "last": np.ones((2, 1))}
    metrics = {"step": [0, 0, 1, 1], "seed": [3, 4, 3, 4], "loss": [1.0, None, 0.5, 0.1], "other": [0.0] * 4}
    config = {"task": {"dim": 5}, "paths": {"outputs": "/somewhere"}}
    vars(made).update(weights=weights, metrics=metrics, config=config)
    return made


def test_what_was_read_comes_back_in_its_order_and_nothing_else(tmp_path: Path) -> None:
    seen = arrays.noted({"run": record(), "unused": record()})
    assert seen["run"].weights["last"].shape == (2, 1)
    assert [name for name in seen["run"].weights if "i" in name] == ["first"]
    seen["run"].weights["first"], seen["run"].curve("loss")
    (tmp_path / "arrays.npz").write_bytes(packed := arrays.pack(seen))
    other = arrays.noted({"run": record(), "unused": record()})
    other["run"].weights["first"], other["run"].curve("loss"), other["run"].weights["last"]
    assert arrays.pack(other) == packed, "in whatever order"
    sources = [arrays.source(name, one) for name, one in seen.items()]
    found = arrays.unpack(json.loads(json.dumps(sources)), tmp_path / "arrays.npz")
    run = found["run"]
    assert list(run.weights) == ["first", "last"] and not found["unused"].weights
    assert np.array_equal(run.weights["first"], record().weights["first"])
    assert run.config == {"task": {"dim": 5}} and run.run["seeds"] == [3, 4]
    assert {**run.metrics} == {key: record().metrics[key] for key in ("step", "seed", "loss")}
    assert np.array_equal(run.curve("loss")[1], record().curve("loss")[1], equal_nan=True)
