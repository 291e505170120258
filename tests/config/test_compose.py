"""Tests that a config composed once, with values set on it, equals what Hydra composes from all overrides."""

import os
from collections.abc import Sequence
from pathlib import Path

import hydra
import numpy as np
import pytest
from hydra.types import RunMode
from omegaconf import OmegaConf

from icl.config import compose as module
from icl.config import hydra_private
from icl.config.compose import Composed, Composer, compose, forget, hydra_session, resolve
from icl.config.search_path import SCALES, ConfigDirs

FILE = "# @package _global_\ndefaults:\n  - ahn/theorem3\n  - _self_\nname: mylab/{}\nseeds: [{}]\n"
MINE = """# @package _global_
defaults:
  - ahn/theorem3
  - _self_
train: {batch: 64, steps_per_batch: "${train.steps}"}
optimizer: {lr: 0.3, schedule: {every: 9}}
name: mine/${at:a,b,c}
"""
CHECK = "_target_: icl.checks.ahn.lemma1.Lemma1\ndim: 3\nexpected: fails\n"
CHECK_WITH_DEFAULTS = "# @package check\ndefaults:\n  - /check/ahn/theorem1\n  - _self_\nweights: here.npz\n"
CHECK_FOR_ALL = "# @package _global_\ncheck: {_target_: icl.checks.ahn.lemma1.Lemma1}\njobs: 3\n"


@pytest.fixture
def configs(tmp_path: Path) -> ConfigDirs:
    for name, text in {
        "experiment/mine": MINE,
        "optimizer/mine": "_target_: torch.optim.SGD\nlr: 0.5\nschedule: {every: 77}\n",
        "check/own": CHECK,
        "check/with_defaults": CHECK_WITH_DEFAULTS,
        "check/for_all": CHECK_FOR_ALL,
    }.items():
        path = tmp_path / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return ConfigDirs(tmp_path)


def composed_whole(configs: ConfigDirs, verb: str, overrides: Sequence[str]) -> Composed:
    """Compose without Hydra's private API: Hydra is given all overrides."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hydra_private, "value_setter", lambda: None)
        patch.setattr(Composer, "_plain", lambda *_: None)
        return compose(configs, verb, overrides)


def outcome(how: object, *args: object) -> object:
    try:
        return how(*args)  # type: ignore[operator]
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize(
    "overrides",
    [
        ["experiment=ahn/theorem3", "optimizer.lr=0.3", "scale=paper"],
        ["experiment=ahn/theorem3", "optimizer=sgd", "~optimizer.betas", "model=full"],
        ["experiment=ahn/theorem3", "optimizer=lbfgs", "seed=3"],
        ["experiment=ahn/theorem3", "optimizer=lbfgs", "train.clip=1"],
        ["experiment=mine", "optimizer.schedule.every=8", "train.steps=20"],
        ["experiment=mine", "optimizer=sgd", "schedule=constant"],
        ["optimizer=mine", "optimizer.lr=0.25", "optimizer.schedule.every=3"],
        ["optimizer=sgd", "~optimizer.betas", "+optimizer.nesterov=true", "++optimizer.momentum=0.9"],
        ["optimizer={lr:0.3}", "optimizer.schedule=null"],
        ["seed=3", "seeds=[${seed}]", "seed=4"],
        ["seeds=[1,2]", "train.batch='8'", "train.clip=null"],
        ["name=${hydra:job.name}"],
        ["hydra.mode=MULTIRUN"],
        ["optimizer.schedule=null", "optimizer.schedule.every=2"],
        ["optimzer.lr=3"],
        ["optimizer.lr=1,2"],
        ["optimizer.schedule.every=1,2"],
        ["task=nope", "train.stps=3"],
        ["~model", "model.layers=2"],
        ["~train.clip", "train.clip=3"],
        ["optimizer=[sgd]"],
        ["callbacks.heatmaps=null"],
    ],
    ids=" ".join,
)
def test_values_are_set_as_hydra_sets_them(overrides: list[str], configs: ConfigDirs) -> None:
    """Set values, or refuse them as Hydra does: the first time, and when the base is known or resolved."""
    wanted = outcome(composed_whole, configs, "train", overrides)
    forget()
    assert [outcome(compose, configs, "train", overrides) for _ in range(3)] == [wanted] * 3


@pytest.mark.parametrize(
    "overrides",
    [
        ["check=ahn/theorem1", "check.dim=7", "scale=smoke"],
        ["check=xie/ltb", "check.expected=holds", "check.weights=a.npz"],
        ["check=own", "check.dim=4"],
        ["check=own", "cluster=local", "jobs=3"],
        ["check=with_defaults", "check.context=4"],
        ["check=with_defaults", "check.weights=there.npz"],
        ["check=for_all"],
        ["check=own", "check.dims=3"],
        ["check=ahn/theorem1", "check=own"],
        ["check=ahn/nope"],
        ["check={dim:3}"],
        ["check=null"],
    ],
    ids=" ".join,
)
def test_a_check_is_set_as_hydra_composes_it(overrides: list[str], configs: ConfigDirs) -> None:
    wanted = outcome(composed_whole, configs, "check", overrides)
    forget()
    for other in ("ahn/lemma1", "lds/lemma3_1", "xie/ltb"):
        outcome(compose, configs, "check", [f"check={other}"])
    assert [outcome(compose, configs, "check", overrides) for _ in range(3)] == [wanted] * 3


def test_every_shipped_check_and_figure_is_what_hydra_composes() -> None:
    configs = ConfigDirs()
    for verb in ("check", "figure"):
        for number, option in enumerate(configs.options(verb)[::8]):
            overrides = [f"{verb}={option}", f"scale={SCALES[number % 3]}"]
            assert compose(configs, verb, overrides) == composed_whole(configs, verb, overrides), option


def test_what_was_composed_is_nobody_elses(configs: ConfigDirs) -> None:
    for _ in range(4):
        found = compose(configs, "train", ["experiment=mine", "optimizer.lr=0.2"])
        assert found.settings["optimizer"]["betas"] and found.settings["optimizer"]["lr"] == 0.2
        found.settings["optimizer"]["betas"].clear()


@pytest.mark.parametrize(
    ("first", "second", "resolved_once"),
    [
        (["optimizer.lr=0.1", "seed=0"], ["optimizer.lr=0.2", "seed=1"], True),
        (["optimizer.betas=[0.9,0.9]", "seeds=[0]"], ["optimizer.betas=null", "seeds=[1,2]"], True),
        (["train.batch=32"], ["train.batch='8'"], False),  # steps_per_batch names `train`
        (["train.steps=10"], ["train.steps=20"], False),
        (["scale=smoke"], ["scale=paper"], False),
        (["scale=smoke", "train.steps=9", "seed=0"], ["scale=smoke", "train.steps=9", "seed=1"], True),
        (["seed=0"], ["seed=${train.steps}"], False),  # the value itself is an expression
        (["callbacks.heatmaps.count=1"], ["callbacks.heatmaps.count=2"], True),
        (["callbacks.heatmaps=null"], ["callbacks.heatmaps=null"], False),  # a group of settings
    ],
)
def test_values_nothing_depends_on_are_set_on_what_is_resolved(
    first: list[str],
    second: list[str],
    resolved_once: bool,
    configs: ConfigDirs,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    common, resolved = ["experiment=mine"], []
    for overrides in (first, second, first):
        compose(configs, "train", [*common, *overrides])
    monkeypatch.setattr(module, "resolve", lambda config: resolved.append(config) or resolve(config))
    found = compose(configs, "train", [*common, *second])
    assert (not resolved) == resolved_once
    assert found == composed_whole(configs, "train", [*common, *second])


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("${a.b}", True),
        ("${other}", False),
        ("${c.${other}}", True),
        ("${now:%H}", True),
        ("${oc.env:HOME,b}", True),  # the word is enough
        ("${oc.env:HOME}", False),
        ("${at:1,2,3}", False),
        ("before ${a} after", True),
    ],
)
def test_what_may_follow_from_a_key(text: str, may: bool) -> None:
    assert module._may_name(text, {"a", "b"}) == may
    assert module._may_name("${at:1,2,3}", {"scale"})


def test_a_file_or_variable_that_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "experiment" / "mine.yaml"
    path.parent.mkdir()
    configs = ConfigDirs(tmp_path)
    for number in (1, 2):
        path.write_text(FILE.format("first", number))
        os.utime(path, ns=(number, number))
        assert compose(configs, "train", ["experiment=mine"]).settings["seeds"] == [number]
    (tmp_path / "logger").mkdir()
    (tmp_path / "logger" / "mine.yaml").write_text("mode: ${oc.env:MINE_MODE,none}\n")
    path.write_text(FILE.format("first", 1).replace("  - _", "  - override /logger: ${oc.env:MINE}\n  - _"))
    for option in ("none", "mine") if hydra.__version__.startswith("1.3.") else ():  # later: no such defaults
        monkeypatch.setenv("MINE", option)
        assert compose(configs, "train", ["experiment=mine"]).choices["logger"] == option
    path.write_text(path.read_text().replace("${oc.env:MINE}", "mine"))
    for mode in ("online", "offline"):
        monkeypatch.setenv("MINE_MODE", mode)
        assert compose(configs, "train", ["experiment=mine"]).settings["logger"]["mode"] == mode
    (tmp_path / "check").mkdir()
    own = tmp_path / "check" / "own.yaml"
    for dim in (3, 4, 5):
        own.write_text(CHECK.replace("3", str(dim)))
        os.utime(own, ns=(dim, dim))
        for _ in range(3):
            assert compose(configs, "check", ["check=own"]).settings["check"]["dim"] == dim


def test_values_are_no_new_composition(monkeypatch: pytest.MonkeyPatch) -> None:
    composed: list[object] = []
    load = Composer.compose_options
    monkeypatch.setattr(
        Composer, "compose_options", lambda *args, **more: composed.append(args) or load(*args, **more)
    )
    forget()
    for layers in range(1, 4):
        found = compose(ConfigDirs(), "train", ["model=full", f"model.layers={layers}"])
        assert found.settings["model"]["layers"] == layers
    assert len(composed) == 1
    for option in ConfigDirs().options("check"):
        compose(ConfigDirs(), "check", [f"check={option}"])
    assert len(composed) == 2


@pytest.mark.parametrize(
    ("own", "jobs"),
    [
        ([], [["seed=1", "optimizer.lr=0.1"], ["seed=2", "optimizer.lr=0.2"], ["seed=2", "model=full"]]),
        (["hydra.job.config.override_dirname.kv_sep=-"], [["train.clip=null"], ["+optimizer.nesterov=true"]]),
        (["hydra.job.env_copy=[HOME]"], [["seed=1"], ["seed=2"]]),
        ([], [["name=${hydra:job.name}"], ["optimizer={lr:0.3}", "scale=paper"]]),
    ],
)  # fmt: skip
def test_the_config_of_a_job_is_hydras(own: list[str], jobs: list[list[str]]) -> None:
    """Compare to the last setting of Hydra's own."""
    if "hydra.job.config" in str(own) and not hydra.__version__.startswith("1.3."):
        pytest.skip("this Hydra has no hydra.job.override_dirname")
    with hydra_session(ConfigDirs(), "train", own) as composer:
        overrides = ["seed=1,2", "hydra.mode=MULTIRUN", *own]
        master = composer.load_configuration("train", overrides, RunMode.MULTIRUN)
        for job in jobs * 2:
            found = composer.load_sweep_config(master, job)
            lines = [*own, "hydra.mode=MULTIRUN", *job]
            wanted = composer._loader.load_configuration("train", lines, RunMode.RUN)
            assert plain(found) == plain(wanted)


def plain(config: object) -> object:
    content = OmegaConf.to_container(config, enum_to_str=True)
    content["hydra"]["overrides"]["hydra"].sort()  # type: ignore[index,call-overload]
    return content


def test_private_api_of_hydra_is_used_in_one_file() -> None:
    package = Path(module.__file__).parents[1]
    files = [*package.rglob("*.py"), *(package.parent / "hydra_plugins").rglob("*.py")]
    used = {path.name for path in files if any(map(_imports_private, path.read_text().splitlines()))}
    assert used == {"hydra_private.py"}


def _imports_private(line: str) -> bool:
    return "import" in line.split() and ("hydra._" in line or "omegaconf._" in line)


def test_dimensions_follow_from_arrays_that_are_typed(configs: ConfigDirs, tmp_path: Path) -> None:
    sigma = str(tmp_path / "sigma.npy")
    np.save(sigma, np.eye(3))
    theorem, experiment = "check=ahn/theorem1", "experiment=ahn/theorem3"
    for verb, asked, key, dim in (
        ("check", [theorem, f"check.covariance={sigma}"], "check.dim", 3),
        ("check", [theorem, "check.eigenvalues=[2,1]"], "check.dim", 2),
        ("check", [theorem, "check.dim=5", f"check.covariance={sigma}"], "check.dim", 5),
        ("check", [theorem, "check.covariance=absent.npy"], "check.dim", 5),
        ("check", ["check=giannou/ridge", "check.design=[[1,2],[3,4],[5,7]]"], "check.context", 3),
        ("check", ["check=xie/gd_forward", "check.prior_mean=[1,2]"], "check.dim", 2),
        ("train", [experiment, f"task.covariance={sigma}"], "task.dim", 3),
        ("train", [experiment, "task.dim=4", "task.eigenvalues=[2,1]"], "task.dim", 4),
    ):
        for how in (compose, compose, composed_whole):  # anew, from what is known, by Hydra alone
            group, name = key.split(".")
            assert how(configs, verb, asked).settings[group][name] == dim, (how, asked, key)
    asked = ["check=own", "check.covariance=[[1]]"]  # which has no such setting
    assert "covariance" in str(outcome(compose, configs, "check", asked))
