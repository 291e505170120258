import numpy as np
import pytest
import torch

from icl.checks.ahn import landscape
from icl.checks.ahn.landscape import Landscape
from icl.checks.statement import Sample
from icl.models.ahn import random_starts
from icl.models.ahn.descent import Descended
from icl.models.ahn.random_starts import RandomStarts, Trained
from icl.theory.ahn.invariant_risk import InvariantRisk

SMALL = {"starts": 16, "init_stds": [0.1], "prompts": 300, "iterations": 30, "samples": 1000}


def test_few_iterations_decide_nothing():
    found = Landscape(**SMALL).decide()
    measured = found.document()["measured"]
    assert found.verdict == "undecided" and all(control.rejected for control in found.controls)
    assert sum(measured["reached_by_risk"].values()) == 16
    assert measured["at_best_by_init_std"] == [0] and measured["starts_by_init_std"] == [16]
    assert measured["best_on_s"] == pytest.approx(0.0392593, rel=1e-5)
    assert measured["share_possible"] > 0.5 and measured["below_best_on_s"] == 0


@pytest.fixture(scope="module")
def minima():
    return InvariantRisk(5, 10, 3, with_b=True).minimise(np.random.default_rng(0), 24)


@pytest.fixture(autouse=True)
def fewer_searches(monkeypatch):
    monkeypatch.setattr(landscape, "SEARCHES", 24)


def stacks(point, starts, noise, fall=0.0):
    rng, identity = np.random.default_rng(0), torch.eye(5).double()
    a, b = torch.from_numpy(point.a_L), torch.from_numpy(point.b_L)
    return [
        Trained(
            *(
                c[:, None, None] * (identity + noise * torch.from_numpy(rng.standard_normal((len(c), 5, 5))))
                for c in (-a, b)
            ),
            fall,
        )
        for _ in range(starts)
    ]


@pytest.mark.parametrize(
    ("other", "fall", "share", "verdict"),
    [(0, 0.0, 1, "undecided"), (-1, 0.0, 0, "fails"), (-1, 0.02, 1, "undecided")],
)
def test_the_size_with_the_least_share_counts_and_only_what_has_converged(
    monkeypatch, minima, other, fall, share, verdict
):
    """End all starts of one size near the best minimum, and all of the other there or elsewhere: no search
    proves the best minimum, and what still falls may reach it."""
    ends = zip(*(stacks(minima[place], 16, 0.01, fall) for place in (0, other)), strict=True)
    monkeypatch.setattr(RandomStarts, "train", lambda self: [stack for pair in ends for stack in pair])
    found = Landscape(**SMALL | {"init_stds": [0.1, 0.2], "starts": 32}).decide()
    measured = found.document()["measured"]
    assert (found.verdict, measured["share_possible"]) == (verdict, share)
    assert measured["at_best_by_init_std"] == [16, 16 * (other == 0)]


def test_an_end_below_the_best_is_seen(monkeypatch, minima):
    monkeypatch.setattr(RandomStarts, "train", lambda self: stacks(minima[0], 16, 0.0))
    right = InvariantRisk.minimise
    monkeypatch.setattr(InvariantRisk, "minimise", lambda *given: [m for m in right(*given) if m.risk > 0.06])
    found = Landscape(**SMALL | {"samples": 4000}).decide()
    assert found.numbers["below_best_on_s"].value == 16 and found.verdict == "undecided"


def test_training_lowers_every_start_s_own_risk(monkeypatch):
    """Compare with the same starts untrained."""
    starts = Landscape(**SMALL | {"starts": 3, "prompts": 3000}).random_starts
    trained = [starts.end(k, *stack[:2], 10_000) for k, stack in enumerate(starts.train())]
    still = torch.ones(3)
    monkeypatch.setattr(random_starts, "descend_each", lambda _, start, *__: Descended(start, still, still))
    untrained = [starts.end(k, *stack[:2], 10_000) for k, stack in enumerate(starts.train())]
    for after, before in zip(trained, untrained, strict=True):
        assert after.risk < 0.1 * before.risk


@pytest.mark.parametrize("size", [0, 1])
def test_starts_are_normal_in_the_papers_coordinates(size):
    starts = Landscape(starts=400, init_stds=[0.1, 0.3]).random_starts
    white = starts.matrices(torch.stack([starts.start(k) for k in range(size, 400, 2)]))
    root_DD = starts.law.root_RDD[0]
    inverse_DD = torch.linalg.inv(root_DD)
    A_KLDD, B_KLDD = white
    for printed_KLDD in (inverse_DD.mT @ A_KLDD @ inverse_DD, root_DD @ B_KLDD @ inverse_DD):
        assert printed_KLDD.square().mean().sqrt().item() == pytest.approx([0.1, 0.3][size], rel=0.05)


def test_a_share_of_none_has_an_error_too():
    none, half = Sample.share([False] * 24), Sample.share([True, False] * 12)
    assert none.mean == 0 and 0.03 < none.stderr < 0.05
    assert half == Sample(0.5, (0.25 / 24) ** 0.5)
