"""A sink that may fail: the record does not depend on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from icl.errors import one_line
from icl.runs.redact import redact
from icl.sinks.sink import NullSink, Pictures, Sink

if TYPE_CHECKING:
    from pytorch_lightning.loggers import Logger

Say = Callable[[str], None]  # a line for the user


class SafeSink:
    """`with Guarded(open_sink(...), "ahn/theorem3: W&B", say) as sink:` is the sink, whose first failure is
    said and is its last: what is told to it, a run of hours, goes on. With `strict` a failure is the run's
    own."""

    def __init__(
        self, opened: AbstractContextManager[Sink], name: str, say: Say, *, strict: bool = False
    ) -> None:
        self._opened, self._name, self._say, self._strict = opened, name, say, strict
        self._sink: Sink = NullSink()
        self.has_failed = False

    def __enter__(self) -> Sink:
        try:
            self._sink = self._opened.__enter__()
        except Exception as error:
            self._give_up(error)
        return self._sink if isinstance(self._sink, NullSink) else self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._opened.__exit__(kind, error, trace)
        except Exception as closing:
            self._give_up(closing)

    def log(self, step: int, scalars: Mapping[str, float | None]) -> None:
        self._try(lambda: self._sink.log(step, scalars))

    def images(self, step: int, name: str, pictures: Pictures) -> None:
        self._try(lambda: self._sink.images(step, name, pictures))

    def table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        self._try(lambda: self._sink.table(name, columns, rows))

    def model(self, path: Path, name: str, alias: str) -> None:
        self._try(lambda: self._sink.model(path, name, alias))

    def uses(self, path: Path, name: str, alias: str) -> None:
        self._try(lambda: self._sink.uses(path, name, alias))

    def config(self, values: Mapping[str, object]) -> None:
        self._try(lambda: self._sink.config(values))

    def summary(self, values: Mapping[str, object]) -> None:
        self._try(lambda: self._sink.summary(values))

    def fail(self) -> None:
        self._try(lambda: self._sink.fail())

    def loggers(self) -> Sequence[Logger]:
        return self._sink.loggers()

    def _try(self, tell: Callable[[], None]) -> None:
        try:
            tell()
        except Exception as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._sink, self.has_failed = NullSink(), True
        if self._strict:
            raise error
        reason = f"{type(error).__name__}: {redact(one_line(error))}"
        self._say(f"icl: {self._name} has failed ({reason}); the record does not depend on it")
