"""Tests of `-m`, under any sweeper and launcher: validated as a whole, kept apart, with one document."""

import json
from itertools import product
from pathlib import Path

import pytest

from tests.commands import DIVERGES, Run, assert_refused, logged_to_wandb, table_of

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
    lines = table_of(document)
    assert (outputs / lines[0]["run_dir"] / "run.json").is_file()
    assert list(lines[0])[:5] == ["model.layers", "seed", "run_dir", "fingerprint", "loss"]
    assert [(line["seed"], line["model.layers"]) for line in lines] == [*product("01", "12")]
    losses = [float(line["loss"]) for line in lines if line["model.layers"] == "1"]
    assert sum(losses) / 2 == pytest.approx(row["mean"], rel=1e-15)
    same = tiny("-m", "seed=range(2)", "model.layers=1,2", "format=json").json
    assert same["sweep_csv"] == document["sweep_csv"] and same["cached"] == 4
    text, table = tiny("-m", "seed=range(2)", "model.layers=1,2").out.split("table:")
    assert "layers=2" in text and "exact_risk" in text and max(map(len, text.splitlines())) <= 80
    assert document["sweep_csv"] in "".join(table.split())


def test_trainer_of_a_check(icl: Run) -> None:
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


def test_names_in_wandb(tiny: Run, outputs: Path) -> None:
    """Name runs by what was typed; group a sweep. A run that was there before is not logged again."""
    alone = tiny("seed=0", "optimizer.lr=0.03", "format=json", logger="wandb_offline").json
    ((run, _),) = logged_to_wandb(outputs)
    group = json.loads(Path(alone["run_dir"], "run.json").read_text())["group"]
    assert " lr=0.03" in run.display_name and " seed=0" in run.display_name
    assert run.run_group == f"{run.display_name.replace(' seed=0', '')} ({group[:4]})"
    swept = ["-m", "seed=0,1,2", "optimizer.lr=0.03", "format=json", "hydra/launcher=vectorized"]
    made = tiny(*swept, logger="wandb_offline").json
    assert made["done"] == 3 and group_of(made).startswith(f"{made['name']} (")
    others = [run for run, _ in logged_to_wandb(outputs) if alone["fingerprint"] not in run.run_id]
    assert [run.run_group for run in others] == [group_of(made)] * 3
    assert sorted(run.job_type for run in others) == ["sweep", "train", "train"]


def test_the_name_of_a_sweep(tiny: Run, icl: Run, outputs: Path) -> None:
    swept = ["-m", "seed=0", "optimizer.lr=0.03,0.04", "format=json"]
    made = tiny(*swept).json
    assert made["name"] == "ahn/theorem3 over lr"
    assert icl("sweep", made["name"], "format=json").json["sweep"] == made["sweep"]


def group_of(document: dict) -> str:
    """Return W&B's group of a sweep."""
    return f"{document['name']} ({Path(document['sweep']).name[:4]})"


SEARCH = ["-m", "hydra/sweeper=optuna", "seed=0", "optimizer.lr=tag(log,interval(0.001,0.1))", "format=json"]


def test_a_search_goes_on_where_it_was(tiny: Run, outputs: Path) -> None:
    pytest.importorskip("optuna")
    asked = [*SEARCH, "model.layers=1,2", "optimized_metric=loss", "hydra.sweeper.n_trials=3"]
    document = tiny(*asked).json
    assert [document[key] for key in ("jobs", "done", "failed")] == [3, 3, 0]
    means = [row["mean"] for row in document["summary"] if row["metric"] == "loss"]
    assert document["best"]["metric"] == "loss" and document["best"]["mean"] == min(means)
    assert {path.name for path in outputs.glob("sweeps/*/*")} == {"sweep.csv", "sweep.json"}
    again = tiny(*asked).json
    assert again["cached"] == 3 and again["sweep_csv"] == document["sweep_csv"]
    more = tiny(*asked[:-1], "hydra.sweeper.n_trials=4").json
    assert (more["jobs"], more["cached"]) == (4, 3)


def test_a_search_without_an_end(tiny: Run, outputs: Path) -> None:
    pytest.importorskip("optuna")
    assert_refused(tiny(*SEARCH), "needs optimized_metric=exact_risk", outputs)
    fixed = tiny("-m", "hydra/sweeper=optuna", "optimized_metric=loss")
    assert fixed.code == 2 and "give a key several values" in fixed.err
    unknown = tiny(*SEARCH, "optimized_metric=los", "hydra.sweeper.n_trials=1")
    assert unknown.code == 4 and "did you mean loss?" in unknown.json["failures"][0]["error"]
    swept = [one.replace("(0.001,0.1)", "(1e19,1e20)") for one in SEARCH]
    fails = tiny(*swept, "optimized_metric=loss", "hydra.sweeper.n_trials=1", *DIVERGES[:-1])
    assert fails.code == 4 and fails.json["failed"] == 1


def test_batches_of_a_grid(tiny: Run, outputs: Path) -> None:
    one_by_one = ["-m", "hydra.sweeper.max_batch_size=1", "format=json"]
    found = tiny(*one_by_one, "seed=0", *DIVERGES)
    assert found.code == 4 and found.json["failed"] == 1 and found.json["done"] == 1
    assert {path.name for path in outputs.glob("sweeps/*/*")} == {"sweep.csv", "sweep.json"}
    assert list(Path.cwd().iterdir()) == []
