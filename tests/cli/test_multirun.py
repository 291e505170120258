"""Tests of `-m`: validated as a whole, kept apart, concluded by a table, a CSV and a JSON document."""

import csv
import json
import os
import signal
import time
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from icl.runs.lock import is_live
from tests.cli.conftest import Run, tiny_argv
from tests.loggers.wandb_file import records
from tests.processes import ROOT, Command, jobs_are_forked

KEYS = {"jobs", "done", "cached", "failed", "seconds", "summary", "sweep_csv"}
DIVERGES = ["optimizer=sgd", "~optimizer.betas", "train.clip=null", "train.steps=20",
            "optimizer.lr=1e20,0.01"]  # fmt: skip


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
    logged = [(run, code) for run, code in told_to_wandb(outputs) if run.job_type == "train"]
    assert sorted(bool(code) for _, code in logged) == [False, True]  # both closed, one as failed
    assert len({run.run_id for run, _ in logged}) == 2
    assert {run.run_group for run, _ in logged} == {group_of(made)}


@pytest.mark.parametrize("launcher", ["joblib", "vectorized"])
def test_names_in_wandb(launcher: str, tiny: Run, outputs: Path) -> None:
    """Name runs by what was typed; group a sweep, with a run that was there before and is logged now."""
    alone = tiny("seed=0", "optimizer.lr=0.03", "format=json", logger="wandb_offline").json
    ((run, _),) = told_to_wandb(outputs)
    group = json.loads(Path(alone["run_dir"], "run.json").read_text())["group"]
    assert " lr=0.03" in run.display_name and " seed=0" in run.display_name
    assert run.run_group == f"{run.display_name.replace(' seed=0', '')} ({group[:4]})"
    tiny("seed=1", "optimizer.lr=0.03")
    swept = ["-m", "seed=0,1,2", "optimizer.lr=0.03", "format=json", f"hydra/launcher={launcher}"]
    swept += ["hydra.launcher.n_jobs=1"] if launcher == "joblib" else []
    made = tiny(*swept, "sweep.name=of seeds", logger="wandb_offline").json
    assert made["done"] == 3 and made["name"] == "of seeds" and group_of(made).startswith("of seeds (")
    others = [run for run, _ in told_to_wandb(outputs) if alone["fingerprint"] not in run.run_id]
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
    assert again["name"] == "of seeds" and len(told_to_wandb(outputs)) == 4, "the same, logged once"


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


def told_to_wandb(outputs: Path) -> list[tuple[Any, int]]:
    """Return each run that was logged to W&B offline, and its exit code."""
    found = []
    for log in sorted(outputs.glob("wandb/offline-run-*/run-*.wandb")):
        told = list(records(log))
        (run,) = (record.run for record in told if record.HasField("run"))
        (code,) = (record.exit.exit_code for record in told if record.HasField("exit"))
        found.append((run, code))
    return found


HELD = """
import os, time

class Held:
    # Told slowly until a file says go, so that no run can end before it is interrupted. Says it began.
    def rate(self, base, step):
        if step and not os.path.exists(os.environ["HELD_GO"]):
            open(os.environ["HELD_GO"] + f"-wanted-{os.getpid()}", "w").close()
            time.sleep(0.05)
        return base
"""


@pytest.mark.parametrize(
    ("launcher", "signum", "code", "seeds", "begun"),
    [
        ("basic", signal.SIGINT, 130, "0,1", 1),
        ("joblib", signal.SIGTERM, 143, "0,1", 2),
        ("joblib", signal.SIGKILL, -9, "0", 1),
        ("submitit_local", signal.SIGINT, 130, "0", 1),
    ],
)
def test_interrupted_and_continued(
    launcher: str,
    signum: signal.Signals,
    code: int,
    seeds: str,
    begun: int,
    tiny: Run,
    outputs: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (outputs.parent / "held_lab.py").write_text(HELD)
    monkeypatch.syspath_prepend(str(outputs.parent))
    for name, value in {"ICL_PACKAGES": "held_lab", "HELD_GO": str(outputs.parent / "go")}.items():
        monkeypatch.setenv(name, value)
    held = ["~optimizer.schedule", "+optimizer.schedule._target_=held_lab.Held", "train.steps=200"]
    argv = tiny_argv(*held, "-m", f"seed={seeds}", "format=json")
    launched = [f"hydra/launcher={launcher}", "logger=none", f"paths.outputs={outputs}"]
    launched += ["hydra.launcher.n_jobs=2"] if launcher == "joblib" else []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(outputs.parent)])}
    # Whoever is forked from a starter holds its locks, too: that it is killed shows in others alone.
    prepare = None if signum == signal.SIGKILL else jobs_are_forked
    command = Command([*argv, *launched], outputs.parent, environment, prepare)
    folder = outputs / "runs" / "ahn" / "theorem3"
    command.until(lambda: len(list(outputs.parent.glob("go-wanted-*"))) == begun)
    command.send(signum)
    ended = command.end()
    while any(map(is_live, folder.glob("*/lock"))):  # of jobs whose starter was killed
        time.sleep(0.05)
    assert (ended, command.out) == (code, ""), command.err
    if signum != signal.SIGKILL:
        assert "interrupted; the same command continues" in command.err and "Traceback" not in command.err
        assert not list(outputs.glob("sweeps/*/.launcher-*"))
    states = [json.loads(p.read_text())["status"] for p in folder.glob("*/run.json")]
    assert set(states) == {"interrupted"}
    (outputs.parent / "go").touch()
    again = tiny(*argv[1:])
    assert again.code == 0 and again.json["done"] == len(seeds.split(","))
    assert sum(found["document"]["resumed"] for found in again.json["results"]) == len(states)
