"""stdout: one document or one text, and nothing else."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from icl.runs.documents import dumps


def emit(document: Mapping[str, Any], show: Callable[[], None], form: str) -> None:
    """Print the result on stdout. A closed pipe (`| head`) does not change the exit code."""
    try:
        if form == "json":
            print(dumps(document), flush=True)
        else:
            show()
            sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # rich makes the second of the first
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or the flush on exit fails again


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
