"""Tests that a sweep's table is made of its jobs' records, and of nothing else."""

import csv
from pathlib import Path
from typing import Any

import pytest

from icl.errors import InputError
from icl.runs.documents import write_record
from icl.runs.lock import locked
from icl.runs.sweeps import Outcome, StoredSweep, SweptJob, read_sweep, stored_sweeps

OVERRIDES = [("optimizer.lr=0.1", "seed=0"), ("optimizer.lr=0.1", "seed=1"),
             ("optimizer.lr=0.2", "seed=0"), ("optimizer.lr=0.2", "seed=1")]  # fmt: skip


@pytest.fixture(autouse=True)
def as_if_no_code_had_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icl.runs.sweeps.current_digest", lambda record, _: record.get("digest"))


def a_sweep(outputs: Path, metric: str | None = None) -> StoredSweep:
    jobs = [
        SweptJob(("format=json", *own), "ahn/theorem3", f"{i:012x}", (i % 2,))
        for i, own in enumerate(OVERRIDES)
    ]  # fmt: skip
    return StoredSweep(outputs / "sweeps" / ("a" * 12), "train", tuple(jobs), metric)


def done(loss: float, i: int, risk: float | None = None) -> Outcome:
    return Outcome("done", Path(f"/r{i}"), {"loss": {str(i % 2): loss}, "exact_risk": {str(i % 2): risk}})


def record(sweep: StoredSweep, i: int, **run: Any) -> Path:
    folder = sweep.outcome(sweep.jobs[i]).path
    folder.mkdir(parents=True)
    own = {"schema": 1, "status": "running", "experiment": sweep.jobs[i].id, "fingerprint": folder.name}
    write_record(folder / "run.json", own | run)
    return folder


def test_states_are_those_of_the_records(tmp_path: Path) -> None:
    sweep = a_sweep(tmp_path)
    sweep.write()
    record(sweep, 0, status="done", metrics={"loss": {"mean": 0.5, "by_seed": {"0": 0.5}}})
    record(sweep, 1, status="failed", error="Diverged: at step 3")
    with locked(record(sweep, 2) / "lock"):
        found = [sweep.outcome(job) for job in read_sweep(sweep.folder).jobs]
    assert [outcome.state for outcome in found] == ["done", "failed", "running", "waiting"]
    assert found[0].metrics == {"loss": {"0": 0.5}} and found[1].error == "Diverged: at step 3"
    assert sweep.outcome(sweep.jobs[2]).state == "interrupted"


def test_the_table_and_what_is_averaged_of_it(tmp_path: Path) -> None:
    sweep = a_sweep(tmp_path)
    failed, waiting = Outcome("failed", Path("/r1")), Outcome("waiting", Path("/r3"))
    outcomes = [done(0.1, 0), failed, done(0.3, 2, 1 / 3), waiting]
    rows = list(csv.DictReader(sweep.write_table(sweep.table(outcomes)).open()))
    assert list(rows[0]) == ["optimizer.lr", "seed", "run_dir", "fingerprint", "loss", "exact_risk"]
    assert [(row["optimizer.lr"], row["seed"], row["loss"]) for row in rows] == [
        ("0.1", "0", "0.1"), ("0.1", "1", ""), ("0.2", "0", "0.3"), ("0.2", "1", ""),
    ]  # fmt: skip
    assert float(rows[2]["exact_risk"]) == 1 / 3 and rows[0]["exact_risk"] == ""
    losses = [row for row in sweep.summary(outcomes) if row["metric"] == "loss"]
    assert [(row["overrides"], row["mean"]) for row in losses] == [
        (["optimizer.lr=0.1"], None), (["optimizer.lr=0.2"], 0.3),
    ], "a failed seed is not averaged out, and one to come is not counted"  # fmt: skip


def test_the_best_configuration(tmp_path: Path) -> None:
    outcomes = [done(0.1, 0, 3.0), done(0.2, 1, 5.0), done(0.3, 2, 2.0), done(0.5, 3, 1.0)]
    best = {}
    for metric in (None, "loss"):
        sweep = a_sweep(tmp_path, metric)
        best[metric] = sweep.best(sweep.summary(outcomes))
    assert (best[None]["metric"], best[None]["overrides"], best[None]["mean"]) == (
        "exact_risk", ["optimizer.lr=0.2"], 1.5
    )  # fmt: skip
    assert best["loss"]["overrides"] == ["optimizer.lr=0.1"] and best["loss"]["low"] == 0.1
    assert a_sweep(tmp_path).best([]) is None


def test_what_is_written_holds_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "s3cr3t-and-long")
    jobs = (SweptJob(("task.x=s3cr3t-and-long",), "a", "0" * 12, seeds=(0,)),)
    sweep = StoredSweep(tmp_path / "sweeps" / ("b" * 12), "train", jobs)
    sweep.write()
    sweep.write_table(sweep.table([Outcome("waiting", tmp_path)]))
    assert all("s3cr3t" not in path.read_text() for path in sweep.folder.iterdir())
    assert stored_sweeps(tmp_path) == [sweep.folder]


def test_what_is_no_sweep(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "sweeps", tmp_path / "none.csv"):
        with pytest.raises(InputError, match="must be the folder of a sweep"):
            read_sweep(path)
    sweep = a_sweep(tmp_path)
    sweep.write()
    assert read_sweep(sweep.folder / "sweep.json") == read_sweep(sweep.folder / "sweep.csv") == sweep
