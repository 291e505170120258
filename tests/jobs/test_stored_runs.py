"""Tests of the runs and sweeps that a report shows."""

from pathlib import Path

import pytest
import yaml

from icl.jobs.stored import stored_runs
from icl.jobs.stored.sweep_status import title
from icl.runs.code import code_digest
from icl.runs.sweeps import StoredSweep, SweptJob
from tests.records import write_sealed

NAMES = ("0" * 12, "1" * 12, "2" * 12)


def stored(
    outputs: Path, name: str, risks: list[float | None], config: dict[str, object], **more: object
) -> None:
    folder = outputs / "runs/mine/first" / name
    by_seed = {str(seed): risk for seed, risk in enumerate(risks)}
    run = {
        "status": "done",
        "steps": 10,
        "seeds": list(range(len(risks))),
        "ended": f"2026-01-0{9 - int(name[0])}T03:04:05+00:00",
        "metrics": {"exact_risk": {"mean": None, "by_seed": by_seed}},
        "code": ["icl.errors"],
        "digest": code_digest(["icl.errors"]),
    }
    write_sealed(folder / "run.json", **run, **more)
    (folder / "config.yaml").write_text(yaml.safe_dump(config))


def test_runs_with_intervals_and_what_tells_them_apart(tmp_path: Path) -> None:
    stored(tmp_path, NAMES[0], [1.0, 3.0], {"task": {"dim": 5}, "seeds": [0, 1], "optimizer": {"lr": 0.1}})
    stored(tmp_path, NAMES[1], [1.0, None], {"task": {"dim": 7}, "seeds": [0], "optimizer": {"lr": 0.1}})
    (first, second), more, _ = stored_runs.stored_runs_for_report(tmp_path)
    assert more == 0
    assert (first.name, second.name) == ("mine/first d=5 seeds=[0,1]", "mine/first d=7 seeds=[0]")
    (risk,) = first.metrics
    assert (risk.metric, risk.kind, risk.mean, risk.low, risk.high) == ("exact_risk", "exact", 2.0, 1.0, 3.0)
    assert second.metrics == [], "a seed that diverged is not averaged out"
    (other,), *_ = stored_runs.stored_runs_for_report(tmp_path, {first.place})
    assert other.place == second.place


def test_a_run_has_its_warnings_once(tmp_path: Path) -> None:
    warning = "rare prompts dominate"
    stored(tmp_path, NAMES[0], [1.0], {"task": {"dim": 5}}, notes=[warning, warning])
    (found,), *_ = stored_runs.stored_runs_for_report(tmp_path)
    assert found.warnings == [warning]


def test_of_many_the_newest_and_of_a_sweep_the_best(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_runs, "MOST", 2)
    jobs = []
    for name, risk in zip(NAMES, (1.0, 3.0, 2.0), strict=True):
        stored(tmp_path, name, [risk], {"optimizer": {"lr": risk}})
        jobs.append(SweptJob((f"optimizer.lr={risk}",), "mine/first", name, f"{risk}", (0,)))
    runs, more, _ = stored_runs.stored_runs_for_report(tmp_path)
    assert more == 1 and [Path(run.place).name for run in runs] == list(NAMES[:2])
    StoredSweep(tmp_path / "sweeps" / ("a" * 12), "train", tuple(jobs)).write()
    (sweep,) = stored_runs.stored_sweeps_for_report(tmp_path)
    shown = [run.name for run in sweep.configurations]
    assert shown == ["optimizer.lr=1.0", "optimizer.lr=2.0"] and sweep.more == 1
    assert stored_runs.stored_runs_for_report(tmp_path, sweep.members)[:2] == ([], 0)


def test_a_sweep_is_named_by_what_is_swept() -> None:
    def named(*jobs: str, name: str = "") -> str:
        swept = tuple(SweptJob(tuple(job.split()), "ahn/theorem3", f"{i:012x}") for i, job in enumerate(jobs))
        return title(StoredSweep(Path("sweeps") / ("a" * 12), "train", swept, name=name))

    assert (
        named("optimizer.lr=1 task.context=4", "optimizer.lr=2 task.context=5") == "ahn/theorem3 over lr, n"
    )
    assert named("seed=0", "seed=1") == "ahn/theorem3 over seed"
    assert named("experiment=ahn/theorem3 optimizer.lr=1") == "ahn/theorem3"
    assert named("seed=0", "seed=1", name="mine") == "mine" and named() == "train"


def test_a_sweep_with_its_best_and_its_members(tmp_path: Path) -> None:
    jobs = []
    for name, lr, risk in zip(NAMES, (0.1, 0.2, 0.2), (3.0, 1.0, 2.0), strict=True):
        stored(tmp_path, name, [risk], {"optimizer": {"lr": lr}})
        jobs.append(SweptJob((f"optimizer.lr={lr}",), "mine/first", name, f"{lr}", (len(jobs) % 2,)))
    StoredSweep(tmp_path / "sweeps" / ("a" * 12), "train", tuple(jobs)).write()
    (tmp_path / "sweeps" / ("b" * 12)).mkdir()
    (tmp_path / "sweeps" / ("b" * 12) / "sweep.json").write_text("{ torn")
    (sweep,) = stored_runs.stored_sweeps_for_report(tmp_path)
    assert sweep.name == "mine/first over lr" and set(sweep.members) == {
        f"runs/mine/first/{name}" for name in NAMES
    }
    assert sweep.states == {"done": 3} and sweep.best == "optimizer.lr=0.2"
