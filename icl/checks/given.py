"""Given weights against the point that a statement names: one comparison for all statements.

A statement that judges has `compare(given)`, which returns what the weights of one seed are beside the
statement's own. Weights elsewhere, such as those of a short run, refute no theorem: the verdict is then
undecided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from flint import arb, fmpq, fmpq_mat

from icl.checks.statement import Measured, as_float
from icl.errors import InputError
from icl.theory.one_layer import sparse
from icl.theory.rationals import dot, identity, largest, matrix

if TYPE_CHECKING:
    from torch import Tensor

    from icl.tasks import Law

DISTANCE, EXCESS = fmpq(1, 20), fmpq(1, 50)  # the first is the tolerance of ahn's figures
LINEAR = ("full", "sparse_a", "sparse_ab")
_ROUNDING = fmpq(1, 10**9)  # of the covariances of a law, which are float64


@dataclass(frozen=True)
class Weights:
    """Weights to be judged: matrices with a leading seed axis, their family and the law they saw."""

    family: str
    matrices: Mapping[str, Tensor]
    law: Law
    activation: str = "identity"


class Comparison(NamedTuple):
    """`risk` at the weights and `least` at the stated point; `distance` from it, relative, if it is one
    point."""

    risk: Any
    least: Any
    distance: Any = None


@dataclass(frozen=True)
class Given:
    """The weights of one seed, by name a matrix for each layer, or a list of them for its heads, and the law
    that they saw."""

    family: str
    activation: str
    matrices: Mapping[str, Sequence[Any]]
    law: Any

    @property
    def sigma(self) -> fmpq_mat:
        return matrix(self.law.Sigma_RDD[0].tolist())

    @property
    def task(self) -> fmpq_mat:
        """Return the covariance of w."""
        return matrix(self.law.Sigma_w_RDD[0].tolist())

    @property
    def context(self) -> int:
        return int(self.law.context_R[0])

    def require(
        self, statement: str, families: Sequence[str], activation: str = "identity", **identities: fmpq_mat
    ) -> None:
        """Refuse weights or a law that the statement does not speak of. `identities` are matrices that it
        takes to be I, by the name of what has this covariance."""
        if self.family not in families or self.activation != activation:
            raise InputError(
                f"check.weights: {statement} is about family {' or '.join(families)} with activation "
                f"{activation}, not {self.family} with {self.activation}"
            )
        for name, covariance in identities.items():
            if largest(covariance - identity(covariance.nrows())) > _ROUNDING:
                raise InputError(
                    f"check.weights: {statement} takes {name} ~ N(0, I), their law has another covariance"
                )
        law = self.law
        if law.label_noise or law.mean_RD.any() or law.guesses or law.read_out != -1:
            raise InputError(
                f"check.weights: {statement} takes w of mean 0, labels without noise, no initial guess and "
                "read_out -1"
            )

    def single_layer(self, statement: str) -> tuple[fmpq_mat, fmpq_mat]:
        """Return P and Q of one layer with one head."""
        depth = max(len(layers) for layers in self.matrices.values())
        if depth != 1:
            raise InputError(f"check.weights: {statement} is about one layer, these have {depth} layers")
        if self.family == "full":
            return self.matrices["P"][0], self.matrices["Q"][0]
        A = self.matrices["A"][0]
        return sparse(-A if self.family == "sparse_a" else A)


def distance(x: Sequence[fmpq_mat], stated: Sequence[fmpq_mat]) -> arb:
    """Return |x - stated| / |stated|, all matrices together."""
    off = sum((dot(a - b, a - b) for a, b in zip(x, stated, strict=True)), fmpq(0))
    return arb(off / sum((dot(b, b) for b in stated), fmpq(0))).sqrt()


def judge(statement: Any, weights: Weights) -> Measured:
    """Compare the weights of every seed with the statement's; the same weights, the last matrix halved,
    must be seen to be elsewhere."""
    m = Measured()
    if not all(bool(matrices.isfinite().all()) for matrices in weights.matrices.values()):
        m.undecided("not all weights are finite")
        return m
    seeds, last = range(max(map(len, weights.matrices.values()))), max(weights.matrices)
    half = replace(weights, matrices={**weights.matrices, last: weights.matrices[last] / 2})
    rows, wrong = ([statement.compare(_given(one, seed)) for seed in seeds] for one in (weights, half))
    if rows[0].distance is not None:
        of = "distance of the weights from the statement's own, relative"
        _near(m, "distance", [row.distance for row in rows], DISTANCE, of)
    of = f"excess of the risk at {statement.compared} over that of the statement's weights, relative"
    _near(m, "risk_excess", [row.risk / row.least - 1 for row in rows], EXCESS, of)
    m.number("risk_by_seed", [row.risk for row in rows], f"risk at {statement.compared}, by seed")
    m.number("optimal_risk_by_seed", [row.least for row in rows], "risk at the statement's weights, by seed")
    about = "the same weights, the last matrix halved: distance or excess over the tolerance, minus 1"
    m.control(about, min(map(_off, wrong), key=_size), wants="positive")
    return m


def _near(m: Measured, name: str, values: Sequence[Any], limit: fmpq, about: str) -> None:
    """Require less than the limit; more leaves it open."""
    worst = max(values, key=_size)
    if _size(worst) < float(limit):
        m.below(name, worst, limit, f"{about}, largest over seeds")
    else:
        m.number(name, worst, f"{about}, largest over seeds")
        m.undecided(
            f"these weights are not those of the statement ({name} {_size(worst):.3g} > {float(limit):g}). "
            "That does not refute it: it does not say that all training ends there. Longer training may come "
            "closer (train.steps). Without check.weights the statement itself is measured"
        )
    m.number(f"{name}_by_seed", values, f"{about}, by seed")


def _off(row: Comparison) -> Any:
    """Return by how much a row is beyond the tolerance, of the two that is farther."""
    over = [] if row.distance is None else [row.distance / DISTANCE - 1]
    return max([(row.risk / row.least - 1) / EXCESS - 1, *over], key=_size)


def _size(value: Any) -> float:
    return float(as_float(value) or 0.0)


def _given(weights: Weights, seed: int) -> Given:
    matrices = {
        name: [_rational(layer) for layer in x[seed].tolist()] for name, x in weights.matrices.items()
    }
    return Given(weights.family, weights.activation, matrices, weights.law.replica(seed))


def _rational(nested: Any) -> Any:
    """Return a matrix, or lists of them where there are heads."""
    return [_rational(entry) for entry in nested] if isinstance(nested[0][0], list) else matrix(nested)
