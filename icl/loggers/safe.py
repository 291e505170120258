"""An error guard for loggers: the record does not depend on them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from icl.errors import one_line
from icl.redact import redact

Notify = Callable[[str], None]  # a line for the user


class SafeLogger:
    """`with SafeLogger(open_wandb(...), "ahn/theorem3: W&B", say) as logger:` is the logger, or None.

    Its first failure is reported and its last call: what it logs, a run of hours, goes on. With `strict` the
    failure is raised.
    """

    def __init__(
        self, opened: AbstractContextManager[Any], name: str, notify: Notify, *, strict: bool = False
    ) -> None:
        self._opened, self._name, self._notify, self._strict = opened, name, notify, strict
        self._logger: Any = None
        self.has_failed = self._is_open = False

    def __enter__(self) -> Any:
        self._logger = self._guard(self._opened.__enter__)
        self._is_open = not self.has_failed
        return None if self._logger is None else self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_open:
            self._guard(self._opened.__exit__, kind, error, trace)

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._logger, name)
        if not callable(member):
            return member
        return lambda *args, **more: None if self.has_failed else self._guard(member, *args, **more)

    def _guard(self, call: Callable[..., Any], *args: Any, **more: Any) -> Any:
        try:
            return call(*args, **more)
        except Exception as error:
            self.has_failed = True
            if self._strict:
                raise
            reason = f"{type(error).__name__}: {redact(one_line(error))}"
            self._notify(f"icl: {self._name} has failed ({reason}); the record does not depend on it")
