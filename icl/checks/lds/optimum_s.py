"""lds, the question that Section 4 leaves open: is the best single head on AR(s) tokens, s >= 2, of pattern
(13)? And what would more heads gain?

Over X_k = sym(b a_k^T) the risk is a convex form: its least value bounds any number of heads. Heads are
searched over b alone, a exact, and what a search finds is no proof. Two things are: a head of (13) at the
convex bound, and a head below all heads of (13). The latter is decided where (13) leaves b two free entries
(s = 2, 3), b = (x, y): 2 R(b, a) - 2 level is a^T A(x, y) a - 2 h(x, y)^T a + c, and its least value over a
is zero where det [[A, h], [h^T, c]] is, a polynomial in y / x whose roots are all found as eigenvalues. If
none is real, no head of (13) is at the level.
The law of y is that of (-1)^t y_t, so to a b on the entries of one parity belong keys of pattern (13) or of
the other checkerboard: (13) is b on the parity of s + 1.

S pairs of token entries, K = s query entries, P = s + 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import torch
from torch import Tensor

from icl.checks.lds.support import evidence
from icl.checks.lds.support.population import CONFIDENCE, Population, balanced, enough
from icl.checks.lds.support.sequences import Windows
from icl.checks.settings import affordable_starts, in_range
from icl.checks.verdict import Bound, Control, Finding, combine
from icl.errors import InputError
from icl.random import generator
from icl.theory.dynamical_system import Moments, coefficients, half_squared_error, parity_mask
from icl.theory.lds.value_search import search_values
from icl.theory.quadratic import EPSILON, HeadsOptimum, QuadraticRisk

MAX_WINDOW = 5
SUPPORT = 1e-6  # of the largest entry: less is off the support, at an optimum found to rounding
WEIGHTS = 5  # digits of the weights in the record


@dataclass(eq=False)
class OptimumS(Windows):
    """Settings: setting, window s (2 to 5), length T, dim, seed, samples (drawn systems in c and d), restarts
    of each search."""

    reference = "Section 4, eqs. (11) and (13); Section 6, first limitation"
    claim = "The best single linear attention head on AR(s) tokens, s >= 2, is of pattern (13)."

    window: int = 2
    samples: int = 4000
    restarts: int = 6

    def __post_init__(self) -> None:
        if self.window == 1:
            raise InputError("check.window=1: is Theorem 4.1's (lds/theorem4_1); this check is about s >= 2")
        in_range("check.window", self.window, 2, MAX_WINDOW, "the searches take minutes")
        super().__post_init__()
        enough(self.samples, self.length)
        affordable_starts("check.restarts", self.restarts, 1)

    def measure(self) -> Finding:
        population = Population(self.law, self.samples, self.seed)
        risk, bound = population.risk, population.risk.convex_bound()
        mask_P, query_mask_PP = parity_mask(self.window)
        free, pattern, other = (self._best(risk, 1, mask) for mask in (None, mask_P, ~mask_P))
        single = min((free, pattern, other), key=lambda optimum: optimum.value)
        two = self._best(risk, 2, None)
        b_P, a_KP = balanced(single, self.window)
        if _off_support(b_P, a_KP, mask_P, query_mask_PP[: self.window]) <= SUPPORT:
            pattern = single
        pattern_b_P, pattern_a_KP = balanced(pattern, self.window)
        excess = pattern.value - single.value
        rounding = 2 * bound.rounding + 64 * EPSILON * risk.constant
        error = CONFIDENCE * population.stderr(lambda part: _difference(part, pattern, single, self.window))
        off = _off_support(b_P, a_KP, mask_P, query_mask_PP[: self.window])
        above = self._all_above(population, mask_P, single.value + excess / 2, excess)
        if population.exact and excess > rounding and above:
            verdict = "fails"
        else:
            verdict = "holds" if population.exact and pattern.value - bound.value <= rounding else "undecided"
        grid, by_grid = evidence.grid_error(self.law, self.seed)
        measured: dict[str, Any] = {
            "convex_bound": bound.value,
            "best_single_head": single.value,
            "best_of_pattern": pattern.value,
            "best_of_other_checkerboard": other.value,
            "pattern_excess": excess,
            "pattern_excess_stderr": error / CONFIDENCE,
            "off_support": off,
            "two_heads": two.value,
            "gain_of_second_head": 1 - two.value / single.value,
            "excess_over_bound": single.value / bound.value - 1,
            "two_heads_excess_over_bound": two.value / bound.value - 1,
            "zero_risk": risk.constant,
            "condition": bound.condition,
            "hessian_smallest": _hessian_smallest(risk, b_P, a_KP),
            "W_V_last_column": _rounded(b_P),
            "W_QK": _rounded(a_KP),
            "pattern_W_V_last_column": _rounded(pattern_b_P),
            "pattern_W_QK": _rounded(pattern_a_KP),
            "values_of_restarts": sorted(free.values_of_restarts),
            "grid_error": grid,
        }
        conditions = [by_grid]
        if self.law.has_independent_modes:
            measured["means_error"], by_integrals = evidence.means_error(self.law, self.seed)
            conditions.append(by_integrals)
        source = (
            "rounding of the form's least value twice and of a risk"
            if population.exact
            else f"rounding; drawn systems add a 99.9 % interval of +- {error:.2g}"
        )
        decisive_first = (verdict, Bound(rounding, source, "pattern_excess"))
        shown, decisive = combine([decisive_first, *conditions])
        attained = not self._all_above(population, mask_P, pattern.value + excess / 2, excess)
        return Finding(
            shown,
            measured,
            decisive,
            Control("the same of a level above the head of (13) that was found", excess / 2, attained)
            if verdict == "fails"
            else Control(
                "risk of the best head of the other checkerboard (b on the parity of s) minus that of (13)",
                other.value - pattern.value,
                abs(other.value - pattern.value) > rounding,
            ),
            [population.note, self._how_decided(verdict, above)],
            self._remarks(measured, rounding),
            kinds={
                "*": "searched" if population.exact else "sampled",
                **dict.fromkeys(("convex_bound", "zero_risk", "condition"), population.kind),
                **dict.fromkeys(("grid_error", "means_error"), "tried"),
            },
        )

    def _how_decided(self, verdict: str, above: bool) -> str:
        if verdict == "fails":
            return "No head of (13) has a risk as low as the head found: for all of them, by eigenvalues."
        if verdict == "holds":
            return "A head of (13) attains the convex bound: no layer is better."
        return (
            f"Best of {self.restarts} starts of each search: evidence, no proof. A larger check.restarts may "
            "find a head below all of (13)'s, which refutes; that there is none takes a bound over all b."
        )

    def _all_above(self, population: Population, free_P: Tensor, level: float, margin: float) -> bool:
        """Return whether every head with b on the free entries has a risk above the level, beyond rounding:
        False where it is not known."""
        places = free_P.nonzero().flatten().tolist()
        if margin <= 0 or len(places) > 2:
            return False
        part, P = population.moments, self.window + 1
        entry_PP, A_KPKP = torch.eye(P, dtype=torch.float64), torch.eye(self.window * P, dtype=torch.float64)
        heads = A_KPKP.view(-1, self.window, P)
        # Columns of x for b = e_m and each entry of a.
        design_XE = [
            torch.stack([coefficients(entry_PP[m], a_KP).flatten() for a_KP in heads], 1) for m in places
        ]
        form_EE = part.form_KSKS.reshape(len(design_XE[0]), -1)
        corner = float(part.constant) - 2 * level
        square = [[one.T @ form_EE @ two for two in design_XE] for one in design_XE]
        linear = [one.T @ part.linear_KS.flatten() for one in design_XE]
        if len(places) == 1:
            least = corner - float(linear[0] @ torch.linalg.solve(square[0][0], linear[0]))
            return least > 0
        # In coordinates where A(1, 0) + A(0, 1) = 1 and c = 1 at a level of 0, all entries are of size 1.
        root = torch.linalg.cholesky(square[0][0] + square[1][1])
        scale = float(part.constant) ** 0.5
        (A0, A01), (A10, A2) = (
            [torch.linalg.solve_triangular(root, M, upper=False) for M in row] for row in square
        )
        A0, A1, A2 = (torch.linalg.solve_triangular(root, M.T, upper=False).T for M in (A0, A01 + A10, A2))
        h0, h1 = (torch.linalg.solve_triangular(root, h[:, None], upper=False) / scale for h in linear)
        if _least_over_keys(A2, h1, corner / scale**2) <= 0:  # y / x infinite
            return False
        zero_E1, zero = torch.zeros_like(h0), torch.zeros(1, 1, dtype=torch.float64)
        M0, M1, M2 = (
            torch.cat([torch.cat([A, h], 1), torch.cat([h.T, c], 1)])
            for A, h, c in ((A0, h0, zero + corner / scale**2), (A1, h1, zero), (A2, zero_E1, zero))
        )
        E = len(M0)
        eye, nought = torch.eye(E, dtype=torch.float64), torch.zeros(E, E, dtype=torch.float64)
        left = torch.cat([torch.cat([nought, eye], 1), torch.cat([-M0, -M1], 1)])
        right = torch.block_diag(eye, M2)
        alpha, beta = scipy.linalg.eig(left.numpy(), right.numpy(), right=False, homogeneous_eigvals=True)
        finite = np.abs(beta) > EPSILON * E * np.abs(alpha)
        real = np.imag(alpha[finite] / beta[finite]) == 0
        # Eigenvalues are those of matrices changed by some E 2^-52: the level by as much times 1 + |a|^2.
        angle = np.linspace(0, np.pi, 257)
        keys = [
            torch.linalg.solve(x * x * A0 + x * y * A1 + y * y * A2, x * h0 + y * h1).square().sum()
            for x, y in zip(np.cos(angle), np.sin(angle), strict=True)
        ]
        rounding = 64 * EPSILON * E * (1 + float(max(keys))) * scale**2
        return not bool(real.any()) and margin / 2 > rounding

    def _best(self, risk: QuadraticRisk, heads: int, free_P: Tensor | None) -> HeadsOptimum:
        rng = generator(self.seed, "search", heads)
        return search_values(risk, heads, rng, self.restarts, free_P)

    def _remarks(self, measured: dict[str, Any], rounding: float) -> list[str]:
        s, gap = self.window, measured["best_single_head"] - measured["convex_bound"]
        remarks = []
        if measured["off_support"] > SUPPORT and measured["pattern_excess"] > rounding:
            relative = measured["pattern_excess"] / measured["best_single_head"]
            remarks.append(
                f"At s = {s} pattern (13) is not optimal: the best head found has b on the entries of the "
                f"other parity, one step earlier, and {relative:.2g} of the risk less. Restricting "
                "the search to (13) excludes it; the two differ by a shift of the window."
            )
        if gap > rounding:
            remarks.append(
                f"One head is not enough: the bound is {measured['excess_over_bound']:.3g} below it "
                f"relatively, two heads come within {measured['two_heads_excess_over_bound']:.2g}. So (11) "
                "cannot be solved by one head here: it is sufficient for optimality, not necessary."
            )
        remarks.append(
            "Sums of y_t y_(t+k) over shifted windows differ at their ends only, so the risk is nearly "
            f"flat along such shifts: the form's condition is {measured['condition']:.2g}."
        )
        return remarks


def _least_over_keys(A_EE: Tensor, h_E1: Tensor, corner: float) -> float:
    return corner - float((h_E1.T @ torch.linalg.solve(A_EE, h_E1)).squeeze())


def _difference(part: Moments, one: HeadsOptimum, other: HeadsOptimum, window: int) -> float:
    """Of two heads' risks, at fixed weights."""

    def value(head: HeadsOptimum) -> float:
        return float(half_squared_error(part, coefficients(head.b_HP[0], head.a_HKP[0, :window])))

    return value(one) - value(other)


def _off_support(b_P: Tensor, a_KP: Tensor, mask_P: Tensor, query_mask_KP: Tensor) -> float:
    """The largest entry outside (13), as a share of the largest of its matrix."""
    return max(
        float((entries.abs() * ~mask).max() / entries.abs().max())
        for entries, mask in ((b_P, mask_P), (a_KP, query_mask_KP))
    )


def _hessian_smallest(risk: QuadraticRisk, b_P: Tensor, a_KP: Tensor, count: int = 4) -> list[float]:
    """The smallest eigenvalues in (b, a) as shares of the largest; one is 0, the scale between b and a."""
    P, K = len(b_P), len(a_KP)

    def value(flat: Tensor) -> Tensor:
        rows_KP = torch.cat([flat[P:].view(K, P), torch.zeros(1, P, dtype=torch.float64)])
        return risk.value_of_heads(flat[None, :P], rows_KP[None])

    at = torch.cat([b_P, a_KP.flatten()])
    values = np.linalg.eigvalsh(torch.autograd.functional.hessian(value, at).numpy())
    return [float(entry) for entry in values[:count] / values[-1]]


def _rounded(matrix: Tensor) -> list[Any]:
    scaled = torch.where(matrix.abs() > SUPPORT * matrix.abs().max(), matrix, 0.0)
    return torch.round(scaled, decimals=WEIGHTS).tolist()
