"""Items done one after another in this process, or several at a time in worker processes.

A worker has one item at a time, one torch thread, and a pipe to whoever started it, which carries what it
would have said on stderr and what became of the item. A worker that dies takes only its own item with it; one
whose starter has died stops as if terminated, so that nobody waits for its locks.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import signal
import threading
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import connection, get_context, parent_process
from multiprocessing.connection import Connection
from types import FrameType
from typing import TYPE_CHECKING, Any

from icl.errors import Interrupted, Unavailable, one_line
from icl.runs.atomic import Unwritable

if TYPE_CHECKING:
    from icl.cli.many import Group

_STOPPING = 30.0  # seconds a worker may take to save what it has


@dataclass(frozen=True)
class Item:
    """One check or figure to be made: enough for another process to make it."""

    group: str
    id: str
    overrides: tuple[str, ...]
    alike: str = ""  # items of one such name want the same runs


@dataclass(frozen=True)
class Event:
    """What happened to an item: running, said, done, skipped, failed."""

    item: Item
    state: str
    document: dict[str, Any] | None = None
    text: str = ""  # what was said; why it was skipped or failed
    trace: str = ""


def carry_out(items: Sequence[Item], jobs: int, config_dir: str | None) -> Generator[Event, None, None]:
    """Every item once, in this order but for those that want the same runs as one under way."""
    with contextlib.closing(_in_workers(items, jobs, config_dir) if jobs > 1 else _here(items)) as events:
        for event in events:
            if event.state == "unwritable":  # the next item would only say the same
                raise Unwritable(event.text)
            yield event


def _here(items: Sequence[Item]) -> Generator[Event, None, None]:
    for item in items:
        yield Event(item, "running")
        yield _attempt(item)


def _attempt(item: Item) -> Event:
    """An interruption is no outcome and passes."""
    try:
        group: Group = importlib.import_module(f"icl.cli.{item.group}").GROUP
        cfg = group.compose(item.id, item.overrides)
        document = group.found(group.described(cfg, item.id), cfg)
        return Event(item, "done", document or group.run(group.plan_of(cfg, item.id), cfg))
    except Unwritable as error:
        return Event(item, "unwritable", text=one_line(error))
    except Unavailable as error:
        return Event(item, "skipped", text=one_line(error))
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {one_line(error)}"
        return Event(item, "failed", text=reason, trace=traceback.format_exc())


def _in_workers(items: Sequence[Item], jobs: int, config_dir: str | None) -> Generator[Event, None, None]:
    waiting = list(items)
    workers = [_Worker(config_dir) for _ in range(min(jobs, len(items)))]
    try:
        while True:
            for worker in workers:
                if worker.item is None and waiting:
                    yield worker.begin(_next(waiting, [w.item for w in workers]))
            busy = {worker.pipe: worker for worker in workers if worker.item is not None}
            if not busy:
                return
            for pipe in connection.wait(list(busy)):
                worker = busy[pipe]  # type: ignore[index]
                event = worker.hear()
                if event.state != "said":
                    worker.item = None
                yield event
                if worker.has_died:
                    workers.remove(worker)
                    workers += [_Worker(config_dir)] if waiting else []
    finally:
        for worker in workers:
            worker.end()
        for worker in workers:
            worker.join()


def _next(waiting: list[Item], under_way: Sequence[Item | None]) -> Item:
    """The first; rather one that need not wait for a run that is being made."""
    taken = {item.alike for item in under_way if item is not None and item.alike}
    return waiting.pop(next((i for i, item in enumerate(waiting) if item.alike not in taken), 0))


class _Worker:
    """A process as its starter sees it."""

    def __init__(self, config_dir: str | None) -> None:
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, config_dir))
        self.process.start()
        theirs.close()
        self.item: Item | None = None
        self.has_died = False

    def begin(self, item: Item) -> Event:
        self.item = item
        with contextlib.suppress(OSError):  # it has died, which is heard next
            self.pipe.send(item)
        return Event(item, "running")

    def hear(self) -> Event:
        assert self.item is not None
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self.has_died = True
            self.process.join()
            return Event(self.item, "failed", text=f"its process died (exit code {self.process.exitcode})")

    def end(self) -> None:
        """One signal and no more: training saves its state on the first and gives up on the second."""
        self.pipe.close()  # an idle one ends by itself
        if self.item is not None:
            self.process.terminate()

    def join(self) -> None:
        try:
            self.process.join(_STOPPING)
        finally:
            if self.process.is_alive():
                self.process.kill()


def _serve(pipe: Connection, config_dir: str | None) -> None:
    """The life of a worker."""
    os.setpgid(0, 0)  # Ctrl-C reaches the starter alone, which sends each worker one signal
    signal.signal(signal.SIGTERM, _stop)
    threading.Thread(target=_stop_with_starter, daemon=True).start()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sending = threading.Lock()
    item: Item

    def say(line: str) -> None:
        with sending, contextlib.suppress(OSError):
            pipe.send(Event(item, "said", text=line))

    from icl.cli.hydra_app import use_config_dir

    with contextlib.suppress(EOFError, OSError, Interrupted, KeyboardInterrupt):
        use_config_dir(config_dir)
        while True:
            item = pipe.recv()
            with Said(say).in_place_of_stderr():
                import torch

                torch.set_num_threads(1)
                event = _attempt(item)
            with sending:
                pipe.send(event)


def _stop(signum: int, _: FrameType | None) -> None:
    raise Interrupted(signum)


def _stop_with_starter() -> None:
    starter = parent_process()
    assert starter is not None
    starter.join()
    os.kill(os.getpid(), signal.SIGTERM)


class Said(io.TextIOBase):
    """Takes whole lines for `say` where stderr was. No terminal: nobody else draws a bar then."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self.rest = ""

    encoding = "utf-8"

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2  # for child processes, which cannot be told otherwise

    def write(self, text: str) -> int:
        *lines, self.rest = (self.rest + text).split("\n")
        for line in lines:
            self.say(line)
        return len(text)

    @contextlib.contextmanager
    def in_place_of_stderr(self) -> Iterator[None]:
        with contextlib.redirect_stderr(self), contextlib.redirect_stdout(self):
            try:
                yield
            finally:
                if self.rest:
                    self.write("\n")
