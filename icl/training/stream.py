"""The prompt stream: one Lightning batch is one fresh set of prompts and the optimizer steps taken on it.

A set is a function of (seed, role, first step of the set) alone, so a run that resumes in the middle of a set
draws the same prompts again and takes only the steps that are left. Of several processes each draws its share
of the set, a function of its rank as well.

A stream that a trainer of Lightning's reads has no position to save: the steps taken are in the trainer's own
checkpoint, and the module skips the prompts of earlier steps (`skip_to`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
        # The law to draw from at a step; none: always its own.
        self.lesson: Callable[[int, Any], Any] | None = None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self._next_step = self.first_step
        start = self.first_step - self.first_step % self.steps_per_batch
        for set_start in range(start, self.total_steps, self.steps_per_batch):
            stop = min(set_start + self.steps_per_batch, self.total_steps)
            if stop <= self._next_step:
                continue
            steps = list(range(max(set_start, self._next_step), stop))
            yield {"steps": steps, "draw": self.draw(set_start)}

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
        return {name: tensor.to(self.dtype) for name, tensor in draw.items()}
