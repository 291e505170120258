"""Kinds of metrics. Every table that shows a risk names its kind."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

# The risks, as a sweep's table shows them: those that are defined.
RISKS = ("exact_risk", "risk_estimate", "risk_on_s", "risk_old", "risk_new")

# What a run is summed up by, the first that is defined.
_FINAL = ("exact_risk", "risk_on_s", "risk_estimate", "loss")

_KINDS = {
    "loss": "training",  # on the prompts trained on; the exact risk where train.estimator=population
    "exact_risk": "exact",  # of these very weights under this very law
    "risk_on_s": "projected",  # exact, but of the weights' projection on a set
    "risk_estimate": "sampled",  # on prompts that training never sees
}

_OF_ONE_MATRIX = re.compile(r"_[ABPQ]\d+(_|$)")


def of_one_matrix(metric: str) -> bool:
    """Return whether a metric is of one matrix, such as dist_plain_A0: it is stored and not shown."""
    return bool(_OF_ONE_MATRIX.search(metric))


def final_risk(means: Mapping[str, float | None]) -> tuple[str, float] | None:
    """Return the name and the value of a run's final risk: exact, projected or sampled, or else the loss."""
    return next(((name, value) for name in _FINAL if (value := means.get(name)) is not None), None)


def kind_of(metric: str, errors: Sequence[float | None] = ()) -> str:
    """exact | projected | sampled | training, or "" for what is neither risk nor gradient.

    `errors` are the metric's standard errors: a gradient's norm and the risks on old and new tasks are exact
    where they are zero.
    """
    if metric.startswith("gradient_norm") or (errors and metric in ("risk_old", "risk_new")):
        return "sampled" if any(errors) else "exact"
    return _KINDS.get(metric, "")
