"""Runs a verb: Hydra composes, the verb's job runs, errors become one line and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from icl.cli.outcome import FAILED, INPUT, OK, Outcome, emit, stdout_kept_for_results
from icl.errors import InputError, Interrupted

NOTHING_YET = {
    "figure": "figures come with a later version",
    "report": "it needs figures, which come with a later version",
    "sweep": "stored sweeps come with a later version; icl train -m runs one now",
}


def run(verb: str, args: Sequence[str]) -> int:
    """The exit code of `icl VERB ARGS`."""
    try:
        return _dispatch(verb, list(args))
    except InputError as error:
        print(f"icl: {error}", file=sys.stderr)
        return INPUT
    except Interrupted as error:
        print("icl: interrupted, state saved; the same command continues", file=sys.stderr)
        return 128 + error.signum
    except KeyboardInterrupt:
        print("icl: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or the interpreter complains again on exit
        return OK


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
    from icl.cli.hydra_app import run_hydra

    if verb == "check":
        from icl.cli.check import check_command

        return check_command(args)
    if verb == "bench":
        from icl.cli.bench import bench_job, bench_settings

        return run_hydra(verb, args, bench_job, bench_settings)
    if verb == "reproduce":
        from icl.cli.reproduce import plan, reproduce_job

        return run_hydra(verb, args, reproduce_job, plan)
    from icl.cli.train import train_job, training_plan

    return run_hydra(verb, args, train_job, training_plan)


def guarded(job: Callable[[Any], Outcome], cfg: Any) -> int:
    """One job: its result on stdout, its failure on stderr. SystemExit never leaves it."""
    try:
        with stdout_kept_for_results():
            outcome = job(cfg)
    except (InputError, Interrupted, KeyboardInterrupt, BrokenPipeError):
        raise
    except BaseException as error:
        print(f"icl: {type(error).__name__}: {error}", file=sys.stderr)
        if cfg.get("verbose"):
            traceback.print_exc()
        return FAILED
    emit(outcome, cfg.get("format", "text"))
    return outcome.exit_code
