"""Settings at which every check of giannou holds, and mutants that must turn its verdict."""

from dataclasses import replace
from typing import Any

import numpy as np

from icl.algorithms import LogisticLoss
from icl.checks.giannou import (
    corollaryE_2,
    degrees,
    equationB_9,
    equationC_6,
    gradient_descent,
    inversion_steps,
    lemmaB_4,
    lemmaB_9,
    lemmaB_10,
    newton_start,
    order,
    proposition3_3,
    theorem5_1,
    theorem5_4,
)
from icl.checks.giannou.appendixE_1 import AppendixE1
from icl.checks.giannou.corollaryE_2 import CorollaryE2
from icl.checks.giannou.degrees import Degrees
from icl.checks.giannou.equationB_9 import EquationB9
from icl.checks.giannou.equationC_6 import EquationC6
from icl.checks.giannou.gradient_descent import GradientDescent
from icl.checks.giannou.inversion_steps import InversionSteps
from icl.checks.giannou.label_head import LabelHead
from icl.checks.giannou.lemma4_1 import Lemma4_1
from icl.checks.giannou.lemmaB_4 import LemmaB4
from icl.checks.giannou.lemmaB_8 import LemmaB8
from icl.checks.giannou.lemmaB_9 import LemmaB9
from icl.checks.giannou.lemmaB_10 import LemmaB10
from icl.checks.giannou.mask_floor import MaskFloor
from icl.checks.giannou.newton_start import NewtonStart
from icl.checks.giannou.order import Order
from icl.checks.giannou.proposition3_3 import Proposition3_3
from icl.checks.giannou.ridge import Ridge
from icl.checks.giannou.support import (
    block_heads,
    inexact_newton,
    iteration,
    newton_decrease,
    newton_steps,
    one_step,
    step_error,
    step_sizes,
    unmasked_attention,
)
from icl.checks.giannou.support.newton_steps import exact_identity
from icl.checks.giannou.theorem4_2 import Theorem4_2
from icl.checks.giannou.theorem5_1 import Theorem5_1
from icl.checks.giannou.theorem5_2 import Theorem5_2
from icl.checks.giannou.theorem5_4 import Theorem5_4
from icl.checks.giannou.theorem5_4_rate import Theorem5_4Rate
from icl.constructions.giannou import inversion, logistic, piecewise
from icl.models.giannou.columns import ColumnStack, Head, Layer
from tests.checks.asking import (
    Case,
    Holds,
    Mutant,
    Mutants,
    blinded,
    mutants_test,
    settings_test,
)
from tests.checks.giannou.losses import wrong_losses


def one_layer(right, spectra_BD, risk, layers, below=None):
    """Return the masked family at one layer, whatever the floor."""
    return right(spectra_BD, risk, 1)


ITERATION = order, newton_steps


def changed(stack, number, layer):
    return ColumnStack(stack.rows, [*stack.layers[:number], layer, *stack.layers[number + 1 :]])


def swapped(stack, number, h, **blocks):
    """Return the same head reading other blocks as key or query."""
    head, rows = stack.layers[number].heads[h], stack.rows
    K = rows.gather({blocks["key"]: 1.0}) if "key" in blocks else head.K_PP
    Q = rows.gather({blocks["query"]: 1.0}) if "query" in blocks else head.Q_PP
    heads = list(stack.layers[number].heads)
    heads[h] = Head(head.V_PP, K, Q)
    return changed(stack, number, Layer(heads))


def negated(head):
    return Head(-head.V_PP, head.K_PP, head.Q_PP)


def wrongly(from_end, change):
    """Return the construction with the heads changed so many layers from the end; -3 is the fourth from
    the start."""

    def build(right, *args):
        stack = right(*args)
        layers = list(stack.layers)
        layers[-from_end] = replace(layers[-from_end], heads=change(list(layers[-from_end].heads)))
        return ColumnStack(stack.rows, layers)

    return build


def stated(factor):
    """Return the function with an error `factor` times as large."""
    return lambda right, *of: replace(right(*of), error=factor * right(*of).error)


def corollary_e2_holds(check, finding):
    assert finding.measured["inverse"] > 0.9  # E.2 is sharp


def lemma4_1_lemma_holds(check, finding):
    measured = finding.measured
    assert (measured["layers"], measured["heads"], measured["layers_transpose_stored"]) == (2, 2, 1)
    assert measured["width"] == 4 * check.dim
    assert check.dim == 1 or measured["error_two_layers_transpose_stored"] > 0.01
    lines = finding.details.lines()
    assert [line for line in lines if line.startswith(("Two", "One"))] == [lines[0], lines[-5]]
    assert "head 1: X += -X (A)^T X" in lines[-2]


def lemma_b8_is_off_by_a_factor_of_two_holds(check, finding):
    assert 1.99 < finding.measured["lambda_over_printed_bound"] <= 2 + 1e-9
    for name in ("gradient_over_bound", "hessian_over_bound", "lambda_lower_bound_over_lambda"):
        assert finding.measured[name] <= 1 + 1e-12


def mask_floor_the_control_takes_the_layers_it_needs_holds(check, finding):
    assert len(finding.measured["unmasked_by_layers"]) == 1
    assert len(finding.measured["masked_by_layers"]) > 1


def order_holds(check, finding):
    steps = finding.measured["steps_by_condition"]
    assert len(steps["conditions"]) == len(steps["steps"]) and steps["steps"] == sorted(steps["steps"])
    assert exact_identity(check.order, 1)


def a_large_ridge_is_no_refutation_holds(check, finding):
    assert finding.measured["layers"] == 4


def theorem4_2_theorem_holds(check, finding):
    assert finding.measured["layers"] == 3 + check.steps and finding.measured["heads"] == 2
    assert finding.measured["width"] == 4 * check.dim + 3
    ours = check.design is None
    assert finding.measured["max_relative_error"] < 1e-7 or not ours
    assert check.steps < 30 or not ours or finding.measured["distance_to_least_squares"] < 1e-10


def theorem5_1_holds(check, finding):
    measured = finding.measured
    distances = measured["by_width"]["distances"]
    assert distances[0] > distances[-1]
    assert measured["layers"] == measured["steps"] * (11 + 2 * check.k) and check.steps in (None, 12)


def theorem5_2_holds(check, finding):
    measured = finding.measured
    assert measured["layers"] == 11 + 2 * measured["inversion"] and measured["heads"] == 3
    assert measured["width"] == 6 * check.dim + 4
    assert len(measured["error_by_width"]["widths"]) == len(measured["error_by_width"]["errors"])
    assert measured["slope"] < -1.4
    errors = measured["error_by_inversion"]["errors"]
    assert errors[0] > 10 * errors[-1]


def theorem5_4_holds(check, finding):
    measured = finding.measured
    assert measured["min_decrease_phase1"] >= measured["guaranteed_decrease"] > 0.01
    assert measured["min_decrease_exact"] >= 0.25 - np.log(1.25)
    assert measured["steps_in_phase1"] > 20 and measured["steps_in_phase2"] > 20


def equation_c6_holds(check, finding):
    # in Euclidean norm sqrt(n)/2 times the stated bound, at the worst examples
    assert abs(finding.measured["euclidean"] - check.context**0.5 / 2) < 0.05


def inversion_steps_holds(check, finding):
    assert finding.measured["natural_excess"] > finding.measured["excess"]


def newton_start_holds(check, finding):
    steps = finding.measured["steps_near_edges"]
    assert steps["from 0"] == sorted(steps["from 0"]) and steps["from 0"][-1] > steps["from 0"][0] + 10


MUS = {"mus": [1.0, 0.1, 1e-3], "accuracies": [1.0, 1e-2]}

CASES: dict[Any, Case] = {
    EquationB9: Case(
        Holds(
            *({"mu": mu} for mu in (1e-3, 0.1, 5.0)),
            {"dim": 1, "context": 1},
            samples=10,
            verdict="fails",
        ),
        # without errors, or with a wrong length, nothing is refuted
        Mutants(
            Mutant(equationB_9, "largest_error", lambda right, *of: 0 * right(*of), "holds"),
            Mutant(EquationB9, "_length", lambda right, *of: 1.001 * right(*of), "undecided", "exact_off"),
            *wrong_losses("step_off", "undecided")[1:3],
            samples=10,
        ),
    ),
    EquationC6: Case(
        Holds({}, {"width": 8, "context": 1}, {"width": 1024, "mu": 5.0}, also=equation_c6_holds),
        Mutants(
            Mutant(equationC_6, "staircase", lambda right, v, span, m: right(v, span, m // 4)),
            Mutant(equationC_6, "sigmoid", lambda right, z: 1.1 * right(z)),
            Mutant(equationC_6, "neurons_off", lambda right, p, m: right(p, m) + 1e-3, "undecided"),
        ),
    ),
    GradientDescent: Case(
        Holds({}, {"dim": 2, "accuracy": 0.1}, {"dim": 20, "accuracy": 1e-6, "seed": 3}, margin=100),
        Mutants(
            Mutant(
                gradient_descent, "descent_steps", lambda right, rng, d, k, *of: right(rng, d, k**0.9, *of)
            ),
            Mutant(
                gradient_descent,
                "steps_by_formula",
                lambda right, k, condition, eps: right(k, condition**2, eps),
            ),
            Mutant(
                gradient_descent,
                "descent_steps",
                lambda right, rng, d, k, eps, share=1.0: right(rng, d, k, eps, share) - 5 * (share != 1),
                "undecided",
                "gain",
            ),
        ),
    ),
    InversionSteps: Case(
        Holds(
            MUS,
            {"mus": [1.0], "accuracies": [1.0]},
            {"mus": [1e-6], "accuracies": [1e-6]},
            also=inversion_steps_holds,
        ),
        Mutants(
            Mutant(inversion_steps, "steps_needed", lambda right, mu, eps: 2 * right(mu, eps)),
            Mutant(
                inversion_steps, "steps_needed", lambda right, *of: right(*of) - 1, "undecided", "count_off"
            ),
            Mutant(inversion_steps, "printed_steps", lambda right, mu, eps, base: right(mu, eps, 10.0)),
            **MUS,
        ),
    ),
    LabelHead: Case(
        Holds({}, dim=2, context=6, samples=1000),
        Mutants(
            Mutant(block_heads, "losses_by_heads", lambda right, *of: 1.001 * right(*of), of="off"),
            Mutant(block_heads, "ENTRIES", block_heads.ENTRIES | {"yy": (1, 0)}, "undecided", "gain"),
            blinded(block_heads, "ENTRIES", block_heads.ENTRIES | {"xy": (1, 1)}),
            dim=2,
            context=6,
            samples=1000,
        ),
    ),
    LemmaB4: Case(
        Holds({}, {"points": 10}, {"points": 50}),
        Mutants(
            Mutant(lemmaB_4, "omega", lambda right, t: 1.01 * right(t)),
            Mutant(lemmaB_4, "omega_dual", lambda right, t: 1.1 * right(t)),
            Mutant(lemmaB_4, "_slopes_off", lambda right, t: 10 * right(t), "undecided"),
            Mutant(lemmaB_4, "THRESHOLD", 0.25, of="share"),
        ),
    ),
    NewtonStart: Case(
        Holds(
            {},
            {"dim": 1, "condition": 1.0},
            {"dim": 20, "condition": 1000.0, "seed": 3},
            {"accuracy": 1e-8},
            also=newton_start_holds,
        ),
        Mutants(
            Mutant(
                newton_start,
                "newton_iteration",
                lambda right, A, X, k, steps: [X + 0.3 * (new - X) for new in right(A, X, k, steps)],
            ),
            Mutant(newton_start, "steps_from", lambda right, A, share, eps: right(A, 1.3 * share, eps)),
            Mutant(newton_start, "SHARES", (0.3, 0.5), "undecided", "control"),
        ),
    ),
    Theorem5_4Rate: Case(
        Holds({}, {"dim": 1, "context": 1}, {"mu": 5.0}, {"mu": 1e3}, samples=4),
        Mutants(
            Mutant(
                LogisticLoss,
                "damped_step",
                lambda right, loss, x, *of: x + 0.5 * loss.damped_move(x),
                of="excess",
            ),
            *wrong_losses("step_off")[1:3],
            samples=4,
        ),
    ),
    AppendixE1: Case(
        # a wrong h decides nothing
        Mutants(
            *(
                Mutant(newton_decrease, name, wrong, "undecided", of)
                for name, wrong, of in (
                    ("h", lambda right, x, c, z: right(x, -c, z), "h_off_printed"),
                    ("h", lambda right, x, c, z: right(x, c, z) - 2 * c, "h_off_printed"),
                    ("slope", lambda right, x, c, z: right(x, -c, z), "slope_off"),
                    ("decreasing_up_to", lambda right, z: 1.001 * right(z), "turn_off"),
                    ("least_of_G", lambda right, cells: 1.2 * right(cells), "certificate_excess"),
                    ("own_bound_on_z", lambda right: 1.01 * right(), "own_z_off"),
                )
            ),
            cells=500,
        ),
    ),
    CorollaryE2: Case(
        Holds(
            *({"mu": mu} for mu in (1e-3, 0.1, 5.0)),
            samples=200,
            also=corollary_e2_holds,
        ),
        # a tighter bound fails
        Mutants(
            Mutant(corollaryE_2, "inverse_share", lambda right, H, E, mu: 1.2 * right(H, E, mu)),
            *wrong_losses("step_off"),
            samples=200,
        ),
    ),
    Degrees: Case(
        # wrong degrees and residuals are seen
        Mutants(
            Mutant(
                degrees, "best_residual", lambda right, degree, k: right(degree - 1, k), of="residuals_off"
            ),
            Mutant(degrees, "best_residual", lambda right, degree, k: right(degree, k * (1 + 1e-9))),
            Mutant(
                degrees,
                "newton_residual",
                lambda right, order, t, k: right(order, t + 1, k),
                of="residuals_off",
            ),
            Mutant(degrees, "newton_residual", lambda right, order, t, k: (1 - 1 / (1 + k)) ** (order**t)),
            Mutant(
                degrees, "attention_degrees", lambda right, *of: [2 * d for d in right(*of)], of="mismatches"
            ),
        ),
    ),
    Lemma4_1: Case(
        Holds(
            {},
            {"dim": 1},
            {"dim": 8, "condition": 1e6, "seed": 3, "samples": 2},
            margin=1000,
            also=lemma4_1_lemma_holds,
        ),
        # a wrong lemma is seen
        Mutants(
            Mutant(inversion, "two_layers", lambda right, rows: right(rows)[::-1]),
            Mutant(inversion, "one_layer", lambda right, rows, b="A": inversion.two_layers(rows)[1]),
        ),
    ),
    LemmaB10: Case(
        # a wrong step or bound is seen where it is true
        Mutants(
            Mutant(LogisticLoss, "damped_step", lambda right, loss, x_BD: x_BD, of="step_off"),
            *wrong_losses("step_off"),
            *(
                Mutant(lemmaB_10, "constant_of", wrong, of="constant_off")
                for wrong in (
                    lambda right, mu, error: right(mu, error) + mu**2,
                    lambda right, mu, error: right(mu, error) * (1 - 1e-9),
                )
            ),
            Mutant(one_step, "BEND", 0.44, of="bend_off"),
            Mutant(one_step, "BEND", 0.4, of="bend_off"),
            Mutant(one_step, "growth_bounds", lambda right, mu, r: tuple(b - 0.5 for b in right(mu, r))),
            mu=0.1,
            samples=8,
            steps=20,
        ),
        # a wrong step does not refute
        Mutants(
            *wrong_losses("step_off", "undecided"),
            Mutant(one_step, "BEND", 0.4, "undecided", "bend_off"),
            mu=2.0,
            samples=8,
            steps=20,
        ),
    ),
    LemmaB8: Case(
        Holds(
            *({"mu": mu} for mu in (1e-3, 0.1, 10.0)),
            samples=100,
            verdict="fails",
            also=lemma_b8_is_off_by_a_factor_of_two_holds,
        ),
        # a wrong loss refutes nothing
        Mutants(*wrong_losses("step_off", "undecided"), samples=20),
    ),
    LemmaB9: Case(
        # a wrong step or bound decides nothing
        Mutants(
            Mutant(LogisticLoss, "damped_move", lambda right, loss, x_BD, g=None: 0 * x_BD, "undecided"),
            *wrong_losses("step_off", "undecided"),
            Mutant(
                lemmaB_9, "constant_of", lambda right, *of: right(*of) + 0.01, "undecided", "constant_off"
            ),
            Mutant(one_step, "BEND", 0.44, "undecided", "bend_off"),
            Mutant(
                one_step,
                "growth_bounds",
                lambda right, mu, r: tuple(b - 1 for b in right(mu, r)),
                "undecided",
            ),
            mu=0.1,
            samples=8,
        ),
    ),
    MaskFloor: Case(
        Holds(
            {"dim": 2, "context": 1000},  # one layer with a mask is above the floor, two are below
            {"dim": 1, "context": 2},
            {"dim": 3, "context": 4},
            {"dim": 1, "context": 5000, "seed": 3},
            samples=500,
            layers=1,
            also=mask_floor_the_control_takes_the_layers_it_needs_holds,
        ),
        # a wrong formula or a mask is seen
        Mutants(
            *(
                Mutant(unmasked_attention, name, wrong, of=of)
                for name, wrong, of in (
                    ("unmasked_risk", lambda right, g, s, n: (1 - g).square().mean(-1), "integrals_off"),
                    ("unmasked_risk", lambda right, g, s, n: right(g, s, n + 1e-6), "integrals_off"),
                    ("unmasked_stack", lambda right, a, b, d, n: right(a * 1.001, b, d, n), "token_error"),
                    ("response", lambda right, theta, s, L: 0.999 * right(theta, s, L), "token_error"),
                    ("quadratic_form", lambda right, *of: (1.01 * right(*of)[0], *right(*of)[1:]), ""),
                    (
                        "quadratic_form",
                        lambda right, *of: (*right(*of)[:2], 1.01 * right(*of)[2]),
                        "least_off",
                    ),
                    ("least_by_spectrum", lambda right, *of: 0.99 * right(*of), "least_off"),
                )
            ),
            *(
                Mutant(unmasked_attention, "spectra", wrong, "undecided", "trace_z")
                for wrong in (
                    lambda right, rng, samples, tokens, d: right(rng, samples, 2 * tokens, d),
                    lambda right, *of: 1.05 * right(*of),
                )
            ),
            Mutant(
                unmasked_attention,
                "risk_of_best_function",
                lambda right, *of: 0.9 * right(*of),
                "undecided",
                "floor",
            ),
            Mutant(
                unmasked_attention,
                "risk_of_best_function",
                lambda right, *of: 2 * right(*of),
                "undecided",
                "floor_z",
            ),
            blinded(step_sizes, "risks_by_layers", one_layer),
            samples=500,
            layers=2,
        ),
    ),
    Order: Case(
        Holds(
            *({"order": k} for k in (2, 3, 4, 5)),
            *({"order": 2, "samples": 4} | other for other in ({"dim": 1}, {"condition": 1}, {"dim": 30})),
            {"order": 2, "samples": 4, "condition": 1e4, "steps": 30},
            margin=1000,
            also=order_holds,
        ),
        # another iteration is seen
        Mutants(
            # the control is an iteration of order k + 1: this one is it
            blinded(ITERATION, "newton_iteration", lambda right, A, X, k, t: right(A, X, k + 1, t)),
            Mutant(
                ITERATION,
                "newton_iteration",
                lambda right, A, X, k, t: right(A, X, k + 2, t),
                settings={"order": 2},
            ),
            Mutant(
                ITERATION, "newton_iteration", lambda right, *given: [Y * (1 + 1e-9) for Y in right(*given)]
            ),
            Mutant(newton_steps, "comb", lambda right, n, m: 1),
            order=3,
        ),
    ),
    Proposition3_3: Case(
        # a larger loss is not so concordant
        Mutants(
            Mutant(proposition3_3, "supremum_of_ratio", lambda right, mu: 0.9 * right(mu)),
            # the control is a constant below the supremum: below this one it serves
            blinded(proposition3_3, "supremum_of_ratio", lambda right, mu: 5 * right(mu)),
            # points found by search that lie above the supremum
            Mutant(Proposition3_3, "_search", lambda right, *given: 2 * right(*given), of="largest_excess"),
            samples=1,
        ),
    ),
    Ridge: Case(
        Holds(
            *({"mu": mu, "steps": 1} for mu in (1e-8, 1.0, 1e4)),
            dim=4,
            context=40,
            samples=2,
            margin=100,
            also=a_large_ridge_is_no_refutation_holds,
        ),
    ),
    Theorem4_2: Case(
        Holds(
            {"dim": 6, "context": 12, "steps": 8, "condition": 50},
            {"dim": 1, "context": 1, "steps": 30},
            {"dim": 3, "context": 3, "steps": 0, "samples": 2},
            {"condition": 100, "steps": 40, "samples": 2},
            {"steps": 30},
            {"dim": 2, "context": 3, "design": [[1, 2], [3, 4], [0, 1]], "samples": 2},
            # X_0 ~ 1 / lambda_max, left over where an identity is taken away
            *(
                {
                    "dim": 2,
                    "context": 3,
                    "design": [[50 * s, 0], [0, 30 * s], [20 * s, 10 * s]],
                    "steps": T,
                    "samples": 2,
                }
                for s in (1e-3, 1, 1e3)
                for T in (1, 30)
            ),
            margin=100,
            also=theorem4_2_theorem_holds,
        ),
        # the listings of the proof and a little off fail
        Mutants(
            *(
                Mutant(iteration, "theorem4_2", wrong)
                for wrong in (
                    # a Newton layer's key as listed: block 1; the first output layer as listed
                    lambda right, *given: swapped(right(*given), 1, 0, key="X"),
                    lambda right, *given: swapped(right(*given), 3, 0, key="I", query="I"),
                    lambda right, *given: swapped(right(*given), 0, 0, key="I"),
                    lambda right, d, t, e, mu: right(d, t, e * (1 + 1e-11), mu),
                )
            ),
            dim=3,
            context=5,
            steps=2,
            samples=1,
        ),
        # a layer too many is seen
        Mutants(
            Mutant(
                iteration,
                "theorem4_2",
                lambda right, *given: right(*given) + ColumnStack(right(*given).rows, [Layer()]),
                of="sizes_off",
            ),
            samples=1,
        ),
    ),
    Theorem5_1: Case(
        Holds(
            {},
            {"mu": 0.01, "width": 1000},
            {"mu": 10.0},
            {"dim": 1, "context": 1},
            {"steps": 12},
            width=500,
            samples=2,
            also=theorem5_1_holds,
        ),
        # a wrong loss or distance is seen
        Mutants(
            *wrong_losses(""),
            Mutant(theorem5_1, "damped_newton", lambda right, *of: replace(right(*of), x_BD=0 * of[1])),
            Mutant(step_error.Trajectory, "step_errors", lambda right, *of: 1e3 * right(*of), "undecided"),
            width=300,
            samples=1,
        ),
    ),
    Theorem5_2: Case(
        Holds(
            {"width": 500, "steps": 3},
            {"width": 300, "steps": 2, "mu": 1.0, "dim": 3, "context": 3},
            {"width": 1000, "steps": 2, "dim": 1, "context": 4, "mu": 0.02, "seed": 5},
            {"width": 500, "steps": 2, "mu": 1e-3},
            {"width": 300, "steps": 2, "mu": 30.0, "dim": 2, "context": 2},
            also=theorem5_2_holds,
        ),
        # a wrong construction is seen
        Mutants(
            *(
                Mutant(step_error, "newton_step", wrongly(*of))
                for of in (
                    (5, lambda heads: heads[:2]),  # no mu x
                    (4, lambda heads: heads[:1]),  # the direction is not cleared
                    (3, lambda heads: heads[1:]),  # no decrement
                    (1, lambda heads: heads[:1]),  # not restored
                    (-3, lambda heads: heads[:1]),  # not transposed
                )
            ),
            # of a head that is negated the control's negative is the right one
            *(
                blinded(
                    step_error,
                    "newton_step",
                    wrongly(from_end, lambda heads: [negated(heads[0]), *heads[1:]]),
                )
                for from_end in (5, 1, 0)  # gradient, forward, s of which p (1 - p) is even
            ),
            width=500,
            steps=2,
        ),
        # a stated error or radius that is not so is seen
        Mutants(
            *(
                Mutant(piecewise, name, stated(factor), of="interpolation_off")
                for name in ("variance_of_label", "half_square", "probability", "step_size")
                for factor in (0.3, 10.0)
            ),
            Mutant(step_error, "radius_of_iterates", lambda right, *of: 0.9 * right(*of), of="knots_end_off"),
            Mutant(logistic.Approximations, "product_error", lambda right, by, n: right(by, n) * 4),
            width=500,
            steps=2,
        ),
    ),
    Theorem5_4: Case(
        Holds(
            *({"mu": mu} for mu in (1e-3, 0.1, 1e3)),
            {"mu": 0.25, "dim": 2, "context": 3},
            {"mu": 10.0, "seed": 1},
            {"dim": 1, "context": 1},
            samples=24,
            also=theorem5_4_holds,
        ),
        # errors too large, too few steps and wrong losses are seen
        Mutants(
            Mutant(inexact_newton, "constant_times_error", lambda right, mu, eps_B: 0 * eps_B),
            # no phase two is reached, nor by the control
            blinded(inexact_newton, "largest_error", lambda right, mu, x_BD: 300 * right(mu, x_BD)),
            Mutant(
                inexact_newton,
                "largest_error",
                lambda right, *of: right(*of),
                "undecided",
                settings={"steps": 3},
            ),
            Mutant(
                theorem5_4, "guaranteed_decrease", lambda right, mu: 1.5 * right(mu), of="guaranteed_decrease"
            ),
            Mutant(theorem5_4, "guaranteed_decrease", lambda right, mu: 0.8 * right(mu), "undecided"),
            *wrong_losses("step_off"),
            steps=60,
            samples=8,
        ),
    ),
}


test_a_check_holds = settings_test(CASES)
test_a_mutant_is_seen = mutants_test(CASES)
