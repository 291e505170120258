"""Tests of what a config is beyond Hydra's composition."""

from pathlib import Path

import numpy as np
import pytest
from hydra.types import RunMode
from omegaconf import OmegaConf

from hydra_plugins.icl._loader import share_compositions
from icl.config.compose import compose, hydra_session, resolve
from icl.config.search_path import ConfigDirs
from icl.errors import InputError

SHIPPED = ConfigDirs()


def settings(*overrides: str, verb: str = "train", configs: ConfigDirs = SHIPPED) -> dict:
    return compose(configs, verb, overrides).settings


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd", "lbfgs"])
@pytest.mark.parametrize("experiment", ["ahn/theorem3", "ahn/theorem4_lbfgs", "lds/ar2", "xie/heads"])
def test_an_optimizer_beside_an_experiment_has_its_own_settings(optimizer: str, experiment: str) -> None:
    own = compose(SHIPPED, "train", [f"experiment={experiment}"])
    found = settings(f"experiment={experiment}", f"optimizer={optimizer}")
    if own.choices["optimizer"] == optimizer:
        assert found == own.settings
        return
    schedule = own.settings["optimizer"]["schedule"]
    assert found["optimizer"] == {**settings(f"optimizer={optimizer}")["optimizer"], "schedule": schedule}
    assert found["train"] == own.settings["train"] | ({"clip": None} if optimizer == "lbfgs" else {})


def test_what_is_typed_wins_over_what_is_left_out() -> None:
    chosen = ("experiment=ahn/theorem3", "optimizer=sgd")
    found = settings(*chosen, "optimizer.lr=0.2", "optimizer.schedule.every=7", "~optimizer.betas")
    assert (found["optimizer"]["lr"], found["optimizer"]["schedule"]["every"]) == (0.2, 7)
    constant = settings("experiment=ahn/theorem3", "schedule=constant")["optimizer"]["schedule"]
    assert constant == {"_target_": "icl.training.schedules.Constant"}
    assert settings("optimizer=lbfgs", "train.clip=1")["train"]["clip"] == 1
    assert settings("experiment=giannou/lsa", "callbacks=none")["callbacks"] == {}
    assert "curriculum" not in settings("experiment=giannou/lsa", "callbacks=[default]")["callbacks"]


def test_the_checks_of_an_experiment_go_with_its_model_unless_they_are_typed() -> None:
    own, other = settings("experiment=xie/heads"), settings("experiment=xie/heads", "model=lsa")
    assert (own["checks"], other["checks"]) == (["xie/theorem1"], []) and other["train"] == own["train"]
    typed = settings("experiment=xie/heads", "model=lsa", "checks=[xie/theorem4]")
    assert typed["checks"] == ["xie/theorem4"]
    assert settings("experiment=xie/heads", "model=multihead") == own


@pytest.mark.parametrize(
    ("verb", "asked", "key", "length"),
    [
        ("check", ["check=ahn/theorem1", "check.covariance=SIGMA"], "dim", 3),
        ("check", ["check=ahn/theorem1", "check.eigenvalues=[2,1]"], "dim", 2),
        ("check", ["check=ahn/theorem1", "check.dim=5", "check.covariance=SIGMA"], "dim", 5),
        ("check", ["check=ahn/theorem1", "check.covariance=absent.npy"], "dim", 5),
        ("train", ["experiment=ahn/theorem3", "task.covariance=SIGMA"], "dim", 3),
        ("figure", ["figure=ahn/fig1", "figure.covariance=SIGMA"], "dim", 3),
        ("figure", ["figure=ahn/fig1", "figure.dim=5", "figure.covariance=SIGMA"], "dim", 5),
        ("train", ["experiment=ahn/theorem3", "task.dim=4", "task.eigenvalues=[2,1]"], "dim", 4),
    ],
)
def test_dimensions_follow_from_arrays_that_are_typed(
    verb: str, asked: list[str], key: str, length: int, tmp_path: Path
) -> None:
    np.save(tmp_path / "sigma.npy", np.eye(3))
    overrides = [override.replace("SIGMA", str(tmp_path / "sigma.npy")) for override in asked]
    assert settings(*overrides, verb=verb)["task" if verb == "train" else verb][key] == length


def test_keys_composed_beside_a_group() -> None:
    check = settings("check=ahn/lemma1", "check.expected=fails", "check.weights=a.npz", verb="check")["check"]
    assert (check["expected"], check["weights"]) == ("fails", "a.npz")


def test_a_folder_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "experiment").mkdir()
    head = "# @package _global_\ndefaults: [ahn/theorem3, _self_]\n"
    text = f"{head}name: mine/${{by_scale:a,b,c}}\noptimizer: {{lr: 0.3}}\n"
    (tmp_path / "experiment/mine.yaml").write_text(text)
    (tmp_path / "local").mkdir()
    (tmp_path / "local/default.yaml").write_text("# @package _global_\npaths: {outputs: there}\n")
    mine = ConfigDirs.of(tmp_path)
    assert settings("experiment=mine", "scale=paper", configs=mine)["name"] == "mine/c"
    (tmp_path / "experiment/mine.yaml").write_text(text.replace("mine/", "mean/"))
    assert settings("experiment=mine", "scale=paper", configs=mine)["name"] == "mean/c"
    assert settings("experiment=mine", "optimizer=sgd", configs=mine)["optimizer"]["lr"] == 0.01
    assert settings(configs=mine)["paths"]["outputs"] == mine.default_outputs() == "there"
    assert settings("paths.outputs=typed", configs=mine)["paths"]["outputs"] == "typed"
    with pytest.raises(InputError, match="experiment=mine: no such option"):
        settings("experiment=mine")


@pytest.mark.parametrize(
    "jobs",
    [
        [["experiment=ahn/theorem3", f"optimizer.lr={rate}", "seed=7"] for rate in (1, 2e-3)],
        [["experiment=ahn/theorem3", f"optimizer={one}", "train.steps=9"] for one in ("sgd", "adam", "sgd")],
        [["experiment=ahn/theorem3", "callbacks=none", f"task.dim={one}"] for one in (3, 4)],
        [["experiment=lds/ar", f"task.setting={one}", "+trainer.profiler=simple"] for one in "ab"],
        [["experiment=ahn/theorem3", f"seeds={seeds}", "~checks"] for seeds in ("[0]", "[1,2]")],
        [["experiment=ahn/theorem3", f"train.steps={one}", f"++train.steps={one + 1}"] for one in (3, 5)],
        [["model.layers=1", "scale=smoke"], ["model.layers=2", "scale=paper"], ["scale=laptop"]],
    ],
    ids=["values", "options", "group", "added", "deleted", "added last", "order"],
)  # fmt: skip
def test_jobs_that_share_a_composition_have_what_hydra_composes(jobs: list[list[str]]) -> None:
    with hydra_session(SHIPPED, "train", []) as loader:
        master = loader.load_configuration("train", [], RunMode.MULTIRUN)
        loader.load_configuration = loader.load_configuration.load  # as Hydra has made it
        alone = [OmegaConf.to_container(loader.load_sweep_config(master, job)) for job in jobs]
        resolved = [resolve(loader.load_sweep_config(master, job), loader) for job in jobs]
        share_compositions(loader)
        for job, wanted, settled in zip(jobs, alone, resolved, strict=True):
            found = loader.load_sweep_config(master, job)
            assert OmegaConf.to_container(found) == wanted
            assert resolve(found, loader) == settled
        pickled = pytest.importorskip("cloudpickle").dumps(loader)
        assert pickled, "launchers send it to their workers"
    assert [compose(SHIPPED, "train", job) for job in jobs] == resolved
