"""Events of a running job, sent to a listener: a terminal, the parent of a worker process, a notebook."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class WorkItem:
    """A check, a figure or a training run, by name."""

    kind: str
    id: str

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


@dataclass(frozen=True)
class ItemProgress:
    """The share of `item` that is done, and a text for the progress bar."""

    item: WorkItem
    share: float
    text: str = ""


@dataclass(frozen=True)
class Message:
    """A line for the user."""

    text: str


@dataclass(frozen=True)
class Planned:
    """The number of checks and figures to do, and how many of them are done."""

    total: int
    done: int


@dataclass(frozen=True)
class StateChanged:
    """The new state of `item`: running, done, skipped or failed."""

    item: WorkItem
    state: str
    document: Mapping[str, Any] | None = None
    text: str = ""  # why it was skipped or failed
    trace: str = ""


Event = ItemProgress | Message | Planned | StateChanged
Listener = Callable[[Event], None]


def quiet(event: Event) -> None:
    """Print messages to stderr and ignore other events."""
    if isinstance(event, Message):
        print(event.text, file=sys.stderr, flush=True)
