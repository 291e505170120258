"""Tests of hydra/sweeper=search: grid, random points and Optuna's, under any launcher, and continued."""

import csv
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from icl.errors import InputError
from icl.jobs.execution import search
from icl.jobs.execution.multirun import Sweep
from icl.jobs.execution.search import Dimension
from tests.commands import DIVERGES, Run

SEARCH = ["-m", "hydra/sweeper=search", "format=json", "seed=0", "train.steps=2"]
SPACE = ["optimizer.lr=tag(log,interval(0.001,0.1))", "model.layers=1,2"]


def points(document: dict[str, Any]) -> list[tuple[str, str]]:
    rows = list(csv.DictReader(Path(document["sweep_csv"]).read_text().splitlines()))
    return [(row["optimizer.lr"], row["model.layers"]) for row in rows]


@pytest.mark.parametrize("method", ["random", "bayes"])
def test_a_search_is_continued(
    method: str, tiny: Run, monkeypatch: pytest.MonkeyPatch, outputs: Path
) -> None:
    """Repeat the command after an interruption, with more trials, and by another launcher."""
    if method == "bayes":
        pytest.importorskip("optuna", reason="optuna")
    args = [*SEARCH, f"search.method={method}", "search.batch=2", *SPACE]
    whole = tiny(*args, "search.trials=6", "hydra/launcher=vectorized").json
    place = outputs.rename(outputs.with_name("elsewhere"))
    known = (place / "sweeps" / Path(whole["sweep"]).name / "sweep.csv").read_bytes()
    begin, begun = Sweep.begin, []

    def stops(self: Sweep) -> None:
        begin(self)
        begun.append(1)
        if len(begun) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Sweep, "begin", stops)
    assert tiny(*args, "search.trials=4").code == 130
    monkeypatch.undo()
    some = tiny(*args, "search.trials=4").json
    assert some["jobs"] == 4 and some["cached"] == 2
    first = points(some)
    found = tiny(*args, "search.trials=6", "hydra/launcher=vectorized").json
    assert found["jobs"] == found["done"] == 6 and found["cached"] == 4 and found["sweep"] == some["sweep"]
    assert points(found)[:4] == first
    assert all(0.001 <= float(lr) <= 0.1 and layers in "12" for lr, layers in points(found))
    assert len(set(points(found))) == 6
    rows = [line.split(",")[:2] for line in known.decode().splitlines()]
    same = 6 if method == "random" else 4  # points that were asked for knowing as many others
    assert [tuple(row) for row in rows[1:]][:same] == points(found)[:same]  # as without an interruption
    best = min(row["mean"] for row in found["summary"] if row["metric"] == "exact_risk")
    assert found["best"]["metric"] == "exact_risk" and found["best"]["mean"] == best


def test_a_grid(tiny: Run) -> None:
    swept = ["search.method=grid", "search.objective=loss", "search.batch=3"]
    found = tiny(*SEARCH, *swept, "optimizer.lr=0.01,0.02", "model.layers=range(1,3)").json
    assert points(found) == [("0.01", "1"), ("0.01", "2"), ("0.02", "1"), ("0.02", "2")]
    assert found["best"]["metric"] == "loss"


def test_a_trial_that_fails_is_no_end(tiny: Run) -> None:
    found = tiny(*SEARCH, "search.method=grid", *DIVERGES)
    assert found.code == 4 and found.json["done"] == 1 and found.json["failed"] == 1


def test_random_points() -> None:
    """Compare points, which are functions of the search's seed and their own number; intervals are
    covered."""
    space = [Dimension("a", ("x", "y")), Dimension("b", (), 1, 3, is_whole=True),
             Dimension("c", (), 1e-4, 1.0, is_log=True), Dimension("d", (), -1.0, 1.0)]  # fmt: skip
    found = search.Random(space, 7).ask(0, 400)
    assert search.Random(space, 7).ask(250, 3) == found[250:253] != search.Random(space, 8).ask(250, 3)
    a, b, c, d = zip(*([value.partition("=")[2] for value in point] for point in found), strict=True)
    assert set(a) == {"x", "y"} and set(b) == {"1", "2", "3"}
    # Five standard deviations of a binomial: half of a logarithmic scale lies below its middle.
    assert abs(sum(float(value) < 1e-2 for value in c) - 200) < 50
    assert all(1e-4 <= float(value) <= 1 for value in c) and abs(sum(float(v) < 0 for v in d) - 200) < 50


def test_without_optuna(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(InputError, match="needs optuna; pip install"):
        search.Bayes([Dimension("a", ("1", "2"))], 0, tmp_path / "search.db")


def test_an_old_optuna(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "optuna", types.SimpleNamespace(__version__="2.10.1"))
    with pytest.raises(InputError, match=r"needs optuna 5, optuna 2\.10\.1 is installed; pip install"):
        search.Bayes([Dimension("a", ("1", "2"))], 0, tmp_path / "search.db")
