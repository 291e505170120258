"""What a verb gives back: a document for JSON, a way to show it as text, and an exit code."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from icl.runs.documents import dumps

OK, UNEXPECTED, INPUT, UNDECIDED, FAILED = 0, 1, 2, 3, 4
_PRECEDENCE = (130, 143, INPUT, FAILED, UNEXPECTED, UNDECIDED)


@dataclass(frozen=True)
class Outcome:
    document: dict[str, Any]
    exit_code: int = OK
    show: Callable[[], None] = lambda: None


def worst(codes: Sequence[int]) -> int:
    """Of several parts, the code that applies first in the contract's order."""
    return next((code for code in _PRECEDENCE if code in codes), OK)


def verdict_code(verdict: str, expected: str) -> int:
    if verdict == expected:
        return OK
    return UNDECIDED if verdict == "undecided" else UNEXPECTED


def emit(outcome: Outcome, form: str) -> None:
    """The result, on stdout. A reader that has gone away (`| head`) does not change how it ended."""
    try:
        if form == "json":
            print(dumps(outcome.document), flush=True)
        else:
            outcome.show()
            sys.stdout.flush()
    except BrokenPipeError:
        silence_stdout()


def silence_stdout() -> None:
    """Or the interpreter complains again when it flushes on exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


@contextlib.contextmanager
def stdout_kept_for_results() -> Iterator[None]:
    """Whatever libraries print meanwhile, from Python or below it, goes to stderr."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
