"""Tests that several processes with the same request log it to W&B once."""

import os
from pathlib import Path

import pytest

from tests.commands import TINY

ASKED = {
    "train": ["train", *TINY, "callbacks.heatmaps=null"],
    "check": ["check", "check=lds/lemma3_1", "scale=smoke"],
}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("first", ["none", "wandb_offline"], ids=["it is done", "it is not done"])
@pytest.mark.parametrize("verb", ASKED)
def test_told_once(verb: str, first: str, tmp_path: Path) -> None:
    import wandb  # noqa: F401  before the others are forked: they start with it

    import icl.jobs.requests.train
    import icl.training.run  # noqa: F401
    from tests.faults.forked import call, started

    outputs = tmp_path / "outputs"
    argv = [*ASKED[verb], "logger=wandb_offline", "format=json"]
    if first == "none":
        assert call([*ASKED[verb], "logger=none"], outputs).code == 0
    with started(argv, outputs) as one, started(argv, outputs) as other:
        ended = [one.wait(), other.wait()]
    assert [end.code for end in ended] == [0, 0], ended
    runs = [path.name.split("-", 4)[-1] for path in (outputs / "wandb").glob("offline-run-*")]
    assert len(runs) == len(set(runs)) == 1
