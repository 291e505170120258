"""A composed config with other values is, to the last key, what Hydra composes with these values."""

from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.types import RunMode
from omegaconf import OmegaConf

from icl.config import fast_override
from icl.config.compose import compose, hydra_session, resolve
from icl.config.fast_override import OverridableConfig
from icl.config.search_path import ConfigDirs

CONFIG = """# @package _global_
defaults:
  - ahn/theorem3
  - _self_
train:
  batch: 64
  steps_per_batch: ${train.steps}
name: mine/${at:a,b,c}
"""


@pytest.fixture
def configs(tmp_path: Path) -> ConfigDirs:
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "mine.yaml").write_text(CONFIG)
    return ConfigDirs(tmp_path)


@pytest.mark.parametrize(
    ("first", "second", "resolved_once"),
    [
        (["optimizer.lr=0.1", "seed=0"], ["optimizer.lr=0.2", "seed=1"], True),
        (["optimizer.betas=[0.9,0.9]", "seeds=[0]"], ["optimizer.betas=null", "seeds=[1,2]"], True),
        (["train.batch=32"], ["train.batch='8'"], False),  # steps_per_batch names `train`
        (["train.steps=10"], ["train.steps=20"], False),
        (["scale=smoke"], ["scale=paper"], False),
        (["seed=0"], ["seed=${train.steps}"], True),  # but the value itself is an expression
        (["callbacks.heatmaps.count=1"], ["callbacks.heatmaps.count=2"], True),
        (["callbacks.heatmaps=null"], ["callbacks.heatmaps=null"], True),
    ],
)
def test_it_is_what_hydra_composes(
    first: list[str], second: list[str], resolved_once: bool, configs: ConfigDirs
) -> None:
    common = ["experiment=mine"]
    keys = [override.partition("=")[0] for override in first]
    with hydra_session(configs, "train", common) as hydra:
        config = hydra.compose_config("train", [*common, *first], RunMode.RUN)
        parser = OverridesParser.create(config_loader=hydra.config_loader)
        given = OverridableConfig(config, keys)
        assert (given._resolved is not None) == resolved_once
        for asked in (second, first, second):
            found = given(parser.parse_overrides(asked))
            assert found.settings == compose(configs, "train", [*common, *asked]).settings
            found.settings["optimizer"]["lr"] = "changed by whom it was given to"
        assert resolve(config).settings["task"] == found.settings["task"]


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
    assert fast_override._may_follow(OmegaConf.to_container(OmegaConf.create({"x": [text]})), ["a.b"]) == may
    assert fast_override._may_follow({"x": "${at:1,2,3}"}, ["scale"])
