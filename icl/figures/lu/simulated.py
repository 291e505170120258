"""Errors of simulated pretraining beside their limits: computed, drawn and read by Figures 1, 2 and 4.

P settings, C dimensions, S series of settings that differ in one ratio, N simulated and X drawn values of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from icl import stats
from icl.errors import InputError, reals, rising, whole
from icl.figures.claims import Claim
from icl.figures.figure import Figure
from icl.figures.runner import Runner
from icl.figures.style import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, log_axis
from icl.models.lu.pretraining import Array, Pretraining
from icl.progress import track
from icl.random import generator
from icl.runs.record import RunRecord
from icl.theory.lu.limits import plotted

MAX_DIM, MAX_DRAWS = 128, 10**6
RIDGELESS = 1e-5
POINTS = 151  # of a curve
TAIL = 0.025  # of a point's interval, on each side
COLORS = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY)
MARKERS = ("v", "s", "o", "D", "^")  # of the dimensions, in rising order
paper_claim = partial(Claim.of, trained=False)
project_claim = partial(paper_claim, whose="project")


class Setting(NamedTuple):
    """alpha, kappa, tau, rho and lambda of one pretraining."""

    alpha: float
    kappa: float
    tau: float
    rho: float
    ridge: float = RIDGELESS


def positive(name: str, given: Sequence[float]) -> list[float]:
    """Return a setting that is a list of numbers above 0."""
    return reals(f"figure.{name}", given, None, 0, open_low=True)


def of_panels(name: str, given: Any, count: int) -> Sequence[Any]:
    """Return a setting that has an entry for each of `count` panels."""
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != count:
        raise InputError(f"figure.{name}={given}: must have an entry for each of {count} panels")
    return given


def simulate(settings: Sequence[Setting], dims: Sequence[int], draws: int, seed: int) -> dict[str, Array]:
    """Return means and standard errors of e_ICL (`new_PC`), e_IDG (`old_PC`) and their difference (`gap_PC`).

    `draws` are those at the largest dimension: there are more at smaller ones, which vary more and cost less.
    """
    each = [draws * round((dims[-1] / d) ** 2) for d in dims]
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
    """Return the limits on new tasks at the settings, and both as curves over the swept ratio, one for each
    series in the settings' order."""
    x_P = [getattr(one, swept) for one in settings]
    x_X = np.geomspace(min(x_P), max(x_P), POINTS)
    series = list(dict.fromkeys(one._replace(**{swept: 1.0}) for one in settings))
    curves = np.array([[plotted(*one._replace(**{swept: float(x)})) for x in x_X] for one in series])
    return {
        "new_limit_P": np.array([plotted(*one)[0] for one in settings]),
        "x_P": np.array(x_P),
        "x_X": x_X,
        "new_curve_SX": curves[..., 0],
        "old_curve_SX": curves[..., 1],
        "gap_curve_SX": curves[..., 0] - curves[..., 1],
    }


@dataclass(eq=False)
class Simulated(Figure):
    """A figure of errors simulated at several dimensions."""

    alphas: Sequence[float]
    dims: Sequence[int]
    seed: int

    def __post_init__(self) -> None:
        self.alphas = positive("alphas", self.alphas)
        self.dims = rising("figure.dims", self.dims, 2, MAX_DIM)
        self.seed = whole("figure.seed", self.seed, 0)

    def simulated(
        self,
        runner: Runner,
        name: str,
        settings: Sequence[Setting],
        swept: str,
        draws: int,
        dims: Sequence[int] = (),
    ) -> RunRecord:
        """Return what `simulate` and `limits` give, found or computed."""
        dims, seed = list(dims or self.dims), self.seed
        science = {"settings": [[str(x) for x in one] for one in settings], "dims": dims, "draws": draws}
        return runner.store(
            f"lu/{name}",
            science | {"swept": swept, "seed": seed},
            lambda: simulate(settings, dims, draws, seed) | limits(settings, swept),
        )


def levels(record: RunRecord, ratio: str) -> list[float]:
    """Return the different values of a ratio among the settings, in their order."""
    return list(dict.fromkeys(record.weights["settings_P5"][:, Setting._fields.index(ratio)].tolist()))


class Errors(NamedTuple):
    """Simulated means and half widths of their 95 % intervals at N values of the ratio; curves of limits."""

    x_N: Array
    mean_SNC: Array
    half_SNC: Array
    x_X: Array
    curve_SX: Array

    @classmethod
    def of(cls, record: RunRecord, which: str) -> Self:
        """Return those on `new` tasks, on `old` ones, or of the `gap`."""
        arrays = record.weights
        curve_SX, dims = arrays[f"{which}_curve_SX"], len(arrays["dims_C"])
        shape = (len(curve_SX), -1, dims)
        factor_C = np.array([stats.student(TAIL, count - 1) for count in arrays["draws_C"]])
        half_SNC = factor_C * arrays[f"{which}_stderr_PC"].reshape(shape)
        x_N = arrays["x_P"].reshape(shape[:2])[0]
        return cls(x_N, arrays[f"{which}_PC"].reshape(shape), half_SNC, arrays["x_X"], curve_SX)

    def change(self, one: int, other: int) -> tuple[Array, Array]:
        """Return by how much the mean at a value is above that at another, and the half widths: (S, C)."""
        return (
            self.mean_SNC[:, one] - self.mean_SNC[:, other],
            self.half_SNC[:, one] + self.half_SNC[:, other],
        )


def draw(
    axes: Axes, record: RunRecord, which: str, labels: Sequence[str], first_color: int = 0
) -> list[Line2D]:
    """Draw each series' limit and simulated points, in colours from `first_color` on; return the limits."""
    errors, lines = Errors.of(record, which), []
    for s, label in enumerate(labels):
        color = COLORS[(first_color + s) % len(COLORS)]
        lines += axes.plot(errors.x_X, errors.curve_SX[s], color=color, label=label)
        for c, marker in zip(range(errors.mean_SNC.shape[2]), MARKERS, strict=False):
            intervals(axes, errors.x_N, errors.mean_SNC[s, :, c], errors.half_SNC[s, :, c], color, marker)
    for d, marker in zip(record.weights["dims_C"], MARKERS, strict=False):
        axes.plot([], [], marker, color=GREY, markerfacecolor="none", label=f"d = {d}")
    log_axis(axes)
    return lines


def intervals(axes: Axes, x_N: Array, y_N: Array, half_N: Array, color: str, marker: str = "o") -> None:
    """Draw points with an interval each."""
    axes.errorbar(x_N, y_N, half_N, color=color, marker=marker, markerfacecolor="none", linestyle="none")
