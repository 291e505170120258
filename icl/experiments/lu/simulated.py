"""Errors of simulated pretraining at many settings, with standard errors, and their limits as curves.

P settings, C dimensions, S series of settings that differ in one ratio, X values of this ratio.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from icl.checks.lu.support.pretraining import Array, Pretraining
from icl.errors import reals
from icl.experiments.runner import Runner
from icl.progress import track
from icl.random import generator
from icl.runs.record import RunRecord
from icl.theory.lu.limits import Limit

KEY = "figure.experiment"
MAX_DRAWS = 10**6
POINTS = 151  # of a curve
WORTH_SAYING = 20.0  # seconds


class Setting(NamedTuple):
    """alpha, kappa, tau, rho and lambda of one pretraining."""

    alpha: float
    kappa: float
    tau: float
    rho: float
    ridge: float


def positive(name: str, given: Sequence[float]) -> list[float]:
    """Return a list of numbers above 0."""
    return reals(f"{KEY}.{name}", given, None, 0, open_low=True)


def counts(dims: Sequence[int], draws: int) -> list[int]:
    """Return the draws at each dimension: more at smaller ones, where errors vary more and cost less."""
    return [draws * round((dims[-1] / d) ** 2) for d in dims]


def simulate(settings: Sequence[Setting], dims: Sequence[int], draws: int, seed: int) -> dict[str, Array]:
    """Return means and standard errors of e_ICL (`new_PC`), e_IDG (`old_PC`) and their difference (`gap_PC`),
    and the draws at each d."""
    each = counts(dims, draws)
    errors: list[tuple[Array, Array]] = []
    cells = [(p, c) for p in range(len(settings)) for c in range(len(dims))]
    for p, c in track(cells, "settings and dimensions", len(cells)):
        rng = generator(seed, "eval", p * 1000 + dims[c])
        sizes = Pretraining.at(dims[c], *settings[p])
        drawn = (sizes.errors(rng) for _ in range(each[c]))
        drawn_T3 = np.array([(new, old, new - old) for new, old in drawn])
        errors.append((drawn_T3.mean(0), drawn_T3.std(0, ddof=1) / each[c] ** 0.5))
    table = np.array(errors).reshape(len(settings), len(dims), 2, 3)
    found = {"draws_C": np.array(each), "dims_C": np.array(dims), "settings_P5": np.array(settings)}
    for i, name in enumerate(("new", "old", "gap")):
        found |= {f"{name}_PC": table[:, :, 0, i], f"{name}_stderr_PC": table[:, :, 1, i]}
    return found


def limits(settings: Sequence[Setting], swept: str) -> dict[str, Array]:
    """Return the limits at the settings (`new_limit_P`, `old_limit_P`), and as curves over the swept ratio,
    one for each series in the settings' order."""
    at_P2 = np.array([Limit(*one[:4]).ridge(one.ridge) for one in settings])
    x_P = [getattr(one, swept) for one in settings]
    x_X = np.geomspace(min(x_P), max(x_P), POINTS)
    series = list(dict.fromkeys(one._replace(**{swept: 1.0}) for one in settings))
    curves = np.array(
        [[Limit(*one._replace(**{swept: float(x)})[:4]).ridge(one.ridge) for x in x_X] for one in series]
    )
    return {
        "new_limit_P": at_P2[:, 0],
        "old_limit_P": at_P2[:, 1],
        "x_P": np.array(x_P),
        "x_X": x_X,
        "new_curve_SX": curves[..., 0],
        "old_curve_SX": curves[..., 1],
        "gap_curve_SX": curves[..., 0] - curves[..., 1],
    }


def stored(
    runner: Runner,
    name: str,
    settings: Sequence[Setting],
    swept: str,
    dims: Sequence[int],
    draws: int,
    seed: int,
) -> RunRecord:
    """Return what `simulate` and `limits` give, found or computed; the expected time is shown first."""
    science = {"settings": [[str(x) for x in s] for s in settings], "dims": list(dims), "draws": draws}

    def compute() -> dict[str, Array]:
        seconds = sum(
            count * _operations(Pretraining.at(d, *one))
            for one in settings
            for d, count in zip(dims, counts(dims, draws), strict=True)
        )
        if (seconds := seconds / _rate()) > WORTH_SAYING:
            runner.info(f"lu/{name}: about {seconds:.0f} s on one core")
        return simulate(settings, dims, draws, seed) | limits(settings, swept)

    return runner.store(f"lu/{name}", science | {"swept": swept, "seed": seed}, compute)


def _operations(sizes: Pretraining) -> float:
    """Return the operations of one draw: products, a factorization, and the drawing itself."""
    n, weights = sizes.prompts, sizes.dim * (sizes.dim + 1)
    solve = n * n * (n / 3 + 4 * sizes.dim) if n <= weights else n * weights**2 / 2 + weights**3 / 3
    return 2 * solve + 1000.0 * n * sizes.dim


def _rate() -> float:
    A = np.ones((800, 800))
    begun = time.perf_counter()
    A @ A
    return float(2 * 800**3 / (time.perf_counter() - begun))
