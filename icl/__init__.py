"""Reproduces, checks and extends the theory of in-context learning in linear transformers.

    icl.check("ahn/theorem1", dim=7)                                    a verdict
    icl.train("ahn/theorem3", seeds=[0, 1], **{"optimizer.lr": 0.02})   a training run, all its seeds at once
    icl.figure("ahn/fig1", scale="smoke")                               a figure and its claims
    icl.reproduce(only=["ahn"])                                         every check, every figure, the report
    icl.list_runs(**{"optimizer.lr": 0.02})                             the runs there are, the newest first
    icl.load_run(path)                                                  a finished run: model, law, metrics
    icl.exact_risk(P, Q, context=20)                                    the risk of given weights, not sampled

What these return is what the command prints with format=json; in a notebook it shows itself. Errors are
exceptions (`icl.errors`). Importing is cheap: the functions are loaded by the first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from icl.resolver import by_scale as _by_scale  # noqa: F401  its import has OmegaConf know ${by_scale:...}

__version__ = "0.1.0"
__all__ = [
    "__version__", "check", "exact_risk", "figure", "list_runs", "load_run", "reproduce", "train",
]  # fmt: skip

if TYPE_CHECKING:
    from icl.api import check, figure, list_runs, reproduce, train
    from icl.models.exact_risk import exact_risk
    from icl.training.load import load_run

_ELSEWHERE = {"exact_risk": "icl.models.exact_risk", "load_run": "icl.training.load"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'icl' has no attribute {name!r}")
    return getattr(import_module(_ELSEWHERE.get(name, "icl.api")), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
