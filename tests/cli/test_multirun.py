"""`-m`: validated as a whole, kept apart, concluded by a table, a CSV and a JSON document."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from tests.cli.conftest import TINY, Run
from tests.processes import Command

KEYS = {"jobs", "done", "cached", "failed", "seconds", "summary", "sweep_csv"}
DIVERGES = [
    "optimizer=sgd",
    "~optimizer.betas",
    "train.clip=null",
    "train.steps=20",
    "optimizer.lr=1e20,0.01",
]


def test_the_document(tiny: Run, outputs: Path) -> None:
    result = tiny("-m", "seed=range(2)", "model.layers=1,2", "format=json")
    document = result.json
    assert result.code == 0 and set(document) >= KEYS
    assert [document[key] for key in ("jobs", "done", "cached", "failed")] == [4, 4, 0, 0]
    row = document["summary"][0]
    assert set(row) == {"overrides", "metric", "mean", "low", "high"}
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
    again = tiny("-m", "seed=range(2)", "model.layers=1,2,3", "format=json").json
    assert [again[key] for key in ("jobs", "cached")] == [6, 4]
    assert again["sweep_csv"] != document["sweep_csv"]
    same = tiny("-m", "seed=range(2)", "model.layers=1,2", "format=json", "verbose=true").json
    assert same["sweep_csv"] == document["sweep_csv"] and same["cached"] == 4


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


def test_a_table_ends_it(tiny: Run) -> None:
    result = tiny("-m", "seed=0,1")
    assert result.code == 0 and "seed=0" in result.out and "exact_risk" in result.out
    assert max(map(len, result.out.split("table:")[0].splitlines())) <= 80


def test_a_failing_job_leaves_its_traceback_and_the_others_finish(tiny: Run, outputs: Path) -> None:
    result = tiny("-m", "format=json", *DIVERGES)
    document = result.json
    assert result.code == 4
    assert [document[key] for key in ("jobs", "done", "failed")] == [2, 1, 1]
    (trace,) = outputs.glob("runs/ahn/theorem3/*/traceback.txt")
    assert "Traceback" in trace.read_text()
    again = tiny("-m", "format=json", *DIVERGES)
    assert again.code == 4 and again.json["cached"] == 1  # what failed is tried again, what is done is not


def test_joblib(tiny: Run, outputs: Path) -> None:
    result = tiny("-m", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "format=json", *DIVERGES)
    assert result.code == 4 and result.json["jobs"] == 2 and result.json["failed"] == 1
    assert len(list(outputs.glob("runs/ahn/theorem3/*/traceback.txt"))) == 1
    again = tiny("-m", "format=json", *DIVERGES).json  # the same sweep by another launcher
    assert again["cached"] == 1 and again["sweep_csv"] == result.json["sweep_csv"]


def test_settings_of_a_check(icl: Run) -> None:
    args = ["check", "-m", "check=ahn/theorem1", "check.dim=3,4", "format=json"]
    document = icl(*args).json
    assert [document[key] for key in ("jobs", "done", "cached")] == [2, 2, 0]
    risks = {
        row["overrides"][0]: row["mean"] for row in document["summary"] if row["metric"] == "optimal_risk"
    }
    assert 0 < risks["check.dim=3"] < risks["check.dim=4"]
    assert icl(*args).json["cached"] == 2
    assert icl("check", "-m", "check=ahn/theorem1,ahn/lemma1", "format=json").json["done"] == 2
    text = icl("check", "-m", "check=ahn/theorem1", "check.dim=3,4").out
    assert "holds" in text and "gradient_norm" in text, "and the number that each rests on"


def test_wandb_runs_are_separate_and_closed(tiny: Run, outputs: Path) -> None:
    tiny("-m", "train.log_every=1", *DIVERGES, logger="wandb_offline")
    files = sorted((outputs / "wandb").glob("offline-run-*/run-*.wandb"))
    assert len(files) == 2
    exits = []
    for file in files:
        shown = subprocess.run(
            [Path(sys.executable).with_name("wandb"), "leet", "inspect", "--json", file],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        records = [json.loads(line) for line in shown.stdout.splitlines() if line.strip()]
        runs = [r["run"] for r in _parts(records, "run")]
        exits += [r["exit"].get("exit_code", r["exit"].get("exitCode", 0)) for r in _parts(records, "exit")]
        assert len({run.get("run_id", run.get("runId")) for run in runs}) == 1
    assert sorted(map(bool, exits)) == [False, True]  # both closed, one as failed


def _parts(records: list[dict], name: str) -> list[dict]:
    return [record for record in records if isinstance(record.get(name), dict)]


HELD = """
import os, time

class Held:
    # Told slowly until a file says go, so that no run can have ended before it is interrupted.
    def rate(self, base, step):
        if step and not os.path.exists(os.environ["HELD_GO"]): time.sleep(0.05)
        return base
"""


@pytest.mark.parametrize(
    ("launcher", "signum", "code"), [("basic", signal.SIGINT, 130), ("joblib", signal.SIGTERM, 143)]
)
def test_interrupted_and_continued(
    launcher: str,
    signum: signal.Signals,
    code: int,
    tiny: Run,
    outputs: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (outputs.parent / "held_lab.py").write_text(HELD)
    monkeypatch.syspath_prepend(str(outputs.parent))
    for name, value in {"ICL_PACKAGES": "held_lab", "HELD_GO": str(outputs.parent / "go")}.items():
        monkeypatch.setenv(name, value)
    held = ["~optimizer.schedule", "+optimizer.schedule._target_=held_lab.Held", "train.steps=200"]
    swept = [*held, "-m", "seed=0,1", "format=json"]
    kept = [arg for arg in TINY if not arg.startswith("train.steps=")]
    argv = ["train", *kept, *swept, f"hydra/launcher={launcher}", "logger=none", f"paths.outputs={outputs}"]
    path = os.pathsep.join([str(Path(__file__).parents[2]), str(outputs.parent)])
    command = Command(argv, outputs.parent, {**os.environ, "PYTHONPATH": path})
    command.until(lambda: list(outputs.glob("runs/ahn/theorem3/*/metrics.csv")))
    command.send(signum)
    assert (command.end(), command.out) == (code, ""), command.err
    assert "interrupted" in command.err and "Traceback" not in command.err
    states = [json.loads(p.read_text())["status"] for p in outputs.glob("runs/ahn/theorem3/*/run.json")]
    assert "done" not in states or len(states) > states.count("done")
    (outputs.parent / "go").touch()
    again = tiny(*swept)
    assert again.code == 0 and again.json["done"] == 2
