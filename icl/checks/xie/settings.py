"""The settings that the statements of the xie paper share."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from flint import fmpq

from icl.checks.given import Given
from icl.checks.statement import Measured, Statement, setting
from icl.errors import InputError, real, reals
from icl.theory.rationals import column, identity, largest
from icl.theory.xie.heads import Head, Heads

Vector = Sequence[float] | None
ROUNDING = fmpq(1, 10**9)  # of the covariances of a law, which are float64


def some_vector(rng: Random, share: float, drawn: dict[str, Any]) -> Vector:
    """Draw small numbers, at later tries of very different sizes."""
    spread = round(6 * share)
    return [float(f"{rng.gauss(0, 1) * 10 ** rng.randint(-spread, spread):.2g}") for _ in range(drawn["dim"])]


def some_bias(rng: Random, share: float, drawn: dict[str, Any]) -> float:
    """Draw a number of either sign, not zero."""
    return float(f"{rng.choice((-1, 1)) * rng.uniform(0.01, 0.1 + 3 * share):.2g}")


@dataclass
class Prior(Statement):
    """`prior_mean` is w*, `prior_mean_norm` the norm of one along (1, ..., 1). Where neither is given it is
    all ones."""

    dim: int = setting(10, 1, 6, most=60, beyond="a risk takes minutes")
    prior_mean: tuple[float, ...] | None = setting(None, draw=some_vector)
    prior_mean_norm: float | None = None

    paper = "xie"
    about_a_prior: ClassVar[bool] = False  # a statement about w* != 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.mean = vector("prior_mean", self.prior_mean, self.prior_mean_norm, self.dim, None)
        if self.about_a_prior and not any(self.mean):
            raise InputError("check.prior_mean: the statement is about w* != 0")


@dataclass
class AroundPrior(Prior):
    context: int = setting(10, 1, 10**6)

    law = "x ~ N(0, I), w ~ N(w*, I), C examples, y = w.x; y_q = 0"


@dataclass
class Guessed(AroundPrior):
    """`guess_vector` (or its norm) and `guess_bias` are v and b of other guesses than 0."""

    guess_vector: tuple[float, ...] | None = setting(None, draw=some_vector)
    guess_vector_norm: float | None = None
    guess_bias: float = setting(1.0, draw=some_bias)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.guess = vector("guess_vector", self.guess_vector, self.guess_vector_norm, self.dim, 1.0)
        self.guess_bias = real("check.guess_bias", self.guess_bias)


def given_layer(given: Given, statement: str, family: Sequence[str]) -> tuple[Heads, list[Head]]:
    """Return the law of weights and their heads; refuse what is no single layer under a law of the paper."""
    if given.family not in family or given.activation != "identity":
        families = " or ".join(family)
        raise InputError(f"check.weights: {statement} is about family {families}, not {given.family}")
    law, d, depth = given.law, given.law.dim, len(given.matrices["P"])
    off = max(largest(covariance - identity(d)) for covariance in (given.sigma, given.task))
    if off > ROUNDING or law.label_noise or law.read_out != 1 or ("v" in given.matrices and law.guesses):
        raise InputError(
            f"check.weights: {statement} takes x ~ N(0, I), w ~ N(w*, I), labels without noise, read_out 1 "
            "and no guess beside a trained one; their law is another"
        )
    if depth != 1:
        raise InputError(f"check.weights: {statement} is about one layer, these have {depth} layers")
    trained = given.matrices.get("v")
    guess = law.guess_RD[0].tolist() if trained is None else trained[0].entries()
    P, Q = (x if isinstance(x, list) else [x] for x in (given.matrices["P"][0], given.matrices["Q"][0]))
    rows, columns = [p.tolist()[d] for p in P], [q.transpose().tolist() for q in Q]
    heads = [(column(b), [column(a) for a in keys]) for b, keys in zip(rows, columns, strict=True)]
    return Heads(law.mean_RD[0].tolist(), fmpq(1, given.context), guess, law.guess_bias), heads


def not_convex(m: Measured, name: str, layer: Heads, heads: list[Head], about: str) -> None:
    """Require that the risk lies above its chord halfway from these weights to minus them: both predict the
    same, and halfway the layer does nothing."""
    negative = [(-b, [-a for a in keys]) for b, keys in heads]
    here, there = (layer.risk(layer.matrices(weights)) for weights in (heads, negative))
    middle, opposite = (layer.risk([s * x for x in layer.matrices(heads)]) for s in (0, -1))
    m.positive(name, middle - (here + there) / 2, f"risk at the midpoint less the mean of both, {about}")
    about = "the same between X_k and -X_k, in which the risk is convex"
    m.control(about, middle - (here + opposite) / 2, of=name)


def vector(
    name: str, given: Vector, norm: float | None, dim: int, norm_if_unsaid: float | None
) -> list[float]:
    """Return the vector given, or one of this norm along (1, ..., 1); all ones where no norm is said."""
    if given is not None and norm is not None:
        raise InputError(f"check.{name} and check.{name}_norm exclude each other: set one of them to null")
    if given is not None:
        return reals(f"check.{name}", given, dim)
    norm = norm_if_unsaid if norm is None else real(f"check.{name}_norm", norm, 0)
    return [1.0] * dim if norm is None else [norm / dim**0.5] * dim
