"""The prompt stream: one Lightning batch is one fresh set of prompts and the optimizer steps taken on it.

A set is a function of (seed, role, first step of the set) alone, so a run that resumes in the middle of a set
draws the same prompts again and takes only the steps that are left. Of several processes each draws its share
of the set, a function of its rank as well. Another thread draws the next set while one is trained on; the
numbers are those that this thread would draw.

A stream that a trainer of Lightning's reads has no position to save: the steps taken are in the trainer's own
checkpoint, and the module skips the prompts of earlier steps (`skip_to`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
from torch.utils.data import IterableDataset

from icl.random import generator
from icl.tasks.law import Estimator


class PromptStream(IterableDataset):
    """Yields {"steps": list, "draw": tensors}; the last set is cut to `total_steps`. `share`: this process's
    rank, of how many."""

    def __init__(
        self,
        estimator: Estimator,
        seeds: Sequence[int],
        batch: int,
        steps_per_batch: int,
        total_steps: int,
        first_step: int,
        dtype: torch.dtype,
        share: tuple[int, int] = (0, 1),
    ) -> None:
        self.estimator, self.seeds, self.batch, self.dtype = estimator, tuple(seeds), batch, dtype
        self.steps_per_batch, self.total_steps, self.first_step = steps_per_batch, total_steps, first_step
        self.rank, self.processes = share
        self._next_step = first_step
        self._thread: ThreadPoolExecutor | None = None
        self.pinned = False  # in memory from which a GPU copies while it computes
        # The law to draw from at a step; none: always its own.
        self.lesson: Callable[[int, Any], Any] | None = None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self._next_step, set_start = self.first_step, 0
        ahead: tuple[int, Future[dict[str, torch.Tensor]]] | None = None
        # Torch counts threads for each thread, and how many there are decides how a product is rounded.
        count = torch.get_num_threads()
        thread = ThreadPoolExecutor(1, "prompts", initializer=torch.set_num_threads, initargs=(count,))
        self._thread = thread
        try:
            while self._next_step < self.total_steps:
                set_start = max(set_start, self._next_step - self._next_step % self.steps_per_batch)
                if set_start >= self.total_steps:
                    return
                if ahead is None or ahead[0] != set_start:
                    ahead = set_start, thread.submit(self.draw, set_start)
                drawn, stop = ahead[1], min(set_start + self.steps_per_batch, self.total_steps)
                ahead = (stop, thread.submit(self.draw, stop)) if stop < self.total_steps else None
                steps = list(range(max(set_start, self._next_step), stop))
                yield {"steps": steps, "draw": drawn.result()}
                set_start = stop
        finally:
            thread.shutdown(cancel_futures=True)

    def close(self) -> None:
        """End the thread that draws, in an iteration that was left."""
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)

    def skip_to(self, step: int) -> None:
        """Skip to this step in the running iteration: prompts of earlier steps are not drawn."""
        self._next_step = max(self._next_step, step)

    def draw(self, set_start: int) -> dict[str, torch.Tensor]:
        rank = None if self.processes == 1 else self.rank
        generators = [generator(seed, "train", set_start, rank) for seed in self.seeds]
        estimator = self.estimator
        if self.lesson is not None:
            estimator = estimator.of(self.lesson(set_start, estimator.law))  # type: ignore[operator]
        draw = estimator.draw(generators, self.batch // self.processes)
        converted = {name: tensor.to(self.dtype) for name, tensor in draw.items()}
        return {k: tensor.pin_memory() for k, tensor in converted.items()} if self.pinned else converted
