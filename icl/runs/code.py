"""The packages of icl a record depends on: where their code has changed it is shown as stale, and redone."""

from __future__ import annotations

from icl.runs.fingerprint import code_digest

TRAINED = ("random", "tasks", "models", "training", "theory")
COMPUTED = (*TRAINED, "algorithms", "experiments")  # arrays an experiment computes from runs
# Answers of a language model, beside its weights and the prompts, which are content. They cost hours.
ANSWERED = ("experiments/xie/language",)


def current_digests() -> set[str]:
    """What the records of runs made by today's code carry, one or the other."""
    return {code_digest(packages) for packages in (TRAINED, COMPUTED, ANSWERED)}
