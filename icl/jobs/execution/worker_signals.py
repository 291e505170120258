"""SIGINT and SIGTERM where jobs have processes of their own, and the end of the time of a submitit job. A run
that is interrupted saves its state: icl.training.run_signals."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

from icl.errors import Interrupted

_interrupted = False  # this worker: what it is given still, it does not begin


def stay(*_: Any) -> None:
    """Handle SIGTERM in an idle worker, which icl ends itself: it begins nothing more."""
    global _interrupted
    _interrupted = True


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextlib.contextmanager
def workers_first() -> Iterator[list[int]]:
    """Pass the first SIGINT or SIGTERM on to the workers of this process, as one SIGTERM, and raise it when
    they have ended; where there are none, and the second time, raise it at once. Yield what was received."""
    received: list[int] = []

    def stop(signum: int, _: Any) -> None:
        workers = multiprocessing.active_children()
        if received or not workers:
            raise Interrupted(signum)
        received.append(signum)
        for worker in workers:
            worker.terminate()

    with contextlib.ExitStack() as handlers:
        for number in (signal.SIGINT, signal.SIGTERM) if _in_main_thread() else ():
            handlers.callback(signal.signal, number, signal.signal(number, stop))
        try:
            yield received
        except Exception:
            if not received:  # a launcher may raise anything for jobs that end early
                raise
    if received:
        raise Interrupted(received[0])


@contextlib.contextmanager
def in_worker(starter: int) -> Iterator[bool]:
    """In another process than the starter let SIGTERM interrupt a job, which saves its state and ends; yield
    whether it is to begin. A job of submitit is interrupted at its time limit and queued again."""
    from icl.training.run_signals import end_of_job

    global _interrupted
    if os.getpid() == starter or not _in_main_thread():
        yield True
        return
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)  # Ctrl-C reaches icl alone, which sends each worker one signal
    ends = end_of_job() or signal.SIGTERM

    def stop(signum: int, _: Any) -> None:
        raise Interrupted(signum)

    before: Any = signal.signal(ends, stop)
    try:
        yield not _interrupted
    except Interrupted as error:
        if error.signum != ends:
            raise
        _interrupted = True
        if end_of_job() is not None and callable(before):
            before(ends, None)  # submitit's own: ends the process, or raises after the last time
    finally:
        signal.signal(ends, stay if end_of_job() is None else before)
