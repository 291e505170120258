"""Tests of any of Lightning's loggers by `_target_`, alone or beside W&B."""

from pathlib import Path

import numpy as np
import pytest

from icl.metrics import parse_metrics
from icl.runs.record import load_run
from tests.commands import Run


def test_a_csv_logger_has_the_records_numbers_once(tiny: Run, outputs: Path) -> None:
    first = tiny("format=json", "~callbacks.levels", logger="csv").json
    record = load_run(first["run_dir"])
    (folder,) = (outputs / "csv" / "ahn" / "theorem3").iterdir()
    assert folder.name == f"{first['fingerprint']}-1"
    assert "lr: 0.05" in (folder / "hparams.yaml").read_text()
    table = parse_metrics((folder / "metrics.csv").read_text())
    losses = np.reshape(record.metrics["loss"], (-1, 2))
    assert table["step"] == [0, 2, 4]
    assert np.allclose(table["mean/loss"], losses.mean(axis=1), rtol=1e-12)
    assert np.allclose(table["seed/1/loss"], losses[:, 1], rtol=1e-12)
    assert not (outputs / "wandb").exists()
    (folder / "metrics.csv").unlink()
    assert (
        tiny("format=json", "~callbacks.levels", logger="csv").json["cached"]
        and not (folder / "metrics.csv").exists()
    )


def test_tensorboard_has_curves_and_pictures(tiny: Run, outputs: Path) -> None:
    a_step_that_nothing_else_shows = "+callbacks.heatmaps.steps=[97]"
    assert tiny(a_step_that_nothing_else_shows, "train.steps=99", logger="tensorboard").code == 0
    (file,) = (outputs / "tensorboard").rglob("events.*")  # its name is a second: another would replace it
    events = file.read_bytes()
    assert b"mean/loss" in events and b"weights/all" in events and b"\x89PNG" in events


def test_a_package_that_is_not_there_is_named(
    tiny: Run, outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TENSORBOARD", "TENSORBOARDX"):
        monkeypatch.setattr(f"lightning_fabric.loggers.tensorboard._{name}_AVAILABLE", False)
    result = tiny(logger="tensorboard")
    assert result.code == 2 and not (outputs / "runs").exists()
    assert "logger.tensorboard: Neither `tensorboard` nor `tensorboardX` is available" in result.err
    assert "icl-theory[tensorboard]" in result.err


def test_no_secret_is_stored(tiny: Run, outputs: Path) -> None:
    """Search every file of the run, of a Lightning logger, of W&B and of the sweep for a secret that was
    given."""
    mine = "+logger.mine={_target_:pytorch_lightning.loggers.CSVLogger,save_dir:" + f"{outputs}/mine}}"
    address = 'callbacks.heatmaps.which=["mlflow://me:hunter2hunter2@db.local"]'
    made = tiny("-m", "seed=3", mine, address, "callbacks.heatmaps.count=0", logger="wandb_offline")
    assert made.code == 0, made.err
    files = [path for path in outputs.rglob("*") if path.is_file()]
    assert {"sweep.csv", "sweep.json", "config.yaml", "hparams.yaml"} <= {path.name for path in files}
    assert [path for path in files if b"hunter2" in path.read_bytes()] == []
    assert "me:<redacted>@db.local" in next(outputs.glob("sweeps/*/sweep.csv")).read_text()


def test_training_is_logged_by_default_and_a_check_when_asked(
    tiny: Run, icl: Run, outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    check = ["check", "check=ahn/lemma1", "scale=smoke"]
    assert icl(*check, logger=None).code == 0 and not (outputs / "wandb").exists()
    made = tiny("format=json", logger=None).json
    (folder,) = (outputs / "wandb").glob("offline-run-*")
    (run,) = icl("runs", "format=json").json["runs"]
    assert run["run_dir"] == made["run_dir"] and made["fingerprint"] in folder.name
    assert icl(*check, "force=true", logger="wandb_offline").code == 0
    assert len(list((outputs / "wandb").glob("offline-run-*check-ahn-lemma1-*"))) == 1
