"""lds, Theorem 4.1: the best single layer on AR(1) tokens is eq. (14), one step of gradient descent.

W_V = [[0, 0], [0, 1]], W_QK = [[c, 0], [0, 0]], c = (T-2) E[sum y_i y_{i+1} y_{T-1} y_T] /
E[sum_i y_i y_{i+1} sum_r y_r y_{r+1} y_{T-1}^2], i and r from 1 to T - 2; half the squared error, eq. (9).

The risk is a convex form in X = sym(b a^T), with b W_V's last column and a the first row of W_QK: its
gradient at (14) and its least value decide, exactly in settings (a) and (b) for eigenvalues that are uniform
or listed, within intervals over drawn systems elsewhere. The moments themselves are held to prompts made of
tokens.

S = 3 pairs of token entries: (1, 1), (1, 2), (2, 2).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from icl.algorithms import GradientDescent
from icl.checks.given_weights import DISTANCE, EXCESS, judge_rows, require_family, single_layer
from icl.checks.lds.support import evidence
from icl.checks.lds.support.population import (
    CONFIDENCE,
    LEVEL,
    Population,
    balanced,
    enough,
    in_standard_errors,
    mean_over,
    mirrored,
    of_mean_square_one,
    quantile,
)
from icl.checks.lds.support.sequences import NoisySequences
from icl.checks.rounding import along_a_path
from icl.checks.sequential import KINDS, Comparison, compare
from icl.checks.verdict import Bound, Condition, Control, Finding, Weights, at_most, combine
from icl.errors import InputError
from icl.random import generator
from icl.tasks import DynamicalSystemLaw, TokenPrompt
from icl.tasks.dynamical_system import token_prompts
from icl.theory.dynamical_system import (
    Covariances,
    Moments,
    coefficients,
    conditional_moments,
    gram_moments,
    half_squared_error,
    moments,
)
from icl.theory.lds.value_search import search_values
from icl.theory.quadratic import EPSILON

ROUNDING = "rounding: 64 * 2^-52 times the sizes of all terms, the rules' negative weights among them"


@dataclass(eq=False)
class Theorem41(NoisySequences):
    """Settings: the paper's setting (a, b, c, d), length T, dim, seed, samples (drawn systems), noise levels,
    spectrum (uniform, sphere, ball or a list of eigenvalues: these or minus these, which is exact, too)."""

    reference = "Theorem 4.1, eq. (14); Appendix D.4"
    claim = (
        "On AR(1) tokens eq. (14) minimises the loss of a single linear attention layer over all W_V and "
        "W_QK, and its forward pass is one step of gradient descent on L_AR(1) from 0."
    )

    claim_of_weights = "These weights predict as eq. (14) does."

    spectrum: str | list[float] = "uniform"
    samples: int = 4000

    def __post_init__(self) -> None:
        self.law = self.law_at(1, spectrum=self.spectrum)
        self.longer = self.law_at(2, self.length + 1, spectrum=self.spectrum)
        enough(self.samples, self.length)

    def measure(self) -> Finding:
        self.population = population = Population(self.law, self.samples, self.seed)
        c, bound = constant(population.moments), population.risk.convex_bound()
        x_KS = at_14(population.moments)
        risk = float(half_squared_error(population.moments, x_KS))
        gradient_S = gradient(population.moments, x_KS)
        measured = {
            "constant": c,
            "optimal_risk": bound.value,
            "risk_at_claim": risk,
            "zero_risk": float(population.moments.constant) / 2,
            "gradient_norm": float(gradient_S.norm()),
            "risk_gap": risk - bound.value,
            "condition": bound.condition,
        }
        conditions = self._optimal(measured, x_KS)
        conditions += self._head(measured, c)
        conditions += self._one_step(measured, c)
        conditions += self._tokens(measured, c)
        verdict, decisive = combine(conditions)
        return Finding(
            verdict,
            measured,
            decisive,
            self._control(x_KS),
            [population.note],
            self._remarks(c),
            kinds={
                "*": population.kind,
                **dict.fromkeys(("gd_error", "grid_error", "means_error"), "tried"),
                "best_*": "searched",
                **KINDS,
            },
        )

    def judge(self, weights: Weights) -> Finding:
        """Are these weights (14), up to rescaling, the mirror, and what does not enter the prediction?"""
        law = weights.law
        if not isinstance(law, DynamicalSystemLaw) or law.window != 1:
            raise InputError("check.weights: Theorem 4.1 is about AR(1) tokens of a dynamical system")
        require_family(weights, "Theorem 4.1", ["full"])
        P_RPP, Q_RPP = single_layer(weights, "Theorem 4.1")
        population = Population(law.replica(0), self.samples, self.seed)
        points = [coefficients(P_PP[-1], Q_PP[:, :1].T) for P_PP, Q_PP in zip(P_RPP, Q_RPP, strict=True)]
        return judge_rows(
            [row_against_14(population, x_KS) for x_KS in points],
            [row_against_14(population, x_KS / 2) for x_KS in points],
            Bound(
                DISTANCE,
                "root mean square difference of the predictions from those of (14), as a share of theirs, "
                f"with the tolerance of ahn's figures; and the risk within {EXCESS:.0%} of (14)'s",
                "distance",
            ),
            "distance of the same weights with W_QK halved",
            notes=[population.note],
            kinds={"*": population.kind, "weight_by_seed": "exact"},
        )

    def _optimal(self, measured: dict[str, Any], x_KS: Tensor) -> list[Condition]:
        population = self.population
        if population.exact:
            bound = population.risk.convex_bound()
            size = self._size(x_KS)
            return [
                at_most("gradient_norm", measured["gradient_norm"], 64 * EPSILON * size, ROUNDING),
                at_most(
                    "risk_gap",
                    measured["risk_gap"],
                    2 * bound.rounding + 64 * EPSILON * size * float(x_KS.norm()),
                    "rounding of the convex form's least value, and of the risk at (14)",
                ),
            ]
        measured["constant_stderr"] = population.stderr(constant)
        measured["optimal_risk_stderr"] = population.stderr(lambda part: half_risk_at(part, x_KS))
        found = {
            "off_pattern_z": self._off_pattern_z(population, x_KS),
            "odd_moments_z": moments_z(population, [0, 2]),
        }
        measured |= {name: float(z_E.abs().max()) for name, z_E in found.items()}
        return [at_most(name, measured[name], quantile(len(z_E)), LEVEL) for name, z_E in found.items()]

    def _size(self, x_KS: Tensor) -> float:
        """Of all terms of the gradient, without their signs."""
        (part,) = self.population.parts
        sizes = moments(Covariances(part.weight_Q.abs(), part.covariance_QTT), 1)
        form_SS, linear_S = sizes.form_KSKS[0, :, 0].abs(), sizes.linear_KS[0].abs()
        return float((form_SS @ x_KS[0].abs() + linear_S).norm())

    def _off_pattern_z(self, population: Population, x_KS: Tensor) -> Tensor:
        """Of the gradient's entries for y_t^2 and y_{t+1}^2, which are zero under the claim."""
        parts_CS = torch.stack([gradient(part, x_KS) for part in population.moments_of_parts])[:, [0, 2]]
        return in_standard_errors(parts_CS)

    def _head(self, measured: dict[str, Any], c: float) -> list[Condition]:
        """The best single head found against (14), b and a exchanged where it came out mirrored."""
        population, bound = self.population, self.population.risk.convex_bound()
        if not population.exact or measured["zero_risk"] - bound.value <= 2 * bound.rounding:
            return []  # drawn systems have an optimum of their own; and of the prediction 0 any b is as good
        best = search_values(population.risk, 1, generator(self.seed, "search"), restarts=3)
        b_P, a_KP = canonical(*balanced(best, 1))
        measured["best_single_head"] = best.value
        measured["best_head_constant"] = float(b_P[1] * a_KP[0, 0])
        least = float(torch.linalg.eigvalsh(population.moments.form_KSKS[0, :, 0] / 2).min())
        if bound.rank < 3:
            return []
        error = torch.stack([b_P[0] / b_P[1], a_KP[0, 1] / a_KP[0, 0], b_P[1] * a_KP[0, 0] / c - 1])
        measured["best_head_error"] = float(error.abs().max())
        return [
            at_most(
                "best_head_error",
                measured["best_head_error"],
                4 * (best.gap / least) ** 0.5 / min(1.0, abs(c)) + 64 * EPSILON * bound.condition,
                "root of its gap over the form's least eigenvalue; 2^-46 times the form's condition",
            )
        ]

    def _one_step(self, measured: dict[str, Any], c: float) -> list[Condition]:
        c = c or 1.0  # the identity is of any constant
        y_RBT = self.law.sequences([generator(self.seed, "eval")], 64)
        prompt = token_prompts(y_RBT, 1)
        out_B = predictions(prompt, c)
        step_B = GradientDescent(c, 1).predict(prompt)[0]
        sizes_B = predictions(evidence.without_signs(prompt), abs(c))
        measured["gd_error"] = float(((out_B - step_B) / sizes_B).abs().max())
        bound = along_a_path(2 * (self.law.context + 8))
        return [at_most("gd_error", measured["gd_error"], bound.value, bound.source)]

    def _tokens(self, measured: dict[str, Any], c: float) -> list[Condition]:
        """Isserlis on a grid of tokens; losses of simulated tokens; the mean over systems by drawing them."""
        measured["grid_error"], by_grid = evidence.grid_error(self.law, self.seed)
        a_P, b_P = torch.eye(2, dtype=torch.float64)
        points = [(b_P, factor * c * a_P[None]) for factor in (0.0, 1.0, 3.0)]
        systems = max(200, self.samples // 4)
        tokens = evidence.losses_on_tokens(self.law, points, self.seed, systems)
        measured |= tokens.measured("tokens")
        conditions = [by_grid, tokens.condition("tokens")]
        if self.law.has_independent_modes:
            measured["means_error"], by_integrals = evidence.means_error(self.law, self.seed)
            conditions.append(by_integrals)
        if self.population.exact:
            drawn = self._over_systems([coefficients(*point) for point in points], systems)
            measured |= drawn.measured("systems")
            conditions.append(drawn.condition("systems"))
        return conditions

    def _over_systems(self, points: list[Tensor], systems: int) -> Comparison:
        step = itertools.count()

        def draw(count: int) -> Tensor:
            C_QTT = evidence.systems_of(self.law, self.seed, next(step), count)
            given = conditional_moments(C_QTT, 1)
            return torch.stack([half_squared_error(given, x_KS) for x_KS in points], 1)

        expected = torch.stack([half_squared_error(self.population.moments, x_KS) for x_KS in points])
        return compare(draw, expected, 500, systems, "systems drawn")

    def _control(self, x_KS: Tensor) -> Control:
        """What is zero under the claim, where it is not: the gradient at another weight; of averages an even
        moment in the place of the odd ones."""
        part = self.population.moments
        if not self.population.exact:
            z = float(moments_z(self.population, [1])[0])
            text = "odd_moments_z of an even moment of the same systems, E[y_(T-1)^2 G_12^2]"
            return Control(text, z, z > quantile(4))
        off_KS = x_KS.clone()
        off_KS[0, 1] += float((part.constant / part.form_KSKS[0, 1, 0, 1]).sqrt())
        norm = float(gradient(part, off_KS).norm())
        text = "gradient norm at (14) plus the weight that predicts y_T's size"
        return Control(text, norm, norm > 64 * EPSILON * self._size(off_KS))

    def _remarks(self, c: float) -> list[str]:
        printed = self._printed_denominators() if self.population.exact else None
        remarks = [
            "Optimal up to rescaling and up to exchanging b (W_V's last column) with a (the first row of "
            "W_QK): <G, b a^T> = <G, a b^T>. The mirror image, W_V = [[0, 1], [0, 0]] and W_QK = "
            "[[0, c], [0, 0]], is another optimum that the theorem does not list; training finds either.",
            "The indices of (14) start at y_1 = c^T x_1 + v_1; Lemmas D.2 and D.3 start at y_0.",
        ]
        if c == 0:
            remarks.append(
                "The constant of (14) is 0 here: y_t y_(t+1) has no mean in common with what is to be "
                "predicted, and every layer with W_QK = 0 is as good."
            )
        if printed is not None:
            plus, later, right = printed
            remarks.append(
                "Appendix D.4 prints the denominator of (14) in two other ways, and both are zero by Lemma "
                f"D.3: with '+' for the product of the two sums it is {plus:.2g}, with y_(T-1) y_T for "
                f"y_(T-1)^2 it is {later:.2g} (against {right:.4g}). The main text's is right."
            )
        return remarks

    def _printed_denominators(self) -> tuple[float, float, float]:
        """E[sum y_i y_{i+1} + sum y_r y_{r+1} y_{T-1}^2], E[sum sum y_{T-1} y_T], and the right one."""
        (part,) = self.population.parts
        N = self.law.context
        mean_S, _ = gram_moments(part, 1)
        longer = Population(self.longer, self.samples, self.seed).moments
        # At length T + 1, window 2 the query is (y_{T-1}, y_T); G_12 still ends at y_{T-1}: pair (0, 1).
        later = float(longer.form_KSKS[0, 1, 1, 1])
        single = float(_query_square_times_gram(part)[1])
        right = float(self.population.moments.form_KSKS[0, 1, 0, 1])
        return N * (float(mean_S[1]) + single), N**2 * later, N**2 * right


def row_against_14(population: Population, x_KS: Tensor) -> dict[str, float]:
    """One seed's weights, by their coefficients."""

    def excess(part: Moments) -> float:
        return half_risk_at(part, x_KS) / half_risk_at(part, at_14(part)) - 1

    part = population.moments
    best_KS, form_SS = at_14(part), part.form_KSKS[0, :, 0]
    off_S = (x_KS - best_KS)[0]
    return {
        "distance": float((off_S @ form_SS @ off_S / (best_KS[0] @ form_SS @ best_KS[0])).sqrt()),
        "risk_excess": excess(part),
        "risk_excess_error": CONFIDENCE * population.stderr(excess),
        "gradient_norm": float(gradient(part, x_KS).norm()),
        "weight": float(x_KS[0, 1]),
        "constant": constant(part),
    }


def at_14(part: Moments) -> Tensor:
    return torch.tensor([[0.0, constant(part), 0.0]], dtype=torch.float64)


def constant(part: Moments) -> float:
    """c of eq. (14)."""
    return float(part.linear_KS[0, 1] / part.form_KSKS[0, 1, 0, 1])


def gradient(part: Moments, x_KS: Tensor) -> Tensor:
    """(S,): d/dx of half the squared error."""
    return part.form_KSKS[0, :, 0] @ x_KS[0] - part.linear_KS[0]


def half_risk_at(part: Moments, x_KS: Tensor) -> float:
    return float(half_squared_error(part, x_KS))


def moments_z(population: Population, entries: list[int]) -> Tensor:
    """Moments of G_12 or y_T with these Gram entries, of sequences of mean square 1, in standard errors.

    Those with G_11 and G_22, the entries 0 and 2, must vanish for (14) to solve (11).
    """
    rows = []
    for part in population.parts:
        found = moments(mean_over(of_mean_square_one(part.covariance_QTT)), 1)
        rows.append(torch.cat([found.form_KSKS[0, 1, 0, entries], found.linear_KS[0, entries]]))
    return in_standard_errors(torch.stack(rows))


def canonical(b_P: Tensor, a_KP: Tensor) -> tuple[Tensor, Tensor]:
    """s = 1: of the two mirror images the one of (14), b's weight in its last entry."""
    return mirrored(b_P, a_KP) if abs(b_P[0]) > abs(b_P[1]) else (b_P, a_KP)


def predictions(prompt: TokenPrompt, c: float) -> Tensor:
    """Eq. (6) with (14), token by token."""
    b_P, a_KP = torch.tensor([0.0, 1.0]).double(), torch.tensor([[c, 0.0]], dtype=torch.float64)
    return evidence.on_tokens(b_P, a_KP, prompt)


def _query_square_times_gram(part: Covariances) -> Tensor:
    """E[y_{T-1}^2 G_ab], of degree 2: pairings of (y_{T-1}, y_{T-1}) and of each with one of the token's."""
    C_QTT, N = part.covariance_QTT, part.length - 2
    row_QT = C_QTT[:, -2]
    values = []
    for a, b in ((0, 0), (0, 1), (1, 1)):
        own_Q = C_QTT[:, -2, -2] * C_QTT[:, a : a + N, b : b + N].diagonal(dim1=1, dim2=2).mean(-1)
        values.append(own_Q + 2 * (row_QT[:, a : a + N] * row_QT[:, b : b + N]).mean(-1))
    return part.weight_Q @ torch.stack(values, -1)
