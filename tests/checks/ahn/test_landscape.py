import numpy as np
import pytest
import torch

from icl.checks.ahn import landscape
from icl.checks.ahn.landscape import Landscape
from icl.checks.ahn.support import random_starts
from icl.checks.ahn.support.critical_set import as_printed
from icl.checks.ahn.support.ensemble import Descended
from icl.checks.ahn.support.random_starts import RandomStarts, Trained, share_interval
from icl.theory.ahn.invariant_risk import InvariantRisk
from tests.checks.asking import held

SMALL = {"starts": 16, "init_stds": [0.1], "prompts": 300, "iterations": 30, "samples": 1000}


def test_few_iterations_decide_nothing():
    finding = held(Landscape(**SMALL), verdict="undecided")
    measured = finding.measured
    assert sum(measured["reached_by_risk"].values()) == 16
    assert measured["at_best_by_init_std"] == [0] and measured["starts_by_init_std"] == [16]
    assert measured["best_on_s"] == pytest.approx(0.0392593, rel=1e-5)
    assert measured["share_high"] > 0.5 and measured["below_best_on_s"] == 0


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
    finding = Landscape(**SMALL | {"init_stds": [0.1, 0.2], "starts": 32}).measure()
    assert (finding.verdict, finding.measured["share_possible"]) == (verdict, share)
    assert (finding.measured["share_low"] > 0.5) == bool(share)
    assert finding.measured["converged_by_init_std"] == [16, 16] if fall == 0 else [0, 0]
    assert finding.measured["at_best_by_init_std"] == [16, 16 * (other == 0)]
    assert finding.measured["largest_distance"] < 0.1


def test_an_end_below_the_best_is_seen(monkeypatch, mutate, minima):
    monkeypatch.setattr(RandomStarts, "train", lambda self: stacks(minima[0], 16, 0.0))
    mutate(InvariantRisk, "minimise", lambda right, *given: [m for m in right(*given) if m.risk > 0.06])
    finding = Landscape(**SMALL | {"samples": 4000}).measure()
    assert finding.measured["below_best_on_s"] == 16 and finding.verdict == "undecided"


def test_training_lowers_every_start_s_own_risk(monkeypatch):
    """Compare with the same starts untrained, which are far from S."""
    starts = Landscape(**SMALL | {"starts": 3, "prompts": 3000}).random_starts
    trained = [starts.end(k, *stack[:2], 10_000) for k, stack in enumerate(starts.train())]
    still = torch.ones(3)
    monkeypatch.setattr(random_starts, "descend_each", lambda _, start, *__: Descended(start, still, still))
    untrained = [starts.end(k, *stack[:2], 10_000) for k, stack in enumerate(starts.train())]
    for after, before in zip(trained, untrained, strict=True):
        assert after.risk < 0.1 * before.risk and after.distance < 0.5 * before.distance


@pytest.mark.parametrize("size", [0, 1])
def test_starts_are_normal_in_the_papers_coordinates(size):
    starts = Landscape(starts=400, init_stds=[0.1, 0.3]).random_starts
    white = starts.matrices(torch.stack([starts.start(k) for k in range(size, 400, 2)]))
    for printed_KLDD in as_printed(white, starts.law):
        assert printed_KLDD.square().mean().sqrt().item() == pytest.approx([0.1, 0.3][size], rel=0.05)


def test_share_interval():
    assert share_interval(0, 64)[1] == pytest.approx(1 - 0.0005 ** (1 / 64))
    assert share_interval(64, 64) == (pytest.approx(0.0005 ** (1 / 64)), 1)
    assert share_interval(0, 16, 4)[1] == pytest.approx(1 - 0.000125 ** (1 / 16))
    low, high = share_interval(20, 64)
    assert low < 20 / 64 < high
