"""SIGINT and SIGTERM as a flag that training looks at between steps; a second one stops at once.

In a job of submitit another signal says that its time is over. SIGTERM, which Slurm sends before that one,
is ignored there.
"""

import os
import signal
import threading
from types import FrameType
from typing import Any, Self

from icl.errors import Interrupted


def end_of_job() -> int | None:
    """Return the signal that ends a job of submitit; None elsewhere."""
    if "SUBMITIT_EXECUTOR" not in os.environ:
        return None
    return int(getattr(signal, f"SIG{os.environ.get('SUBMITIT_PREEMPT_SIGNAL', 'USR2')}"))


def ends() -> tuple[int, int]:
    """Return the signals that end a run."""
    return signal.SIGINT, end_of_job() or signal.SIGTERM


class Interrupts:
    """`with Interrupts() as interrupts:` then `interrupts.signum` is the signal received, or None.

    `meets`: other processes are waited for first, in torch, which runs no handler of Python's; until `listen`
    a signal ends the process.
    """

    def __init__(self, *, meets: bool = False) -> None:
        self.meets = meets
        self.signum: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.getsignal(number) for number in ends()}
            for number in self._before:
                signal.signal(number, signal.SIG_DFL if self.meets else self._receive)
        return self

    def listen(self) -> None:
        """Take the signals (again): Lightning's own handler would end a run without a checkpoint."""
        for number in self._before:
            signal.signal(number, self._receive)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, signum: int, _: FrameType | None) -> None:
        if self.signum is not None and signum != end_of_job():  # of which Slurm may send more than one
            raise Interrupted(signum)
        self.signum = signum
