"""Tests of hydra/launcher=vectorized: one program for many jobs, each with the run it has when it is
alone.
"""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import icl as package
from hydra_plugins.icl import _vectorized as vectorized
from icl.training import run
from icl.training.trainer import TrainerConfig
from tests.commands import DIVERGES, Run, table_of

Elsewhere = Callable[..., dict[str, Any]]
DOUBLE = ["-m", "trainer.precision=64-true", "format=json"]
VECTORIZED = [*DOUBLE, "hydra/launcher=vectorized"]
STEPS = ["train.steps=30", "train.steps_per_batch=4", "train.log_every=4", "callbacks.gradient.count=2"]


def run_dirs(document: dict[str, Any]) -> list[Path]:
    outputs = Path(document["sweep"]).parents[1]
    return [outputs / row["run_dir"] for row in table_of(document) if row["loss"]]


def assert_same(first: list[Path], second: list[Path], rtol: float) -> None:
    """Compare every number of the records."""
    assert [path.name for path in first] == [path.name for path in second]
    for one, other in zip(map(package.load_run, first), map(package.load_run, second), strict=True):
        assert list(one.metrics) == list(other.metrics) and list(one.weights) == list(other.weights)
        for name, column in one.metrics.items():
            wanted = np.array(other.metrics[name], dtype=float)
            np.testing.assert_allclose(np.array(column, dtype=float), wanted, rtol=rtol, err_msg=name)
        for name, array in one.weights.items():
            scale = np.abs(other.weights[name]).max()
            np.testing.assert_allclose(array, other.weights[name], rtol=rtol, atol=rtol * scale, err_msg=name)
        for key in ("steps", "seeds", "group", "threads", "fingerprint", "notes"):
            assert one.run[key] == other.run[key]
        assert one.run["status"] == "done" and one.config | {"logger": 0} == other.config | {"logger": 0}


@pytest.fixture
def elsewhere(tiny: Run, outputs: Path) -> Elsewhere:
    """Return a sweep whose outputs are put aside, so that nothing of it is found again."""

    def run(*args: str) -> dict[str, Any]:
        document = tiny(*args).json
        assert document["cached"] == 0
        place = outputs.rename(outputs.with_name("elsewhere"))
        return document | {"sweep": str(place / "sweeps" / Path(document["sweep"]).name)}

    return run


@pytest.fixture
def ensembles(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the number of runs in each ensemble of several that is trained."""
    sizes: list[int] = []
    train = run._train

    def counted(parts: Any, *more: Any) -> None:
        sizes.extend([len(parts)] if len(parts) > 1 else [])
        train(parts, *more)

    monkeypatch.setattr(run, "_train", counted)
    return sizes


def test_the_numbers_are_those_of_jobs_alone(tiny: Run, elsewhere: Elsewhere, ensembles: list[int]) -> None:
    """Vary what may differ within an ensemble: seeds shared and not, rate, decay, clip, scale, context."""
    swept = [*STEPS, "seeds=[0,1],[1]", "optimizer.lr=0.01,0.03", "task.context=6,9", "train.clip=0.05",
             "optimizer=adamw", "+optimizer.amsgrad=true"]  # fmt: skip
    alone = elsewhere(*DOUBLE, *swept)
    assert ensembles == []
    found = tiny(*VECTORIZED, *swept).json
    assert found["done"] == 8 and found["cached"] == 0 and ensembles == [8]
    assert_same(run_dirs(found), run_dirs(alone), 1e-6)
    again = tiny(*DOUBLE, *swept).json  # the launcher is no part of what a run is
    assert again["cached"] == 8 and again["sweep"] == found["sweep"]


def test_what_differs_otherwise_is_apart(tiny: Run, ensembles: list[int]) -> None:
    assert tiny(*VECTORIZED, "seed=0,1", "model.layers=1,2", "train.clip=null,0.1").json["done"] == 8
    assert ensembles == [2, 2, 2, 2]
    ensembles.clear()
    assert tiny(*VECTORIZED, "seed=range(5)", "hydra.launcher.max_replicas=2").json["done"] == 5
    assert ensembles == [2, 2]
    ensembles.clear()
    coupled = ["optimizer=lbfgs", "~optimizer.betas", "train.clip=null", "train.steps=2"]
    assert tiny(*VECTORIZED, "seed=0,1", *coupled).json["done"] == 2
    mine = "+callbacks.mine._target_=pytorch_lightning.callbacks.Callback"
    assert tiny(*VECTORIZED, "seed=7,8", mine).json["jobs"] == 2
    assert ensembles == []


def test_a_replica_that_diverges_fails_alone(tiny: Run, elsewhere: Elsewhere, ensembles: list[int]) -> None:
    swept = ["seed=0,1", *DIVERGES, "train.log_every=3", "callbacks.gradient.count=2"]
    alone = elsewhere(*DOUBLE, *swept)
    ended = tiny(*VECTORIZED, *swept)
    assert ended.code == 4 and ensembles == [4]
    found = ended.json
    assert [found[key] for key in ("jobs", "done", "failed")] == [4, 2, 2]
    for failure in found["failures"]:
        assert "the loss of seeds" in failure["error"] and "lower optimizer.lr" in failure["error"]
        folder = Path(failure["run_dir"])
        assert "Diverged" in (folder / "traceback.txt").read_text()
        assert json.loads((folder / "run.json").read_text())["status"] == "failed"
    assert [f["error"] for f in found["failures"]] == [f["error"] for f in alone["failures"]]
    assert_same(run_dirs(found), run_dirs(alone), 1e-6)


def test_interrupted_and_continued_by_either_launcher(
    tiny: Run, elsewhere: Elsewhere, outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept = [*STEPS, "seed=0,1", "optimizer.lr=0.01,0.03"]
    whole = elsewhere(*VECTORIZED, *swept)

    on_step_end = run.Stop.on_step_end

    def at_17(self: run.Stop, trainer: Any, module: Any, step: int) -> None:
        self.interrupts.signum = signal.SIGTERM if step == 17 else None
        on_step_end(self, trainer, module, step)

    monkeypatch.setattr(run.Stop, "on_step_end", at_17)
    stopped = tiny(*VECTORIZED, *swept)
    assert (stopped.code, stopped.out) == (143, "")
    monkeypatch.undo()
    runs = [json.loads(path.read_text()) for path in outputs.glob("runs/*/*/*/run.json")]
    assert [run["status"] for run in runs] == ["interrupted"] * 4
    one = tiny(*DOUBLE, *STEPS, "seed=1", "optimizer.lr=0.03").json  # by itself
    assert one["results"][0]["document"]["resumed"]
    rest = tiny(*VECTORIZED, *swept).json
    assert rest["done"] == 4 and rest["cached"] == 1
    assert all(result["document"]["resumed"] for result in rest["results"])
    assert_same(run_dirs(rest), run_dirs(whole), 1e-6)


def test_memory_bounds_an_ensemble(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1e6 < vectorized.available_bytes() < 1e15
    monkeypatch.setattr(vectorized, "available_bytes", lambda: 100.0)
    monkeypatch.setattr(vectorized, "_bytes_of_replica", lambda request: 10.0)

    class Request:
        def __init__(self, count: int) -> None:
            self.seeds = range(count)
            self.components = SimpleNamespace(trainer=TrainerConfig(accelerator="cpu"))

    requests: Any = [Request(count) for count in (2, 2, 2, 7, 1)]
    assert vectorized._chunks(requests, None) == [[0, 1], [2], [3], [4]]  # half of it is five replicas
    assert vectorized._chunks(requests, 100) == [[0, 1, 2, 3, 4]]
