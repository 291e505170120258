"""Tests that settings an experiment made for one option of a group are left out if another is chosen."""

from pathlib import Path

import pytest

from icl.config.compose import compose
from icl.config.search_path import ConfigDirs, conf_dir

EXPERIMENTS = sorted(p.relative_to(conf_dir() / "experiment").with_suffix("").as_posix()
                     for p in (conf_dir() / "experiment").rglob("*.yaml"))  # fmt: skip


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd", "lbfgs"])
def test_an_optimizer_has_its_own_settings(optimizer: str) -> None:
    alone = compose(ConfigDirs(), "train", [f"optimizer={optimizer}"]).settings["optimizer"]
    for experiment in EXPERIMENTS:
        own = compose(ConfigDirs(), "train", [f"experiment={experiment}"])
        found = compose(ConfigDirs(), "train", [f"experiment={experiment}", f"optimizer={optimizer}"])
        if own.choices["optimizer"] == optimizer:
            assert found.settings == own.settings and not found.left_out
            continue
        schedule = own.settings["optimizer"]["schedule"]
        assert found.settings["optimizer"] == {**alone, "schedule": schedule}, experiment
        assert "optimizer.lr" in found.left_out
        clip = {"clip": None} if optimizer == "lbfgs" else {}
        assert found.settings["train"] == own.settings["train"] | clip


def test_files_of_ones_own(tmp_path: Path) -> None:
    """Leave out settings within another group in a user's own experiments, too."""
    (tmp_path / "experiment").mkdir()
    head = "# @package _global_\ndefaults:\n  - ahn/theorem3\n  - _self_\n"
    text = "optimizer: {lr: 0.3, schedule: {every: 9}}\nmodel: {layers: 5}\n"
    (tmp_path / "experiment/mine.yaml").write_text(head + text)
    configs, mine = ConfigDirs(tmp_path), ["experiment=mine"]
    assert compose(configs, "train", mine).settings["optimizer"]["schedule"]["every"] == 9
    other = compose(configs, "train", [*mine, "model=full", "optimizer=sgd", "~optimizer.betas"])
    assert other.settings["model"]["layers"] == 1 and other.settings["optimizer"]["lr"] == 0.01
    assert other.settings["optimizer"]["schedule"]["every"] == 9
    assert set(other.left_out) == {"optimizer.lr", "optimizer.betas", "model.layers"}
    typed = compose(configs, "train", [*mine, "optimizer=sgd", "optimizer.lr=0.2", "model.layers=2"])
    assert (typed.settings["optimizer"]["lr"], typed.settings["model"]["layers"]) == (0.2, 2)
    constant = compose(configs, "train", [*mine, "schedule=constant"])
    assert constant.settings["optimizer"]["schedule"] == {"_target_": "icl.training.schedules.Constant"}
    assert constant.left_out == ("schedule.every",)


def test_what_may_not_fit_another_model_unless_it_is_typed() -> None:
    every = ("checks", "train.estimator", "train.batch", "train.coordinates")
    for typed in ((), ("checks=[]",), ("train.estimator=sampled", "train.batch=7")):
        found = compose(ConfigDirs(), "train", ["experiment=xie/heads", "model=lsa", *typed])
        keys = {one.partition("=")[0] for one in typed}
        assert found.may_not_fit == tuple(key for key in every if key not in keys)
    assert not compose(ConfigDirs(), "train", ["experiment=xie/heads", "model=multihead"]).may_not_fit
