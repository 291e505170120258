"""Progress of long computations, reported to a listener; checks report progress and print nothing.

for block in track(blocks, "prompts drawn as tokens", len(blocks)): ...
with listening(lambda what, share, seconds: ...): check.measure()
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
Listener = Callable[[str, float, float], None]  # what is under way, the share done, seconds since it began

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def track(items: Iterable[T], what: str, total: int) -> Iterator[T]:
    """Yield the items; after each one, report to the listener how many of `total` are done."""
    listener, begun = _listener.get(), time.monotonic()
    for done, item in enumerate(items, 1):
        yield item
        if listener is not None:
            listener(what, min(1.0, done / total), time.monotonic() - begun)


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Send the progress reported in this block to `listener`."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
