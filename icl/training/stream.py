"""The prompt stream: one Lightning batch is one fresh set of prompts and the optimizer steps taken on it.

A set is a function of (seed, role, first step of the set) alone, so a run that resumes in the middle of a set
draws the same prompts again and takes only the steps that are left. Of several processes each draws its share
of the set, a function of its rank as well. Another thread draws the next set while one is trained on; the
numbers are those that this thread would draw.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import IterableDataset

from icl.random import generator
from icl.tasks.law import Estimator
from icl.training.trainer import LoopConfig

Stage = Callable[[int, Any], Any]  # the law to draw from at a step, given the law so far


class PromptSet:
    """A Lightning batch, moved as a whole: prompts, and the numbers of the steps to take on them."""

    def __init__(self, steps: Sequence[int], draw: Mapping[str, Tensor]) -> None:
        self.steps, self.draw = steps, dict(draw)

    def to(self, device: Any, **_: Any) -> "PromptSet":
        moved = {name: tensor.to(device, non_blocking=True) for name, tensor in self.draw.items()}
        return PromptSet(self.steps, moved)


class PromptStream(IterableDataset):
    """Yields prompt sets from `first_step` on; the last is cut to `train.steps`.

    `share`: this process's rank, of how many. Replica r reads the prompts of `seeds[prompts_of[r]]`; without
    it each has its own. `pinned`: in memory from which a GPU copies while it computes. `sets_taken`: by a
    trainer's count, which lacks the last one where its last step was not the end of a batch.
    """

    def __init__(
        self,
        estimator: Estimator,
        seeds: Sequence[int],
        settings: LoopConfig,
        dtype: torch.dtype,
        first_step: int = 0,
        share: tuple[int, int] = (0, 1),
        *,
        prompts_of: Sequence[int] | None = None,
        stages: Sequence[Stage] = (),
        pinned: bool = False,
        sets_taken: int | None = None,
    ) -> None:
        self.estimator, self.seeds, self.dtype, self.first_step = estimator, tuple(seeds), dtype, first_step
        self.batch = settings.batch or 0  # of nothing, where the population risk is taken
        self.steps_per_batch, self.total_steps = settings.steps_per_batch, settings.steps
        self.rank, self.processes = share
        self.prompts_of, self.stages, self.pinned = prompts_of, stages, pinned
        counted = first_step if sets_taken is None else sets_taken * self.steps_per_batch
        self.repeats_last = counted < first_step and first_step % self.steps_per_batch == 0

    def __iter__(self) -> Iterator[PromptSet]:
        start = self.first_step - self.first_step % self.steps_per_batch
        starts = range(start, self.total_steps, self.steps_per_batch)
        # Torch counts threads for each thread, and how many there are decides how a product is rounded.
        count = torch.get_num_threads()
        thread = ThreadPoolExecutor(1, "prompts", initializer=torch.set_num_threads, initargs=(count,))
        ahead: Future[dict[str, Tensor]] | None = None
        if self.repeats_last:
            yield PromptSet((), {})
        try:
            for start in starts if self.first_step < self.total_steps else ():
                drawn = ahead or thread.submit(self.draw, start)
                stop = min(start + self.steps_per_batch, self.total_steps)
                ahead = thread.submit(self.draw, stop) if stop < self.total_steps else None
                yield PromptSet(range(max(start, self.first_step), stop), drawn.result())
        finally:
            thread.shutdown(cancel_futures=True)

    def draw(self, set_start: int) -> dict[str, Tensor]:
        rank = None if self.processes == 1 else self.rank
        generators = [generator(seed, "train", set_start, rank) for seed in self.seeds]
        estimator = self.estimator
        for stage in self.stages:
            own: Any = getattr(estimator, "law", None)
            law = stage(set_start, own)
            estimator = estimator if law is own else estimator.of(law)  # type: ignore[operator]
        draw = estimator.draw(generators, self.batch // self.processes)
        converted = {name: tensor.to(self.dtype) for name, tensor in draw.items()}
        if self.prompts_of is not None:
            chosen = torch.tensor(self.prompts_of)
            converted = {name: tensor[chosen] for name, tensor in converted.items()}
        return {k: tensor.pin_memory() for k, tensor in converted.items()} if self.pinned else converted
