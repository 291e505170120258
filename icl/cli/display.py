"""How far the items are: on a terminal one bar with what is under way, elsewhere plain lines on stderr."""

from __future__ import annotations

import contextlib
import sys
from types import TracebackType

from icl.cli.show import in_short, needs
from icl.cli.workers import Event, Item, Said


class Display:
    """`with Display(total, done) as display:` then `display.see(event)` for each. `quiet` tells only what was
    skipped or failed, and what workers say."""

    def __init__(self, total: int, done: int = 0, *, quiet: bool = False, traces: bool = False) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self.total, self.begun, self.quiet, self.traces = total, done, quiet, traces
        self.under_way: list[Item] = []
        self.on_terminal = sys.stderr.isatty()
        self._console = Console(file=sys.stderr)  # this very file: what stands for stderr leads back here
        columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[now]}"))
        self._bar = Progress(
            *columns, console=self._console, transient=True, disable=not self.on_terminal,
            redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        self._task = self._bar.add_task("", total=total, completed=done, now="")
        self._entered = contextlib.ExitStack()

    def __enter__(self) -> Display:
        self._entered.enter_context(self._bar)
        if self.on_terminal:
            self._entered.enter_context(Said(self.say).in_place_of_stderr())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered.close()

    def say(self, line: str) -> None:
        """One line, above the bar where there is one."""
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def see(self, event: Event) -> None:
        item, name = event.item, f"{event.item.group} {event.item.id}"
        if event.state == "said":
            self.say(f"{item.id}: {event.text}")
            return
        if event.state == "running":
            self.under_way.append(item)
            self.begun += 1
            if not self.quiet and not self.on_terminal:
                self.say(f"[{self.begun}/{self.total}] {name}")
        else:
            self.under_way.remove(item)
            self._bar.advance(self._task)
        if event.state == "done" and event.document is not None and not self.quiet:
            self.say(f"{name}: {in_short(event.document)}")
        elif event.state == "skipped":
            self.say(needs(item.group, item.id, event.text))
        elif event.state == "failed":
            self.say(f"icl: {item.id} failed: {event.text}" + (f"\n{event.trace}" if self.traces else ""))
        self._bar.update(self._task, now=", ".join(f"{item.group} {item.id}" for item in self.under_way))
