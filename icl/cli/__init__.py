"""The `icl` command. Only what a verb needs is imported, so that --help, --version and list stay fast."""

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

from icl import __version__
from icl.cli.help import QUICK, VERBS, help_of
from icl.errors import InputError, Interrupted, full_errors, lines_of, nearest, one_line
from icl.redact import redact

# Threads that have no work wait busily for more, and take the cores from those that have: numpy's BLAS is for
# small matrices here, and torch's threads wait some microseconds, not milliseconds.
THREAD_SETTINGS = {"OPENBLAS_NUM_THREADS": "1", "GOMP_SPINCOUNT": "10000"}


def main(argv: Sequence[str] | None = None) -> int:
    """Return the exit code of `icl ARGV`: an exception is one line on stderr."""
    if argv is None:
        for name, value in THREAD_SETTINGS.items():
            os.environ.setdefault(name, value)
    args = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(args)
        sys.stdout.flush()  # here, and not on exit, a reader that has left early can be caught
        return code
    except InputError as error:
        from icl.runs.atomic import DiskFull

        if full_errors():
            traceback.print_exception(error)
        for line in lines_of(error):
            print(f"icl: {redact(line)}", file=sys.stderr)
        return 4 if isinstance(error, DiskFull) else 2
    except (Interrupted, KeyboardInterrupt) as error:
        print("icl: interrupted; the same command continues from what is saved", file=sys.stderr)
        return 128 + getattr(error, "signum", signal.SIGINT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or the flush on exit fails again
        return 0
    except SystemExit as error:
        return 4 if error.code else 0
    except Exception as error:
        print(f"icl: {redact(f'{type(error).__name__}: {one_line(error)}')}", file=sys.stderr)
        if full_errors():
            traceback.print_exception(error)
        return 4


def _run(args: list[str]) -> int:
    if args[:1] == ["help"] and len(args) > 1:
        args = [args[1], "--help"]
    if not args or args[0] in ("-h", "--help", "help"):
        print(help_of())
        return 0
    verb = args[0]
    if verb == "--version":
        from icl.kernel.library import instructions, why_none

        kernel = instructions()
        print(f"icl {__version__} ({f'kernel {kernel}' if kernel else f'no kernel: {why_none()}'})")
        return 0
    if verb not in VERBS:
        raise InputError(f"no verb {verb} (icl --help lists them){nearest(verb, [*VERBS, '--version'])}")
    if {"--help", "-h"} & set(args) and (len(args) == 2 or verb in QUICK):
        print(help_of(verb))
        return 0
    if verb in QUICK:
        return int(import_module(f"icl.cli.{QUICK[verb]}").command(args[1:]))
    from icl.config.session import cache_dropped_on_refusal

    with cache_dropped_on_refusal():
        return int(import_module("icl.cli.dispatch").command(verb, args[1:]))
