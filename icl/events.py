"""What happens while a job runs, told to whoever listens: a terminal, a worker's starter, a notebook."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Item:
    """A check, a figure or a training run, by name."""

    kind: str
    id: str

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


@dataclass(frozen=True)
class Progress:
    """Of `item` so large a `share` is done, and what there is to say of it."""

    item: Item
    share: float
    text: str = ""


@dataclass(frozen=True)
class Said:
    """A line for the user; `item` is known where several are under way."""

    text: str
    item: Item | None = None


@dataclass(frozen=True)
class Planned:
    """There are so many checks and figures to do, and so many of them are done."""

    total: int
    done: int


@dataclass(frozen=True)
class Changed:
    """`item` is running now, or is done, skipped or failed."""

    item: Item
    state: str
    document: Mapping[str, Any] | None = None
    text: str = ""  # why it was skipped or failed
    trace: str = ""


Event = Progress | Said | Planned | Changed
Listener = Callable[[Event], None]


def quiet(event: Event) -> None:
    """Passes on, to stderr, only what is said."""
    if isinstance(event, Said):
        print(event.text, file=sys.stderr, flush=True)
