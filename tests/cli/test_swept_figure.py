"""Tests of `icl figure figure=sweep`, and of the sweep as W&B's own."""

import csv
from pathlib import Path

import pytest
import yaml

import icl as package
from icl.errors import InputError
from icl.figures.sweep import SweptPlot
from icl.runs.intervals import seed_interval
from icl.runs.sweeps import Table
from tests.commands import Run, logged_to_wandb
from tests.loggers.wandb_file import records

GRID = ["-m", "seed=range(2)", "optimizer.lr=0.01,0.02", "model.layers=1,2", "hydra/launcher=vectorized",
        "format=json"]  # fmt: skip
PARTS = {"figure", "scale", "files", "claims", "runs", "seconds", "cached"}


def test_drawn(tiny: Run, icl: Run, outputs: Path) -> None:
    swept = tiny(*GRID).json
    draw = ["figure=sweep", f"sweep={swept['sweep']}", "format=json"]
    found = icl("figure", *draw, "x=optimizer.lr", "y=exact_risk", "hue=model.layers")
    assert found.code == 0 and set(found.json) >= PARTS
    files = {name: Path(path) for name, path in found.json["files"].items()}
    folder = outputs / "figures" / "sweep"
    assert all(path.is_relative_to(folder) and path.stat().st_size for path in files.values())
    assert len(found.json["runs"]) == 8
    rows = package.sweep(swept["sweep"])
    for point in csv.DictReader(files["csv"].open()):
        mine = [r for r in rows if all(r[k] == point[k] for k in ("model.layers", "optimizer.lr"))]
        wanted = seed_interval([row["exact_risk"] for row in mine])
        assert len(mine) == 2 and {k: float(point[k]) for k in wanted} == wanted
    map_ = icl("figure", *draw, "x=optimizer.lr", "y=model.layers", "hue=loss").json
    assert map_["files"]["png"] != found.json["files"]["png"] and "means over 2 seeds" in map_["caption"]
    best = icl("figure", *draw, "x=optimizer.lr", "best_by=model.layers", "figure.formats=[png]").json
    assert [point["model.layers"] for point in best["best_by"]] == ["1", "2"]
    for point in best["best_by"]:
        mine = [r for r in rows if r["model.layers"] == point["model.layers"]]
        rates = {
            rate: [r["exact_risk"] for r in mine if r["optimizer.lr"] == rate] for rate in ("0.01", "0.02")
        }
        assert point["mean"] == min(sum(risks) / 2 for risks in rates.values())
    assert set(best["files"]) == {"png", "csv", "md"} and "Band: range over seeds" in best["caption"]
    told = icl("sweep", f"sweep={swept['sweep']}", "best_by=model.layers", "format=json").json
    assert [row["group"] for row in told["best_by"]] == [{"model.layers": "1"}, {"model.layers": "2"}]
    assert not (outputs / "wandb").exists()
    icl("figure", *draw, "x=optimizer.lr", "hue=model.layers", logger="wandb_offline")
    ((logged, _),) = logged_to_wandb(outputs)
    assert logged.display_name == "ahn/theorem3 over lr, layers: exact_risk by optimizer.lr"
    assert logged.run_group.startswith("ahn/theorem3 over lr, layers (") and logged.job_type == "figure"
    (log,) = outputs.glob("wandb/offline-run-*/*.wandb")
    used = [record.artifact for record in records(log) if record.HasField("artifact")]
    models = {alias for artifact in used if artifact.use_after_commit for alias in artifact.aliases}
    assert models == {row["fingerprint"] for row in rows}, "the lineage: every run of the sweep"
    for wrong, said in (
        (["best_by=task.dim"], "best_by=task.dim: must be one of optimizer.lr, model.layers"),
        (["x=optimizer.l"], "did you mean optimizer.lr?"),
        (["x=optimizer.lr", "y=exact_rsk"], "did you mean exact_risk?"),
        (["x=optimizer.lr", "hue=layers"], "did you mean model.layers?"),
        (["x=optimizer.lr", "y=model.layers"], "hue=None: must be one of loss"),
        ([], "x: must be one of"),
    ):
        refused = icl("figure", *draw, *wrong)
        assert (refused.code, refused.out) == (2, "") and said in refused.err
    assert "figure=sweep, which draws" in icl("sweep", f"sweep={swept['sweep']}", "x=optimizer.lr").err
    told = icl("sweep", f"sweep={swept['sweep']}", "wandb=true", "format=json").json
    config = yaml.safe_load(Path(told["wandb_sweep"]).read_text())
    assert config["parameters"]["optimizer.lr"] == {"values": [0.01, 0.02]}
    assert config["parameters"]["seed"] == {"values": [0, 1]} and config["method"] == "grid"
    assert "experiment=ahn/theorem3" in config["command"] and "launcher" not in " ".join(config["command"])


def rows(**metrics: float | None) -> Table:
    return Table(
        {"a": str(a), "b": b, "seed": seed, "run_dir": "", "fingerprint": "", "risk": a + seed, **metrics}
        for a in (1, 2)
        for b in "uv"
        for seed in (0, 1)
    )


def test_points_panels_and_what_is_missing() -> None:
    plot = SweptPlot(rows(), ["a", "b"], "a", "risk", None)
    assert plot.panels == [("u",), ("v",)] and len(plot.draw().axes) == 2
    assert [point["mean"] for point in plot.points] == [1.5, 1.5, 2.5, 2.5]
    table = rows()
    table[0]["risk"] = None  # a seed that failed is not averaged out
    plot = SweptPlot(table, ["a", "b"], "a", "risk", "b")
    assert plot.points[0]["mean"] is None and "1 of 4 have no such number" in plot.caption
    plot.draw()
    with pytest.raises(InputError, match="no job of this sweep has it yet"):
        SweptPlot(rows(other=None), ["a", "b"], "a", "other", "b")
    bare = Table({k: v for k, v in row.items() if k != "risk"} for row in rows())  # of other code: stale
    with pytest.raises(InputError, match="none of its jobs has a number"):
        SweptPlot(bare, ["a", "b"], "a", "risk", "b")
    with pytest.raises(InputError, match="must be different"):
        SweptPlot(rows(), ["a", "b"], "a", "risk", "a")
