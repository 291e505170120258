"""Runs a verb: an exception becomes one line on stderr and an exit code."""

from __future__ import annotations

import contextlib
import errno
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from types import FrameType

from icl.cli.output import silence_stdout
from icl.cli.process import INTERRUPTED
from icl.cli.verbs import VERBS
from icl.config import allowed_packages
from icl.errors import InputError, Interrupted, full_errors, lines_of, one_line
from icl.jobs.exit_codes import FAILED, INPUT, OK
from icl.redact import redact
from icl.runs.atomic import DiskFull


def run(verb: str, args: Sequence[str]) -> int:
    """Return the exit code of `icl VERB ARGS`."""
    try:
        with _termination_raised(), contextlib.ExitStack() as stack:
            if VERBS[verb].is_quick:
                command = VERBS[verb].load()
            elif "--help" in args or "-h" in args:
                from icl.cli.help import show_help as command
            else:
                from icl.config.session import caches_dropped_on_refusal

                command = VERBS[verb].load()
                stack.enter_context(caches_dropped_on_refusal())
                stack.enter_context(allowed_packages.frozen_allowlist(allowed_packages.allowed()))
            with _long_names_refused():
                code = command(verb, list(args))
        sys.stdout.flush()  # here, and not on exit, a reader that has left early can be caught
        return code
    except InputError as error:
        if full_errors():
            traceback.print_exception(error)
        for line in lines_of(error):
            print(f"icl: {redact(line)}", file=sys.stderr)
        return FAILED if isinstance(error, DiskFull) else INPUT
    except Interrupted as error:
        print(INTERRUPTED, file=sys.stderr)
        return 128 + error.signum
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        return 128 + signal.SIGINT
    except BrokenPipeError:
        silence_stdout()
        return OK
    except SystemExit as error:
        return OK if not error.code else FAILED
    except Exception as error:
        print_failure("", error, with_traceback="verbose=true" in args or full_errors())
        return FAILED


def print_failure(what: str, error: BaseException, *, with_traceback: bool) -> None:
    """Print one line on stderr, and with `with_traceback` the traceback."""
    print(f"icl: {what}{type(error).__name__}: {redact(one_line(error))}", file=sys.stderr)
    if with_traceback:
        traceback.print_exception(error)


@contextlib.contextmanager
def _long_names_refused() -> Iterator[None]:
    """Refuse a file name that no file system has: only a setting can be so long."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        raise InputError(f"{str(error.filename)[:40]}...: {error.strerror}") from error


@contextlib.contextmanager
def _termination_raised() -> Iterator[None]:
    """Raise SIGTERM as an exception, as Python does SIGINT, so that locks are released and children ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(signum: int, _: FrameType | None) -> None:
        raise Interrupted(signum)

    before = {signal.SIGTERM: signal.signal(signal.SIGTERM, stop)}
    if callable(signal.getsignal(signal.SIGINT)):  # not where the shell has it ignored
        before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
