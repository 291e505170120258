"""Parts that Figures 6 and 7 share: the losses of all predictors on the same contexts, compared pair by pair.

Means over contexts, the paper's measure, are those of a weighted draw (icl.tasks.tilted); medians are over
the plain contexts in it, every K-th of K components.
R replicas, C contexts. Replicas are grouped by what the figure varies (examples or layers).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from icl import quantiles
from icl.figures.claims import Claim
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.intervals import Interval
from icl.figures.items import Item, Rows, table
from icl.figures.style import BLUE, EXACT, GREEN, GREY, ORANGE, PURPLE, RED, SKY, figure_of, shared_legend
from icl.verdicts import joint
from icl.weighted import stratified_error, tail_share

LEVEL = 0.999  # of every interval
SAID = {
    "trained": "trained",
    "plain": "trained on plain batches",
    "pgd_steps": "PGD (eta per step)",
    "pgd_one": "PGD (one eta)",
    "gd_steps": "GD (eta per step)",
    "gd_one": "GD (one eta)",
}
NEAR = 0.25  # of the way left from PGD's optimum to the best point of S
NEAR_BEST = 1.2  # times the risk of the best point of S
MOST = 0.1  # of a mean that one context may carry where the interval about it is to be believed
LINES = {  # name: (colour, style, marker, label)
    "trained": (BLUE, "-", "o", "trained, eq. (11)"),
    "plain": (SKY, "-", "v", "(11) trained on plain batches"),
    "pgd_steps": (GREEN, "-", "^", r"PGD, $\eta_\ell$ per step"),
    "pgd_one": (GREEN, ":", "^", r"PGD, one $\eta$"),
    "gd_steps": (RED, "-", "s", r"GD, $\eta_\ell$ per step"),
    "gd_one": (RED, ":", "s", r"GD, one $\eta$"),
    "ols": (ORANGE, "-", "D", "OLS, whitened"),
    "ols_raw": (ORANGE, ":", "D", "OLS, raw $x$"),
}
EXACT_LINES = {  # drawn over the means
    "pgd_optimum": EXACT | {"label": "PGD, exact optimum"},
    "ab_best": EXACT | {"color": PURPLE, "label": r"(11) on $\mathcal{S}$, best found"},
    "pgd_published": EXACT | {"color": GREY, "linestyle": ":", "label": "PGD as published (exact)"},
}
HOW = (
    "Left: mean over contexts, the paper's test loss, from a weighted sample that includes its tail; right: "
    "median over plain contexts. Lines are medians over seeds, bands their range. Blue: trained on weighted "
    "prompts, which include the risk's tail; light blue: trained on plain batches as in the paper, but of "
    "this scale's size, with the mean of each seed as a triangle, or as an arrow beyond the panel."
)
ZERO = 1e-8  # least squares of N >= d noiseless examples: rounding


@dataclass(frozen=True, eq=False)
class Losses:
    """Everything stored by the comparisons of a figure, all replicas in one axis."""

    x_R: np.ndarray
    seeds_R: np.ndarray
    loss_RC: Mapping[str, np.ndarray]
    exact_R: Mapping[str, np.ndarray]
    weight_RC: np.ndarray
    components_R: np.ndarray
    draws: Mapping[str, np.ndarray]  # the trained stack's risk_R and risk_stderr_R by further draws, or none

    @classmethod
    def of(cls, records: Records, varied: str) -> Losses:
        parts = [record.weights for name, record in records.items() if name.startswith("losses_")]

        def together(prefix: str) -> dict[str, np.ndarray]:
            names = [name for name in parts[0] if name.startswith(prefix)]
            return {
                name.removeprefix(prefix): np.concatenate([part[name] for part in parts]) for name in names
            }

        x_R, seeds_R, weight_RC, components_R = (
            np.concatenate([part[name] for part in parts])
            for name in (varied, "seeds", "weight", "components")
        )
        losses, exact, draws = map(together, ("loss_", "exact_", "risk_"))
        return cls(x_R, seeds_R, losses, exact, weight_RC, components_R, draws)

    @property
    def values(self) -> list[int]:
        """Values of what is varied, ascending."""
        return [int(x) for x in np.unique(self.x_R)]

    def at(self, x: int) -> np.ndarray:
        return np.flatnonzero(self.x_R == x)

    def exact(self, name: str, x: int) -> float:
        return float(self.exact_R[name][self.at(x)[0]])

    def on_plain_contexts(self, name: str, r: int | np.integer[Any]) -> np.ndarray:
        return self.loss_RC[name][r, :: self.components_R[r]]

    def terms(self, name: str, r: int) -> np.ndarray:
        """Return terms whose mean is the mean loss."""
        return self.weight_RC[r] * self.loss_RC[name][r]

    def medians(self, name: str) -> np.ndarray:
        return np.array([np.median(self.on_plain_contexts(name, r)) for r in range(len(self.x_R))])

    def means(self, name: str) -> np.ndarray:
        return np.array([self.terms(name, r).mean() for r in range(len(self.x_R))])

    def trained_over(self, exact: str, x: int) -> Interval:
        """Return the trained stack's mean loss over an exact value, in the mean over seeds."""
        replicas = self.at(x)
        if self.draws:
            mean_K, stderr_K = (self.draws[name][replicas] for name in ("R", "stderr_R"))
            half_K = quantiles.normal((1 - LEVEL) / 2) * stderr_K
        else:
            found = [mean_interval(self.terms("trained", r), self.components_R[r]) for r in replicas]
            mean_K, half_K = np.array([[one.middle, one.high - one.middle] for one in found]).T
        best = self.exact(exact, x)
        mean, half = float(mean_K.mean()) / best, float(np.linalg.norm(half_K)) / len(half_K) / best
        return Interval(mean - half, mean, mean + half)

    def ratio(self, name: str, other: str, r: int) -> Interval:
        """Median ratio of two predictors' losses on the same contexts, with its sign interval."""
        return median_interval(self.on_plain_contexts(name, r) / self.on_plain_contexts(other, r))

    def difference(self, name: str, other: str, r: int) -> Interval:
        """Return the mean difference on the same contexts, in units of the other's mean."""
        one_C, other_C = self.terms(name, r), self.terms(other, r)
        return mean_interval((one_C - other_C) / other_C.mean(), self.components_R[r])


def median_interval(sample_C: np.ndarray) -> Interval:
    """Distribution-free: order statistics between which the median lies with the chance LEVEL at least."""
    ordered_C = np.sort(sample_C)
    count = len(ordered_C)
    # P(fewer than `rank` of `count` lie below the median) <= (1 - LEVEL) / 2
    rank = quantiles.fair_coin((1 - LEVEL) / 2, count)
    low, high = (ordered_C[rank - 1], ordered_C[count - rank]) if rank else (-np.inf, np.inf)
    return Interval(float(low), float(np.median(ordered_C)), float(high))


def mean_interval(sample_C: np.ndarray, components: int = 1) -> Interval:
    """About the mean of terms, each component's a sample of its own; without end where one term is more than
    MOST of the sum of all sizes, since the next sample may hold a larger one."""
    mean = float(sample_C.mean())
    if tail_share(sample_C, 1) > MOST:
        return Interval(-np.inf, mean, np.inf)
    half = quantiles.normal((1 - LEVEL) / 2) * stratified_error(sample_C, components)
    return Interval(mean - half, mean, mean + half)


@dataclass(frozen=True, eq=False)
class PredictorLosses(Item):
    """Losses of a predictor: the median over replicas in a band that spans them. Zeros are left out."""

    varied: str
    losses: Losses
    y_R: np.ndarray

    def draw(self, axes: Axes) -> None:
        colour, line, marker, label = LINES[self.series]
        xs = [x for x in self.losses.values if self.y_R[self.losses.at(x)].max() > ZERO]
        groups = [self.y_R[self.losses.at(x)] for x in xs]
        middle_X = [np.median(group_R) for group_R in groups]
        axes.plot(xs, middle_X, color=colour, linestyle=line, marker=marker, markersize=2.5, label=label)
        low_X, high_X = [group_R.min() for group_R in groups], [group_R.max() for group_R in groups]
        axes.fill_between(xs, low_X, high_X, color=colour, alpha=0.2, linewidth=0)

    def rows(self) -> Rows:
        x_R, seeds_R = self.losses.x_R.tolist(), self.losses.seeds_R.tolist()
        of = {"panel": self.panel, "series": self.series}
        return [
            of | {self.varied: int(x), "seed": int(seed), "loss": y}
            for x, seed, y in zip(x_R, seeds_R, self.y_R.tolist(), strict=True)
        ]

    def data(self, seeds: Sequence[int]) -> Rows:
        return _as_points(super().data(seeds), self.varied)


@dataclass(frozen=True, eq=False)
class SingleSeeds(PredictorLosses):
    """The mean of each replica trained on plain batches; those above `ceiling` as arrows at the top."""

    ceiling: float

    def draw(self, axes: Axes) -> None:
        inside_R = self.y_R <= self.ceiling
        style: dict[str, Any] = {
            "color": SKY, "linestyle": "none", "markerfacecolor": "none", "clip_on": False,
        }  # fmt: skip
        kinds: tuple[tuple[np.ndarray, dict[str, Any]], ...] = (
            (inside_R, {"marker": "v", "markersize": 3}),
            (~inside_R, {"marker": r"$\uparrow$", "markersize": 6}),
        )
        label: str | None = "plain batches, each seed's mean"
        for of_R, marker in kinds:
            if of_R.any():  # an empty line that is not clipped has no place, and upsets the layout
                y_R = np.minimum(self.y_R[of_R], self.ceiling)
                axes.plot(self.losses.x_R[of_R], y_R, label=label, **style, **marker)
                label = None


@dataclass(frozen=True, eq=False)
class ExactLosses(Item):
    """Exact values of a predictor."""

    varied: str
    losses: Losses

    def draw(self, axes: Axes) -> None:
        values = self.losses.values
        axes.plot(values, [self.losses.exact(self.series, x) for x in values], **EXACT_LINES[self.series])

    def rows(self) -> Rows:
        of = {"panel": "exact", "series": self.series}
        return [
            of | {self.varied: x, "seed": "", "loss": self.losses.exact(self.series, x)}
            for x in self.losses.values
        ]

    def data(self, seeds: Sequence[int]) -> Rows:
        return _as_points(super().data(seeds), self.varied)


def _as_points(rows: Rows, varied: str) -> Rows:
    """Return rows with what is varied as x and the loss as y."""
    columns = {varied: "x", "loss": "y"}
    return [{columns.get(key, key): value for key, value in row.items()} for row in rows]


class LossComparison(Drawing):
    """Means over contexts on the left, medians on the right, on one scale up to `ceiling`."""

    layout = Layout(("mean", "median"), (3.1, 3.0))
    array: str  # of what is varied
    letter: str
    x_label: str
    ceiling: float

    def losses(self, records: Records) -> Losses:
        return Losses.of(records, self.array)

    def items(self, records: Records) -> list[Item]:
        means, medians, exact = self._series(records)
        plain = means.pop("plain")
        return [*means.values(), *medians.values(), *(exact[name] for name in EXACT_LINES), plain]

    def table(self, records: Records) -> Rows:
        """Return all predictors, of which some exact values are not drawn."""
        return table(item for series in self._series(records) for item in series.values())

    def _series(self, records: Records) -> tuple[dict[str, Item], dict[str, Item], dict[str, Item]]:
        """Return means, medians and exact values by predictor."""
        losses, letter = self.losses(records), self.letter
        means: dict[str, Item] = {
            name: PredictorLosses("mean", name, letter, losses, losses.means(name)) for name in losses.loss_RC
        }
        means["plain"] = SingleSeeds("mean", "plain", letter, losses, losses.means("plain"), self.ceiling)
        medians: dict[str, Item] = {
            name: PredictorLosses("median", name, letter, losses, losses.medians(name))
            for name in losses.loss_RC
        }
        return means, medians, {name: ExactLosses("mean", name, letter, losses) for name in losses.exact_R}

    def decorate(self, panels: Panels, records: Records) -> None:
        for name, axes in panels.items():
            axes.set_yscale("log")
            axes.set_xticks(self.losses(records).values)
            axes.set_xlabel(self.x_label)
            axes.set_title(f"{name} over contexts")
        bottom = min(axes.get_ylim()[0] for axes in panels.values())
        for axes in panels.values():
            axes.set_ylim(bottom, self.ceiling)
        panels["mean"].set_ylabel("test loss given the context")
        figure = figure_of(panels["mean"])
        shared_legend(panels.values(), figure, loc="outside lower center", ncols=4)


def compare_means(losses: Losses, name: str, other: str, letter: str, values: Sequence[int]) -> Claim:
    """Claim that the mean loss of `name` is the smaller one on the same contexts, in every replica."""
    by_value = {x: [losses.difference(name, other, r) for r in losses.at(x)] for x in values}
    return Claim(
        f"{SAID[name]} < {SAID[other]} {_at(letter, values)}, mean over the same contexts",
        {f"{letter}={x}": max(i.middle for i in intervals) for x, intervals in by_value.items()},
        f"relative difference below 0 in every replica, {LEVEL:.1%} paired interval (largest shown); "
        f"undecided where one context makes more than {MOST:.0%} of the difference",
        joint([i.below(0) for intervals in by_value.values() for i in intervals]),
        trained=name == "trained",
        kind="sampled",
    )


def compare_medians(losses: Losses, name: str, other: str, letter: str, values: Sequence[int]) -> Claim:
    """Compare two predictors by the median ratio of every replica."""
    by_value = {x: [losses.ratio(name, other, r) for r in losses.at(x)] for x in values}
    return Claim(
        f"{SAID[name]} < {SAID[other]} {_at(letter, values)}, median over the same contexts",
        {f"{letter}={x}": max(i.middle for i in intervals) for x, intervals in by_value.items()},
        f"median ratio of losses below 1 in every replica, {LEVEL:.1%} sign interval (largest shown)",
        joint([i.below(1) for intervals in by_value.values() for i in intervals]),
        trained=name in ("trained", "plain"),
        whose="project",
        kind="sampled",
    )


def claim_share_left(losses: Losses, letter: str, values: Sequence[int]) -> Claim:
    """Claim that little of the way from PGD's optimum to the best point known on S is left.

    PGD's mean on these contexts stands in for what its exact risk says: most of the noise is common to both.
    """
    by_value: dict[int, list[Interval]] = {}
    for x in values:
        best, pgd = (losses.exact(name, x) for name in ("ab_best", "pgd_optimum"))
        by_value[x] = []
        for r in losses.at(x):
            differences_C = losses.terms("trained", r) - losses.terms("pgd_steps", r)
            below_pgd = mean_interval(differences_C, losses.components_R[r])
            known = float(losses.exact_R["pgd_steps"][r]) - best
            by_value[x].append(Interval(*((end + known) / (pgd - best) for end in below_pgd)))
    return Claim(
        f"Training ends near the best point known on S {_at(letter, values)}",
        {f"{letter}={x}": max(i.middle for i in intervals) for x, intervals in by_value.items()},
        "mean loss above the best point's, as a share of what PGD's exact optimum is above it: below "
        f"{NEAR:g} in every replica, {LEVEL:.1%} interval by the paired difference to PGD (largest shown)",
        joint([i.below(NEAR) for intervals in by_value.values() for i in intervals]),
        whose="project",
        kind="sampled",
    )


def claim_near_best(losses: Losses, letter: str, values: Sequence[int]) -> Claim:
    """Claim that the trained stack's risk is near that of the best point known on S."""
    by_value = {x: losses.trained_over("ab_best", x) for x in values}
    return Claim(
        f"Training ends near the best point known on S {_at(letter, values)}, in the mean over seeds",
        {f"{letter}={x}": interval.middle for x, interval in by_value.items()},
        f"mean loss below {NEAR_BEST:g} times the exact risk of the best point, {LEVEL:.1%} interval",
        joint([interval.below(NEAR_BEST) for interval in by_value.values()]),
        whose="project",
        kind="sampled",
    )


def claim_missed_tail(losses: Losses, letter: str, values: Sequence[int]) -> Claim:
    """Claim that plain batches miss the prompts that carry the mean, as in the paper's own protocol.

    Such a mean hangs on a few contexts, so no interval about it means anything. But losses are not negative:
    by Markov's inequality the true mean is below 1/k of a sample's with a chance of 1/k at most.
    """
    replicas = np.concatenate([losses.at(x) for x in values])
    certain = (1 - LEVEL) / len(replicas)  # of the mean, with LEVEL for all replicas together
    mean_R, pgd_R = losses.means("plain"), losses.exact_R["pgd_optimum"]
    below = [losses.difference("plain", "pgd_steps", r).below(0) for r in replicas]
    worse = (certain * mean_R > pgd_R)[replicas].any()
    share = {
        x: max(tail_share(losses.on_plain_contexts("plain", r), 1) for r in losses.at(x)) for x in values
    }
    return Claim(
        "Trained on plain batches of this size, (11) can have a larger mean loss than PGD: the batches lack "
        "the rare prompts that dominate the mean",
        {
            f"{letter}={x}": {
                "mean over PGD's": float((mean_R / pgd_R)[losses.at(x)].max()),
                "largest share of one plain context": share[x],
            }
            for x in values
        },
        f"{certain:.1g} of some replica's mean above PGD's exact optimum: Markov's inequality at "
        f"{LEVEL:.1%} for all replicas together (largest shown)",
        "holds" if worse else "fails" if set(below) == {"holds"} else "undecided",
        whose="project",
        kind="sampled",
    )


def claim_best_search(losses: Losses, letter: str) -> Claim:
    """Compare the searched steps with the exact optimum of Theorem 3's set."""
    excess_R = losses.exact_R["pgd_steps"] / losses.exact_R["pgd_optimum"] - 1
    worst = {f"{letter}={x}": float(excess_R[losses.at(x)].max()) for x in losses.values}
    return Claim(
        "PGD's searched step sizes are the best ones: exact risk there against the exact optimum",
        worst,
        "excess risk from 0 to 2 % (both exact; the search used a finite sample)",
        "holds" if excess_R.min() > -1e-9 and excess_R.max() < 0.02 else "fails",
        whose="project",
        trained=False,
        kind="exact",
    )


def claim_overstated_baseline(losses: Losses, letter: str) -> Claim:
    """Compare the published PGD (one example too few, a step size from a grid of nine) with PGD, exactly."""
    names = ("pgd_published", "pgd_fewer", "pgd_one")
    risks = {x: [losses.exact(name, x) for name in names] for x in losses.values}
    return Claim(
        "The published PGD baseline overstates PGD's loss: it uses N - 1 of the N examples and "
        "one step size from a coarse grid",
        {
            f"{letter}={x}": f"{theirs:.3f} for {ours:.3f} ({fewer:.3f} by the missing example alone)"
            for x, (theirs, fewer, ours) in risks.items()
        },
        "exact risk as published above the exact risk at the best single step size",
        "holds" if all(theirs > ours for theirs, _, ours in risks.values()) else "fails",
        whose="project",
        trained=False,
        remarks=[
            "The published PGD curve is not PGD's: it uses one example too few and one step size from a "
            "coarse grid, which makes its loss up to "
            f"{max(theirs / ours for theirs, _, ours in risks.values()):.2g} times that of the best step."
        ],
        kind="exact",
    )


def _at(letter: str, values: Sequence[int]) -> str:
    return f"at {letter} = {', '.join(map(str, values))}"
