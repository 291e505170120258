"""stdout: one document or one text, and nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from icl.runs.documents import dumps


def emit(document: Mapping[str, Any], show: Callable[[], None], form: str) -> None:
    """Print the result on stdout. A closed pipe (`| head`) does not change the exit code."""
    try:
        if form == "json":
            text = dumps(document)
            print(text if _encodes(text) else json.dumps(json.loads(text), indent=2), flush=True)
        else:
            show()
            sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # rich makes the second of the first
        silence_stdout()


def _encodes(text: str) -> bool:
    """Return whether stdout has every character."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def silence_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's flush on exit does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


@contextlib.contextmanager
def stdout_kept_for_results() -> Iterator[None]:
    """Send whatever libraries print meanwhile, from Python or below it, to stderr."""
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
