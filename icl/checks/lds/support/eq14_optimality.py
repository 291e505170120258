"""Numbers that say whether eq. (14) is optimal: gradients, risks, moments, and the best head a search
finds."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from torch import Tensor

from icl.checks.differences import DIFFERENCES, gradient_norm
from icl.checks.lds.support import eq14, evidence
from icl.checks.lds.support.population import LEVEL, Population, balance, quantile, z_of_parts
from icl.checks.numbers import Numbers, of_kind, sampled, searched
from icl.checks.sequential import Comparison, compare
from icl.theory.dynamical_system import conditional_moments, half_squared_error
from icl.theory.lds.value_search import search_values
from icl.theory.quadratic import EPSILON

ROUNDING = "rounding: 64 * 2^-52 times the sizes of all terms, negative quadrature weights included"


def gradient_and_gap(population: Population, x_KS: Tensor) -> list[Numbers]:
    """Compare the gradient at (14) with 0 and its risk with the convex form's least value."""
    bound, size = population.risk.convex_bound(), eq14.size_of_gradient(population, x_KS)
    gradient, gap, *described = _at_14(population, x_KS)
    return [
        gradient.also_by(DIFFERENCES, gradient_norm=by_differences(population, x_KS), size=size).at_most(
            64 * EPSILON * size, ROUNDING
        ),
        gap.compared_by("risk_gap", "risk at (14), and least value of the convex form").at_most(
            2 * bound.rounding + 64 * EPSILON * size * float(x_KS.norm()),
            "rounding of the convex form's least value, and of the risk at (14)",
        ),
        *described,
    ]


def moments_in_z(population: Population, x_KS: Tensor) -> list[Numbers]:
    """Compare with 0, over drawn systems, what vanishes under the claim: the gradient's entries for y_t^2
    and y_{t+1}^2, and odd moments."""
    gradients = [eq14.gradient(part, x_KS)[[0, 2]] for part in population.moments_of_parts]
    off_E, odd_E = z_of_parts(torch.stack(gradients)), eq14.moments_z(population, [0, 2])
    risk_stderr = population.stderr(lambda part: eq14.half_risk_at(part, x_KS))
    return [
        sampled(off_pattern_z=float(off_E.abs().max()))
        .means("largest entry of the gradient at eq. (14) for y_t^2 and y_(t+1)^2, in standard errors")
        .at_most(quantile(len(off_E)), LEVEL),
        sampled(odd_moments_z=float(odd_E.abs().max()))
        .means("largest odd moment in the gradient at eq. (14), in standard errors")
        .at_most(quantile(len(odd_E)), LEVEL),
        *_at_14(population, x_KS),
        sampled(constant_stderr=population.stderr(eq14.constant), optimal_risk_stderr=risk_stderr),
    ]


def _at_14(population: Population, x_KS: Tensor) -> list[Numbers]:
    part, bound, kind = population.moments, population.risk.convex_bound(), population.kind
    risk = eq14.half_risk_at(part, x_KS)
    return [
        of_kind(kind, gradient_norm=float(eq14.gradient(part, x_KS).norm())).means(
            "norm of the gradient of the population risk at eq. (14)"
        ),
        of_kind(kind, risk_gap=risk - bound.value).means(
            "population risk at eq. (14) minus the least value of the convex form"
        ),
        of_kind(
            kind,
            constant=eq14.constant(part),
            optimal_risk=bound.value,
            risk_at_claim=risk,
            zero_risk=float(part.constant) / 2,
        )
        .means(
            constant="constant of eq. (14)",
            optimal_risk="least value of the convex form",
            risk_at_claim="population risk at eq. (14)",
            zero_risk="population risk of the prediction 0",
        )
        .compared_by("grid_error", "moments by Gauss rules over tokens"),
        population.condition(),
    ]


def by_differences(population: Population, x_KS: Tensor) -> float:
    """Return the norm of the gradient at these weights once more, from values of the risk."""
    part, rng = population.moments, np.random.default_rng(0)  # of directions

    def value(x_S: Tensor) -> Tensor:
        return half_squared_error(part, x_S[None])

    return gradient_norm(value, [x_KS[0]], [eq14.gradient(part, x_KS)], rng, step=float(x_KS.norm()) or 1.0)


def best_head(population: Population, c: float, rng: np.random.Generator) -> list[Numbers]:
    """Compare the best single head found with (14), b and a exchanged where it came out mirrored."""
    bound, zero_risk = population.risk.convex_bound(), float(population.moments.constant) / 2
    if not population.exact or zero_risk - bound.value <= 2 * bound.rounding:
        return []  # drawn systems have an optimum of their own; and of the prediction 0 any b is as good
    best = search_values(population.risk, 1, rng, restarts=3)
    b_P, a_KP = eq14.canonical(*balance(best, 1))
    described = searched(best_single_head=best.value, best_head_constant=float(b_P[1] * a_KP[0, 0])).means(
        best_single_head="least risk of one head that a search finds",
        best_head_constant="constant of that head",
    )
    if bound.rank < 3:
        return [described]
    least = float(torch.linalg.eigvalsh(population.moments.form_KSKS[0, :, 0] / 2).min())
    error = torch.stack([b_P[0] / b_P[1], a_KP[0, 1] / a_KP[0, 0], b_P[1] * a_KP[0, 0] / c - 1])
    return [
        searched(best_head_error=float(error.abs().max()))
        .means("largest relative difference of that head's weights from eq. (14)")
        .at_most(
            4 * (best.gap / least) ** 0.5 / min(1.0, abs(c)) + 64 * EPSILON * bound.condition,
            "root of its gap over the form's least eigenvalue; 2^-46 times the form's condition",
        ),
        described,
    ]


def risks_over_systems(population: Population, points: list[Tensor], seed: int, systems: int) -> Comparison:
    """Compare the risks at points with their means over drawn systems."""
    step = itertools.count()

    def draw(count: int) -> Tensor:
        C_QTT = evidence.fresh_covariances(population.law, seed, next(step), count)
        given = conditional_moments(C_QTT, 1)
        return torch.stack([half_squared_error(given, x_KS) for x_KS in points], 1)

    expected = torch.stack([half_squared_error(population.moments, x_KS) for x_KS in points])
    return compare(draw, expected, 500, systems, "systems drawn")
