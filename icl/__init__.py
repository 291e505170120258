"""Reproduces, checks and extends the theory of in-context learning in linear transformers.

    icl.check("ahn/theorem1", dim=7)    a verdict
    icl.load_run(path)                  a finished run: A, B, Sigma, U, metrics, config

Importing is cheap; torch and Hydra are loaded by the first call that needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["__version__", "check", "load_run"]

if TYPE_CHECKING:
    from os import PathLike

    from icl.runs.record import RunRecord


def load_run(path: str | PathLike[str]) -> RunRecord:
    """The finished run in folder `path`: `.A` of shape (seeds, layers, d, d), `.B`, `.Sigma`, `.U`,
    `.metrics`, `.config`."""
    from icl.runs.record import load_run as load

    return load(path)  # type: ignore[arg-type]


def check(name: str, *, outputs: str | PathLike[str] | None = None, **settings: Any) -> dict[str, Any]:
    """The check document of contract `icl check check=NAME check.KEY=VALUE ... format=json`, as a dict.

    Nothing is written unless `outputs` names a folder to keep the record in.
    """
    from icl.cli.check import check_from_python

    return check_from_python(name, settings, outputs)
