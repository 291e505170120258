"""The packages of icl a record depends on: where their code has changed it is shown as stale, and redone."""

from __future__ import annotations

TRAINED = ("random", "tasks", "models", "training", "theory")
COMPUTED = (*TRAINED, "algorithms", "experiments")  # arrays an experiment computes from runs
