"""Run requests one after another in this process, several at a time in worker processes, or as jobs of a
cluster.

A worker has one request at a time, one torch thread, and a pipe to its parent for its output lines and the
result of the request. If a worker dies, only its own request fails; if the parent dies, its workers stop as
if terminated and release their locks.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from multiprocessing import connection, current_process, get_context, parent_process
from multiprocessing.connection import Connection
from types import FrameType, ModuleType
from typing import Any

from icl.errors import Interrupted, whole
from icl.events import Event, Listener, Message, StateChanged, WorkItem, quiet
from icl.jobs.execution.cluster import Cluster, run_on_cluster
from icl.jobs.execution.memory import available_bytes
from icl.jobs.execution.task import QueuedRequest, run_task
from icl.runs.atomic import DiskFull, Unwritable

_REFUSING = {"unwritable": Unwritable, "full": DiskFull}
_BYTES = 1.5e9  # of a worker at scale=laptop: torch, and the runs of a figure
_STOPPING = 30.0  # seconds a worker may take to save what it has


def jobs_of(given: Any) -> int:
    """Return `jobs`; where it is null, the number of usable cores, as far as there is memory."""
    if given is not None:
        return whole("jobs", given, 1)
    if current_process().daemon:  # may start no process
        return 1
    from joblib import cpu_count  # knows affinity, and limits of a container

    return max(1, min(cpu_count(), int(available_bytes() / _BYTES)))


def run_tasks(
    tasks: Sequence[QueuedRequest], jobs: int, on_event: Listener, cluster: Cluster | None = None
) -> None:
    """Run every task once, in order; a task that needs the runs of a running one waits for its turn."""

    def pass_on(event: Event) -> None:
        if isinstance(event, StateChanged) and event.state in _REFUSING:  # the next would repeat it
            raise _REFUSING[event.state](event.text)
        on_event(event)

    if cluster is not None:
        run_on_cluster(cluster, tasks, pass_on)
        return
    if min(jobs, len(tasks)) > 1:
        _in_workers(tasks, jobs, pass_on)
        return
    for task in tasks:
        pass_on(StateChanged(task.item, "running"))
        pass_on(run_task(replace(task, session=replace(task.session, on_event=on_event))))


def _in_workers(tasks: Sequence[QueuedRequest], jobs: int, on_event: Listener) -> None:
    waiting = list(tasks)
    workers = [_Worker() for _ in range(min(jobs, len(tasks)))]
    try:
        while True:
            for worker in workers:
                if worker.task is None and waiting:
                    task = following(waiting, [w.task for w in workers])
                    worker.begin(task)
                    on_event(StateChanged(task.item, "running"))
            busy = {worker.pipe: worker for worker in workers if worker.task is not None}
            if not busy:
                return
            for pipe in connection.wait(list(busy)):
                worker = busy[pipe]  # type: ignore[index]
                event = worker.receive()
                if isinstance(event, StateChanged):
                    worker.task = None
                on_event(event)
                if worker.has_died:
                    workers.remove(worker)
                    workers += [_Worker()] if waiting else []
    finally:
        for worker in workers:
            worker.end()
        for worker in workers:
            worker.join()


def following(waiting: list[QueuedRequest], under_way: Sequence[QueuedRequest | None]) -> QueuedRequest:
    """Return the first task, preferably one that need not wait for a run that is being made."""
    taken = {task.runs_key for task in under_way if task is not None and task.runs_key}
    return waiting.pop(next((i for i, task in enumerate(waiting) if task.runs_key not in taken), 0))


class _Worker:
    """A worker process, seen from its parent."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,))
        with _without_the_script():
            self.process.start()
        theirs.close()
        self.task: QueuedRequest | None = None
        self.has_died = False

    def begin(self, task: QueuedRequest) -> None:
        self.task = task
        # A bare copy: the objects built for validation and the listener stay in this process.
        bare = replace(task, request=replace(task.request), session=replace(task.session, on_event=quiet))  # type: ignore[type-var]
        with contextlib.suppress(OSError):  # it has died: `receive` reports it
            self.pipe.send(bare)

    def receive(self) -> Event:
        assert self.task is not None
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self.has_died = True
            self.process.join()
            reason = f"its process died (exit code {self.process.exitcode})"
            return StateChanged(self.task.item, "failed", text=reason)

    def end(self) -> None:
        """Send one signal, no second: training saves its state on the first and gives up on the second."""
        self.pipe.close()  # an idle one ends by itself
        if self.task is not None:
            self.process.terminate()

    def join(self) -> None:
        try:
            self.process.join(_STOPPING)
        finally:
            if self.process.is_alive():
                self.process.kill()


@contextlib.contextmanager
def _without_the_script() -> Iterator[None]:
    """Hide the script from processes started here: a child imports its parent's script, and one without a
    main guard would run again. Workers need nothing from it."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _serve(pipe: Connection) -> None:
    """Run tasks in a worker process until there are no more."""
    os.setpgid(0, 0)  # Ctrl-C reaches the parent alone, which sends each worker one signal
    signal.signal(signal.SIGTERM, _stop)
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sending = threading.Lock()

    with contextlib.suppress(EOFError, OSError, Interrupted, KeyboardInterrupt):
        while True:
            task: QueuedRequest = pipe.recv()
            on_event = _through(pipe, sending, task.item)
            with Lines(on_event).in_place_of_stderr():
                import torch

                torch.set_num_threads(1)
                event = run_task(replace(task, session=replace(task.session, on_event=on_event)))
            with sending:
                pipe.send(event)


def _through(pipe: Connection, sending: threading.Lock, item: WorkItem) -> Listener:
    """Send events to the process that started this one, with the item they are about."""

    def on_event(event: Event) -> None:
        if isinstance(event, Message):
            event = replace(event, item=event.item or item)
        with sending, contextlib.suppress(OSError):
            pipe.send(event)

    return on_event


def _stop(signum: int, _: FrameType | None) -> None:
    raise Interrupted(signum)


def _stop_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


class Lines(io.TextIOBase):
    """Send each whole line of stderr as a message. It is no terminal, so that libraries draw no bars."""

    encoding = "utf-8"

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.rest = ""

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2  # for child processes, which nothing else can configure

    def write(self, text: str) -> int:
        *lines, self.rest = (self.rest + text).split("\n")
        for line in lines:
            self.listener(Message(line))
        return len(text)

    @contextlib.contextmanager
    def in_place_of_stderr(self) -> Iterator[None]:
        with contextlib.redirect_stderr(self), contextlib.redirect_stdout(self):
            try:
                yield
            finally:
                if self.rest:
                    self.write("\n")
