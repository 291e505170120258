"""Tests that prompts are a function of (seed, role, first step of the set), never of an iterator's
position.
"""

import pytest
import torch

from icl.models import LinearTransformer, SparseA
from icl.tasks import LinearRegression
from icl.training.estimators import make_estimator
from icl.training.stream import PromptStream


def stream(first: int, total: int = 12, per_batch: int = 5, seeds: tuple[int, ...] = (0, 1)) -> list[dict]:
    law = LinearRegression(dim=2, context=3).law(seeds)
    estimator = make_estimator("expected", LinearTransformer(SparseA(2, 1)), law)
    return list(PromptStream(estimator, seeds, 4, per_batch, total, first, torch.float32))


@pytest.mark.parametrize(
    ("total", "per_batch", "expected"),
    [
        (12, 5, [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11]]),
        (4, 100, [[0, 1, 2, 3]]),
        (3, 1, [[0], [1], [2]]),
        (4, 2, [[0, 1], [2, 3]]),
    ],
)
def test_sets_are_cut_to_the_steps(total: int, per_batch: int, expected: list[list[int]]) -> None:
    assert [batch["steps"] for batch in stream(0, total, per_batch)] == expected


@pytest.mark.parametrize("first", range(12))
def test_starting_anywhere_gives_the_same_prompts(first: int) -> None:
    whole = {step: batch["draw"]["S"] for batch in stream(0) for step in batch["steps"]}
    later = {step: batch["draw"]["S"] for batch in stream(first) for step in batch["steps"]}
    assert list(later) == list(range(first, 12))
    assert all(torch.equal(whole[step], drawn) for step, drawn in later.items())


def test_each_set_is_fresh_and_a_replicas_own() -> None:
    sets = [batch["draw"]["S"] for batch in stream(0)]
    assert all(not torch.equal(a, b) for i, a in enumerate(sets) for b in sets[:i])
    assert sets[0].dtype == torch.float32
    alone = [batch["draw"]["S"] for batch in stream(0, seeds=(1,))]
    assert all(torch.equal(a[1], b[0]) for a, b in zip(sets, alone, strict=True))


def test_processes_share_a_set() -> None:
    """Draw streams of their own, apart from one another and from that of a run in one process."""
    law = LinearRegression(dim=2, context=3).law((0, 1))
    estimator = make_estimator("expected", LinearTransformer(SparseA(2, 1)), law)
    shares = [(0, 1), (0, 2), (1, 2)]
    draws = [
        next(iter(PromptStream(estimator, (0, 1), 4, 5, 12, 0, torch.float64, share)))["draw"]["S"]
        for share in shares
    ]
    assert [draw.shape[-1] for draw in draws] == [4, 2, 2]
    numbers = [set(draw.flatten().tolist()) for draw in draws]
    assert not numbers[0] & numbers[1] and not numbers[1] & numbers[2] and not numbers[0] & numbers[2]
