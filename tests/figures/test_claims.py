"""Claims of figures on records that contradict them: what each becomes where an array is changed."""

import numpy as np
import pytest

from tests.figures.bases import SMALL, base, changed

HOLDS, FAILS, OPEN = "holds", "fails", "undecided"


def put(name, value, at=...):
    """Write a value, or a function of what is there, into an array or a part of it."""

    def change(arrays):
        y = np.array(arrays[name], dtype=float)
        y[at] = value(y[at]) if callable(value) else value
        return {name: y}

    return change


def scaled(name, factor, at=...):
    return put(name, lambda y: factor * y, at)


def moved(name, by, at=...):
    return put(name, lambda y: y + by, at)


def both(*changes):
    return lambda arrays: {key: value for change in changes for key, value in change(arrays).items()}


def at_end(value, *names, early=1.0):
    """Write a value where training ends, and `early` before."""

    def change(arrays):
        last = arrays["metrics/step"] == arrays["metrics/step"].max()
        return {f"metrics/{name}": np.where(last, value, early) for name in names}

    return change


def reds(late):
    """Let the red lines be so far apart from .8 after the first tenth of the steps, but for their end."""

    def change(arrays):
        step = arrays["metrics/step"]
        is_late = (step >= 0.1 * step.max()) & (step < step.max())
        return {f"metrics/dist_plain_A{i}": 0.8 + late * is_late for i in range(3)}

    return change


DISTS = [*(f"dist_B{i}" for i in range(2)), *(f"dist_preconditioned_A{i}" for i in range(3))]
AHN = [  # figure, record, change of its arrays, and what the claims at these places become
    ("fig1", "run", at_end(0.04, "dist_preconditioned_A1", early=0.03), {0: FAILS}),
    ("fig1", "run", at_end(0.7, "dist_plain_A2"), {1: FAILS}),
    ("fig1", "run", reds(0.0), {2: HOLDS, 5: HOLDS}),
    ("fig1", "run", reds(0.06), {2: FAILS, 5: FAILS}),
    ("fig1", "exact", scaled("risk_RT", 1.03, np.s_[1, -1]), {3: FAILS}),
    ("fig1", "exact", scaled("risk_RT", 1e-3), {4: HOLDS}),
    ("fig1", "exact", lambda a: {"risk_RT": None}, {3: OPEN, 4: OPEN}),
    ("fig2", "exact", moved("white_RLDD", 0.2, np.s_[1, 0, 2, 3]), {0: FAILS}),
    ("fig2", "exact", scaled("a_RL", 1.15, np.s_[1, 0]), {1: FAILS}),
    ("fig3", "run", at_end(0.05, *DISTS), {0: HOLDS, 1: HOLDS}),
    ("fig3", "run", at_end(0.9, "dist_preconditioned_A2"), {1: FAILS}),
    ("fig3", "exact", both(put("risk_R", 0.01), put("risk_stderr_R", 1e-4)), {2: HOLDS}),
    ("fig3", "exact", both(put("risk_R", 0.01), put("risk_stderr_R", 1.0)), {2: OPEN}),
    ("fig3", "plain", at_end(1e-9, "risk_on_s"), {3: FAILS}),
    ("fig3", "exact", put("lower_bound", -1.0), {4: HOLDS}),
    ("fig4", "run", lambda a: {"B": np.eye(5) + 0 * a["B"]}, {0: HOLDS}),
    ("fig5", "exact", lambda a: {"white_RLDD": np.eye(5) + 0 * a["white_RLDD"]}, {1: HOLDS}),
    ("fig5", "exact", lambda a: {"norm_A_RL": a["norm_A_RL"][:, ::-1]}, {0: FAILS}),
    ("fig6", "losses", scaled("exact_pgd_published", 0.5), {8: FAILS}),
    ("fig6", "losses", scaled("risk_trained", 1.6), {4: FAILS}),
    ("fig7", "losses", moved("difference_trained_pgd_steps", 0.05, np.s_[0]), {0: FAILS, 2: HOLDS, 5: HOLDS}),
    ("fig7", "losses", moved("difference_trained_pgd_one", 2.0, np.s_[3]), {1: FAILS}),
    ("fig7", "losses", moved("difference_trained_pgd_steps", 2.0, np.s_[3]), {2: FAILS, 5: FAILS}),
    ("fig7", "losses", moved("difference_pgd_one_gd_one", 2.0, np.s_[1]), {3: FAILS}),
    ("fig7", "losses", moved("difference_pgd_steps_gd_steps", 2.0, np.s_[1]), {4: FAILS}),
    ("fig7", "losses", moved("ratio_trained_pgd_steps", 2.0, np.s_[3]), {6: FAILS}),
    ("fig7", "losses", moved("ratio_plain_pgd_steps", 2.0, np.s_[3]), {7: FAILS}),
    ("fig7", "losses", put("mean_plain", 50.0), {8: OPEN}),
    ("fig7", "losses", both(put("mean_plain", 0.5), put("difference_plain_pgd_steps", -0.5)), {8: FAILS}),
    ("fig7", "losses", scaled("exact_pgd_published", 0.5), {9: FAILS}),
]


def encoders(excess):
    """Let every encoder be so far above each of Newton's steps."""
    return lambda a: {"newton_TR": 1e-9 * a["newton_TR"], "trained_LR": 1e-9 * a["trained_LR"] + excess}


def ladder(means):
    """Let stacks of one layer, of two and so on have these losses in every seed."""
    named = {f"kappa1_unmasked_L{n}": np.full(5, mean) for n, mean in enumerate(means, 1)}
    sizes = {"mean": 1, "error": 1e-9, "tail": 0}
    return lambda arrays: {f"{k}_{of}": y * size for k, y in named.items() for of, size in sizes.items()}


def between(arrays):
    """Let the stacks be between Newton's second and third order."""
    known = base("giannou/fig2")[1]["baselines"].weights
    return ladder(sum(known[f"newton_transpose_{order}_mean"][1:] for order in (2, 3)) / 2)(arrays)


def lines(name, off, layers):
    """Let the outputs of stacks be so far off the line, a share of it, in either range."""

    def change(arrays):
        wide = np.arange(len(arrays["x_G"])) >= 61
        y_G = arrays["line_G"] * (1 - np.where(wide, off[1], off[0]))
        spread_K1 = 1 + 1e-6 * np.arange(20)[:, None]
        return {f"kappa1_{name}_L{n}_RKG": np.stack([y_G * spread_K1] * 2) for n in layers}

    return change


GIANNOU = [  # with settings
    ("fig1", {}, "losses", encoders(-0.1), {0: HOLDS}),
    ("fig1", {"decisive": True}, "losses", encoders(0.1), {0: FAILS}),
    ("fig7", {}, "losses", encoders(-0.1), {0: HOLDS, 1: HOLDS}),
    ("fig7", {"decisive": True}, "losses", encoders(0.1), {0: FAILS, 1: FAILS}),
    ("fig2", {}, "losses", between, {0: OPEN}),
    ("fig2", {"decisive": True}, "losses", between, {0: HOLDS}),
    ("fig2", {}, "baselines", both(*(put(f"newton_{start}_{order}_error", 1.0)
     for start in ("transpose", "identity") for order in (2, 3))), {1: OPEN}),
    ("fig2", {}, "baselines", scaled("family_unmasked_floor", 0.5), {2: FAILS}),
    ("fig2", {}, "losses", put("kappa1_unmasked_started_L3_mean", 0.03, 1), {3: OPEN}),
    ("fig3", {"layers": [1, 2]}, "outputs", lines("unmasked", (0.0, 0.0), (1, 2)), {1: FAILS}),
    ("fig4", {"layers": [1, 2]}, "outputs", lines("unmasked", (0.0, 0.9), (1, 2)), {0: HOLDS}),
    ("fig4", {"layers": [1, 2]}, "outputs", lines("unmasked", (0.0, 0.0), (1, 2)), {0: FAILS}),
    ("fig5", {"layers": [1], "layernorm_layers": [1]}, "layernorm_outputs",
     lines("layernorm", (0.0, 0.0), (1,)), {0: HOLDS}),
    ("fig6", {}, "layernorm_outputs", both(lines("layernorm", (0, 0.9), (7, 10, 12)),
     lines("layernorm", (0, 0.1), (5,))), {0: HOLDS}),
    ("fig6", {}, "layernorm_outputs", both(lines("layernorm", (0, 0.9), (5, 7, 10)),
     lines("layernorm", (0, 0.1), (12,))), {0: FAILS}),
    ("fig9", {}, "losses_kappa5", scaled("kappa5_layernorm_L2_mean", 9.0, 1), {0: OPEN}),
    ("fig9", {"decisive": True}, "losses_kappa5", scaled("kappa5_layernorm_L2_mean", 9.0, 1), {0: FAILS}),
    ("fig10", {}, "surfaces", put("largest_slope", -0.02), {0: HOLDS, 1: HOLDS}),
    ("fig10", {}, "surfaces", both(put("largest_h", -0.02), put("largest_h_own", 0.0)), {2: HOLDS, 3: FAILS}),
    ("fig10", {}, "surfaces", put("largest_slope", 0.02), {0: FAILS}),
]  # fmt: skip
LDS = [
    ("fig1", "AR2_exact", scaled("risk_RS", 1.03, np.s_[1, -1]), {0: FAILS}),
    ("fig1", "AR2_exact", put("risk_RS", np.nan), {0: OPEN}),
    ("fig1", "AR1_exact", scaled("weight_R", 1.03, 1), {4: FAILS}),
    ("fig1", "AR1_exact", put("minimum_outside_R", 2e-5, 1), {2: FAILS}),
    ("fig1", "AR2_exact", put("minimum_reached_R", False, 1), {1: OPEN, 2: OPEN}),
    ("fig1", "AR3_exact", put("minimum_outside_R", 2e-5, 1), {2: HOLDS, 3: FAILS}),
    ("extra", "a_AR2_optimum", put("value", np.nan), {0: OPEN}),
    ("extra", "a_AR2_optimum", put("any_heads", 10.0), {0: FAILS}),
    ("extra", "a_AR2_exact", scaled("risk_RS", 1.5, np.s_[1, -1]), {1: FAILS}),
    ("extra", "a_test", scaled("step_exact_W", 1.03), {2: FAILS}),
    ("extra", "a_test", put("step_above_W", 0.0), {3: FAILS}),
    ("extra", "a_test", put("step_above_stderr_W", 1.0), {3: OPEN}),
]


def minibatches(array, factor):
    """Add short runs at the second value, whose risk ends at a multiple of that of the long ones."""
    return lambda a: {
        f"minibatch_{array}": a[array][1:2],
        "minibatch_steps_S": a["steps_S"],
        "minibatch_risk_XRS": factor * a["risk_XRS"][1:2],
    }


XIE = [
    ("fig1", "exact", scaled("yq_lsa_XR", 1.02, -1), {1: FAILS}),
    ("fig1", "exact", scaled("lsa_XR", 1.02, -1), {3: FAILS}),
    ("fig1", "exact", scaled("lsa_XR", 0.5, -1), {2: FAILS}),
    ("fig1", "exact", lambda a: put("one_head_G", a["gd"] + 1e-9, 1)(a), {0: FAILS}),
    ("fig2", "exact", moved("best_X", 1e-3, 9), {2: HOLDS}),
    ("fig2", "exact", moved("best_X", 1e-3, 10), {1: FAILS}),
    ("fig2", "exact", lambda a: {"best_X": np.maximum(a["best_X"], a["best_X"][1])}, {0: FAILS}),
    ("fig2", "exact", moved("gd", 1.0), {3: FAILS}),
    ("fig2", "exact", scaled("risk_XRS", 1.02, 12), {5: FAILS}),
    ("fig2", "exact", scaled("risk_XRS", 1.02, 1), {4: FAILS}),
    ("fig3", "exact", lambda a: moved("risk_XRS", 0.1 * a["slope"] * a["squared_X"][:, None, None])(a),
     {0: FAILS}),
    ("fig3", "exact", scaled("risk_XRS", 1.02, 1), {1: FAILS}),
    ("fig4", "exact", moved("vector_risk_XR", 0.1, np.s_[[0, 2]]), {0: FAILS}),
    ("fig4", "exact", lambda a: {"bias_risk_XR": a["gd"] + 1.1 * (a["bias_risk_XR"] - a["gd"])}, {1: FAILS}),
    ("fig4", "exact", scaled("bias_risk_XR", 1.02, 0), {2: FAILS}),
    ("fig5", "exact", scaled("risk_XRS", 1.02), {0: FAILS}),
    ("fig5", "alignment", moved("prediction_square_RS", 0.05), {1: FAILS}),
    ("fig5", "alignment", moved("gradient_square_RS", 0.05, 1), {2: FAILS}),
    ("fig5", "alignment", moved("cosine_mean_RS", -0.02, 1), {3: FAILS}),
    ("fig2", "exact", minibatches("heads_X", 1.04), {6: HOLDS}),
    ("fig2", "exact", minibatches("heads_X", 1.06), {6: FAILS}),
    ("fig5", "exact", minibatches("squared_X", 1.06), {4: FAILS}),
]  # fmt: skip


def level(arrays):
    return {"new_PC": 1 + 0 * arrays["new_PC"], "new_stderr_PC": 0 * arrays["new_PC"]}


LU = [
    ("fig1", "plain", put("new_curve_SX", 0.0), {0: FAILS}),
    ("fig1", "plain", level, {1: FAILS, 2: FAILS}),
    ("fig1", "plain", put("new_stderr_PC", 1e3), {1: OPEN, 2: OPEN}),
    ("fig1", "plain", lambda a: {"new_PC": a["new_PC"][:, ::-1]}, {3: FAILS}),
    ("fig1", "ridge", lambda a: {"new_curve_SX": a["new_curve_SX"][[0, 1, 0]]}, {4: FAILS}),
    ("fig2", "a", lambda a: {"old_curve_SX": a["old_curve_SX"][[2, 1, 0, 3, 4]]}, {0: FAILS}),
    ("fig2", "b", lambda a: {"new_curve_SX": -np.sort(-a["new_curve_SX"])}, {1: FAILS}),
    ("fig2", "b", level, {2: FAILS}),
    ("fig3", "exact", put("rise_PNK", 0.0), {0: FAILS, 2: FAILS}),
    ("fig3", "exact", moved("rise_PNK", 1.0), {1: FAILS, 2: FAILS, 3: FAILS}),
    ("fig4", "attention", moved("gap_curve_SX", 1.0), {0: FAILS}),
    ("fig4", "attention", scaled("gap_PC", -1.0), {1: FAILS}),
    ("fig4", "dmmse", put("gap_AK", 0.0), {2: FAILS}),
]
LOOPED = [
    ("fig1", "exact", lambda a: {"best_NL": a["scalar_NL"]}, {0: FAILS}),
    ("fig1", "exact", lambda a: {"separate_NL": 1.01 * a["best_NL"]}, {1: FAILS}),
    ("fig2", "gains", put("gain_CNL", 0.0), {0: FAILS, 1: FAILS, 2: FAILS}),
    ("fig3", "exact", put("trained_risk_R", 0.015), {0: FAILS}),
    ("fig3", "exact", put("imag_RD", 0.0), {1: FAILS}),
    ("fig3", "exact", put("scalar_risk_T", 0.011, -1), {2: FAILS}),
    ("fig4", "exact", lambda a: {"best_again_NLM": 2 * a["scalar_again_NLM"]}, {0: FAILS}),
    ("fig4", "exact", lambda a: {"best_again_NLM": -np.sort(-a["best_again_NLM"])}, {1: FAILS}),
    ("fig5", "limits", lambda a: {"gain_NL": a["gain_NL"][::-1]}, {0: FAILS}),
    ("fig5", "limits", lambda a: {"sizes_K": a["sizes_K"][::-1]}, {1: FAILS}),
]
DEPTH = [
    ("fig1", "exact", put("shared_at_dim", 0.3), {1: FAILS, 2: FAILS}),
    ("fig2", "computed", lambda a: {"corrected_speed_KT": a["printed_speed_KT"]}, {1: FAILS}),
    ("fig2", "computed", lambda a: {"late": a["late"] - [0.01, 0]}, {2: OPEN}),
    ("fig3", "computed", lambda a: {"equal_TL": a["free_TL"]}, {0: OPEN}),
    ("fig3", "computed", lambda a: {"free_TL": a["equal_TL"]}, {1: OPEN}),
    ("fig4", "computed", lambda a: {"shared_L": a["separate_L"]}, {0: OPEN}),
    ("fig4", "computed", lambda a: {"separate_L": a["shared_L"]}, {1: OPEN}),
    ("fig4", "computed", lambda a: {"separate_L": 1.1 * a["shared_L"]}, {2: FAILS}),
]
TABLES = {"ahn": AHN, "depth": DEPTH, "giannou": GIANNOU, "lds": LDS, "xie": XIE, "lu": LU, "looped": LOOPED}
ROWS = [(f"{paper}/{id}", *rest) if paper == "giannou" else (f"{paper}/{id}", {}, *rest)
        for paper, table in TABLES.items() for id, *rest in table]  # fmt: skip


@pytest.mark.parametrize(("id", "settings", "name", "change", "verdicts"), ROWS)
def test_a_claim_sees_what_contradicts_it(id, settings, name, change, verdicts):
    figure, records = changed(id, name, change, **settings)
    claims = figure.claims(records)
    assert {place: claims[place].verdict for place in verdicts} == verdicts


@pytest.mark.parametrize("id", SMALL)
def test_claims_are_as_expected_of_what_is_computed_small(id):
    figure, records = base(id)
    claims = figure.claims(records)
    assert claims and [c.verdict for c in claims] == [c.expected for c in claims]
