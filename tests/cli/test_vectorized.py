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
from icl.jobs.execution import vectorized
from icl.runs.store import ActiveRun
from icl.training import loop
from icl.training.settings import TrainerSettings
from tests.commands import DIVERGES, Run

Elsewhere = Callable[..., dict[str, Any]]
DOUBLE = ["-m", "trainer.precision=64-true", "format=json"]
VECTORIZED = [*DOUBLE, "hydra/launcher=vectorized"]
STEPS = ["train.steps=30", "train.steps_per_batch=4", "train.log_every=4", "callbacks.gradient.count=2"]


def run_dirs(document: dict[str, Any]) -> list[Path]:
    return [Path(row["run_dir"]) for row in package.sweep(document["sweep"]) if row["loss"] is not None]


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
    train = loop.train

    def counted(parts: Any, *more: Any) -> None:
        sizes.extend([len(parts)] if len(parts) > 1 else [])
        train(parts, *more)

    monkeypatch.setattr(loop, "train", counted)
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


def test_what_else_may_differ(tiny: Run, tmp_path: Path, ensembles: list[int]) -> None:
    swept = [
        "train.clip=0.05,1.0",
        "model.init_std=0.01,0.1",
        "optimizer.betas=[0.9,0.99],[0.5,0.9]",
        "seed=3",
    ]
    found = tiny(*VECTORIZED, *STEPS, *swept).json
    assert ensembles == [8]
    alone = tiny(*DOUBLE, *STEPS, *swept, f"paths.outputs={tmp_path / 'alone'}").json
    assert_same(run_dirs(found), run_dirs(alone), 1e-6)


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


def test_a_job_made_to_raise_leaves_the_others(tiny: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    finish = loop.finish

    def breaks(part: Any, *rest: Any) -> Any:
        if part.plan.seeds == (1,):
            raise RuntimeError("made to raise")
        return finish(part, *rest)

    monkeypatch.setattr(loop, "finish", breaks)
    ended = tiny(*VECTORIZED, "seed=range(64)")
    assert ended.code == 4 and ended.json["done"] == 63
    (failure,) = ended.json["failures"]
    assert failure["error"] == "RuntimeError: made to raise" and failure["overrides"] == ["seed=1"]
    assert "in breaks" in (Path(failure["run_dir"]) / "traceback.txt").read_text()
    monkeypatch.undo()
    again = tiny(*VECTORIZED, "seed=range(64)").json
    assert again["done"] == 64 and again["cached"] == 63


def test_interrupted_and_continued_by_either_launcher(
    tiny: Run, elsewhere: Elsewhere, outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept = [*STEPS, "seed=0,1", "optimizer.lr=0.01,0.03"]
    whole = elsewhere(*VECTORIZED, *swept)

    def at_17(self: loop.Stop, trainer: Any, module: Any, step: int) -> None:
        self.interrupts.signum = signal.SIGTERM if step >= 16 else None  # so that 17 is saved
        if step == 17:
            raise loop.Interrupted(signal.SIGTERM)

    monkeypatch.setattr(loop.Stop, "on_step_end", at_17)
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


@pytest.mark.parametrize("finishes", ["vectorized", "basic"])
def test_stopped_between_two_records(
    finishes: str, tiny: Run, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Record without training what is trained but not recorded, to the bit what it would have been."""
    swept = [*STEPS, "seed=0,1", "optimizer.lr=0.01,0.03"]
    whole = elsewhere(*VECTORIZED, *swept)
    finish, finished = loop.finish, []

    def stops(*args: Any) -> Any:
        if finished:
            raise KeyboardInterrupt
        finished.append(finish(*args))
        return finished[0]

    monkeypatch.setattr(loop, "finish", stops)
    assert tiny(*VECTORIZED, *swept).code == 130
    monkeypatch.setattr(loop, "finish", finish)
    monkeypatch.setattr(loop, "fit", None)  # nothing is left to train
    rest = tiny(*DOUBLE, f"hydra/launcher={finishes}", *swept).json
    assert rest["done"] == 4 and rest["cached"] == 1
    assert_same(run_dirs(rest), run_dirs(whole), 0)


def test_stopped_while_checkpoints_are_written(
    tiny: Run, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stop where some have the newer checkpoint and some do not, and where some have none at all."""
    swept = [*STEPS, "seed=0,1", "optimizer.lr=0.01,0.03", "callbacks.checkpoint.seconds=0"]
    whole = elsewhere(*VECTORIZED, *swept)
    save, saved = ActiveRun.save_checkpoint, []

    def stops(self: ActiveRun, state: Any) -> None:
        saved.append(state["step"])
        if len(saved) in (3, 25):
            raise loop.Interrupted(signal.SIGTERM)
        save(self, state)

    monkeypatch.setattr(ActiveRun, "save_checkpoint", stops)
    assert tiny(*VECTORIZED, *swept).code == 143 and saved == [1, 1, 1]
    assert tiny(*VECTORIZED, *swept).code == 143 and saved[3:8] == [1, 1, 1, 1, 2]
    assert saved[-3:] == [5, 6, 6]
    assert_same(run_dirs(tiny(*VECTORIZED, *swept).json), run_dirs(whole), 0)


def test_memory_bounds_an_ensemble(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1e6 < vectorized.available_bytes() < 1e15
    monkeypatch.setattr(vectorized, "available_bytes", lambda: 100.0)
    monkeypatch.setattr(vectorized, "_bytes_of_replica", lambda request: 10.0)

    class Request:
        def __init__(self, count: int) -> None:
            self.seeds = range(count)
            self.parts = SimpleNamespace(trainer=TrainerSettings(accelerator="cpu"))

    requests: Any = [Request(count) for count in (2, 2, 2, 7, 1)]
    assert vectorized._chunks(requests, None) == [[0, 1], [2], [3], [4]]  # half of it is five replicas
    assert vectorized._chunks(requests, 100) == [[0, 1, 2, 3, 4]]
