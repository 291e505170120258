"""Progress, sent to a listener: of jobs as events, of long computations by `track`, which prints nothing.

for block in track(blocks, "prompts drawn as tokens", len(blocks)): ...
with listening(WorkItem("check", "ahn/theorem1"), listener): check.measure()
"""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class WorkItem(NamedTuple):
    """A check, a figure or a training run, by name."""

    kind: str
    id: str

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


class ItemProgress(NamedTuple):
    """The share of `item` that is done, and a text for the progress bar."""

    item: WorkItem
    share: float
    text: str = ""


class Message(NamedTuple):
    """A line for the user."""

    text: str


class Planned(NamedTuple):
    """The number of checks and figures to do, and how many of them are done."""

    total: int
    done: int


class StateChanged(NamedTuple):
    """The new state of `item`: running, done, skipped or failed."""

    item: WorkItem
    state: str
    document: Mapping[str, Any] | None = None
    text: str = ""  # why it was skipped or failed
    trace: str = ""


Event = ItemProgress | Message | Planned | StateChanged
Listener = Callable[[Event], None]
_current: ContextVar[tuple[WorkItem, Listener] | None] = ContextVar("current", default=None)


def quiet(event: Event) -> None:
    """Print messages to stderr and ignore other events."""
    if isinstance(event, Message):
        print(event.text, file=sys.stderr, flush=True)


def track(items: Iterable[T], what: str, total: int) -> Iterator[T]:
    """Yield the items; after each one, report how many of `total` are done."""
    current = _current.get()
    for done, item in enumerate(items, 1):
        yield item
        if current is not None:
            work, listener = current
            listener(ItemProgress(work, min(1.0, done / total), what))


@contextlib.contextmanager
def listening(work: WorkItem, listener: Listener) -> Iterator[None]:
    """Report the progress of computations in this block, which are part of `work`."""
    token = _current.set((work, listener))
    try:
        yield
    finally:
        _current.reset(token)
