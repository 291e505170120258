"""Which runs a figure asks for, as in requests.txt: a figure, the scale and other settings, and below them
each experiment with what is set in it."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.figures.bases import built, rounded
from tests.records import FakeRunner, mark, record

BLOCKS = Path(__file__).with_name("requests.txt").read_text().strip().split("\n\n")


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.partition("\n")[0])
def test_a_figure_asks_for_these_runs(block):
    title, *lines = block.split("\n")
    id, scale, *settings = title.split(" ", 2)
    figure = built(id, scale, **json.loads("".join(settings) or "{}"))
    run = record(run=mark("f", [4, 7]), config={"task": {"context": 9}})
    runner = FakeRunner(lambda *asked: run, scale)
    runner.store = lambda *given: record(run=mark("s"), weights=_best_points(figure))
    figure.runs(runner)
    assert [_line(*asked) for asked in runner.asked] == lines


def _best_points(figure):
    """Return where the stacks of giannou's Figure 2 begin."""
    layers = getattr(figure, "layers", None) or [1]
    theta_LV = np.full((len(layers), 2 * max(layers)), 0.8) if isinstance(layers, list) else None
    return {f"family_{mask}_theta_LV": theta_LV for mask in ("masked", "unmasked")}


def _line(experiment, overrides):
    return " ".join(
        [experiment, *(f"{key}={json.dumps(value)}" for key, value in rounded(overrides).items())]
    )
