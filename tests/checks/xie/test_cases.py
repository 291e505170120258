"""Settings at which every check of xie holds, and mutants that must turn its verdict."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from icl.checks.xie import gd_lower_bound, lemma1, lemma2, lemma3, ltb, theorem2, theorem4
from icl.checks.xie.gd_forward import GDForward
from icl.checks.xie.gd_lower_bound import GdLowerBound
from icl.checks.xie.lemma1 import Lemma1
from icl.checks.xie.lemma2 import Lemma2
from icl.checks.xie.lemma3 import Lemma3
from icl.checks.xie.ltb import Ltb
from icl.checks.xie.prior_gap import PriorGap
from icl.checks.xie.support import blocks, descent_step, fewer_heads, gaps, saturation, yq_lsa
from icl.checks.xie.support.saturation import Saturation
from icl.checks.xie.theorem1 import Theorem1
from icl.checks.xie.theorem2 import Theorem2
from icl.checks.xie.theorem4 import Theorem4
from icl.models import LinearTransformer, LinearTransformerBlock
from icl.theory.quadratic import QuadraticRisk
from icl.theory.xie.initial_guess import lost_slope
from tests.checks.asking import (
    Case,
    Holds,
    Mutant,
    Mutants,
    blinded,
    mutants_test,
    settings_test,
)
from tests.checks.xie.test_lemma1 import no_violation
from tests.checks.xie.test_lemma3 import scaled


def blind(right, prompt, start, eta):
    """Return a measurement that takes every step for one of three lengths, so that a tenth more goes
    unseen."""
    known = min((0.1, 1.0, 3.0), key=lambda length: abs(length - abs(eta)))
    return right(prompt, start, known if eta > 0 else -known)


def gd_forward_holds(check, finding):
    assert finding.bound.value < 1e-13 + 1e-15 * max(finding.measured["contexts"])  # a few hundred roundings
    parts = ("max_error_tokens", "max_error_gram", "max_error_trained_guess")
    assert finding.measured["max_error"] == max(finding.measured[part] for part in parts)
    assert {1, check.law.context_R[0], 2 * check.dim + 1} == set(finding.measured["contexts"])
    assert ("the step from 0" in finding.control.description) == bool(check.law.mean_RD.any())


# Weights below the least risk: a risk that some weights undercut is no bound, however well it agrees.
BELOW = lambda right, check, case: case.gap * (1 - 1e-6)  # noqa: E731


ROUNDING, GAP_ROUNDING = Saturation.rounding.fget, Saturation.gap_rounding.fget


WIDE = [  # bounds a million times as wide
    blinded(Saturation, "rounding", property(lambda case: 1e6 * ROUNDING(case))),
    blinded(Saturation, "gap_rounding", property(lambda case: 1e6 * GAP_ROUNDING(case))),
]


def gd_lower_bound_holds_by_the_closed_form(check, finding):
    d, C, square = check.law.dim, check.law.context_R[0], float(check.law.mean_RD.square().sum())
    measured = finding.measured
    assert measured["gap"] == pytest.approx(2 * square / (d * C + 2), rel=1e-12)
    assert measured["gap"] > 100 * finding.bound.value
    assert measured["gd_risk"] == pytest.approx(d * (d + 1) / (C + d + 1), rel=1e-9)
    around = measured["least_excess_around_best_weights"]
    assert not 1e-4 < square < 1e4 or measured["gap"] < around < 1.1 * measured["gap"] + 1e-3
    assert measured["excess_of_the_step"] < 1e-25 * max(1.0, measured["gap"])
    for eta in (measured["eta_from"], measured["eta_to"]):  # there the step is as good as the model
        risk = d * ((1 - eta) ** 2 + eta**2 * (d + 1) / C)
        assert risk == pytest.approx(measured["lsa_risk"], rel=1e-6)


def off(share):
    return lambda right, *given: right(*given) * (1 + share)


def lemma1_holds(check, finding):
    assert finding.control.measured < 0
    measured = finding.measured
    assert measured["violation"] > 1e4 * finding.bound.value
    nothing = check.dim + float(check.law.mean_RD.square().sum())
    assert measured["risk_at_midpoint"] == pytest.approx(nothing, rel=1e-12)
    assert measured["risk_at_points"][0] == measured["risk_at_points"][1]
    saturated = measured["risk_at_points"][0] == pytest.approx(measured["least_risk"], rel=1e-8)
    assert saturated == (check.heads >= check.dim or not check.law.mean_RD.any())


def concave(right, risk, X, direct=None):
    return right(risk, X, direct) * (-1 if X.ndim == 4 else 1)


def lemma2_holds(check, finding):
    assert finding.control.measured < 0
    D, C = check.dim, check.context
    assert finding.measured["violation"] == pytest.approx(D * C / (C + D + 1), rel=1e-7)
    assert finding.measured["risk_at_midpoint"] == pytest.approx(D, rel=1e-9)
    assert finding.measured["risk_at_points"][0] == finding.measured["risk_at_points"][1]


def path_off(path):
    def predict(right, model, prompt):
        block = isinstance(model.parametrization, LinearTransformerBlock)
        return right(model, prompt) * (1 + 1e-9 * (block and model.path == path))

    return predict


def lemma3_holds(check, finding):
    measured = finding.measured
    assert measured["max_error_converse"] <= finding.bound.value
    assert measured["further_parameters"] == check.hidden * (2 * check.dim + 2) - check.dim
    assert measured["hidden_needed"] == measured["rank_needed"] == 1
    assert measured["rank_of_given_block"] == min(check.hidden, check.dim + 1)
    D, C = check.dim, check.context
    for name in ("least_risk", "risk_yq_lsa", "risk_block"):
        assert measured[name] == pytest.approx(D * (D + 1) / (C + D + 1), rel=1e-6)


def ltb_fails_since_the_best_block_is_the_gradient_step(check, finding):
    measured, d, C = finding.measured, check.dim, check.context
    assert measured["gd_risk"] == pytest.approx(d * (d + 1) / (C + d + 1), rel=1e-9)
    assert measured["gap_left_by_block"] < finding.bound.value < measured["gap_of_lsa"]


def prior_gap_holds_with_the_closed_form(check, finding):
    measured, d, C = finding.measured, check.dim, check.context
    assert measured["gd_risk"] == pytest.approx(d * (d + 1) / (C + d + 1), rel=1e-10)
    assert measured["lsa_risk"] - measured["gd_risk"] == pytest.approx(
        measured["gap"], rel=1e-6, abs=1e-13 + 1e-11 * measured["gap"]
    )
    square = float(check.law.mean_RD.square().sum())
    assert measured["gap"] == pytest.approx(2 * square / (d * C + 2), rel=1e-12)
    for line in (measured, measured["guess_vector"], measured["guess_bias"]):
        assert line["slope"] == pytest.approx(line["predicted_slope"], rel=1e-12)
        assert line["predicted_slope"] == pytest.approx(2 / (d * C + 2), rel=1e-14)
    grid = measured["grid"]
    assert len(grid["dims"]) >= 4 and len(grid["contexts"]) >= 4
    assert d in grid["dims"] and C in grid["contexts"] and min(grid["contexts"]) < max(grid["dims"])


def least(d, C, error):
    return d * (d + 1) / (C + d + 1) + 2 * error / (d * C + 2)


def missed(heads, guess=None):
    """Return a construction that is worse with so many heads: for every guess, or for this one alone."""

    def constructed(right, case, count, scale=1.0):
        of_this = guess is None or (case.guess_D.any() and (case.bias != 0) == (guess == "bias"))
        excess, rounding = right(case, count, scale)
        return excess + 1e-18 * bool(count == heads and of_this), rounding

    return constructed


def theorem1_holds_and_d_heads_are_enough_but_not_fewer(check, finding):
    d, C = check.dim, check.law.context_R[0]
    measured, w_star = finding.measured, check.law.mean_RD[0]
    risks, lower = measured["risk_by_heads"], measured["certified_lower_bound_by_heads"]
    assert len(risks) == len(lower) == d + 3
    assert risks == sorted(risks, reverse=True)
    assert all(low <= risk + 1e-12 for low, risk in zip(lower, risks, strict=True))
    square = float(w_star.square().sum())
    certified = [least(d, C, square) + lost_slope(d, C, heads) * square for heads in range(1, d + 4)]
    assert lower == pytest.approx(certified, rel=1e-12)
    assert measured["least_risk"] == pytest.approx(least(d, C, square), rel=1e-12)
    assert risks[d - 1 :] == pytest.approx([measured["least_risk"]] * 4, rel=1e-12)
    names = ("saturates_at", "saturates_at_linear_guess", "saturates_at_bias")
    assert [measured[name] for name in names] == [d, d, d]
    assert check.biased.guess_bias == (-3.0 if C == 2 else 1.0)
    assert check.linear.guess_bias == 0 and torch.equal(check.linear.guess_RD, check.biased.guess_RD)
    error = float((check.biased.guess_RD[0] - w_star).square().sum()) + check.biased.guess_bias**2
    assert measured["least_risk_bias"] == pytest.approx(least(d, C, error), rel=1e-12)
    assert any("not tight" in remark for remark in finding.remarks)


def trivial(right, case):
    """Return zero weights at finite C: a stationary point, but not the minima of which the check speaks."""
    return tuple((case.context == theorem2.LIMIT) * M for M in right(case))


def doubled_at_10(right, case):
    return tuple((1 + (case.context == 10)) * M for M in right(case))


HEAD, MINIMISERS = "one_head_gradient_norm_in_the_limit", "largest_gradient_of_minimisers"


def theorem2_fails_at_weights_whose_risk_is_exactly_of_order_one_over_c(check, finding):
    measured, d, square = finding.measured, check.dim, float(check.law.mean_RD.square().sum())
    assert measured["contexts"] == check.contexts
    exact = [(d * (d + 1) + 2 * square / d) / C for C in check.contexts]
    assert measured["risk_by_context"] == pytest.approx(exact, rel=1e-6)
    assert measured["risk_slope"] == pytest.approx(-1, abs=1e-6)
    assert measured["gradient_norm_slope"] == pytest.approx(-1, abs=1e-5)
    least = [d * (d + 1) / (C + d + 1) + 2 * square / (d * C + 2) for C in check.contexts]
    assert measured["risk_at_minimiser_by_context"] == pytest.approx(least, rel=1e-6)
    assert measured["weights_norm"] > 1
    assert measured["gradient_norm_in_the_limit"] < finding.bound.value
    assert measured["risk_of_control"] == pytest.approx(square)
    assert measured["factorised_gradient_norm"] > 1e4 * finding.bound.value
    assert measured["gradient_norm_at_zero_weights"] == 0
    assert measured["gradient_norm_at_random_weights"] > 1e4 * finding.bound.value
    # one head is stationary in the limit whatever the dimension
    exact = [(d + 1) * (d + square) / C for C in check.contexts]
    assert measured["one_head_risk_by_context"] == pytest.approx(exact, rel=1e-5)
    head = [matrix[None] for matrix in theorem2.one_step_gd(torch.zeros(d).double(), 1.0)]
    risk_bound, bound = check._at(theorem2.LIMIT).rounding_at(*head)
    assert measured["one_head_risk_in_the_limit"] < risk_bound
    assert measured["one_head_gradient_norm_in_the_limit"] < bound


def lower_bound(right, risk, free_direct=False):
    """Return a bound that is too low by 1e-9, as if some guess and heads did better than descent."""
    found = right(risk, free_direct)
    object.__setattr__(found, "value", found.value - 1e-9)
    return found


def wide(right, risk, free_direct=False):
    found = right(risk, free_direct)
    return replace(found, rounding=1e6 * found.rounding)


OF_UNIT_STEP = "gradient_error_unit_eta"


def theorem4_holds(check, finding):
    measured, D, C = finding.measured, check.dim, check.context
    assert measured["slope"] == pytest.approx(-1, abs=1e-5) and measured["slope_bound"] < 1e-4
    assert measured["gradient_norm_best_eta"] < 1e-6 * min(measured["gradient_norm_by_context"][:1])
    for name in ("risk", "gd_risk", "global_bound"):
        assert measured[name] == pytest.approx(D * (D + 1) / (C + D + 1), rel=1e-6)
    assert measured["best_eta"] == pytest.approx(C / (C + D + 1))
    assert measured["contexts"] == [C * 2**k for k in range(7)]
    products = [
        C * norm for C, norm in zip(measured["contexts"], measured["gradient_norm_by_context"], strict=True)
    ]
    assert products == pytest.approx([products[0]] * 7, rel=1e-4)


CASES: dict[Any, Case] = {
    GDForward: Case(
        Holds(
            {}, {"dim": 1, "context": 1, "samples": 5},
            {"dim": 3, "context": 200, "prior_mean": [1, -2, 0.5], "eta": 0.7, "seed": 3},
            {"dim": 4, "prior_mean_norm": 0}, {"dim": 3, "prior_mean_norm": 1e-2},
            {"dim": 2, "context": 5, "prior_mean_norm": 1e3, "eta": [1e-3, 1e3]},
            {"dim": 12, "context": 3, "samples": 7}, margin=1000, of="max_error", also=gd_forward_holds,
        ),
        # other weights are seen
        Mutants(
            Mutant(descent_step, "one_step_gd", lambda right, w, eta: right(w, eta * (1 + 1e-9))),
            Mutant(descent_step, "one_step_gd", lambda right, w, eta: right(0 * w, eta)),
            Mutant(descent_step, "one_step_gd", lambda right, w, eta: tuple(M.mT for M in right(w, eta))),
            Mutant(descent_step, "with_guess", lambda right, prompt, guess: prompt),
            Mutant(
                descent_step,
                "one_step_gd",
                lambda right, w, eta: right(w * float("nan"), eta),
                "undecided",
            ),
            blinded(descent_step, "step_prediction", blind),
        ),
    ),
    GdLowerBound: Case(
        Holds(
            {}, {"dim": 1, "context": 1, "prior_mean": [-0.01]},
            {"dim": 6, "context": 2, "prior_mean_norm": 40.0}, {"dim": 3, "context": 10**5},
            *({"prior_mean_norm": norm} for norm in (1e-12, 1e-9, 1e-6, 1e-2, 1e3, 1e6)),
            {"dim": 3, "context": 10**6, "prior_mean": [0, 1e-4, 0]}, of="gap",
            also=gd_lower_bound_holds_by_the_closed_form,
        ),
        # a wrong closed form or bound is seen
        Mutants(
            Mutant(gd_lower_bound, "gap", lambda right, *of: right(*of) * (1 + 1e-10), of="gap_error"),
            Mutant(gd_lower_bound, "gd_risk", lambda right, *of: right(*of) * (1 + 1e-10), of="risks_error"),
            # the closed form is off
            Mutant(Saturation, "descent_risk", property(lambda case: case.least.value)),
            Mutant(GdLowerBound, "_least_excess_around", BELOW),
            # a strict gap where there is none
            Mutant(
                GdLowerBound,
                "_excesses_without_gap",
                lambda right, *of: [(1e-3, 1e-20)],
                of="excess_of_the_step",
            ),
            blinded(GdLowerBound, "_excesses_without_gap", lambda right, *of: [(0.0, 1.0)]), *WIDE,
        ),
    ),
    Lemma1: Case(
        Holds(
            {}, {"dim": 1, "context": 1, "heads": 1}, {"heads": 1},
            {"dim": 3, "context": 5, "heads": 2, "prior_mean": [1, -2, 0.5], "seed": 3},
            {"dim": 3, "context": 5, "heads": 3, "prior_mean": [1, -2, 0.5]},
            {"dim": 2, "context": 10**6, "heads": 7}, {"dim": 4, "heads": 2, "prior_mean_norm": 0},
            {"dim": 3, "prior_mean_norm": 1e-2}, {"dim": 5, "prior_mean_norm": 1e4}, of="violation",
            also=lemma1_holds,
        ),
        # a wrong closed form or weights off the optimum are seen
        Mutants(
            Mutant(lemma1, "gd_risk", off(1e-9), settings={"heads": 1}), Mutant(lemma1, "gd_risk", off(1e-9)),
            Mutant(lemma1, "gap", off(1e-9), of="violation_error"),
            Mutant(lemma1, "optimal_matrices", off(1e-4)),
            Mutant(lemma1, "violation", no_violation),  # not what was predicted
            # a concave control
            blinded(
                QuadraticRisk, "value", lambda right, risk, X, direct=None: -X.square().sum((-1, -2, -3))
            ),
            heads=11,
        ),
    ),
    Lemma2: Case(
        Holds(
            {}, {"dim": 1, "context": 1}, {"dim": 3, "context": 5, "prior_mean": [1, -2, 0.5], "seed": 3},
            {"dim": 2, "context": 10**6}, {"dim": 4, "prior_mean_norm": 0},
            {"dim": 3, "prior_mean_norm": 1e-2}, {"dim": 5, "prior_mean_norm": 1e3}, of="violation",
            also=lemma2_holds,
        ),
        # another point is seen
        Mutants(
            Mutant(lemma2, "gd_risk", lambda right, *sizes: right(*sizes) * (1 + 1e-9), of="violation_error"),
            Mutant(lemma2, "isotropic_step", lambda right, *sizes: right(*sizes) * (1 + 1e-4)),
            Mutant(lemma2, "one_step_gd", lambda right, w, eta: right(0.99 * w, eta)),
            Mutant(lemma2, "read_in", lambda right, v: right((1 + 1e-5) * v)),
            Mutant(lemma2, "violation", no_violation),  # not what was predicted
            blinded(QuadraticRisk, "value", concave),
        ),
    ),
    Lemma3: Case(
        Holds(
            {}, {"dim": 1, "context": 1, "hidden": 1, "samples": 5},
            {"dim": 3, "context": 200, "prior_mean": [1, -2, 0.5], "hidden": 2, "seed": 3},
            {"dim": 2, "context": 4, "hidden": 500, "samples": 7}, {"dim": 4, "prior_mean_norm": 0},
            *({"dim": 3, "prior_mean_norm": norm} for norm in (1e-2, 1e3)),
            {"dim": 5, "prior_mean_norm": 100.0}, margin=1000, of="max_error", also=lemma3_holds,
        ),
        # another block or least risk is seen
        Mutants(
            *(Mutant(blocks, "block_of_yq_lsa", scaled(part)) for part in ("P", "Q", "W1", "W2")),
            *(Mutant(LinearTransformer, "predict", path_off(path)) for path in ("gram", "tokens")),
            Mutant(lemma3, "isotropic_step", lambda right, *given: right(*given) * (1 + 1e-4)),
            Mutant(lemma3, "parameters", lambda right, model: 0, of="further_parameters"),
            # the least risk without a trained guess
            Mutant(QuadraticRisk, "convex_bound", lambda right, risk, free_direct: right(risk)),
            Mutant(blocks, "block_of_yq_lsa", scaled("Q", float("nan")), "undecided"),
            blinded(lemma3, "wrong_blocks", lambda right, lsa: [blocks.block_of(lsa)]),
        ),
    ),
    Ltb: Case(
        Holds(
            {}, {"dim": 1, "context": 1, "samples": 5},
            {"dim": 3, "context": 30, "prior_mean": [0.0, -3.0, 1.0], "samples": 7},
            {"dim": 4, "prior_mean_norm": 20.0, "samples": 7},
            *({"dim": 3, "prior_mean_norm": norm, "samples": 7} for norm in (1e-12, 1e-9, 1e-6, 1e6)),
            verdict="fails", also=ltb_fails_since_the_best_block_is_the_gradient_step,
        ),
        # another block or step refutes nothing
        Mutants(
            Mutant(ltb, "isotropic_step", lambda right, *sizes: 1.01 * right(*sizes), "undecided"),
            Mutant(ltb, "block_of", lambda right, descent: ltb.wrong_blocks(descent)[1], "undecided"),
            Mutant(
                blocks,
                "gradient_step",
                lambda right, w, eta, its: right(w, eta * (1 + 1e-9), its),
                "undecided",
            ),
            Mutant(ltb.Saturation, "descent_risk", 0.1, "holds"),  # a step of lower risk
            dim=3,
        ),
    ),
    PriorGap: Case(
        Holds(
            {"dim": 7, "context": 13, "prior_mean_norm": 2.0}, {},
            {"dim": 1, "context": 1, "guess_bias": -0.3},
            {
                "dim": 6,
                "context": 2,
                "prior_mean": [1, 0, 0, -2, 0, 0],
                "guess_vector_norm": 30.0,
                "seed": 5,
            },
            {"dim": 3, "context": 10**5},
            *({"dim": 3, "prior_mean_norm": norm} for norm in (1e-12, 1e-9, 1e-6, 1e-2, 1e3, 1e6)),
            {"dim": 2, "guess_bias": 1e-8, "guess_vector_norm": 1e-9}, of="largest_error_over_rounding",
            also=prior_gap_holds_with_the_closed_form,
        ),
        # a wrong slope or risk of the step is seen
        Mutants(
            Mutant(gaps, "gap_slope", lambda right, d, C: (1 + 1e-10) * right(d, C)),
            Mutant(gaps, "gap_slope", lambda right, d, C: 2 / (d * C + d + 1)),  # right at d = 1
            # right at C = 10
            Mutant(gaps, "gap_slope", lambda right, d, C: 2 / (d * C + 1 + C**0.1 / 10**0.1)),
            Mutant(gaps, "gd_risk", lambda right, d, C: right(d, C) * (1 + 1e-10)), *WIDE,
            blinded(gaps, "share", lambda right, case, slope=None: right(case)), dim=3, context=10,
        ),
    ),
    Theorem1: Case(
        Holds(
            {"dim": 5, "context": 10, "prior_mean": [1, 1, 1, 1, 1]}, {"dim": 1, "context": 1},
            {"dim": 2, "context": 1, "prior_mean": [0.3, -4]},
            {"dim": 3, "context": 2, "guess_vector": [1, 0, -1], "guess_bias": -3.0},
            *({"dim": 3, "prior_mean_norm": norm} for norm in (1e-9, 1e-6, 1e-2, 1e3)),
            {"dim": 4, "context": 40, "seed": 2, "prior_mean_norm": 5.0}, restarts=1, margin=1e6,
            of="largest_difference_beyond_d", also=theorem1_holds_and_d_heads_are_enough_but_not_fewer,
        ),
        # a construction or certificate that is off is seen
        Mutants(
            *(Mutant(Saturation, "constructed", missed(heads)) for heads in (4, 6)),
            *(
                Mutant(
                    Saturation, "constructed", missed(5, guess), of=f"largest_difference_beyond_d_{guess}"
                )
                for guess in ("linear_guess", "bias")
            ),
            Mutant(fewer_heads, "gap", lambda right, *of: (1 + 1e-10) * right(*of), of="least_risk_error"),
            Mutant(
                fewer_heads, "gd_risk", lambda right, *of: (1 + 1e-10) * right(*of), of="least_risk_error"
            ),
            # bounds a million times as wide
            WIDE[0],
            blinded(QuadraticRisk, "excess", lambda right, *of: (right(*of)[0], 1e6 * right(*of)[1])),
            # too small a certificate is not attained, too large a one is undercut
            Mutant(
                fewer_heads,
                "lost_slope",
                lambda right, *of: (1 - 1e-10) * right(*of),
                of="largest_certificate_error",
            ),
            Mutant(
                fewer_heads,
                "lost_slope",
                lambda right, *of: (1 + 1e-10) * right(*of),
                of="largest_certificate_error",
            ),
            dim=3, context=4, restarts=1,
        ),
    ),
    Theorem2: Case(
        Holds(
            {}, {"dim": 1, "contexts": [1, 2]},
            {"dim": 2, "contexts": [1, 30, 10**7], "prior_mean": [0.0, -3.0]},
            {"dim": 5, "prior_mean_norm": 0.01}, {"dim": 4, "prior_mean_norm": 50.0}, verdict="fails",
            of="gradient_norm_in_the_limit", margin=1e4,
            also=theorem2_fails_at_weights_whose_risk_is_exactly_of_order_one_over_c,
        ),
        # weights with another constant refute nothing
        Mutants(
            *(
                Mutant(saturation, "optimal_matrices", wrong, "undecided")
                for wrong in (
                    lambda right, *given: (1 + 1e-6) * right(*given),
                    lambda right, w, v, b, C: right(w, v, b, min(C, 10**8)),
                    lambda right, w, v, b, C: right(w, w, b, C),  # no guess at the constant: eq. (7)
                )
            ),
            # blind to gradients
            Mutant(Saturation, "at", lambda right, *of: (right(*of)[0], 1e-99), "undecided"),
            Mutant(
                theorem2,
                "one_step_gd",
                lambda right, w, eta: right(w, eta * (1 + 1e-6)),
                "undecided",
                HEAD,
            ),
            Mutant(Saturation, "heads", doubled_at_10, "undecided", MINIMISERS),
            Mutant(Saturation, "heads", trivial, "undecided", "largest_excess_of_minimisers"), dim=3,
        ),
    ),
    Theorem4: Case(
        Holds(
            {}, {"dim": 1, "context": 1}, {"dim": 1, "context": 7, "prior_mean": [-2]},
            {"dim": 3, "context": 5, "prior_mean": [1, -2, 0.5]}, {"dim": 2, "context": 10**6},
            {"dim": 4, "prior_mean_norm": 0},
            *({"dim": 3, "prior_mean_norm": norm} for norm in (1e-9, 1e-2, 1e3)),
            {"dim": 5, "prior_mean_norm": 100.0}, margin=1000, of="gradient_norm_best_eta",
            also=theorem4_holds,
        ),
        # another point constant law or bound is seen
        Mutants(
            Mutant(theorem4, "isotropic_step", lambda right, d, n: right(d, n) * (1 + 1e-10)),
            Mutant(
                theorem4,
                "unit_step_gradient",
                lambda right, *of: right(*of) * (1 + 1e-10),
                of=OF_UNIT_STEP,
            ),
            Mutant(theorem4, "gd_risk", lambda right, d, n: right(d, n) * (1 + 1e-10), of="risk_error"),
            Mutant(theorem4, "descent_from", lambda right, w, eta, v=None: right((1 + 1e-9) * w, eta, v)),
            Mutant(theorem4, "descent_from", lambda right, w, eta, v=None: right(w, eta, 0 * w)),
            Mutant(theorem4, "fitted_slope", lambda right, contexts, points: (-0.9, 1e-9)),
            Mutant(
                QuadraticRisk,
                "linear_regression",
                lambda right, **law: right(**law | {"label_noise": 1e-9}),
            ),
            Mutant(QuadraticRisk, "convex_bound", lower_bound),
            # bounds a million times as wide
            blinded(yq_lsa.LayerRisk, "gradient", lambda right, *of: (right(*of)[0], 1e6 * right(*of)[1])),
            blinded(QuadraticRisk, "convex_bound", wide),
        ),
    ),
}  # fmt: skip


test_a_check_holds = settings_test(CASES)
test_a_mutant_is_seen = mutants_test(CASES)
