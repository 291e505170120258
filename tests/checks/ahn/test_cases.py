"""Settings at which every check of ahn holds, and mutants that must turn its verdict."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from icl.checks import attention
from icl.checks.ahn import (
    conditioning,
    gd_plus_plus,
    global_optimum,
    large_context,
    last_b,
    lemma5,
    theorem1,
    theorem5,
)
from icl.checks.ahn.conditioning import Conditioning
from icl.checks.ahn.critical_points import CriticalPoints
from icl.checks.ahn.gd_plus_plus import GdPlusPlus
from icl.checks.ahn.global_optimum import GlobalOptimum
from icl.checks.ahn.large_context import LargeContext
from icl.checks.ahn.last_b import LastB
from icl.checks.ahn.lemma1 import Lemma1
from icl.checks.ahn.lemma4 import Lemma4
from icl.checks.ahn.lemma5 import Lemma5
from icl.checks.ahn.softmax import Softmax
from icl.checks.ahn.support import (
    certificate,
    covariates,
    critical_point,
    critical_set,
    descent,
    layer_swaps,
    orbits,
    preconditioner,
    relu_layer,
    search,
    trace_form,
    trace_words,
    two_layers,
)
from icl.checks.ahn.support.linear_layer import LinearLayer
from icl.checks.ahn.support.softmax_heads import SoftmaxHeads
from icl.checks.ahn.support.trace_form import full_model, sparse_model
from icl.checks.ahn.theorem1 import Theorem1
from icl.checks.ahn.theorem2 import Theorem2
from icl.checks.ahn.theorem3 import Theorem3
from icl.checks.ahn.theorem4 import Theorem4
from icl.checks.ahn.theorem5 import Theorem5
from icl.models import gram, tokens
from icl.theory import two_layer_certificate, wishart
from icl.theory.ahn import equivariant_bound, softmax_bound
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.theory.ahn.relu_risk import ReluRisk
from icl.theory.closed_forms import isotropic_risk, theorem1_risk
from icl.theory.quadratic import QuadraticRisk
from tests.checks.ahn.test_global_optimum import SMALL
from tests.checks.ahn.test_sentences import SENTENCES
from tests.checks.ahn.test_softmax import DECIDED as softmax_DECIDED
from tests.checks.ahn.test_softmax import SMALL as softmax_SMALL
from tests.checks.ahn.test_theorem3 import SMALL as theorem3_SMALL
from tests.checks.ahn.test_theorem4 import SMALL as theorem4_SMALL
from tests.checks.asking import (
    Case,
    Holds,
    Mutant,
    Mutants,
    blinded,
    edited,
    mutants_test,
    settings_test,
)


def critical_points_holds(check, finding):
    measured = finding.measured
    assert finding.control.measured > 1000
    assert measured["of_eq_8"] == [0, 1, 2, 6][check.layers]
    assert measured["different_risks_of_eq_11"] > 3 or check.starts < 32
    assert list(np.argsort(measured["risks_of_eq_11"])) == list(range(measured["of_eq_11"]))


def labels_alone(right, eta, gamma, Z):
    return torch.cat([Z[:, :-1], right(eta, gamma, Z)[-1, :, -1:]], 1)[None]


def worse(right, risk):
    """Return a point above all others."""
    return replace(right(risk), risk=right(risk).risk * (1 + 1e-5))


EQ_6 = (large_context, preconditioner)


def large_context_holds(check, finding):
    assert np.all(np.diff(finding.measured["distance_by_context"]) < 0)


def covariates_first(right, P_LPP, Q_LPP, Z_BPM):
    """Return the stack whose last B acts before the labels are read."""
    moved = right(P_LPP, Q_LPP, Z_BPM)[-1]
    labels = torch.cat([moved[:, :-1], Z_BPM[:, -1:]], 1)
    return right(P_LPP[-1:], Q_LPP[-1:], labels)


def last_b_holds(check, finding):
    assert finding.measured["change_of_covariates"] > 1000 * finding.bound.value


def flipped_query(right, T, prompt):
    return right(T, prompt) * torch.tensor([*[1.0] * 20, -1.0]).double()


def lemma1_holds(check, finding):
    for wrong in ("max_error_with_A", "max_error_second_division"):
        assert check.law.dim == 1 or finding.measured[wrong] > 1000 * finding.bound.value


def with_one_order(right, *given):
    """Return the result with an order that is no permutation: every layer is the first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layer_swaps, "transpositions", lambda layers: [[0] * layers])
        return right(*given)


class Bent(layer_swaps.SparseA):
    """A run whose layers are off S."""

    def load(self, matrices):
        bent = torch.zeros(3, 5, 5, dtype=torch.float64)
        bent[0, 0, 1] = 1e-3
        order = matrices["A"].diagonal(dim1=-2, dim2=-1).sum(-1)[0].argsort()
        super().load({"A": matrices["A"] + bent[order][None]})


def lemma4_holds(check, finding):
    assert finding.measured["max_error"] <= finding.bound.value < 1e-3 * finding.control.measured
    assert finding.measured.get("words_error", 0) < 1e-12


def lemma5_holds(check, finding):
    assert finding.measured["max_error_outside_11"] < finding.bound.value
    assert finding.measured["risk_eq5"] == pytest.approx(finding.measured["risk_trace_form"], rel=1e-12)


def theorem1_holds(check, finding):
    closed_form = float(theorem1_risk(check.law.Sigma_RDD[0], check.context))
    assert finding.measured["optimal_risk"] == pytest.approx(closed_form, rel=1e-6, abs=1e-12)
    assert finding.measured["risk_at_claim"] == pytest.approx(closed_form, rel=1e-6, abs=1e-12)
    if check.law.Sigma_RDD[0].allclose(torch.eye(check.dim).double()):
        assert isotropic_risk(check.dim, check.context) == pytest.approx(closed_form, rel=1e-12)
    trace = float(check.law.Sigma_RDD[0].trace())
    assert finding.measured["lemma3_antisymmetric_change"] < 1e-12 * max(1, trace)


TILTED = torch.tensor([[1.0, 0.3], [0.3, 1.0]]).double()


PLAIN = {"dim": 3, "context": 6, "eigenvalues": [2, 1, 0.25], "layers": 2, **theorem3_SMALL}


def scalars_off(right, risk):
    return replace(right(risk), a_L=right(risk).a_L * (1 + 1e-5))


def another_polynomial(right, risk, theta, *more, **how):
    return right(risk, theta * (1 + 1e-5), *more, **how)


def a_word_more(right, A, *law):
    return right(A, *law) + 1e-6 * (A[..., 0, :, :] ** 2).sum((-1, -2))


def stretched(right, *given):
    stretch = torch.tensor([1, 1, 1.5]).double()
    return stretch[:, None] * right(*given) * stretch


def theorem3_holds(check, finding):
    scalars = finding.measured["scalars"]
    assert scalars == sorted(scalars)
    assert finding.measured["gradient_norm_stderr"] == 0
    assert check.law.root_RDD.mT.allclose(check.law.root_RDD) or "W^-T" in finding.remarks[-1]


def theorem4_scalars_off(right, *given):
    return [replace(minimum, beta_L=minimum.beta_L * (1 + 1e-6)) for minimum in right(*given)]


def theorem4_another_polynomial(right, risk, theta, *more, **how):
    """Check that a minimum of a wrong polynomial is not one of the model's risk, which the exact rule
    evaluates."""
    return right(risk, theta * (1 + 1e-6), *more, **how)


def theorem4_holds(check, finding):
    measured, layers = finding.measured, check.risk.layers
    assert (len(measured["a"]), len(measured["b"]), len(measured["beta"])) == (layers, layers - 1, layers - 1)
    assert measured["beta"] == pytest.approx(
        [a * b for a, b in zip(measured["a"], measured["b"], strict=False)]
    )
    assert measured["risk"] == min(measured["local_minima"])
    assert measured["off_direction"] <= finding.bound.value


def curvature_times(factor):
    right = ReluRisk.curvature
    return property(lambda risk: factor * right.fget(risk))


def a_has_an_effect(right, P, Q, prompt):
    return right(P, Q, prompt) + 1e-12 * Q[:-1, -1].sum()


def another_formula(right, risk, b, A):
    return right(risk, b, A) + 0.1 * (b[..., -1] ** 2 - 1) + 0.2


def longer_queries(right, P, Q, *more):
    return right(P, (1 + 1e-9) * Q, *more)


def theorem5_holds(check, finding):
    measured = finding.measured
    assert measured["effect_of_a"] == 0
    assert measured["risk_at_claim"] == pytest.approx(measured["convex_bound"], rel=1e-13)
    d, n = check.dim, check.context
    assert measured["step_over_linear"] == pytest.approx(2 * (n + d + 1) / (n + 2 * d + 3))


CASES: dict[Any, Case] = {
    Conditioning: Case(
        # covariates that move otherwise or not at all are seen
        Mutants(
            Mutant(
                covariates, "observed", lambda right, b, S, X: right(1.000001 * b, S, X), of="token_error"
            ),
            Mutant(covariates, "observed", lambda right, b, S, X: right(b, 2 * S, X), of="token_error"),
            Mutant(
                conditioning,
                "better_conditioned",
                lambda right, b, s: right(0 * b, s),
                of="share_of_prompts",
            ),
            samples=1000, starts=16,
        ),
    ),
    CriticalPoints: Case(
        Holds(
            {"starts": 32}, {"dim": 2, "context": 30, "layers": 2, "starts": 8},
            {"dim": 3, "eigenvalues": [100, 1, 0.01], "layers": 3, "starts": 8}, also=critical_points_holds,
        ),
        # points that are not critical or are one are seen
        Mutants(
            Mutant(
                CriticalPoints,
                "_minima",
                lambda right, check: [point.scaled(1 + 1e-6) for point in right(check)],
                of="largest_gradient",
            ),
            blinded(CriticalPoints, "_orders", lambda right, check: [right(check)[0]] * 2), starts=8,
        ),
    ),
    GdPlusPlus: Case(
        Holds(
            {}, {"dim": 1, "context": 1, "layers": 1, "samples": 5},
            {"dim": 3, "context": 2, "layers": 4, "seed": 3},
            {"dim": 8, "context": 9, "layers": 2, "samples": 7}, margin=1000,
        ),
        # any other iteration is seen
        Mutants(
            *(
                Mutant(gd_plus_plus, "gd_plus_plus", wrong)
                for wrong in (
                    lambda right, eta, gamma, Z: right(eta, -gamma, Z),
                    lambda right, eta, gamma, Z: right(eta * (1 + 1e-9), gamma, Z),
                    lambda right, *given: right(*given).flip(0),
                    labels_alone,
                )
            ),
        ),
    ),
    GlobalOptimum: Case(
        # a lower bound that is none is seen
        Mutants(
            *(
                Mutant(where, name, edited(getattr(where, name), *change), of="certificate_error")
                for where, name, change in (
                    (equivariant_bound, "terms_of", ("range(1, layers + 1)", "range(1, layers)")),
                    (
                        equivariant_bound,
                        "terms_of",
                        ("range(1, degree + 1)", "range(1, min(degree, 1) + 1)"),
                    ),  # no S^2
                    (
                        equivariant_bound,
                        "_partitions",
                        ("min(total, largest)", "min(total, 0)"),
                    ),  # no traces
                    (certificate, "equivariant_optimum", ("context**degree", "context ** (degree - 1)")),
                    (certificate, "equivariant_optimum", ("p + q", "p + q - 1")),
                    (certificate, "equivariant_optimum", ("[*under, *other]", "[*under]")),
                    (equivariant_bound, "_solution", ("x - factor * y", "x + factor * y")),
                    (wishart, "_recursion", ("freedom + k - 1", "freedom + k")),
                    (wishart, "_recursion", ("freedom + k - 1", "freedom")),
                    (wishart, "_recursion", ("2 * power", "power")),
                    (wishart, "_recursion", ("k - 1 - i", "k - i")),
                    (wishart, "_recursion", ("k - 1 + power", "k + power")),
                    (wishart, "_recursion", ("range(1, k)", "range(2, k)")),
                )
            ),
            **SMALL, layers=2,
        ),
        # a sum of squares that is none is seen
        Mutants(
            *(
                Mutant(two_layer_certificate, name, wrong, "undecided", of="certified_gap")
                for name, wrong in (
                    ("_kinds", lambda right, *of: right(*of)[:2]),
                    ("_risk", lambda right, A, context: right(A, context + 1)),
                    ("_symmetric", lambda right, entries, M: -right(entries, M)),
                )
            ),
            **SMALL | {"starts": 1},
        ),
        # a lower point refutes it and a search that does not move shows nothing
        Mutants(
            Mutant(InvariantRisk, "optimum", worse, of="lowest_excess"),
            blinded(global_optimum, "descend", lambda right, risk, start: start), **SMALL, layers=3,
        ),
    ),
    LargeContext: Case(
        Holds(
            {}, {"dim": 1, "contexts": [1, 2]},
            {"dim": 3, "eigenvalues": [1e4, 1, 1e-2], "contexts": [5, 10**8], "seed": 2},
            {"dim": 2, "covariance": [[2, 1], [1, 1]]},
            {"dim": 2, "contexts": [1, 10, 10**9]},  # 1 - distance has seven digits here
            {"dim": 1, "contexts": [10**9 - 1, 10**9]}, {"dim": 2, "eigenvalues": [1e-300, 2e-300]},
            also=large_context_holds,
        ),
        # another preconditioner is seen
        Mutants(
            Mutant(EQ_6, "theorem1_preconditioner", lambda right, Sigma, N: 1.001 * right(Sigma, N)),
            Mutant(EQ_6, "theorem1_preconditioner", lambda right, Sigma, N: right(Sigma, max(N // 2, 1))),
            Mutant(EQ_6, "theorem1_preconditioner", lambda right, Sigma, N: (1 + 1e-10) * right(Sigma, N)),
            Mutant(preconditioner, "context_times_distance", lambda right, *at: 1.1 * right(*at)),
            Mutant(
                preconditioner,
                "context_times_distance",
                lambda right, *at: (1 - 1e-9) * right(*at),
                of="largest_difference",
            ),
        ),
    ),
    LastB: Case(
        Holds(
            {}, {"dim": 1, "context": 1, "layers": 2, "samples": 5},
            {"dim": 2, "context": 3, "eigenvalues": [1e4, 1e-4], "layers": 4, "seed": 3},
            {"dim": 3, "context": 2, "covariance": [[2, 0.7, 0], [0.7, 1, 0], [0, 0, 3]]}, margin=1000,
            also=last_b_holds,
        ),
        # attention of another form or an earlier b is seen
        Mutants(
            Mutant(attention, "every_layer", covariates_first),
            Mutant(last_b, "sparse_stack", lambda right, A, B: right(A, B.flip(1))),
        ),
    ),
    Lemma1: Case(
        Holds(
            {}, {"dim": 1, "context": 1, "layers": 1, "samples": 5},
            {"dim": 2, "context": 3, "eigenvalues": [1e4, 1e-4], "layers": 16, "seed": 3},
            {"dim": 4, "context": 9, "eigenvalues": [2, 1, 0.5, 0.1], "layers": 2},
            {"dim": 3, "context": 2, "covariance": [[2, 0.7, 0], [0.7, 1, 0], [0, 0, 3]]},
            {"dim": 8, "context": 3, "layers": 3, "samples": 7}, margin=1000, also=lemma1_holds,
        ),
        # any other iteration or token path is seen
        Mutants(
            *(
                Mutant(descent, "descent_entries", wrong)  # the sizes of terms keep the right one
                for wrong in (
                    lambda right, T, prompt: right(T * (1 + 1e-9), prompt),
                    flipped_query,
                    lambda right, T, prompt: right(T, prompt).flip(0),
                )
            ),
            Mutant(descent.tokens, "stack_forward", lambda right, *given: right(*given) * (1 + 1e-9)),
        ),
    ),
    Lemma4: Case(
        Holds(
            {}, {"layers": 2, "dim": 3, "context": 4, "eigenvalues": [2, 1, 0.001]},
            {"dim": 1, "context": 1, "layers": 2}, {"dim": 12, "context": 5, "layers": 4},
            {"dim": 2, "context": 1, "covariance": [[2, 1], [1, 1]]}, {"layers": 8, "seed": 3},
            {"eigenvalues": [1, 1e-3, 1e-6, 1e-9, 1e-12], "seed": 5, "samples": 100}, samples=50,
            also=lemma4_holds,
        ),
        # every part can fail and the control must
        Mutants(
            *(
                Mutant(layer_swaps, f"on_{part}", with_one_order)
                for part in ("the_polynomial", "predictions", "words")
            ),
            Mutant(layer_swaps, "SparseA", lambda right, *given: Bent(*given)),
            blinded(layer_swaps, "off_s", lambda right, A, seed: A), samples=50,
        ),
    ),
    Lemma5: Case(
        Holds(
            {}, {"dim": 1, "context": 1, "layers": 1, "samples": 5},
            {"dim": 2, "context": 3, "eigenvalues": [1e4, 1e-4], "layers": 4, "seed": 3},
            {"dim": 4, "context": 9, "eigenvalues": [2, 1, 0.5, 0.1], "layers": 2},
            {"dim": 3, "context": 2, "covariance": [[2, 0.7, 0], [0.7, 1, 0], [0, 0, 3]]},
            {"dim": 8, "context": 3, "samples": 7}, margin=1000, also=lemma5_holds,
        ),
        # another form or other weights are seen
        Mutants(
            Mutant(trace_form, "trace_form", lambda right, Z: Z[:, -1].square().sum(-1)),
            Mutant(trace_form, "trace_form", lambda right, Z: (1 + 1e-9) * right(Z)),
            # weights outside (11), and a control inside it
            Mutant(lemma5, "sparse_model", lambda right, *given: full_model(*given, last_column=True)),
            blinded(lemma5, "full_model", lambda right, *given, last_column: sparse_model(*given)),
        ),
        # every operator of attention over tokens is seen
        Mutants(
            *(
                Mutant(tokens, "stack_forward", edited(tokens.stack_forward, *change))
                for change in (
                    ("Q_RLHPP[:, None, layer, h].mT", "Q_RLHPP[:, None, layer, h]"),
                    ("P_RLHPP[:, None, layer, h].mT", "P_RLHPP[:, None, layer, h]"),
                    ("z_RBMP @ Q_RLHPP", "z_RBMP.flip(2) @ Q_RLHPP"),
                    ("[..., :keys]", "[..., 1 : keys + 1]"),
                    ("z_RBMP[:, :, :keys]", "z_RBMP[:, :, 1 : keys + 1]"),
                    ("z_RBMP + (", "("),
                    ("update_RBMP / N", "update_RBMP / (N + 1)"),
                    ("keys = N if mask", "keys = N + 1 if mask"),
                    ("layer in range(P_RLHPP.shape[1])", "layer in range(P_RLHPP.shape[1] - 1)"),
                    ("z_RBMP[:, :, -1]", "z_RBMP[:, :, 0]"),
                )
            ),
        ),
    ),
    Softmax: Case(
        # a softmax that is linear attention, a bound that a head refutes, a control that is softmax
        Mutants(
            Mutant(
                SoftmaxHeads,
                "excess",
                lambda right, search, heads, _: right(search, heads, "identity"),
                of="excess_bound",
            ),
            **softmax_SMALL,
        ),
        Mutants(
            Mutant(
                softmax_bound,
                "most_gain",
                lambda right, *given: right(*given)._replace(value=0.0),
                verdict="undecided",
                of="excess_high",
            ),
            blinded(softmax_bound, "linear_share", lambda _, *given: softmax_bound.softmax_share(*given)),
            needs="short_searches",
            **softmax_DECIDED,
        ),
    ),
    Theorem1: Case(
        Holds(
            {"dim": 6, "context": 2, "eigenvalues": [1.0] * 6}, {"dim": 1, "context": 1},
            {"dim": 2, "context": 3, "eigenvalues": [5.0, 0.05], "seed": 3},
            {"dim": 4, "context": 9, "eigenvalues": [2, 1, 0.5, 0.1]}, {"dim": 3, "context": 10**6},
            {"dim": 2, "context": 7, "covariance": [[2.0, 0.7], [0.7, 1.0]]}, {"dim": 10, "context": 4},
            {"dim": 3, "eigenvalues": [1, 1e-5, 1e-10]}, {"dim": 2, "context": 5, "eigenvalues": [1e4, 1e-4]},
            margin=100, also=theorem1_holds,
        ),
        # a wrong constant in eqs 6 and 7 or another law is seen
        Mutants(
            *(
                Mutant(theorem1, "theorem1_preconditioner", wrong)
                for wrong in (
                    lambda right, Sigma, n: right(Sigma, n + 1),
                    lambda right, Sigma, n: (1 + 1e-10) * right(Sigma, n),
                )
            ),
            # too little for the risk, not for its gradient
            Mutant(theorem1, "isotropic_step", lambda right, d, n: (1 + 1e-10) * right(d, n)),
            blinded(LinearLayer, "gradient_rounding", lambda right, *given: 1e6 * right(*given)),
            Mutant(QuadraticRisk, "linear_regression", lambda right, *law: right(*law, label_noise=1e-6)),
            Mutant(gram, "from_right", lambda right, M, Q: right(M, Q.mT), of="sparse_paths_error"),
            needs="no_tokens",
        ),
    ),
    Theorem2: Case(
        # without isotropy or another optimum is seen
        Mutants(
            Mutant(two_layers, "sparse_a_risk", lambda right, A, S, W, n: right(A, TILTED, W, n)),
            Mutant(two_layers, "sparse_a_risk", lambda right, A, S, W, n: right(A, S, TILTED, n)),
            # not the polynomial's
            Mutant(two_layers, "sparse_a_risk", lambda right, A, S, W, n: right(A, S, W, n + 1)),
            Mutant(
                search, "basis", lambda right, of, dim: right(of, dim)[: -1 if of == "diagonal" else None]
            ),
            # an optimum of unknown accuracy, and a control that is as isotropic as the statement
            Mutant(search, "polish", lambda right, risk, theta_LV: (theta_LV, float("inf")), "undecided"),
            blinded(
                two_layers,
                "sparse_a_risk",
                lambda right, A, S, W, n: right(A, torch.eye(2).double(), W, n),
            ),
            needs="no_tokens", dim=2, context=5, starts=1,
        ),
    ),
    Theorem3: Case(
        Holds(
            {}, PLAIN, {"dim": 3, "context": 2, "eigenvalues": [2, 1, 0.001]},
            {"dim": 1, "context": 3, "layers": 2}, {"dim": 2, "context": 1, "layers": 1},
            {"dim": 4, "context": 9, "layers": 5}, {"dim": 2, "context": 5, "distortion": [[1, 2], [0, 1]]},
            {"dim": 2, "context": 5, "covariance": [[2, 1], [1, 1]]}, {"layers": 12},
            {"layers": 4, "eigenvalues": [1e6, 1, 1, 1, 1e-2]}, {"eigenvalues": [1, 1, 1, 1, 1e-8]},
            {"dim": 3, "context": 10**6, "layers": 6}, **theorem3_SMALL, of="off_direction",
            needs="fewer_prompts", also=theorem3_holds,
        ),
        # other scalars risks and prompts are seen
        Mutants(
            Mutant(InvariantRisk, "optimum", scalars_off),
            Mutant(InvariantRisk, "optimum", scalars_off, settings={"layers": 4}),
            Mutant(InvariantRisk, "_query", another_polynomial),
            Mutant(InvariantRisk, "_query", another_polynomial, settings={"layers": 4}),
            Mutant(trace_words, "sparse_a_risk", a_word_more),
            Mutant(
                InvariantRisk,
                "lower_bound",
                lambda right, risk: 0.999 * right(risk),
                of="lower_bound_error",
            ),
            Mutant(orbits, "whitened_prompts", stretched, of="sampled_z", settings={"samples": 5000}),
            # nothing is seen: the control is not rejected, or rounding hides the direction
            blinded(orbits, "tilted", lambda right, A: A),
            Mutant(critical_point, "USELESS", 1e-16, "undecided"), needs="no_tokens fewer_prompts", **PLAIN,
        ),
    ),
    Theorem4: Case(
        Holds(
            {}, PLAIN, {"dim": 3, "context": 2, "eigenvalues": [2, 1, 0.001]},
            {"dim": 1, "context": 3, "layers": 2}, {"dim": 2, "context": 1, "layers": 1},
            {"dim": 2, "context": 9, "layers": 4, "starts": 2},
            {"dim": 2, "context": 5, "distortion": [[1, 2], [0, 1]]},
            {"dim": 5, "context": 10, "eigenvalues": [1e4, 1, 1, 1, 1e-2], "layers": 2},
            {"dim": 3, "context": 6, "eigenvalues": [1, 1, 1e-9], "layers": 2}, {"dim": 3, "context": 10**4},
            needs="few_steps", **theorem4_SMALL, also=theorem4_holds,
        ),
        # other points and other risks are seen
        Mutants(
            Mutant(InvariantRisk, "minimise", theorem4_scalars_off),
            Mutant(InvariantRisk, "_query", theorem4_another_polynomial),
            Mutant(critical_set, "spectral_risk", lambda right, a, b, s: right(a, -b, s)),
            blinded(orbits, "tilted", lambda right, A: A),
            Mutant(InvariantRisk, "minimise", lambda right, *given: [], "undecided"),  # no minimum is reached
            needs="no_tokens few_steps", **PLAIN,
        ),
        # every operator of the gram path is seen
        Mutants(
            *(
                Mutant(gram, "sparse_forward", edited(gram.sparse_forward, *change), of="paths_error")
                for change in (
                    ("move_RDDB.transpose(1, 2)", "move_RDDB", 0),
                    ("move_RDDB.transpose(1, 2)", "move_RDDB", 1),
                    ("product(move_RDDB, Gxx_RDDB, Gxx_RDDB)", "product(Gxx_RDDB, move_RDDB, Gxx_RDDB)"),
                    (
                        "product(move_RDDB, x_RD1B, x_RD1B)",
                        "product(move_RDDB.transpose(1, 2), x_RD1B, x_RD1B)",
                    ),
                    ("product(move_RDDB, x_RD1B, x_RD1B)", "x_RD1B"),
                    ("product(row_R1DB, Gxx_RDDB, gyx_R1DB)", "gyx_R1DB"),
                    (
                        "from_right(gyx_R1DB, A_RLDD[:, layer])",
                        "from_right(gyx_R1DB, A_RLDD[:, layer].mT)",
                    ),
                    ("Gxx_RDDB), A_RLDD[:, layer])", "Gxx_RDDB), A_RLDD[:, layer].mT)"),
                    ("from_left(B_RLDD[:, layer]", "from_left(B_RLDD[:, layer].mT"),
                    ("layer + 2 < layers", "layer + 3 < layers"),
                )
            ),
            needs="few_steps", **PLAIN | {"layers": 3},
        ),
    ),
    Theorem5: Case(
        Holds(
            *({"dim": d, "context": n} for d, n in [(5, 20), (1, 1), (2, 1), (3, 2), (1, 6), (7, 4)]),
            samples=5000, also=theorem5_holds,
        ),
        # another risk or layer is seen
        Mutants(
            *(Mutant(ReluRisk, "curvature", curvature_times(factor)) for factor in (0.99, 1.01)),
            # of linear attention
            Mutant(theorem5, "diagonal_point", lambda right, step, dim: right(step / 2, dim)),
            Mutant(ReluRisk, "value", another_formula),
            # of b_0
            Mutant(ReluRisk, "covariate_term", lambda right, *given: 0.5 * right(*given), of="token_z"),
            Mutant(relu_layer, "predict", a_has_an_effect, of="effect_of_a"),
            Mutant(tokens, "stack_forward", longer_queries, of="prediction_error"),
            Mutant(
                tokens,
                "_activate",
                edited(tokens._activate, "torch.relu(scores)", "scores"),
                of="prediction_error",
            ),
            Mutant(
                ReluRisk,
                "covariate_term",
                edited(ReluRisk.covariate_term, "self.context + 3", "self.context + 2"),
                of="token_z",
                settings={"dim": 2, "context": 1, "samples": 100_000},
            ),
            Mutant(
                ReluRisk,
                "covariate_term",
                edited(ReluRisk.covariate_term, "(2 * self.context)", "(1.0 * self.context)"),
                of="token_z",
                settings={"dim": 2, "context": 1, "samples": 100_000},
            ),
            dim=3, context=4, samples=20_000,
        ),
    ),
}  # fmt: skip


CASES |= SENTENCES
test_a_check_holds = settings_test(CASES)
test_a_mutant_is_seen = mutants_test(CASES)
