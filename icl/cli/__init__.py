"""The `icl` command. Only what a verb needs is imported, so that --help, --version and list stay fast."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

from icl import __version__
from icl.errors import InputError, Interrupted, full_errors, lines_of, nearest, one_line
from icl.redact import redact

HELP = """icl: the theory of in-context learning in linear transformers, reproduced and checked.

usage: icl VERB [KEY=VALUE ...]

{verbs}

Everything after a verb is a Hydra override; the shell needs quotes around lists, as in 'seeds=[0,1]'.
On every verb that runs something:
  scale=smoke|laptop|paper   format=text|json   force=true   logger=none|csv|wandb_offline|...
  paths.outputs=DIR          verbose=true       -m (multirun) --config-dir DIR
scale=smoke takes seconds for a check and up to a minute for a figure; it cannot decide claims about training.
`icl VERB --help` shows what can be set. Start with: icl list, icl check check=ahn/theorem1

exit codes: 0 every verdict as expected, 1 another verdict than expected, 2 unusable input,
  3 undecided, 4 failed, 130/143 interrupted
"""
VERBS = {
    "train": "trains one run, all its seeds at once; -m for a multirun",
    "check": "tests a theorem numerically: check=ahn/theorem1, check=ahn/all, check=all",
    "figure": "plots a paper's figure and tests its claims: figure=ahn/fig1",
    "reproduce": "runs every check and every figure, then writes the report",
    "report": "writes outputs/report/index.html from stored results",
    "list": "lists every check, experiment and figure, and which results exist here",
    "sweep": "shows the progress and the results of a sweep: sweep=PATH",
    "runs": "lists runs, what differs between them, and their risk: runs 'exact_risk<0.2' sort=exact_risk",
    "clean": "shows sizes, then removes failed, stale and orphaned records",
    "archive": "copies finished records, with their SHA-256: archive FOLDER",
}
WITHOUT_HYDRA = {
    "list": "icl.cli.listing:list_command",
    "runs": "icl.cli.runs:runs_command",
    "clean": "icl.cli.clean:clean_command",
    "archive": "icl.cli.archive:archive_command",
}
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
        with _termination_raised():
            code = _run(args)
            sys.stdout.flush()  # here, and not on exit, a reader that has left early can be caught
            return code
    except InputError as error:
        return _refused(error)
    except (Interrupted, KeyboardInterrupt) as error:
        print("icl: interrupted; the same command continues from what is saved", file=sys.stderr)
        return 128 + getattr(error, "signum", signal.SIGINT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or the flush on exit fails again
        return 0
    except SystemExit as error:
        return 4 if error.code else 0
    except Exception as error:
        if getattr(error, "errno", None) == errno.ENAMETOOLONG:  # only a setting can be so long
            return _refused(InputError(f"{str(error.filename)[:40]}...: {error.strerror}"))  # type: ignore[attr-defined]
        print(f"icl: {redact(f'{type(error).__name__}: {one_line(error)}')}", file=sys.stderr)
        if "verbose=true" in args or full_errors():
            traceback.print_exception(error)
        return 4


def _run(args: list[str]) -> int:
    if not args or args[0] in ("-h", "--help", "help"):
        width = max(map(len, VERBS))
        verbs = "\n".join(f"  {name:<{width}}  {summary}" for name, summary in VERBS.items())
        print(HELP.format(verbs=verbs))
        return 0
    verb = args[0]
    if verb == "--version":
        from icl.kernel.library import instructions, why_none

        kernel = instructions()
        print(f"icl {__version__} ({f'kernel {kernel}' if kernel else f'no kernel: {why_none()}'})")
        return 0
    if verb not in VERBS:
        raise InputError(f"no verb {verb} (icl --help lists them){nearest(verb, VERBS)}")
    if verb in WITHOUT_HYDRA:
        return _command(WITHOUT_HYDRA[verb])(verb, args[1:])
    from icl.config.session import caches_dropped_on_refusal

    with caches_dropped_on_refusal():
        return _command("icl.cli.dispatch:command")(verb, args[1:])


def _command(place: str) -> Callable[[str, Sequence[str]], int]:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)  # type: ignore[no-any-return]


def _refused(error: InputError) -> int:
    from icl.runs.atomic import DiskFull

    if full_errors():
        traceback.print_exception(error)
    for line in lines_of(error):
        print(f"icl: {redact(line)}", file=sys.stderr)
    return 4 if isinstance(error, DiskFull) else 2


@contextlib.contextmanager
def _termination_raised() -> Iterator[None]:
    """Raise SIGTERM as an exception, as Python does SIGINT, so that locks are released and children ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(signum: int, _: Any) -> None:
        raise Interrupted(signum)

    before = {signal.SIGTERM: signal.signal(signal.SIGTERM, stop)}
    if callable(signal.getsignal(signal.SIGINT)):  # not where the shell has it ignored
        before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
