"""A limit on the time of a command (`hours=H`): when it is over, work stops as at a signal, state saved."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

from icl.errors import InputError, Interrupted, real


def hours_of(given: Any) -> float | None:
    """Return the setting `hours`: a number above 0, or None for no limit."""
    return None if given is None else real("hours", given, 0, open_low=True)


class TimeLimit:
    """Raises Interrupted within `with limit:` when its hours are over; then `limit.expired` is true.

    It comes as SIGTERM does, at any moment from the start of the block: training saves a checkpoint first,
    worker processes are stopped in turn.
    """

    def __init__(self, hours: float | None) -> None:
        self.hours, self.expired = hours, False
        self._before: Any = None
        self._timer: threading.Timer | None = None

    def __enter__(self) -> TimeLimit:
        if self.hours is None:
            return self
        if threading.current_thread() is not threading.main_thread():
            raise InputError("hours: takes a signal, which only the main thread can receive")
        self._before = signal.signal(signal.SIGTERM, _stop)
        self._timer = threading.Timer(self.hours * 3600, self._end)
        self._timer.daemon = True
        try:
            self._timer.start()
        except Interrupted:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
            signal.signal(signal.SIGTERM, self._before)

    def _end(self) -> None:
        self.expired = True
        os.kill(os.getpid(), signal.SIGTERM)


def _stop(signum: int, _: FrameType | None) -> None:
    raise Interrupted(signum)
