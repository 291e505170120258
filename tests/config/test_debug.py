"""debug=fdr|overfit|limit|profiler: short runs of every experiment, kept apart from its own."""

import functools
from pathlib import Path

import pytest

from icl.config.compose import compose
from icl.config.search_path import ConfigDirs
from icl.jobs.requests.parse import parse
from icl.training.estimators import make_estimator
from icl.training.load import law_and_model

EXPERIMENTS = ConfigDirs().options("experiment")
PRESETS = ConfigDirs().options("debug")


@functools.cache
def request(experiment: str, preset: str | None, *overrides: str):
    debug = [] if preset is None else [f"debug={preset}"]
    line = [f"experiment={experiment}", *debug, *overrides]
    return parse("train", compose(ConfigDirs(), "train", line), ConfigDirs())[0]


def test_the_presets_are_those_that_are_documented() -> None:
    text = Path("docs/howto/train.md").read_text()
    assert PRESETS == ["default", "fdr", "limit", "overfit", "profiler"]
    assert all(f"debug={preset}" in text for preset in PRESETS)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_debug_run_is_no_run_of_the_experiment(preset: str) -> None:
    for experiment in ("ahn/theorem3", "xie/yq_lsa", "giannou/lsa"):
        own, short = request(experiment, None), request(experiment, preset)
        assert short.id == f"debug/{preset}/{experiment}"
        assert short.identity != own.identity  # its own settings: other fingerprints
        assert [short.config[key] == own.config[key] for key in ("task", "model")] == [True, True]


@pytest.mark.parametrize("experiment", EXPERIMENTS[::3])
def test_every_experiment_can_be_overfitted(experiment: str) -> None:
    config = request(experiment, "overfit").config
    train = config["train"]
    assert train["steps_per_batch"] == train["steps"] and train["batch"] == 8
    law, model = law_and_model(config["task"], config["model"], config["seeds"])
    make_estimator(train["estimator"], model, law)  # raises where the law has no such one
