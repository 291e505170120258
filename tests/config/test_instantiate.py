"""Tests that Hydra's compose and instantiate build what icl's configs describe, without icl's commands."""

import subprocess
import sys

import pytest
import torch
from hydra import compose, initialize_config_module
from hydra.utils import instantiate
from omegaconf import DictConfig

from icl.config import compose as ours
from icl.config.search_path import ConfigDirs
from icl.models import LinearTransformer, Transformer

EXPERIMENTS = ["ahn/theorem3", "ahn/tail", "giannou/lsa", "giannou/logistic", "lds/ar2", "xie/heads"]


def by_hydra(verb: str, *overrides: str) -> DictConfig:
    with initialize_config_module("icl.conf", version_base="1.3"):
        return compose(verb, list(overrides))


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_the_parts_of_a_training_run(experiment: str) -> None:
    cfg = by_hydra("train", f"experiment={experiment}")
    task, made = instantiate(cfg.task), instantiate(cfg.model)
    model = made if isinstance(made, Transformer) else LinearTransformer(made)
    model.parametrization.initialise([0, 1])
    optimizer = instantiate(cfg.optimizer, params=model.parameters())
    assert isinstance(optimizer, torch.optim.Optimizer) and task.law([0, 1]).dim == model.parametrization.dim
    assert instantiate(cfg.schedule).rate(1.0, 0) > 0
    callbacks = instantiate(cfg.callbacks)
    assert set(callbacks) == set(cfg.callbacks) and not isinstance(callbacks["progress"], DictConfig)


def test_checks() -> None:
    for name in ("ahn/theorem1", "giannou/theorem5_1", "lds/pcg"):
        given = dict(by_hydra("check", f"check={name}").check)
        node = {k: v for k, v in given.items() if v is not None or k not in ("seed", "samples")}
        assert hasattr(instantiate(node), "measure"), name


@pytest.mark.parametrize("imports", ["", "import icl\n", "import omegaconf, icl\n"])
def test_values_by_scale_are_known_in_any_order_of_imports(imports: str) -> None:
    script = f"{imports}from hydra import compose, initialize_config_module\n"
    script += "with initialize_config_module('icl.conf', version_base='1.3'):\n"
    script += "    cfg = compose('train', ['experiment=ahn/theorem3', 'scale=smoke'])\n"
    script += "assert list(cfg.optimizer.betas) == [0.9, 0.99]"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def test_typed_names_are_the_same_as_ever() -> None:
    typed = ["experiment=ahn/theorem3", "optimizer.schedule.every=7", "model.path=tokens"]
    settings = ours.compose(ConfigDirs(), "train", typed).settings
    assert settings["optimizer"]["schedule"] == {"_target_": "icl.training.schedules.StepHalving", "every": 7}
    assert "schedule" not in settings and "dim" not in settings["model"]
    assert settings == ours.compose(ConfigDirs(), "train", [typed[0], "schedule.every=7", typed[2]]).settings
    check = ours.compose(ConfigDirs(), "check", ["check=xie/ltb", "check.weights=here"]).settings["check"]
    assert check["weights"] == "here"
