"""Show progress: one bar on a terminal, plain lines on stderr elsewhere."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from icl.cli.show import in_short, needs
from icl.errors import full_errors
from icl.progress import Event, ItemProgress, Message, Planned, StateChanged, WorkItem

EVERY, IN_NOTEBOOK = 60.0, 10.0  # seconds, for a line where there is no bar
Status = Callable[[], tuple[int, int, str]]


class Display:
    """`with Display() as display:` then `display.see(event)` for each. `quiet` prints only what was
    skipped or failed, and messages; `what` is under way until the first event names an item. `status` says
    how much there is to do, how much is done, and what is under way."""

    def __init__(self, what: str = "", *, quiet: bool = False, status: Status | None = None) -> None:
        self.total, self.begun, self.quiet = 0, 0, quiet
        self.under_way: list[WorkItem] = []
        self.on_terminal = sys.stderr.isatty()
        columns = (BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TextColumn("{task.fields[now]}"))
        self._console = Console(stderr=True)
        self._bar = Progress(*columns, console=self._console, transient=True, disable=not self.on_terminal)
        self._task = self._bar.add_task("", total=None, now=f"{what}: starting".removeprefix(": "))
        self._status, self._ended, self._started = status, threading.Event(), time.monotonic()
        self._thread = threading.Thread(target=self._keep_telling, daemon=True)

    def __enter__(self) -> Self:
        self._bar.start()
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._ended.set()
        self._thread.join()
        self._bar.stop()

    def _keep_telling(self) -> None:
        """Look at the status: every two seconds on a terminal, elsewhere less often, and print it."""
        every = 2.0 if self.on_terminal else IN_NOTEBOOK if self._console.is_jupyter else EVERY
        while not self._ended.wait(every):
            with contextlib.suppress(OSError):  # of a record that changes meanwhile
                if self._status is not None:
                    total, done, now = self._status()
                    self._bar.update(self._task, total=total, completed=done, now=now)
            if not self.on_terminal:
                (task,) = self._bar.tasks
                self.print_line(f"[{time.monotonic() - self._started:.0f} s] {task.fields['now']}")

    def print_line(self, line: str) -> None:
        """Print one line, above the bar if there is one."""
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def see(self, event: Event) -> None:
        if isinstance(event, Message):
            self.print_line(event.text)
        elif isinstance(event, ItemProgress):
            if self.total:
                self._bar.update(self._task, now=f"{self._now()}: {event.item.id} {event.text}")
            else:
                now = f"{event.item}: {event.text}"
                self._bar.update(self._task, total=1.0, completed=event.share, now=now)
        elif isinstance(event, Planned):
            self.total, self.begun = event.total, event.done
            self._bar.update(self._task, total=event.total, completed=event.done)
        else:
            self._change(event)

    def _change(self, event: StateChanged) -> None:
        item = event.item
        if event.state == "running":
            if item not in self.under_way:  # again, where a worker has died
                self.under_way.append(item)
                self.begun += 1
        else:
            self.under_way.remove(item)
            self._bar.advance(self._task)
        if event.state == "done" and event.document is not None and not self.quiet:
            self.print_line(f"{item}: {in_short(event.document)}")
        elif event.state == "skipped":
            self.print_line(needs(item.kind, item.id, event.text))
        elif event.state == "failed":
            trace = f"\n{event.trace}" if full_errors() else ""
            self.print_line(f"icl: {item.id} failed: {event.text}{trace}")
        self._bar.update(self._task, now=self._now())

    def _now(self) -> str:
        """Return how many are done, and what is under way."""
        of_all = f"{self._bar.tasks[0].completed:.0f} of {self.total} done; " if self.total else ""
        return of_all + ", ".join(map(str, self.under_way))
