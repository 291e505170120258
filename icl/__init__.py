"""Reproduces, checks and extends the theory of in-context learning in linear transformers.

    icl.check("ahn/theorem1", dim=7)    a verdict
    icl.load_run(path)                  a finished run: A, B, Sigma, U, metrics, config

Importing is cheap; torch and Hydra are loaded by the first call that needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["__version__", "check", "exact_risk", "load_run"]

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import ArrayLike

    from icl.training.restored import TrainedRun


def load_run(path: str | PathLike[str]) -> TrainedRun:
    """The finished run in folder `path`: `.A` of shape (seeds, layers, d, d), `.B`, `.Sigma`, `.U`,
    `.metrics`, `.config`."""
    from icl.training.restored import load_run as load

    return load(path)  # type: ignore[arg-type]


def exact_risk(P: ArrayLike, Q: ArrayLike, **task: Any) -> float:
    """Risk of linear attention with P and Q, (p, p) of one layer or (L, p, p) of a stack, without sampling
    error; `task` says the law as `icl train task.KEY=VALUE` does (context, eigenvalues, covariance, ...).

    Raises icl.errors.InputError where no exact form exists.
    """
    from icl.models.given import exact_risk as risk

    return risk(P, Q, **task)


def check(name: str, *, outputs: str | PathLike[str] | None = None, **settings: Any) -> dict[str, Any]:
    """The check document of contract `icl check check=NAME check.KEY=VALUE ... format=json`, as a dict.

    Nothing is written unless `outputs` names a folder to keep the record in.
    """
    from icl.cli.check import check_from_python

    return check_from_python(name, settings, outputs)
