"""Tests that prompts are a function of (seed, role, first step of the set), never of an iterator's
position.
"""

import threading

import pytest
import torch

from icl.errors import InputError
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


def test_drawing_ahead_changes_no_bit_and_ends() -> None:
    """Draw each set on one thread, in order, at most one set ahead of what was asked for; its torch has as
    many threads as the caller's, and it is gone once the iteration is over or left."""
    before, counts = torch.get_num_threads(), []
    drawn: list[tuple[int, str]] = []

    class Watched(PromptStream):
        def draw(self, set_start: int) -> dict[str, torch.Tensor]:
            drawn.append((set_start, threading.current_thread().name))
            counts.append(torch.get_num_threads())
            return super().draw(set_start)

    law = LinearRegression(dim=3, context=4).law((0, 1))
    estimator = make_estimator("sampled", LinearTransformer(SparseA(3, 1)), law)
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            watched = Watched(estimator, (0, 1), 200, 2, 9, 0, torch.float64)
            sets = list(watched)
            assert not drawing_threads()
            for batch, set_start in zip(sets, range(0, 9, 2), strict=True):
                own = PromptStream.draw(watched, set_start)
                assert all(torch.equal(batch["draw"][name], tensor) for name, tensor in own.items())
        assert [start for start, _ in drawn] == [0, 2, 4, 6, 8] * 2
        assert counts == [1] * 5 + [3] * 5
        assert all(name.startswith("prompts") for _, name in drawn)
    finally:
        torch.set_num_threads(before)
    drawn.clear()
    left = iter(watched)
    next(left), next(left)
    watched.close()
    assert not drawing_threads() and [start for start, _ in drawn][:2] == [0, 2] and len(drawn) <= 3


def drawing_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("prompts")]


def test_what_fails_while_drawing_ahead_is_raised_where_the_set_is_used() -> None:
    class Fails(PromptStream):
        def draw(self, set_start: int) -> dict[str, torch.Tensor]:
            if set_start == 4:
                raise InputError("task: no such prompts")
            return super().draw(set_start)

    law = LinearRegression(dim=2, context=3).law((0,))
    estimator = make_estimator("expected", LinearTransformer(SparseA(2, 1)), law)
    failing = iter(Fails(estimator, (0,), 4, 2, 9, 0, torch.float32))
    assert [next(failing)["steps"] for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(InputError, match="no such prompts"):
        next(failing)
    assert not drawing_threads()
