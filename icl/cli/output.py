"""stdout: one document or one text, and nothing else."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from icl.runs.documents import dumps


def emit(document: Mapping[str, Any], show: Callable[[], None], form: str) -> None:
    """The result, on stdout. A reader that has gone away (`| head`) does not change how it ended."""
    try:
        if form == "json":
            print(dumps(document), flush=True)
        else:
            show()
            sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # rich makes the second of the first
        silence_stdout()


def silence_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's flush on exit does not fail again."""
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
