"""lds, Theorem 4.1: the best single layer on AR(1) tokens is eq. (14), one step of gradient descent.

W_V = [[0, 0], [0, 1]], W_QK = [[c, 0], [0, 0]], c = (T-2) E[sum y_i y_{i+1} y_{T-1} y_T] /
E[sum_i y_i y_{i+1} sum_r y_r y_{r+1} y_{T-1}^2], i and r from 1 to T - 2; half the squared error, eq. (9).

The risk is a convex form in X = sym(b a^T), with b W_V's last column and a the first row of W_QK: its
gradient at (14) and its least value decide, exactly in settings (a) and (b) for eigenvalues that are uniform
or listed, within intervals over drawn systems elsewhere. The moments themselves are compared with prompts
made of tokens.

S = 3 pairs of token entries: (1, 1), (1, 2), (2, 2).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from icl.algorithms import GradientDescent
from icl.checks.given_weights import DISTANCE, EXCESS, judge_rows, require_family, single_layer
from icl.checks.lds.support import eq14, evidence
from icl.checks.lds.support.eq14_optimality import (
    best_head,
    gradient_and_gap,
    moments_in_z,
    risks_over_systems,
)
from icl.checks.lds.support.population import Population, quantile, require_systems
from icl.checks.lds.support.sequences import NoisySequences
from icl.checks.numbers import Numbers, finding, of_kind, tried
from icl.checks.rounding import PATH, path_rounding
from icl.checks.verdict import Bound, Control, Finding, Weights
from icl.errors import InputError
from icl.random import generator
from icl.tasks import DynamicalSystemLaw
from icl.tasks.dynamical_system import token_prompts
from icl.theory.dynamical_system import coefficients
from icl.theory.quadratic import EPSILON

COLUMNS = ("distance", "risk_excess", "risk_excess_error", "gradient_norm", "constant")  # of judged weights


@dataclass(eq=False)
class Theorem41(NoisySequences):
    """Settings: the paper's setting (a, b, c, d), length T, dim, seed, samples (drawn systems), noise levels,
    spectrum (uniform, sphere, ball or a list of eigenvalues: these or minus these, which is exact, too)."""

    reference = "Theorem 4.1, eq. (14); Appendix D.4"
    claim = (
        "On AR(1) tokens eq. (14) is a global minimum of the population risk of one layer of linear "
        "attention over all W_V and W_QK, and its forward pass is one step of gradient descent on L_AR(1) "
        "from 0."
    )

    claim_of_weights = "These weights make the predictions of eq. (14)."

    spectrum: str | list[float] = "uniform"
    samples: int = 4000

    def __post_init__(self) -> None:
        super().__post_init__()
        self.law = self.law_at(1, spectrum=self.spectrum)
        self.longer = self.law_at(2, self.length + 1, spectrum=self.spectrum)
        require_systems(self.samples, self.length)

    def measure(self) -> Finding:
        population = Population(self.law, self.samples, self.seed)
        c, x_KS = eq14.constant(population.moments), eq14.at_14(population.moments)
        return finding(
            [
                *(gradient_and_gap if population.exact else moments_in_z)(population, x_KS),
                *best_head(population, c, generator(self.seed, "search")),
                self._one_step(c or 1.0),  # the identity is of any constant
                *self._formulas(population, c),
                of_kind(population.kind, constant_over_T_minus_1=c * (self.length - 1) / self.law.context)
                .means("constant of eq. (14) where eq. (6) divides by T - 1, T the length of the sequence")
                .compared_by("grid_error", "moments by Gauss rules over tokens"),
            ],
            self._control(population, x_KS),
            notes=[population.note],
            remarks=self._remarks(population, c),
        )

    def judge(self, weights: Weights) -> Finding:
        """Judge whether these weights are (14), up to rescaling, the mirror, and what does not enter the
        prediction."""
        law = weights.law
        if not isinstance(law, DynamicalSystemLaw) or law.window != 1:
            raise InputError("check.weights: Theorem 4.1 is about AR(1) tokens of a dynamical system")
        require_family(weights, "Theorem 4.1", ["full"])
        P_RPP, Q_RPP = single_layer(weights, "Theorem 4.1")
        population = Population(law.replica(0), self.samples, self.seed)
        points = [coefficients(P_PP[-1], Q_PP[:, :1].T) for P_PP, Q_PP in zip(P_RPP, Q_RPP, strict=True)]
        return judge_rows(
            [eq14.row_against_14(population, x_KS) for x_KS in points],
            [eq14.row_against_14(population, x_KS / 2) for x_KS in points],
            Bound(
                DISTANCE,
                "the tolerance of ahn's figures, of the relative root mean square difference of the "
                f"predictions from those of (14); and the risk within {EXCESS:.0%} of that of (14)",
                "distance",
            ),
            "the distance of the same weights with W_QK halved",
            notes=[population.note],
            kinds=dict.fromkeys(COLUMNS, population.kind),
        )

    def _one_step(self, c: float) -> Numbers:
        """Compare (14)'s forward pass with one step of gradient descent."""
        prompt = token_prompts(self.law.sequences([generator(self.seed, "eval")], 64), 1)
        off_B = eq14.predictions(prompt, c) - GradientDescent(c, 1).predict(prompt)[0]
        sizes_B = eq14.predictions(evidence.absolute(prompt), abs(c))
        bound = path_rounding(2 * (self.law.context + 8))
        return (
            tried(gd_error=float((off_B / sizes_B).abs().max()))
            .means(
                "largest difference of the layer of eq. (14) from one gradient step, relative to its terms"
            )
            .at_most(bound, PATH)
        )

    def _formulas(self, population: Population, c: float) -> list[Numbers]:
        """Compare Isserlis with a grid of tokens, losses with simulated tokens, and the mean over systems
        with drawn ones."""
        a_P, b_P = torch.eye(2, dtype=torch.float64)
        points = [(b_P, factor * c * a_P[None]) for factor in (0.0, 1.0, 3.0)]
        systems = max(200, self.samples // 4)
        tokens = evidence.losses_on_tokens(self.law, points, self.seed, systems)
        numbers = [
            evidence.grid_error(self.law, self.seed),
            tokens.numbers("tokens", "the risk given the system"),
        ]
        if self.law.has_independent_modes:
            numbers.append(evidence.means_error(self.law, self.seed))
        if population.exact:
            points_KS = [coefficients(*point) for point in points]
            drawn = risks_over_systems(population, points_KS, self.seed, systems)
            numbers.append(drawn.numbers("systems", "the exact risk"))
        return numbers

    def _control(self, population: Population, x_KS: Tensor) -> Control:
        """Return what is zero under the claim, where it is not: the gradient at another weight; of averages
        an even moment in the place of the odd ones."""
        part = population.moments
        if not population.exact:
            z = float(eq14.moments_z(population, [1])[0])
            text = "the same deviation of an even moment of the same systems, E[y_(T-1)^2 G_12^2]"
            return Control(text, z, z > quantile(4))
        off_KS = x_KS.clone()
        off_KS[0, 1] += float((part.constant / part.form_KSKS[0, 1, 0, 1]).sqrt())
        norm = float(eq14.gradient(part, off_KS).norm())
        text = "the gradient norm at eq. (14) plus a weight of the size of y_T"
        return Control(text, norm, norm > 64 * EPSILON * eq14.size_of_gradient(population, off_KS))

    def _remarks(self, population: Population, c: float) -> list[str]:
        remarks = [
            "The optimum is unique only up to rescaling and up to exchanging b, the last column of W_V, "
            "with a, the first row of W_QK, because <G, b a^T> = <G, a b^T>. The mirror image, W_V = [[0, "
            "1], [0, 0]] and W_QK = [[0, c], [0, 0]], is another optimum, which the theorem does not "
            "list; training finds either.",
            "Eq. (6) divides by T - 1 and (10) by T - s - 1: in (6) T is the number of tokens, T - s of the "
            "sequence. With the sequence's T in (6) the constant of (14) is larger by (T - 1) / (T - s - 1), "
            "and the predictions are the same.",
            "The indices in (14) start at y_1 = c^T x_1 + v_1; those of Lemmas D.2 and D.3 start at y_0.",
        ]
        if c == 0:
            remarks.append(
                "The constant of (14) is 0 here: y_t y_(t+1) is uncorrelated with the target, and every "
                "layer with W_QK = 0 has the same risk."
            )
        if population.exact:
            longer = Population(self.longer, self.samples, self.seed)
            plus, later, right = eq14.printed_denominators(population, longer)
            remarks.append(
                "Appendix D.4 prints the denominator of (14) in two other ways, both of which are zero by "
                f"Lemma D.3: with '+' instead of the product of the two sums it is {plus:.2g}, with "
                f"y_(T-1) y_T instead of y_(T-1)^2 it is {later:.2g} (the correct value is {right:.4g}). "
                "The main text is right."
            )
        return remarks
