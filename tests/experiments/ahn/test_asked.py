"""Tests that Figures 3 to 7 request the right runs."""

import pytest

from icl.errors import InputError
from icl.experiments.ahn import fig6, fig7
from icl.experiments.ahn.theorem3 import Theorem3
from icl.experiments.ahn.theorem4 import Theorem4
from icl.experiments.training import TrainingSettings
from tests.records import FakeRunner, record


def test_every_length_is_trained_in_batches(monkeypatch):
    def compare(runner, name, trained, plain, sizes, *, least_squares):
        assert (trained, plain) == (["ahn/tail"] * 2, "ahn/fig6")
        assert (name, least_squares, sizes.test, sizes.search) == ("ahn/fig6_losses", True, 5, 6)

    monkeypatch.setattr(fig6, "compare", compare)
    runner = FakeRunner()
    settings = {
        "context": [2, 4, 20],
        "seeds": [0, 1],
        "contexts_per_run": 2,
        "lr": 0.01,
        "lr_below_5": 0.001,
        "init_stds": [0.1, 0.3],
    }
    records = fig6.Fig6(**settings, test_contexts=5, search_contexts=6).records(runner)
    four = {"seeds": [2, 1002, 4, 1004], "task.context": [2, 2, 4, 4]}
    two = {"seeds": [20, 1020], "task.context": [20, 20]}
    assert runner.asked == [
        *(("ahn/tail", four | {"model.init_std": std}) for std in (0.1, 0.3)),
        ("ahn/fig6", four | {"optimizer.lr": [0.001] * 4}),
        *(("ahn/tail", two | {"model.init_std": std}) for std in (0.1, 0.3)),
        ("ahn/fig6", two | {"optimizer.lr": [0.01] * 2}),
    ]
    kinds = ("trained_N{}_0", "trained_N{}_1", "plain_N{}", "losses_N{}")
    assert list(records) == [kind.format(label) for label in ("2_4", "20") for kind in kinds]


def test_every_depth_is_trained_on_both_kinds_of_prompts(monkeypatch):
    trained = record(run={"seeds": [4, 7]}, config={"task": {"context": 9}})
    runner = FakeRunner(lambda *asked: trained)
    monkeypatch.setattr(fig7, "compare", lambda runner, name, trained, plain, sizes: name)
    records = fig7.Fig7([1, 3], test_contexts=5, search_contexts=6).records(runner)
    for depth, (plain, trained) in zip([1, 3], [runner.asked[:2], runner.asked[2:]], strict=True):
        assert plain == ("ahn/fig7", {"model.layers": depth})
        settings = {"model.layers": depth, "task.context": 9, "seeds": [4, 7], "model.init_std": 0.1}
        assert trained == ("ahn/tail", settings)
    assert records["losses_L3"] == "ahn/fig7_losses"
    kinds = ("trained_L{}_0", "plain_L{}", "losses_L{}")
    assert list(records) == [kind.format(depth) for depth in (1, 3) for kind in kinds]


@pytest.mark.parametrize(
    ("scale", "experiment"),
    [("smoke", "ahn/theorem4_lbfgs"), ("laptop", "ahn/theorem4_lbfgs"), ("paper", "ahn/theorem4")],
)
def test_the_papers_own_protocol_is_that_of_the_paper_scale(scale, experiment):
    def enough(*asked):
        raise StopIteration

    runner = FakeRunner(enough, scale)
    with pytest.raises(StopIteration):
        Theorem4(context=20).records(runner)
    assert runner.asked == [(experiment, {"task.context": 20})]


def test_settings_that_are_given_reach_the_runs():
    def enough(*asked):
        raise StopIteration

    runner = FakeRunner(enough)
    for experiment in (Theorem3(), Theorem3(layers=2, dim=3, context=9, seeds=[4], steps=400, lr=0.3)):
        with pytest.raises(StopIteration):
            experiment.records(runner)
    overrides = {
        "model.layers": 2, "task.dim": 3, "task.context": 9, "seeds": [4], "optimizer.lr": 0.3,
        "train.steps": 400, "train.log_every": 2, "optimizer.schedule.every": 40,
    }  # fmt: skip
    assert runner.asked == [("ahn/theorem3", {}), ("ahn/theorem3", overrides)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"layers": 0}, "figure.experiment.layers=0"),
        ({"layers": 13}, "figure.experiment.layers=13"),
        ({"steps": 1.5}, "figure.experiment.steps=1.5"),
        ({"lr": 0}, "figure.experiment.lr=0"),
        ({"seeds": [1, 1]}, "seeds=[1, 1]"),
    ],
)
def test_settings_that_cannot_be_are_refused(given, said):
    with pytest.raises(InputError) as refused:
        TrainingSettings(**given)
    assert str(refused.value).startswith(said)
    with pytest.raises(InputError):
        Theorem4(layers=1)  # (11) has a B in all layers but the last
