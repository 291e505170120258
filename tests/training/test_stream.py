"""Tests that prompts are a function of (seed, role, first step of the set), whatever was drawn before."""

import threading
from typing import Any

import pytest
import torch

from icl.errors import InputError
from icl.models import LinearTransformer, SparseA
from icl.tasks import LinearRegression
from icl.training.estimators import make_estimator
from icl.training.stream import PromptSet, PromptStream
from icl.training.trainer import LoopConfig

LAW = LinearRegression(dim=2, context=3)


def stream(
    first: int = 0,
    total: int = 12,
    per_set: int = 5,
    seeds: tuple[int, ...] = (0, 1),
    kind: type[PromptStream] = PromptStream,
    **more: Any,
) -> PromptStream:
    estimator = make_estimator("expected", LinearTransformer(SparseA(2, 1)), LAW.law(seeds))
    return kind(estimator, seeds, LoopConfig(total, 4, per_set), torch.float32, first, **more)


@pytest.mark.parametrize(
    ("total", "per_set", "expected"),
    [
        (12, 5, [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11]]),
        (4, 100, [[0, 1, 2, 3]]),
        (3, 1, [[0], [1], [2]]),
    ],
)
def test_sets_are_cut_to_the_steps(total: int, per_set: int, expected: list[list[int]]) -> None:
    assert [list(batch.steps) for batch in stream(0, total, per_set)] == expected


@pytest.mark.parametrize("first", [1, 5, 9, 11])
def test_starting_anywhere_gives_the_same_prompts(first: int) -> None:
    whole = {step: batch.draw["S"] for batch in stream() for step in batch.steps}
    later = {step: batch.draw["S"] for batch in stream(first) for step in batch.steps}
    assert list(later) == list(range(first, 12))
    assert all(torch.equal(whole[step], drawn) for step, drawn in later.items())


@pytest.mark.parametrize(
    ("first", "taken", "empty"), [(5, 0, 1), (5, 1, 0), (7, 1, 0), (0, 0, 0), (10, 1, 1)]
)
def test_a_set_that_a_trainer_has_not_counted_comes_again_without_steps(
    first: int, taken: int, empty: int
) -> None:
    sets = list(stream(first, sets_taken=taken))
    assert [len(batch.steps) == 0 for batch in sets].count(True) == empty
    assert [step for batch in sets for step in batch.steps] == list(range(first, 12))


def test_each_set_is_fresh_and_a_replicas_own() -> None:
    sets = [batch.draw["S"] for batch in stream()]
    assert all(not torch.equal(a, b) for i, a in enumerate(sets) for b in sets[:i])
    assert sets[0].dtype == torch.float32
    alone = [batch.draw["S"] for batch in stream(seeds=(1,))]
    assert all(torch.equal(a[1], b[0]) for a, b in zip(sets, alone, strict=True))


def test_processes_share_a_set() -> None:
    """Draw streams of their own, apart from one another and from that of a run in one process."""
    shares = [(0, 1), (0, 2), (1, 2)]
    draws = [next(iter(stream(share=share))).draw["S"] for share in shares]
    assert [draw.shape[-1] for draw in draws] == [4, 2, 2]
    numbers = [set(draw.flatten().tolist()) for draw in draws]
    assert not numbers[0] & numbers[1] and not numbers[1] & numbers[2] and not numbers[0] & numbers[2]


class Watched(PromptStream):
    """A stream that says where its sets are drawn, and fails at step 8."""

    drawn: list[tuple[int, str, int]]

    def draw(self, set_start: int) -> dict[str, torch.Tensor]:
        self.drawn.append((set_start, threading.current_thread().name[:7], torch.get_num_threads()))
        if set_start == 8:
            raise InputError("task: no such prompts")
        return super().draw(set_start)


def watched() -> Watched:
    made: Any = stream(0, 9, 2, kind=Watched)
    made.drawn = []
    return made


def drawing_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("prompts")]


@pytest.mark.parametrize("count", [1, 3])
def test_drawing_ahead_is_by_one_thread_and_changes_no_bit(count: int) -> None:
    """Draw with as many threads of torch as the caller has; what fails is raised where the set is used."""
    before, ahead = torch.get_num_threads(), watched()
    try:
        torch.set_num_threads(count)
        with pytest.raises(InputError, match="no such prompts"):
            for number, batch in enumerate(ahead):
                own = stream(0, 9, 2).draw(2 * number)
                assert all(torch.equal(batch.draw[name], tensor) for name, tensor in own.items())
                assert len(ahead.drawn) <= number + 2
    finally:
        torch.set_num_threads(before)
    assert ahead.drawn == [(start, "prompts", count) for start in (0, 2, 4, 6, 8)] and not drawing_threads()


def test_a_stream_that_is_left_draws_no_more() -> None:
    ahead = watched()
    left: PromptSet | Any = iter(ahead)
    next(left), next(left)
    left.close()
    assert not drawing_threads() and len(ahead.drawn) <= 3
