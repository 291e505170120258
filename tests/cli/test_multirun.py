"""Tests of `-m`: validated as a whole, kept apart, concluded by a table, a CSV and a JSON document."""

import csv
import json
from itertools import product
from pathlib import Path

import pytest

from tests.commands import DIVERGES, Run, logged_to_wandb, tiny_argv
from tests.processes import Command, jobs_are_forked

KEYS = {"jobs", "done", "cached", "failed", "seconds", "summary", "sweep_csv"}


def test_the_document(tiny: Run, outputs: Path) -> None:
    result = tiny("-m", "seed=range(2)", "model.layers=1,2", "format=json")
    document = result.json
    assert result.code == 0 and set(document) >= KEYS
    assert [document[key] for key in ("jobs", "done", "cached", "failed")] == [4, 4, 0, 0]
    row = document["summary"][0]
    assert set(row) == {"overrides", "metric", "mean", "low", "high", "count", "interval"}
    assert row["overrides"] == ["model.layers=1"] and row["metric"] == "loss"  # over both seeds
    assert row["low"] < row["mean"] < row["high"]
    assert len(list(outputs.glob("runs/ahn/theorem3/*/run.json"))) == 4
    path = Path(document["sweep_csv"])
    assert path.is_absolute() and path.is_relative_to(outputs / "sweeps")
    lines = list(csv.DictReader(path.open()))
    assert list(lines[0])[:5] == ["model.layers", "seed", "run_dir", "fingerprint", "loss"]
    assert [(line["seed"], line["model.layers"]) for line in lines] == [*product("01", "12")]
    losses = [float(line["loss"]) for line in lines if line["model.layers"] == "1"]
    assert sum(losses) / 2 == pytest.approx(row["mean"], rel=1e-15)
    same = tiny("-m", "seed=range(2)", "model.layers=1,2", "format=json", "verbose=true").json
    assert same["sweep_csv"] == document["sweep_csv"] and same["cached"] == 4
    text, table = tiny("-m", "seed=range(2)", "model.layers=1,2").out.split("table:")
    assert "model.layers=1" in text and "exact_risk" in text and max(map(len, text.splitlines())) <= 80
    assert document["sweep_csv"] in "".join(table.split())


def test_intervals_over_seeds(tiny: Run) -> None:
    rows = tiny("-m", "seeds=[0,1]", "optimizer.lr=0.01,0.02", "format=json").json["summary"]
    apart = tiny("-m", "seed=0,1", "optimizer.lr=0.01,0.02", "format=json").json["summary"]
    assert {tuple(row["overrides"]) for row in rows} == {("optimizer.lr=0.01",), ("optimizer.lr=0.02",)}
    defined = [row for row in rows if row["mean"] is not None]
    assert defined and all(row["low"] <= row["mean"] <= row["high"] for row in defined)
    for one, other in zip(rows, apart, strict=True):
        assert (one["overrides"], one["metric"]) == (other["overrides"], other["metric"])
        if one["mean"] is not None:
            # In single precision a seed alone rounds otherwise than beside another.
            assert other["mean"] == pytest.approx(one["mean"], rel=1e-4)


@pytest.mark.slow
def test_a_failing_job_leaves_its_traceback_and_the_others_finish(tiny: Run, outputs: Path) -> None:
    """Fail in joblib's workers; another launcher then repeats what failed, not what is done."""
    argv = tiny_argv("-m", "format=json", *DIVERGES)
    launcher = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
    argv_there = [*argv, *launcher, f"paths.outputs={outputs}", "logger=none"]
    command = Command(argv_there, outputs.parent, prepare=jobs_are_forked)
    assert command.end() == 4, command.err
    document = json.loads(command.out)
    assert [document[key] for key in ("jobs", "done", "failed")] == [2, 1, 1]
    (trace,) = outputs.glob("runs/ahn/theorem3/*/traceback.txt")
    assert "Traceback" in trace.read_text()
    again = tiny(*argv[1:])
    assert again.code == 4 and again.json["failed"] == again.json["cached"] == 1
    assert again.json["sweep_csv"] == document["sweep_csv"]


def test_settings_of_a_check(icl: Run) -> None:
    args = ["check", "-m", "check=ahn/theorem1", "check.dim=3,4", "format=json"]
    document = icl(*args).json
    assert [document[key] for key in ("jobs", "done", "cached")] == [2, 2, 0]
    rows = [row for row in document["summary"] if row["metric"] == "optimal_risk"]
    risks = {row["overrides"][0]: row["mean"] for row in rows}
    assert 0 < risks["check.dim=3"] < risks["check.dim=4"]
    assert icl(*args).json["cached"] == 2
    assert icl("check", "-m", "check=ahn/theorem1,ahn/lemma1", "format=json").json["done"] == 2
    text = icl("check", "-m", "check=ahn/theorem1", "check.dim=3,4").out
    assert "holds" in text and "gradient_norm" in text, "and the number that each rests on"


def test_wandb_runs_are_separate_and_closed_and_of_one_group(tiny: Run, outputs: Path) -> None:
    made = tiny("-m", "train.log_every=1", "format=json", *DIVERGES, logger="wandb_offline").json
    logged = [(run, code) for run, code in logged_to_wandb(outputs) if run.job_type == "train"]
    assert sorted(bool(code) for _, code in logged) == [False, True]  # both closed, one as failed
    assert len({run.run_id for run, _ in logged}) == 2
    assert {run.run_group for run, _ in logged} == {group_of(made)}


@pytest.mark.parametrize("launcher", ["joblib", "vectorized"])
def test_names_in_wandb(launcher: str, tiny: Run, outputs: Path) -> None:
    """Name runs by what was typed; group a sweep, with a run that was there before and is logged now."""
    alone = tiny("seed=0", "optimizer.lr=0.03", "format=json", logger="wandb_offline").json
    ((run, _),) = logged_to_wandb(outputs)
    group = json.loads(Path(alone["run_dir"], "run.json").read_text())["group"]
    assert " lr=0.03" in run.display_name and " seed=0" in run.display_name
    assert run.run_group == f"{run.display_name.replace(' seed=0', '')} ({group[:4]})"
    tiny("seed=1", "optimizer.lr=0.03")
    swept = ["-m", "seed=0,1,2", "optimizer.lr=0.03", "format=json", f"hydra/launcher={launcher}"]
    swept += ["hydra.launcher.n_jobs=1"] if launcher == "joblib" else []
    made = tiny(*swept, "sweep.name=of seeds", logger="wandb_offline").json
    assert made["done"] == 3 and made["name"] == "of seeds" and group_of(made).startswith("of seeds (")
    others = [run for run, _ in logged_to_wandb(outputs) if alone["fingerprint"] not in run.run_id]
    assert [run.run_group for run in others] == [group_of(made)] * 3
    assert sorted(run.job_type for run in others) == ["sweep", "train", "train"]
    (table,) = outputs.glob("wandb/*sweep-*/files/media/table/*.table.json")
    found = json.loads(table.read_text())
    assert found["columns"] == ["configuration", "metric", "mean", "low", "high", "count"]
    rows = [dict(zip(found["columns"], row, strict=True)) for row in found["data"]]
    (loss,) = (row for row in made["summary"] if row["metric"] == "loss")
    assert [row for row in rows if row["metric"] == "loss"] == [
        {"configuration": "all", **{name: loss[name] for name in found["columns"][1:]}}
    ]
    assert loss["count"] == 3 and loss["low"] < loss["mean"] < loss["high"]
    again = tiny(*swept, logger="wandb_offline").json
    assert again["name"] == "of seeds" and len(logged_to_wandb(outputs)) == 4, "the same, logged once"


def test_the_name_of_a_sweep(tiny: Run, icl: Run, outputs: Path) -> None:
    swept = ["-m", "seed=0", "optimizer.lr=0.03,0.04", "format=json"]
    assert tiny(*swept).json["name"] == "ahn/theorem3 over lr"
    named = tiny(*swept, "sweep.name=rates").json
    assert (named["name"], named["cached"]) == ("rates", 2), "no number depends on it"
    assert icl("sweep", "sweep=rates", "format=json").json["sweep"] == named["sweep"]
    for wrong in ("sweep.name=1", "sweep.name=a,b", "sweep.name=''", "sweep.name='token=hunter2hunter2'"):
        refused = tiny("-m", "seed=0", wrong)
        assert refused.code == 2 and "sweep.name" in refused.err, refused.err


def group_of(document: dict) -> str:
    """Return W&B's group of a sweep."""
    return f"{document['name']} ({Path(document['sweep']).name[:4]})"
