"""A progress bar on stderr for whoever sits before a terminal, and silence elsewhere."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from torch import Tensor

from icl.training.job import Deaf, Follower


class TrainingBar(Deaf):
    """Follows a run: steps and the mean loss."""

    def __init__(self, bar: Progress, task: TaskID) -> None:
        self.bar, self.task = bar, task

    def reach(self, step: int) -> None:
        self.bar.update(self.task, completed=step)

    def wants(self, step: int) -> bool:
        return step % 50 == 0

    def see(self, step: int, loss_R: Tensor, matrices: Mapping[str, Tensor], rates: Sequence[float]) -> None:
        self.bar.update(self.task, loss=f"{float(loss_R.mean()):.4g}")


@contextlib.contextmanager
def training_bar(title: str, total: int) -> Iterator[Sequence[Follower]]:
    if not sys.stderr.isatty():
        yield ()
        return
    steps, loss = MofNCompleteColumn(), TextColumn("loss {task.fields[loss]}")
    columns = (TextColumn("{task.description}"), BarColumn(), steps, loss, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=5) as bar:
        yield [TrainingBar(bar, bar.add_task(title, total=total, loss="-"))]
