"""Tests of `budget=`: a figure of the paper's protocol with fewer steps, which says so and decides less."""

from pathlib import Path
from typing import Any

import pytest

from icl.config.search_path import ConfigDirs
from icl.jobs.requests.figure import FigureRequest
from icl.jobs.requests.parse import parse_named
from tests.commands import Run, write

FIGURE = """# @package figure
experiment:
  _target_: icl.experiments.giannou.logistic.Logistic
  layers: [1]
  seeds: [0, 1]
  dim: 2
  context: 4
  mu: 0.1
  newton_steps: 2
  inversion_steps: 5
  prompts: 20
  steps: ${at:2,2,100}
  decisive: ${at:false,false,true}
draw:
  _target_: icl.figures.giannou.fig1.Fig1
budgets:
  evening: {steps: 2}
"""
OF_GIANNOU = [f"giannou/fig{n}" for n in range(1, 10)]


def parsed(figure: str, *more: str) -> FigureRequest:
    request, _ = parse_named("figure", figure, ["scale=paper", *more], ConfigDirs.of(None))
    assert isinstance(request, FigureRequest)
    return request


def changed(one: Any, other: Any) -> dict[str, Any]:
    return {key: value for key, value in one.items() if other[key] != value}


@pytest.mark.parametrize("figure", OF_GIANNOU)
def test_it_replaces_steps_alone(figure: str) -> None:
    plain, evening = parsed(figure), parsed(figure, "budget=evening")
    assert plain.budget is None and evening.budget is not None
    steps = changed(evening.settings["experiment"], plain.settings["experiment"])
    assert {key: v for key, v in steps.items() if key != "decisive"} == evening.budget.steps
    assert all(evening.budget.paper[key] == plain.settings["experiment"][key] for key in evening.budget.steps)
    for part in evening.settings.values():
        assert not part.get("decisive", False)
    assert evening.identity != plain.identity


def test_other_steps_have_files_of_their_own() -> None:
    configs = ConfigDirs.of(None)
    for more in ([], ["figure.budgets.evening.steps=7"]):
        request, session = parse_named(
            "figure", OF_GIANNOU[0], ["scale=paper", "budget=evening", *more], configs
        )
        assert isinstance(request, FigureRequest)
        assert request.changed(session) == ({"figure.experiment.steps": 7} if more else {})


class Asked(Exception):
    """Ends an experiment at the first arrays it wants to compute."""


class Asking:
    scale = "paper"

    def __init__(self) -> None:
        self.runs: list[dict[str, Any]] = []

    def train(self, experiment: str, overrides: Any = None) -> Any:
        self.runs.append({"experiment": experiment, **overrides})
        return type("Run", (), {"mark": [len(self.runs)], "run": {}})()

    def store(self, *_: object, **__: object) -> Any:
        raise Asked


def test_runs_that_figures_share_have_the_same_steps() -> None:
    """Compare those of Figures 2, 3, 5 and 9, and the curriculum, which has a twentieth of a run's steps."""
    asked: dict[str, list[dict[str, Any]]] = {}
    for figure in OF_GIANNOU[2:4] + OF_GIANNOU[4:6]:
        runner: Any = Asking()
        with pytest.raises(Asked):
            parsed(figure, "budget=evening").experiment.records(runner)
        asked[figure] = runner.runs
    assert asked["giannou/fig3"] == asked["giannou/fig4"] and len(asked["giannou/fig3"]) == 12
    assert asked["giannou/fig5"] == asked["giannou/fig6"] and len(asked["giannou/fig5"]) == 9
    for run in (*asked["giannou/fig3"], *asked["giannou/fig5"]):
        assert run["callbacks.curriculum.every"] == max(1, run["train.steps"] // 20)
    budgets = [parsed(figure, "budget=evening").budget for figure in OF_GIANNOU]
    steps = [{} if budget is None else budget.steps for budget in budgets]
    assert len({one["steps"] for one in steps[1:6]}) == 1
    assert len({steps[i]["layernorm_steps"] for i in (1, 4, 5)} | {steps[8]["steps"]}) == 1
    assert steps[0] == steps[6]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["figure=giannou/fig2"], "budget=evening: replaces the paper's steps; scale=laptop has its own"),
        (["figure=giannou/fig10", "scale=paper"], "budget=evening: giannou/fig10 has none"),
        (["figure=ahn/fig3", "scale=paper"], "budget=evening: ahn/fig3 has none"),
        (["figure=giannou/fig2", "scale=paper", "budget=night"], "budget=night: giannou/fig2 has evening"),
        (
            ["figure=giannou/fig2", "scale=paper", "figure.experiment.steps=5"],
            "figure.experiment.steps: is given by budget=evening; leave out one of them",
        ),
        (
            ["figure=giannou/fig2", "scale=paper", "+figure.budgets.evening.seeds=3"],
            "figure.budgets.evening.seeds: is no number of steps in figure.experiment",
        ),
        (
            ["figure=giannou/fig2", "scale=paper", "figure.budgets.evening.steps=0"],
            "figure.budgets.evening.steps=0: must be an integer of at least 1",
        ),
    ],
)
def test_where_it_has_no_meaning_it_is_refused(icl: Run, given: list[str], said: str) -> None:
    refused = icl("figure", "budget=evening", *given)
    assert refused.code == 2 and said in refused.err


def test_a_figure_says_so(icl: Run, tmp_path: Path, outputs: Path) -> None:
    """Draw it, keep it, draw it from the archive; without the budget the archive has nothing of it."""
    conf = write(tmp_path / "conf", {"figure/mine/fig.yaml": FIGURE})
    command = [
        "figure",
        "--config-dir",
        str(conf),
        "figure=mine/fig",
        "scale=paper",
        "format=json",
    ]
    drawn = icl(*command, "budget=evening")
    assert drawn.code == 0, drawn.err
    document = drawn.json
    said = "Trained with budget=evening: steps=2 instead of 100."
    assert document["caption"].endswith(said) and Path(document["files"]["png"]).name == "fig-evening.png"
    assert document["budget"] == {"name": "evening", "steps": {"steps": 2}, "paper": {"steps": 100}}
    for claim in document["claims"]:
        assert said in claim["remarks"] and claim["verdict"] in ("holds", "undecided")
    assert any(claim["verdict"] == "undecided" for claim in document["claims"])
    assert icl(*command, "budget=evening").json["cached"]

    kept = tmp_path / "kept"
    assert icl("archive", str(kept), "scale=paper").code == 0
    again = icl(*command, "budget=evening", f"from={kept}", f"paths.outputs={tmp_path / 'other'}")
    assert again.code == 0, again.err
    assert not (tmp_path / "other" / "runs").exists()
    assert Path(again.json["files"]["png"]).name == "fig-evening-archived.png"
    assert [c["verdict"] for c in again.json["claims"]] == [c["verdict"] for c in document["claims"]]
    full = icl(*command, f"from={kept}", f"paths.outputs={tmp_path / 'other'}")
    assert full.code == 2 and "nothing of mine/fig at scale=paper; it has mine/fig at scale=paper" in full.err
    assert "it has mine/fig at scale=paper budget=evening" in full.err
