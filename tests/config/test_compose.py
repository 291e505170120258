"""What is composed from what the process has seen is what Hydra composes; no file or variable is missed."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hydra.types import RunMode
from omegaconf import OmegaConf

from icl.config.compose import Composed, _with_options, compose, hydra_session, resolve
from icl.config.search_path import ConfigDirs
from icl.jobs.execution.hydra_multirun import QuickLoader

FILE = "# @package _global_\ndefaults:\n  - ahn/theorem3\n  - _self_\nname: mylab/{}\nseeds: [{}]\n"


def by_hydra(configs: ConfigDirs, verb: str, overrides: Sequence[str]) -> Composed:
    with hydra_session(configs, verb, overrides) as hydra:
        return resolve(hydra.compose_config(verb, list(overrides), RunMode.RUN))


@pytest.mark.parametrize(
    "overrides",
    [
        ["experiment=ahn/theorem3", "optimizer.lr=0.3", "scale=paper"],
        ["optimizer=sgd", "~optimizer.betas", "+optimizer.nesterov=true", "++optimizer.momentum=0.9"],
        ["optimizer={lr:0.3}", "optimizer.schedule=null"],
        ["seed=3", "seeds=[${seed}]", "seed=4"],
        ["name=${hydra:job.name}"],
        ["hydra.mode=MULTIRUN"],
        ["optimizer.schedule=null", "optimizer.schedule.every=2"],
        ["optimzer.lr=3"],
        ["optimizer.lr=1,2"],
        ["task=nope", "train.stps=3"],
        ["~model", "model.layers=2"],
        ["optimizer=[sgd]"],
    ],
    ids=" ".join,
)
def test_it_is_what_hydra_composes(overrides: list[str]) -> None:
    """Of one option other values, too, or the same complaint."""

    def end(how: object) -> object:
        try:
            return how(ConfigDirs(), "train", overrides)  # type: ignore[operator]
        except Exception as error:
            return type(error), str(error)

    compose(ConfigDirs(), "train", [one for one in overrides if one.startswith("experiment=")])
    assert end(compose) == end(compose) == end(by_hydra)


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
    for option in ("none", "mine"):
        monkeypatch.setenv("MINE", option)
        assert compose(configs, "train", ["experiment=mine"]).choices["logger"] == option
    for mode in ("online", "offline"):
        monkeypatch.setenv("MINE_MODE", mode)
        assert compose(configs, "train", ["experiment=mine"]).settings["logger"]["mode"] == mode


def test_values_are_no_new_composition() -> None:
    _with_options.cache_clear()
    for layers in range(1, 4):
        found = compose(ConfigDirs(), "train", ["model=full", f"model.layers={layers}"])
        assert found.settings["model"]["layers"] == layers
    assert _with_options.cache_info().misses == 1


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
    """To the last setting of Hydra's own."""
    with hydra_session(ConfigDirs(), "train", own) as hydra:
        overrides = ["seed=1,2", "hydra.mode=MULTIRUN", *own]
        master = hydra.compose_config("train", overrides, RunMode.MULTIRUN)
        quick = QuickLoader(hydra.config_loader, ConfigDirs())
        for job in jobs * 2:
            found, wanted = (
                OmegaConf.to_container(loader.load_sweep_config(master, job), enum_to_str=True)
                for loader in (quick, hydra.config_loader)
            )
            assert found == wanted
