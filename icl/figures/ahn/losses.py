"""What Figures 6 and 7 share: the losses of all predictors on the same contexts, compared pair by pair.

R replicas, C contexts. Replicas are grouped by what the figure varies (examples or layers).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from icl.figures.claims import Claim
from icl.figures.style import BLUE, EXACT, GREEN, GREY, ORANGE, PURPLE, RED, panels
from icl.runs.record import RunRecord
from icl.verdicts import joint

LEVEL = 0.999  # of every interval
LINES = {  # name: (colour, style, marker, label)
    "trained": (BLUE, "-", "o", "trained, eq. (11)"),
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
ZERO = 1e-8  # least squares of N >= d noiseless examples: rounding


class Interval(NamedTuple):
    low: float
    middle: float
    high: float

    def below(self, bound: float) -> str:
        if self.high < bound:
            return "holds"
        return "fails" if self.low >= bound else "undecided"


@dataclass(frozen=True, eq=False)
class Losses:
    """Everything stored by the comparisons of a figure, all replicas in one axis."""

    x_R: np.ndarray
    seeds_R: np.ndarray
    loss_RC: Mapping[str, np.ndarray]
    exact_R: Mapping[str, np.ndarray]

    @classmethod
    def of(cls, records: Mapping[str, RunRecord], varied: str) -> Losses:
        parts = [record.weights for name, record in records.items() if name.startswith("losses_")]

        def together(prefix: str) -> dict[str, np.ndarray]:
            names = [name for name in parts[0] if name.startswith(prefix)]
            return {
                name.removeprefix(prefix): np.concatenate([part[name] for part in parts]) for name in names
            }

        x_R, seeds_R = (np.concatenate([part[name] for part in parts]) for name in (varied, "seeds"))
        return cls(x_R, seeds_R, together("loss_"), together("exact_"))

    @property
    def values(self) -> list[int]:
        """What is varied, ascending."""
        return [int(x) for x in np.unique(self.x_R)]

    def at(self, x: int) -> np.ndarray:
        return np.flatnonzero(self.x_R == x)

    def exact(self, name: str, x: int) -> float:
        return float(self.exact_R[name][self.at(x)[0]])

    def ratio(self, name: str, other: str, r: int) -> Interval:
        """Of two predictors on the same contexts, the median ratio of losses with its sign interval."""
        return median_interval(self.loss_RC[name][r] / self.loss_RC[other][r])

    def difference(self, name: str, other: str, r: int) -> Interval:
        """The mean difference on the same contexts, in units of the other's mean."""
        one_C, other_C = self.loss_RC[name][r], self.loss_RC[other][r]
        return mean_interval((one_C - other_C) / other_C.mean())

    def mean_ratio(self, name: str, other: str, r: int) -> float:
        return float(self.loss_RC[name][r].mean() / self.loss_RC[other][r].mean())


def median_interval(sample_C: np.ndarray) -> Interval:
    """Distribution-free: order statistics between which the median lies with the chance LEVEL at least."""
    ordered_C = np.sort(sample_C)
    count = len(ordered_C)
    # P(fewer than `rank` of `count` lie below the median) <= (1 - LEVEL) / 2
    rank = int(stats.binom.ppf((1 - LEVEL) / 2, count, 0.5))
    low, high = (ordered_C[rank - 1], ordered_C[count - rank]) if rank else (-np.inf, np.inf)
    return Interval(float(low), float(np.median(ordered_C)), float(high))


def mean_interval(sample_C: np.ndarray) -> Interval:
    half = stats.norm.ppf((1 + LEVEL) / 2) * sample_C.std(ddof=1) / len(sample_C) ** 0.5
    return Interval(float(sample_C.mean() - half), float(sample_C.mean()), float(sample_C.mean() + half))


def largest_share(loss_C: np.ndarray) -> float:
    """How much of the mean the single worst context carries."""
    return float(loss_C.max() / loss_C.sum())


def drawing(losses: Losses, x_label: str, ceiling: float) -> Figure:
    """Medians over contexts on the left, means on the right, on one scale up to `ceiling`."""
    figure, axes = panels(1, 2, (3.1, 3.0))
    median, mean = axes[0]
    for name in losses.loss_RC:
        _curve(median, losses, name, np.median)
        if name != "trained":
            _curve(mean, losses, name, np.mean)
    for name, style in EXACT_LINES.items():
        mean.plot(losses.values, [losses.exact(name, x) for x in losses.values], **style)
    _single_seeds(mean, losses, ceiling)
    for axis, title in ((median, "median over contexts"), (mean, "mean over contexts")):
        axis.set_yscale("log")
        axis.set_xticks(losses.values)
        axis.set_xlabel(x_label)
        axis.set_title(title)
    mean.set_ylim(top=ceiling)
    median.set_ylim(mean.get_ylim())
    median.set_ylabel("test loss given the context")
    entries = [axis.get_legend_handles_labels() for axis in (median, mean)]
    legend = {
        label: handle for handles, labels in entries for handle, label in zip(handles, labels, strict=True)
    }
    figure.legend(legend.values(), legend.keys(), loc="outside lower center", ncols=4)
    return figure


def _curve(axes: Axes, losses: Losses, name: str, statistic: Callable[..., np.ndarray]) -> None:
    """Median over replicas of the statistic over contexts, in a band that spans them. Zeros are left out."""
    colour, line, marker, label = LINES[name]
    y_R = statistic(losses.loss_RC[name], axis=1)
    xs = [x for x in losses.values if y_R[losses.at(x)].max() > ZERO]
    groups = [y_R[losses.at(x)] for x in xs]
    middle_X = [np.median(group_R) for group_R in groups]
    axes.plot(xs, middle_X, color=colour, linestyle=line, marker=marker, markersize=2.5, label=label)
    low_X, high_X = [group_R.min() for group_R in groups], [group_R.max() for group_R in groups]
    axes.fill_between(xs, low_X, high_X, color=colour, alpha=0.2, linewidth=0)


def _single_seeds(axes: Axes, losses: Losses, ceiling: float) -> None:
    """The mean of each trained replica; those above `ceiling` as arrows at the top."""
    mean_R = losses.loss_RC["trained"].mean(1)
    inside_R = mean_R <= ceiling
    style: dict[str, Any] = {"color": BLUE, "linestyle": "none", "markerfacecolor": "none", "clip_on": False}
    circles: dict[str, Any] = {"marker": "o", "markersize": 3, "label": "trained, each seed's mean"}
    axes.plot(losses.x_R[inside_R], mean_R[inside_R], **style, **circles)
    above_R = losses.x_R[~inside_R]
    if len(above_R):  # an empty line that is not clipped has no place, and upsets the layout
        axes.plot(above_R, np.full(len(above_R), ceiling), marker=r"$\uparrow$", markersize=6, **style)


def table(losses: Losses, varied: str) -> list[dict[str, Any]]:
    """Everything drawn: medians, means and exact values."""
    rows: list[dict[str, Any]] = []
    for panel, statistic in (("median", np.median), ("mean", np.mean)):
        for name, loss_RC in losses.loss_RC.items():
            for r, y in enumerate(statistic(loss_RC, axis=1)):
                where = {varied: int(losses.x_R[r]), "seed": int(losses.seeds_R[r])}
                rows.append({"panel": panel, "series": name, **where, "loss": float(y)})
    for name in losses.exact_R:
        rows += [
            {"panel": "exact", "series": name, varied: x, "seed": "", "loss": losses.exact(name, x)}
            for x in losses.values
        ]
    return rows


def medians_ordered(losses: Losses, name: str, other: str, letter: str, values: Sequence[int]) -> Claim:
    """On the same contexts the loss of `name` is the smaller one, by the median ratio of every replica."""
    found = {x: [losses.ratio(name, other, r) for r in losses.at(x)] for x in values}
    means = {x: max(losses.mean_ratio(name, other, r) for r in losses.at(x)) for x in values}
    return Claim(
        claim=f"{_say(name)} < {_say(other)} {_at(letter, values)}, median over the same contexts",
        measured={
            f"{letter}={x}": {"median": max(i.middle for i in intervals), "of means": means[x]}
            for x, intervals in found.items()
        },
        bound=f"median ratio of losses below 1 in every replica, {LEVEL:.1%} sign interval (largest shown, "
        "beside it the ratio of means, which rare contexts carry)",
        verdict=joint([i.below(1) for intervals in found.values() for i in intervals]),
        trained=name == "trained",
    )


def means_ordered(losses: Losses, name: str, other: str, letter: str, values: Sequence[int]) -> Claim:
    """On the same contexts the mean loss of `name` is the smaller one, in every replica."""
    found = {x: [losses.difference(name, other, r) for r in losses.at(x)] for x in values}
    return Claim(
        claim=f"{_say(name)} < {_say(other)} {_at(letter, values)}, mean over the same contexts",
        measured={f"{letter}={x}": max(i.middle for i in intervals) for x, intervals in found.items()},
        bound=f"relative difference below 0 in every replica, {LEVEL:.1%} paired interval (largest shown)",
        verdict=joint([i.below(0) for intervals in found.values() for i in intervals]),
        trained=name == "trained",
    )


def carried_by_one(losses: Losses, letter: str) -> Claim:
    """Why medians: where the trained model's mean is what one context makes it."""
    share, pgd = (
        {x: max(largest_share(losses.loss_RC[name][r]) for r in losses.at(x)) for x in losses.values}
        for name in ("trained", "pgd_steps")
    )
    return Claim(
        claim="The mean loss of trained weights can hang on a single context (hence medians)",
        measured={f"{letter}={x}": value for x, value in share.items()} | {"PGD": max(pgd.values())},
        bound="one context carries more than half of some replica's mean (largest share shown)",
        verdict="holds" if max(share.values()) > 0.5 else "fails",
        remarks=[
            "The figure's test loss is a mean. One context can make more than half of a trained model's, so "
            "the order trained < PGD is measured, and holds, by medians; by means the trained model can lose."
        ]
        if max(share.values()) > 0.5
        else (),
    )


def searched_is_best(losses: Losses, letter: str) -> Claim:
    """The searched steps against the exact optimum of Theorem 3's set."""
    excess_R = losses.exact_R["pgd_steps"] / losses.exact_R["pgd_optimum"] - 1
    worst = {f"{letter}={x}": float(excess_R[losses.at(x)].max()) for x in losses.values}
    return Claim(
        claim="PGD's searched step sizes are the best ones: exact risk there against the exact optimum",
        measured=worst,
        bound="excess risk from 0 to 2 % (both exact; the search saw a finite draw)",
        verdict="holds" if excess_R.min() > -1e-9 and excess_R.max() < 0.02 else "fails",
        trained=False,
    )


def published_overstate(losses: Losses, letter: str) -> Claim:
    """The published PGD: one example too few, one step size from a grid of nine. All exact."""
    names = ("pgd_published", "pgd_fewer", "pgd_one")
    found = {x: [losses.exact(name, x) for name in names] for x in losses.values}
    return Claim(
        claim="The published PGD baseline overstates PGD's loss: it sees N - 1 of the N examples and takes "
        "one step size from a coarse grid",
        measured={
            f"{letter}={x}": f"{theirs:.3f} for {ours:.3f} ({fewer:.3f} by the missing example alone)"
            for x, (theirs, fewer, ours) in found.items()
        },
        bound="exact risk as published above the exact risk at the best single step size",
        verdict="holds" if all(theirs > ours for theirs, _, ours in found.values()) else "fails",
        trained=False,
        remarks=[
            "The published PGD curve is not PGD's: it sees one example too few and one step size from a "
            "coarse grid, which makes its loss up to "
            f"{max(theirs / ours for theirs, _, ours in found.values()):.2g} times that of the best step."
        ],
    )


def _at(letter: str, values: Sequence[int]) -> str:
    return f"at {letter} = {', '.join(map(str, values))}"


def _say(name: str) -> str:
    return {"trained": "trained", "pgd_steps": "PGD (eta per step)", "pgd_one": "PGD (one eta)",
            "gd_steps": "GD (eta per step)", "gd_one": "GD (one eta)"}[name]  # fmt: skip
