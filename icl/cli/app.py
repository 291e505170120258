"""Runs a verb: whatever happens in it becomes one line on stderr and an exit code."""

from __future__ import annotations

import contextlib
import importlib
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from types import FrameType

from icl.cli.outcome import FAILED, INPUT, OK, silence_stdout
from icl.errors import InputError, Interrupted, one_line

NOTHING_YET = {
    "sweep": "stored sweeps come with a later version; icl train -m runs one now",
}


def run(verb: str, args: Sequence[str]) -> int:
    """The exit code of `icl VERB ARGS`."""
    try:
        with _termination_raised():
            code = _dispatch(verb, list(args))
        sys.stdout.flush()  # here, and not on exit, a reader that has left early can be caught
        return code
    except InputError as error:
        print(f"icl: {one_line(error)}", file=sys.stderr)
        return INPUT
    except Interrupted as error:
        print("icl: interrupted; the same command continues from what is saved", file=sys.stderr)
        return 128 + error.signum
    except KeyboardInterrupt:
        print("icl: interrupted; the same command continues from what is saved", file=sys.stderr)
        return 128 + signal.SIGINT
    except BrokenPipeError:
        silence_stdout()
        return OK
    except SystemExit as error:
        return OK if not error.code else FAILED
    except Exception as error:
        say_failure("", error, tell_all="verbose=true" in args)
        return FAILED


def say_failure(what: str, error: BaseException, *, tell_all: bool) -> None:
    """One line on stderr; the traceback, too, for whoever asks with verbose=true."""
    print(f"icl: {what}{type(error).__name__}: {one_line(error)}", file=sys.stderr)
    if tell_all:
        traceback.print_exception(error)


@contextlib.contextmanager
def _termination_raised() -> Iterator[None]:
    """SIGTERM as an exception, as Python does for SIGINT, so that locks are released and children ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(signum: int, _: FrameType | None) -> None:
        raise Interrupted(signum)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _dispatch(verb: str, args: list[str]) -> int:
    if verb == "list":
        from icl.cli.listing import list_command

        return list_command(args)
    if verb == "completion":
        from icl.cli.completion import completion_command

        return completion_command(args)
    if verb == "clean":
        from icl.cli.clean import clean_command

        return clean_command(args)
    if verb in NOTHING_YET:
        raise InputError(f"icl {verb} has nothing to do yet: {NOTHING_YET[verb]}")
    if "--help" in args or "-h" in args:
        from icl.cli.help import show_help

        return show_help(verb, args)
    from icl.cli.hydra_app import run_hydra

    if verb in ("check", "figure"):
        from icl.cli import many

        group: many.Group = importlib.import_module(f"icl.cli.{verb}").GROUP
        return many.command(group, args)
    if verb == "bench":
        from icl.cli.bench import bench_job, bench_settings

        return run_hydra(verb, args, bench_job, bench_settings)
    if verb == "report":
        from icl.cli.report import report_job, settings_of

        return run_hydra(verb, args, report_job, settings_of)
    if verb == "reproduce":
        from icl.cli.reproduce import plan_of, reproduce_job

        return run_hydra(verb, args, reproduce_job, plan_of)
    from icl.cli.train import train_job, training_plan

    return run_hydra(verb, args, train_job, training_plan)
