"""Settings of lu's statements, and simulated errors against a limit. C dimensions, O orders."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from flint import arb

from icl.checks.statement import QUANTILE, UNREFUTED, Measured, Sample, Statement, setting
from icl.models.lu.pretraining import LEAST_NOISE, Pretraining
from icl.progress import track
from icl.random import generator
from icl.theory.blurred import Undecided

MAX_DIM, MAX_RATIO = 128, 1e4
ORDER = 2  # of the polynomial in 1/d that errors are extrapolated by
LONG = "the draws take days"
FEWEST = 5  # examples at the largest d: with fewer no expansion in 1/d describes the errors


@dataclass
class Simulated(Statement):
    """Noise of variance rho; what is drawn by the seed."""

    rho: float = setting(0.01, 0.0, 1.0)
    seed: int = setting(0, 0)

    paper = "lu"
    law = "tasks on |w|^2 = d, x ~ N(0, I/d), l = alpha d, k = kappa d, n = tau d^2, label noise rho"
    tries = 0


@dataclass
class Pretrained(Simulated):
    """And l = alpha d examples; `draws` of tasks and prompts, at the largest of several dimensions."""

    alpha: float = setting(10.0, 1e-4, 100.0, most=MAX_RATIO, beyond=LONG)
    draws: int = setting(46, 10, 400, most=10**6, beyond="they take days")

    def expected(self) -> str:
        """Return UNREFUTED with fewer draws than by default: some intervals are too wide for a verdict."""
        return "holds" if self.draws >= type(self).draws else UNREFUTED

    @property
    def at_default(self) -> bool:
        return replace(self, draws=type(self).draws, seed=0) == type(self)()


@dataclass
class Ratios(Pretrained):
    """And k = kappa d tasks."""

    kappa: float = setting(0.5, 1e-4, 10.0, most=MAX_RATIO, beyond=LONG)

    def expected(self) -> str:
        """Return UNREFUTED with less noise: the features of one task are dependent."""
        return super().expected() if self.rho >= LEAST_NOISE else UNREFUTED


def require_examples(sizes: Pretraining) -> None:
    if sizes.examples < FEWEST:
        about = f"at d = {sizes.dim} a prompt has {sizes.examples} examples, and the limit has many"
        raise Undecided(f"{about}: check.alpha or check.dims takes more")


@dataclass(frozen=True, eq=False)
class Means:
    """Mean errors by dimension, with standard errors."""

    dims: Sequence[int]
    mean_C: np.ndarray
    stderr_C: np.ndarray

    def at_infinity(self, order: int = ORDER) -> tuple[float, float]:
        """Return the constant of the polynomial fitted by weighted least squares, and its standard error."""
        weights_OC = np.linalg.pinv(self._design(order) / self.stderr_C[:, None])
        return float(weights_OC[0] @ (self.mean_C / self.stderr_C)), float(np.linalg.norm(weights_OC[0]))

    @property
    def misfit(self) -> float:
        """Return the part of the means that no polynomial of this order describes, in standard errors."""
        design_CO, scaled_C = self._design(ORDER) / self.stderr_C[:, None], self.mean_C / self.stderr_C
        rest_C = scaled_C - design_CO @ np.linalg.lstsq(design_CO, scaled_C)[0]
        free = len(self.dims) - ORDER - 1
        return float(np.sqrt(rest_C @ rest_C / free)) if free else 0.0

    def _design(self, order: int) -> np.ndarray:
        return np.vander(1 / np.array(self.dims), order + 1, increasing=True)


def means_of(
    dims: Sequence[int], draws: int, once: Callable[[int, np.random.Generator], Sequence[float]], seed: int
) -> list[Means]:
    """Average each of the errors `once(dim, rng)`, `draws` times at the largest d and more often at smaller
    ones, since an error's standard deviation is about proportional to 1/d."""
    order = [d for d in dims for _ in range(draws * round((dims[-1] / d) ** 2))]
    streams = {d: generator(seed, "check", d) for d in dims}
    drawn: dict[int, list[Sequence[float]]] = {d: [] for d in dims}
    for d in track(order, "draws", len(order)):
        drawn[d].append(once(d, streams[d]))
    samples = [[Sample.of(errors_T) for errors_T in np.array(each).T] for each in drawn.values()]
    return [
        Means(dims, np.array([one.mean for one in of]), np.array([one.stderr for one in of]))
        for of in zip(*samples, strict=True)
    ]


def compare(
    m: Measured, name: str, means: Means, moves: Sequence[float], formula: arb, wrong: arb, control: str
) -> Sample:
    """Require that errors tend to a formula, and return the rest. Sizes are whole numbers: `moves` are the
    formula at the ratios simulated less that at the ratios asked. Errors refute the formula only where it is
    off by more than the extrapolation moved the error at the largest d, and by more than the order of the
    polynomial changes it: else one of higher order may miss."""
    rest = replace(means, mean_C=means.mean_C - np.array(moves) - float(formula))
    left = Sample(*rest.at_infinity())
    others = float(rest.mean_C[-1]), rest.at_infinity(ORDER - 1)[0]
    off, unsure = abs(left.mean), max(abs(other - left.mean) for other in others)
    about = "error less its formula, extrapolated by a polynomial of order 2 in 1/d"
    if rest.misfit > QUANTILE or QUANTILE * left.stderr < off <= QUANTILE * left.stderr + unsure:
        m.number(name, left, about)
        m.undecided(
            f"no polynomial of order 2 in 1/d describes the means ({rest.misfit:.3g} standard errors), "
            f"or one of higher order may give the rest of {off:.3g}: take larger dims"
        )
        return left
    m.zero(name, left, about)
    m.control(control, Sample(float(wrong - formula) - left.mean, left.stderr), of=name)
    return left
