"""Figure 6 of xie: squared error of language models with and without an initial guess.

R runs, M language models. An answer that gives no plain score is missing: it is counted, never replaced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from icl.figures.claims import Claim
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.intervals import Interval
from icl.figures.items import Item, Rows
from icl.figures.style import BLUE, EXACT, GREEN, GREY, ORANGE
from icl.random import generator

SHOWN, LEVEL = 0.95, 0.999  # of the intervals drawn, and of those that decide
RESAMPLES = 20_000
LEAST_PAIRS = 30  # below it a bootstrap says little about the tails
LOW, HIGH = 0.0, 5.0
FORMS = {"without": (ORANGE, "without a guess"), "with": (BLUE, "with a guess")}
DIFFERENCES = {
    "with - without": (BLUE, "o", "with $-$ without"),
    "with - guess": (GREEN, "s", "with $-$ guess alone"),
}
WIDTH = 0.36  # of a bar


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers of one language model; a score is NaN where the answer gave none."""

    name: str
    truth_R: np.ndarray
    guess_R: np.ndarray
    score_R: Mapping[str, np.ndarray]
    ended_R: Mapping[str, np.ndarray]

    @classmethod
    def all_of(cls, records: Records) -> list[Answers]:
        arrays = [record.weights for name, record in records.items() if name.startswith("answers_")]
        return [
            cls(
                str(stored["model"]),
                stored["truth_R"],
                stored["guess_R"],
                {form: stored[f"score_{form}_R"] for form in FORMS},
                {form: stored[f"ended_{form}_R"] for form in FORMS},
            )
            for stored in arrays
        ]

    def loss_R(self, form: str) -> np.ndarray:
        return (self.score_R[form] - self.truth_R) ** 2

    @property
    def guess_loss_R(self) -> np.ndarray:
        return (self.guess_R - self.truth_R) ** 2

    @property
    def worst_R(self) -> np.ndarray:
        """The largest squared error an answer between 0 and 5 could have had."""
        return np.maximum(self.truth_R - LOW, HIGH - self.truth_R) ** 2

    def missing(self, form: str) -> int:
        return int(np.isnan(self.score_R[form]).sum())

    def less_guess(self) -> Difference:
        return Difference(self.loss_R("with"), self.guess_loss_R, self.worst_R)

    def less_without(self) -> Difference:
        return Difference(self.loss_R("with"), self.loss_R("without"), self.worst_R)


@dataclass(frozen=True, eq=False)
class Difference:
    """One loss minus another on the same runs, where either may be missing."""

    one_R: np.ndarray
    other_R: np.ndarray
    worst_R: np.ndarray

    @property
    def pairs_R(self) -> np.ndarray:
        """Runs in which both are there."""
        both = self.one_R - self.other_R
        return both[~np.isnan(both)]

    def interval(self, level: float) -> Interval:
        return mean_interval(self.pairs_R, level)

    def bounds(self, level: float) -> tuple[float, float]:
        """Low and high ends, whatever scores the missing answers would have given."""
        least_R = _fill_missing(self.one_R, 0.0) - _fill_missing(self.other_R, self.worst_R)
        most_R = _fill_missing(self.one_R, self.worst_R) - _fill_missing(self.other_R, 0.0)
        return mean_interval(least_R, level).low, mean_interval(most_R, level).high

    def verdict(self) -> str:
        """Is it below zero? Only what no missing answer could overturn is decided."""
        if len(self.pairs_R) < LEAST_PAIRS:
            return "undecided"
        low, high = self.bounds(LEVEL)
        return "holds" if high < 0 else "fails" if low > 0 else "undecided"


def _fill_missing(loss_R: np.ndarray, value: Any) -> np.ndarray:
    return np.where(np.isnan(loss_R), value, loss_R)


def mean_interval(sample_R: np.ndarray, level: float) -> Interval:
    """Bias-corrected bootstrap of the mean; NaN ends where there are fewer than two values."""
    if len(sample_R) == 0:
        return Interval(np.nan, np.nan, np.nan)
    middle = float(sample_R.mean())
    if len(sample_R) == 1:
        return Interval(np.nan, middle, np.nan)
    if np.ptp(sample_R) == 0:
        return Interval(middle, middle, middle)
    from scipy import stats

    interval = stats.bootstrap(
        (sample_R,),
        np.mean,
        confidence_level=level,
        n_resamples=RESAMPLES,
        batch=1000,
        rng=generator(0, "check", len(sample_R)),
    ).confidence_interval
    return Interval(float(interval.low), middle, float(interval.high))


class Fig6(Drawing):
    caption = (
        "Mean squared error of scores from 0 to 5 for sentence pairs of STS-Benchmark, with labelled "
        "examples in the prompt, with and without the guesses of a small model (two layers on sentence "
        "embeddings). Left: mean over the runs whose answer gave a score, their number above each bar, "
        "bootstrap intervals of 95 %; dashed, the guesses themselves as the answer to the same queries. "
        "Right: paired differences with 99.9 % intervals over runs in which both gave a score; thin, "
        "where the interval ends if the missing scores are chosen for the best and for the worst. Both "
        "forms of a prompt have the same examples and query. Examples are drawn from the pairs the guess "
        "model was trained on, queries are new to it. The wording of the prompts is ours, the paper does "
        "not give its own; decoding is the plain arg max, without the repetition penalty some models are "
        "published with."
    )

    def layout_of(self, records: Records) -> Layout:
        models = len(Answers.all_of(records))
        return Layout(("mse", "difference"), (1.6 + 0.9 * max(models, 2), 2.6))

    def items(self, records: Records) -> list[Item]:
        return [
            item for m, answers in enumerate(Answers.all_of(records)) for item in _model_items(m, answers)
        ]

    def decorate(self, panels: Panels, records: Records) -> None:
        models = Answers.all_of(records)
        bars, differences = panels["mse"], panels["difference"]
        for axes in panels.values():
            axes.set_xticks(range(len(models)), [_two_lines(answers.name) for answers in models])
            axes.set_xlim(-0.6, len(models) - 0.4)
        bars.set(title="(a) mean squared error", ylabel="MSE")
        bars.set_ylim(0, bars.get_ylim()[1] * 1.35)
        bars.legend(loc="upper right", ncols=1)
        differences.axhline(0, color=GREY, linewidth=0.8, zorder=1.9)  # below the marks
        differences.set(title="(b) paired differences", ylabel="difference of MSE")
        low, high = differences.get_ylim()
        differences.set_ylim(low, high + 0.3 * (high - low))
        differences.legend(loc="upper right")

    def claims(self, records: Records) -> list[Claim]:
        models = Answers.all_of(records)
        return [
            *(_lower_with_guess(answers) for answers in models),
            *(_better_than_guess(answers) for answers in models),
        ]


def _lower_with_guess(answers: Answers) -> Claim:
    return _claim(
        answers,
        f"{answers.name}: the squared error falls when initial guesses are in the prompt (section 5.3)",
        answers.less_without(),
        ("without", "with"),
    )


def _better_than_guess(answers: Answers) -> Claim:
    return _claim(
        answers,
        f"{answers.name}: the refined answer has a smaller squared error than the guess alone (section C.3)",
        answers.less_guess(),
        ("with",),
    )


def _claim(answers: Answers, claim: str, difference: Difference, forms: Sequence[str]) -> Claim:
    interval = difference.interval(LEVEL)
    losses = _losses(answers)
    runs = len(answers.truth_R)
    measured: dict[str, Any] = {
        **{f"MSE {form}": _mean(losses[form]) for form in (*forms, "guess")},
        "difference": _or(None, interval.middle),
        "interval": [_or(None, interval.low), _or(None, interval.high)],
        "pairs": f"{len(difference.pairs_R)} of {runs}",
        **{f"no score {form}": f"{answers.missing(form)} of {runs}" for form in forms},
        **{f"cut off {form}": f"{int((~answers.ended_R[form]).sum())} of {runs}" for form in forms},
    }
    if any(answers.missing(form) for form in forms):
        measured["interval whatever the missing scores"] = list(difference.bounds(LEVEL))
    bound = (
        f"paired difference below 0, {LEVEL:.1%} bootstrap interval, at least {LEAST_PAIRS} pairs, whatever "
        "scores the answers without one would have given"
    )
    # The paper's statements; nothing stored here says whether they are true, so they are what is expected.
    return Claim(claim, measured, bound, difference.verdict(), kind="sampled")


def _losses(answers: Answers) -> dict[str, np.ndarray]:
    return {form: answers.loss_R(form) for form in FORMS} | {"guess": answers.guess_loss_R}


def _differences(answers: Answers) -> dict[str, Difference]:
    return {"with - without": answers.less_without(), "with - guess": answers.less_guess()}


def _present(loss_R: np.ndarray) -> np.ndarray:
    return loss_R[~np.isnan(loss_R)]


def _mean(loss_R: np.ndarray) -> float | None:
    return float(_present(loss_R).mean()) if len(_present(loss_R)) else None


def _or(blank: Any, value: float) -> Any:
    return blank if np.isnan(value) else float(value)


@dataclass(frozen=True, eq=False)
class Estimate(Item):
    """A mean of one model, with its interval, at `x`; `label` is "" where the legend has it already."""

    model: str
    x: float
    sample_R: np.ndarray
    interval: Interval
    label: str

    def rows(self) -> Rows:
        low, value, high = (_or("", end) for end in self.interval)
        return [{
            "panel": self.panel, "model": self.model, "series": self.series, "value": value, "low": low,
            "high": high, "count": len(self.sample_R),
        }]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Bar(Estimate):
    """A mean squared error, with the number of runs in it."""

    runs: int
    colour: str

    def draw(self, axes: Axes) -> None:
        interval = self.interval
        top = np.nanmax([0.0, interval.middle, interval.high])
        axes.bar(self.x, np.nan_to_num(interval.middle), WIDTH, color=self.colour, label=self.label or None)
        _whisker(axes, self.x, interval, "black", 1.0)
        text = f"{len(self.sample_R)}/{self.runs}"
        axes.annotate(text, (self.x, top), (0, 2), textcoords="offset points", ha="center", fontsize=6)


@dataclass(frozen=True, eq=False)
class GuessAlone(Estimate):
    """The mean squared error of the guesses, as a line over the bars of a model."""

    def draw(self, axes: Axes) -> None:
        style: dict[str, Any] = {"linestyles": [EXACT["linestyle"]], "linewidth": EXACT["linewidth"]}
        style |= {"color": EXACT["color"], "label": self.label or None}
        axes.hlines(self.interval.middle, self.x - 0.45, self.x + 0.45, **style)


@dataclass(frozen=True, eq=False)
class PairedDifference(Estimate):
    """A difference of two errors; thin, its interval whatever the missing scores are."""

    colour: str
    marker: str
    widest: tuple[float, float]

    def draw(self, axes: Axes) -> None:
        least, most = self.widest
        _whisker(axes, self.x, Interval(least, self.interval.middle, most), self.colour, 0.5)
        _whisker(axes, self.x, self.interval, self.colour, 1.6)
        style: dict[str, Any] = {"color": self.colour, "markersize": 4, "label": self.label or None}
        axes.plot(self.x, self.interval.middle, self.marker, **style)

    def rows(self) -> Rows:
        least, most = self.widest
        return [row | {"low_if_missing": least, "high_if_missing": most} for row in super().rows()]


@dataclass(frozen=True, eq=False)
class Scores(Item):
    """The score of every run, for the CSV alone."""

    answers: Answers

    def draw(self, axes: Axes) -> None:
        pass

    def rows(self) -> Rows:
        columns = {"truth": self.answers.truth_R, "guess": self.answers.guess_R}
        columns |= {f"score_{form}": self.answers.score_R[form] for form in FORMS}
        return [
            {"panel": "run", "model": self.answers.name, "run": r}
            | {name: _or("", values_R[r]) for name, values_R in columns.items()}
            for r in range(len(self.answers.truth_R))
        ]


def _model_items(m: int, answers: Answers) -> list[Item]:
    """Return what is drawn of the m-th model."""
    items: list[Item] = []
    losses = {form: _present(loss_R) for form, loss_R in _losses(answers).items()}
    intervals = {form: mean_interval(loss_R, SHOWN) for form, loss_R in losses.items()}
    for place, (form, (colour, label)) in zip((-0.5, 0.5), FORMS.items(), strict=True):
        of = (answers.name, m + place * WIDTH, losses[form], intervals[form], "" if m else label)
        items.append(Bar("mse", form, *of, len(answers.truth_R), colour))
    of = (answers.name, m, losses["guess"], intervals["guess"], "" if m else "guess alone")
    items.append(GuessAlone("mse", "guess", *of))
    for place, (name, difference) in zip((-0.12, 0.12), _differences(answers).items(), strict=True):
        colour, marker, label = DIFFERENCES[name]
        interval, widest = difference.interval(LEVEL), difference.bounds(LEVEL)
        of = (answers.name, m + place, difference.pairs_R, interval, "" if m else label)
        items.append(PairedDifference("difference", name, *of, colour, marker, widest))
    return [*items, Scores("mse", "score", answers)]


def _whisker(axes: Axes, x: float, interval: Interval, colour: str, width: float) -> None:
    if not np.isnan([interval.low, interval.high]).any():
        axes.vlines(x, interval.low, interval.high, color=colour, linewidth=width)


def _two_lines(name: str) -> str:
    """Return a long model name in two lines."""
    hyphens = (i for i, c in enumerate(name, 1) if c == "-")
    middle = min(hyphens, key=lambda i: abs(i - len(name) / 2), default=0)
    return name if len(name) < 14 or not middle else f"{name[:middle]}\n{name[middle:]}"
