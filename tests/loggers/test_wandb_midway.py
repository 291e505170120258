"""Tests of W&B failing at each stage of a run: the run is done all the same."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from icl.loggers.safe import SafeLogger


@contextlib.contextmanager
def opened(fails: str, calls: list[str]) -> Iterator[Any]:
    class Fails:
        def log_metrics(self, *args: Any) -> None:
            calls.append("log")
            if fails == "log":
                raise ConnectionResetError("gone")

    if fails == "open":
        raise ConnectionResetError("gone")
    try:
        yield Fails()
    finally:
        if fails == "close":
            raise ConnectionResetError("gone")


@pytest.mark.parametrize(("fails", "reached"), [("open", 0), ("log", 1), ("close", 2)])
def test_each_stage(fails: str, reached: int) -> None:
    calls: list[str] = []
    said: list[str] = []
    guarded = SafeLogger(opened(fails, calls), "ahn/theorem3: W&B", said.append)
    with guarded as sink:
        assert (sink is None) == (fails == "open")
        for step in range(2) if sink is not None else ():
            sink.log_metrics({"loss": 1.0}, step)
    assert len(calls) == reached
    (line,) = said
    assert "ahn/theorem3: W&B has failed (ConnectionResetError: gone)" in line
    assert guarded.has_failed


def test_the_runs_own_failure_passes() -> None:
    guarded = SafeLogger(opened("none", []), "x", print)
    with pytest.raises(ZeroDivisionError), guarded:
        raise ZeroDivisionError
    assert not guarded.has_failed


def test_strict_is_the_runs_own_failure() -> None:
    with pytest.raises(ConnectionResetError), SafeLogger(opened("open", []), "x", print, strict=True):
        pass
    with pytest.raises(ConnectionResetError), SafeLogger(opened("close", []), "x", print, strict=True):
        pass
