"""The law that statements of two papers share: Sigma by its eigenvalues, or as a matrix, as it was typed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from flint import fmpq_mat

from icl.checks.statement import Statement, setting
from icl.errors import InputError, given_matrix, reals
from icl.theory.rationals import diagonal, identity, is_positive_definite, matrix

PAPER_EIGENVALUES = (1.0, 1.0, 0.25, 0.0625, 1.0)  # section 4.3, at dim 5


def draw_eigenvalues(rng: Random, share: float, drawn: Mapping[str, Any]) -> list[float] | None:
    """Return positive numbers of up to eight orders of magnitude, or none."""
    if rng.random() < 0.5:
        return None
    return [float(f"{10 ** (share * rng.uniform(-8, 8)):.3g}") for _ in range(drawn["dim"])]


@dataclass
class Prompts(Statement):
    """Dimension, eigenvalues or covariance Sigma of x, and context length."""

    dim: int = setting(5, 1, 10, most=200, beyond="d^3 operations on long rationals take minutes")
    eigenvalues: Sequence[float] | None = setting(None, draw=draw_eigenvalues)
    covariance: Sequence[Sequence[float]] | str | None = None
    context: int = setting(20, 1, 10**12)

    task_covariance: ClassVar[str] = "identity"  # of w, or "inverse": Sigma^-1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.sigma  # noqa: B018  refuses what is no covariance

    @property
    def sigma(self) -> fmpq_mat:
        """Return Sigma exactly: every float is a rational."""
        if self.covariance is not None:
            return self._covariance()
        default = PAPER_EIGENVALUES if self.dim == len(PAPER_EIGENVALUES) else (1.0,) * self.dim
        given = default if self.eigenvalues is None else self.eigenvalues
        return diagonal(reals("check.eigenvalues", given, self.dim, 0.0, open_low=True))

    def _covariance(self) -> fmpq_mat:
        if self.eigenvalues is not None:
            raise InputError("check.eigenvalues: give either eigenvalues or a covariance")
        if self.covariance == "identity":
            return identity(self.dim)
        found = matrix(given_matrix("check.covariance", self.covariance, self.dim, self.dim).tolist())
        if found != found.transpose():
            raise InputError("check.covariance: must be symmetric")
        if not is_positive_definite(found):
            raise InputError("check.covariance: must be positive definite")
        return found

    def prompts(self) -> Any:
        """Return the law of prompts at these settings, which weights from a file are judged under."""
        from icl.tasks import LinearRegression

        given = {name: getattr(self, name) for name in ("task_covariance", "eigenvalues", "covariance")}
        return LinearRegression(self.dim, self.context, prefix="check", **given).law([0])
