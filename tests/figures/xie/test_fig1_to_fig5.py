"""Tests of Figures 1 to 5 on training that ended where theory says, and elsewhere."""

import numpy as np
import pytest

from icl.figures.items import Curve
from icl.figures.xie.fig1 import Fig1
from icl.figures.xie.fig2 import Fig2
from icl.figures.xie.fig3 import Fig3
from icl.figures.xie.fig4 import Fig4
from icl.figures.xie.fig5 import Fig5
from icl.theory.xie.initial_guess import gap_slope, gd_risk, lost_slope
from tests.records import record

DIM, CONTEXT, PRIOR = 4, 6, 9.0
GD, SLOPE = gd_risk(DIM, CONTEXT), gap_slope(DIM, CONTEXT)
STEPS = np.array([0, 1, 10, 100])
SQUARED = np.array([0.0, 2.0, 9.0])


def records(arrays):
    return {
        part: record(weights={key: np.asarray(value) for key, value in given.items()})
        for part, given in arrays.items()
    }


def training(final_XR, begin=20.0):
    """Return two seeds that fall from `begin` to the final risks, (X, R, S)."""
    return final_XR[..., None] + (begin - final_XR[..., None]) * np.array([1, 0.5, 0.1, 0])


def both(value_X, excess=1e-6):
    return np.stack([value_X, value_X * (1 + excess)], axis=1)


def fig1():
    norm_G = np.linspace(0, 3, 7)
    one_head_X, one_head_G = (GD + 0.3 * squared for squared in (SQUARED, norm_G**2))
    return {"exact": {
        "squared_X": SQUARED, "lsa_XR": both(one_head_X), "yq_lsa_XR": both(np.full(3, GD)), "gd": GD,
        "one_head_X": one_head_X, "norm_G": norm_G, "one_head_G": one_head_G,
        "any_heads_G": GD + SLOPE * norm_G**2,
    }}  # fmt: skip


def fig2():
    heads_X = np.arange(1, DIM + 4)
    least = GD + SLOPE * PRIOR
    certified_X = least + PRIOR * np.array([lost_slope(DIM, CONTEXT, h) for h in heads_X])
    # a little above the certified bound, and below that of one head less
    best_X = np.where(heads_X < DIM, 0.9 * certified_X + 0.1 * np.roll(certified_X, 1), least)
    best_X[0] = 1.1 * certified_X[0]
    return {"exact": {
        "dim": DIM, "heads_X": heads_X, "steps_S": STEPS, "risk_XRS": training(both(best_X)),
        "best_X": best_X, "certified_X": certified_X, "any_heads": least, "rounding": 1e-12, "gd": GD,
        "minibatch_heads_X": np.array([2]), "minibatch_steps_S": STEPS[:3],
        "minibatch_risk_XRS": training(both(best_X[1:2], 0.02))[..., [0, 1, 3]],
    }}  # fmt: skip


def fig3():
    least_X = GD + SLOPE * SQUARED
    return {"exact": {
        "heads": DIM + 1, "dim": DIM, "squared_X": SQUARED, "steps_S": STEPS, "any_heads_X": least_X,
        "risk_XRS": training(both(least_X)), "gd": GD, "slope": SLOPE,
        "minibatch_squared_X": np.array([9.0]), "minibatch_steps_S": STEPS[:3],
        "minibatch_risk_XRS": training(both(least_X[2:], 0.02))[..., [0, 1, 3]],
    }}  # fmt: skip


def fig4():
    least_X = GD + SLOPE * SQUARED
    exact = {"heads": DIM + 1, "dim": DIM, "gd": GD, "slope": SLOPE}
    for kind in ("vector", "bias"):
        given = {"squared_X": SQUARED, "risk_XR": both(least_X), "any_heads_X": least_X}
        exact |= {f"{kind}_{name}": array for name, array in given.items()}
    return {"exact": exact}


def fig5():
    risk_XRS = training(both(np.full(3, GD)))
    excess_RS = risk_XRS[-1] - GD
    quantile_SQ = np.sqrt(excess_RS.mean(0))[:, None] * np.array([0.5, 1, 2])
    size_R = np.full(2, 8.0)
    alignment = {
        "steps_S": STEPS, "squared": 9.0, "risk_RS": risk_XRS[-1],
        "descent_prediction_R": size_R, "descent_gradient_R": size_R,
        "cosine_mean_RS": 1 - 0.05 * excess_RS / excess_RS.max(),
        "cosine_SQ": np.array([[-0.5, 0.0, 0.5], [0.7, 0.8, 0.9], [0.95, 0.96, 0.97], [1, 1, 1]]),
        "prediction_SQ": quantile_SQ, "gradient_SQ": quantile_SQ,
    }  # fmt: skip
    for name in ("prediction", "gradient"):
        alignment |= {f"{name}_square_RS": 1.01 * excess_RS, f"{name}_stderr_RS": 0.02 * excess_RS}
    exact = {
        "squared_X": SQUARED, "steps_S": STEPS, "risk_XRS": risk_XRS, "gd": GD,
        "minibatch_squared_X": np.array([5.0, 9.0]),  # one that is not among the long runs
        "minibatch_steps_S": STEPS[:3],
        "minibatch_risk_XRS": training(both(np.full(2, GD), 0.02))[..., [0, 1, 3]],
    }  # fmt: skip
    return {"exact": exact, "alignment": alignment}


FIGURES = {
    "fig1": (Fig1, fig1),
    "fig2": (Fig2, fig2),
    "fig3": (Fig3, fig3),
    "fig4": (Fig4, fig4),
    "fig5": (Fig5, fig5),
}


def verdicts(name, arrays):
    """Return the verdicts of the claims that did not come out as expected."""
    claims = FIGURES[name][0]().claims(records(arrays))
    return {claim.claim: claim.verdict for claim in claims if claim.verdict != claim.expected}


@pytest.mark.parametrize("name", FIGURES)
def test_where_theory_says_every_claim_is_as_expected(name):
    assert verdicts(name, FIGURES[name][1]()) == {}


def at(index):
    """Return the value 2 % higher there."""
    return lambda y: y * (1 + 0.02 * (np.arange(len(y)) == index))[:, None, None]


MUTATIONS = [
    ("fig1", "yq_lsa_XR", lambda y: y * [[1], [1], [1.02]], "trained y_q-LSA ends at"),
    ("fig1", "yq_lsa_XR", lambda y: y * (1 - 1e-6), "lower bound for y_q-LSA"),
    ("fig1", "lsa_XR", lambda y: y * [[1], [1], [0.5]], "trained y_q-LSA < trained LSA"),
    ("fig1", "any_heads_G", lambda y: np.full_like(y, GD), "persistent gap"),
    ("fig1", "one_head_G", lambda y: np.minimum(y, y[-2]), "persistent gap"),
    ("fig2", "best_X", lambda y: y + 1e-3 * (np.arange(len(y)) == DIM - 1), "d + 1 heads are needed"),
    ("fig2", "best_X", lambda y: y + 1e-3 * (np.arange(len(y)) == DIM), "Theorem 1"),
    ("fig2", "best_X", lambda y: np.maximum(y, y[1]), "falls with the number of heads"),
    ("fig2", "gd", lambda y: y + SLOPE * PRIOR, "strict lower bound"),
    ("fig2", "risk_XRS", lambda y: np.where(np.arange(7)[:, None, None] == 0, GD, y), "no trained"),
    ("fig2", "risk_XRS", at(6), "more than d + 1"),
    ("fig2", "risk_XRS", at(5), "more than d + 1"),
    ("fig2", "risk_XRS", at(1), "training ends"),
    ("fig2", "minibatch_risk_XRS", lambda y: 1.06 * y, "minibatches"),
    ("fig3", "risk_XRS", lambda y: y + 0.1 * SLOPE * SQUARED[:, None, None], "is linear"),
    ("fig3", "risk_XRS", lambda y: y - 1e-6 * y, "lower bound, strict"),
    ("fig3", "any_heads_X", lambda y: y * (1 + 1e-8), "least risk of any number"),
    ("fig3", "any_heads_X", lambda y: y * [1, 1 + 1e-8, 1], "least risk of any number"),
    ("fig4", "vector_risk_XR", lambda y: y + 0.1 * SLOPE * np.c_[[7, -9, 2]], "linear in |v|^2"),
    ("fig4", "bias_risk_XR", lambda y: y * [[1], [1 - 1e-7], [1]], "below it, by b^2"),
    ("fig2", "best_X", lambda y: np.where(np.arange(len(y)) == DIM - 1, y[DIM - 2], y), "up to d"),
    ("fig1", "one_head_G", lambda y: np.where(np.arange(7) == 1, GD + SLOPE / 8, y), "persistent gap"),
    ("fig5", "gradient_square_RS", lambda y: y + 0.05 * np.c_[[0, 1]], "the gradients converges"),
    ("fig5", "gradient_square_RS", lambda y: 1.06 * y, "(a) and (b) agree"),
    ("fig4", "vector_risk_XR", lambda y: y + 2 * SLOPE * np.c_[[0, 1, 0]], "linear in |v|^2"),
    ("fig4", "bias_risk_XR", lambda y: GD + 1.1 * (y - GD), "linear in b^2"),
    ("fig4", "bias_any_heads_X", lambda y: y + 1e-7, "2 b^2/(dC + 2)"),
    ("fig5", "risk_XRS", lambda y: 1.02 * y, "for every prior mean"),
    ("fig5", "prediction_square_RS", lambda y: y + 0.05, "difference of the predictions"),
    ("fig5", "gradient_square_RS", lambda y: y + 0.05, "difference of the gradients"),
    ("fig5", "gradient_square_RS", lambda y: 1.2 * y, "(a) and (b) agree"),
    ("fig5", "cosine_mean_RS", lambda y: y - [[0], [0.02]], "their cosine ends"),
]


@pytest.mark.parametrize(("name", "array", "change", "claim"), MUTATIONS)
def test_a_claim_fails_where_the_data_contradict_it(name, array, change, claim):
    arrays = FIGURES[name][1]()
    part = next(part for part in arrays.values() if array in part)
    part[array] = change(part[array])
    found = [text for text in verdicts(name, arrays) if claim in text]
    assert found, verdicts(name, arrays)


@pytest.mark.parametrize("name", FIGURES)
def test_everything_drawn_is_in_the_table(name):
    figure, arrays = FIGURES[name][0](), FIGURES[name][1]()
    given = records(arrays)
    drawn = figure.draw(given)
    drawn.canvas.draw()
    rows = figure.table(given)
    series = {(row["panel"], row["series"]) for row in rows}
    marked = 2 if name == "fig2" else 0  # lines at d and d + 1, in two panels
    assert sum(len(axes.lines) for axes in drawn.axes) == len(series) + 2 * marked
    shown = {str(line.get_label()) for axes in drawn.axes for line in axes.lines}
    assert {label for _, label in series} <= shown


@pytest.mark.parametrize("name", ["fig2", "fig3", "fig5"])
def test_without_minibatch_runs_nothing_is_said_of_them(name):
    """Draw at paper scale, where the runs themselves are on minibatches."""
    arrays = FIGURES[name][1]()
    exact = {k: v for k, v in arrays["exact"].items() if k not in ("minibatch_steps_S", "minibatch_risk_XRS")}
    empty = next(key for key in exact if key.startswith("minibatch"))
    arrays["exact"] = exact | {empty: np.array([])}
    given = records(arrays)
    figure = FIGURES[name][0]()
    assert not [claim for claim in figure.claims(given) if "minibatch" in claim.claim]
    assert not [row for row in figure.table(given) if "minibatch" in str(row["series"])]
    legends = [axes.get_legend() for axes in figure.draw(given).axes]
    texts = [text.get_text() for legend in legends if legend for text in legend.get_texts()]
    assert texts and "minibatch" not in texts


def test_minibatch_curves_share_the_colour_and_one_legend_entry():
    given = records(fig5())
    curves = [item for item in Fig5().items(given) if isinstance(item, Curve)]
    colors = {curve.series: curve.color for curve in curves}
    assert colors[r"$\|w^*\|^2$ = 9, minibatch"] == colors[r"$\|w^*\|^2$ = 9"]
    assert colors[r"$\|w^*\|^2$ = 5, minibatch"] not in [colors[rf"$\|w^*\|^2$ = {s:g}"] for s in SQUARED]
    legend = Fig5().draw(given).axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()].count("minibatch") == 1


def test_a_list_of_heads_without_d_or_d_plus_1_makes_no_claim_of_them():
    arrays = fig2()
    kept = [0, 2, 6]  # 1, 3 and 7 heads
    for name in ("heads_X", "risk_XRS", "best_X", "certified_X"):
        arrays["exact"][name] = arrays["exact"][name][kept]
    claims = [claim.claim for claim in Fig2().claims(records(arrays))]
    assert not [text for text in claims if "needed" in text or "more than d + 1" in text]


def test_excess_below_the_floor_is_drawn_on_it():
    rows = [row for row in Fig2().table(records(fig2())) if row["panel"] == "c"]
    found = {(row["series"], row["x"]): row["y"] for row in rows}
    assert found["least found", DIM] == 1e-8 and found["least found", 1] > 0.1
