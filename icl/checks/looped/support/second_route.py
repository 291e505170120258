"""Numbers of one layer applied many times, computed once more.

The risk of a multiple of I comes from rational moments of traces. Here it comes, at d = 2, from a Gauss rule
for the Wishart law of two covariates, and else from matrices that are drawn. The risk of a I + b J + h H at
d = 2 comes from that rule, and here from a polynomial in rational numbers.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from scipy.optimize import brentq

from icl.checks.looped.support.rotations import Rotation, weighted_draws
from icl.checks.looped.support.settings import LoopedSettings
from icl.checks.numbers import second
from icl.checks.verdict import Route
from icl.theory.looped.equal_steps import EqualSteps
from icl.theory.looped.plane import PlaneRisk
from icl.theory.quadrature import gauss_rule

RATIONALS = "a polynomial in rational numbers"
DRAWS, ENTRIES = 20_000, 1_000_000


def scalar_risk(settings: LoopedSettings) -> Route:
    """Return the second route of the least risk of a multiple of I."""
    steps, d = settings.steps, settings.dim
    A_DD = steps.best * np.eye(d)
    if d == 2:
        return second(
            "a Gauss rule for 2 x 2 Wishart matrices", steps.least_risk, settings.plane.rule.value(A_DD)
        )
    count = min(DRAWS, ENTRIES // d**2)
    drawn = weighted_draws(d, settings.context, settings.layers, count, settings.seed, 5)
    terms_J = drawn.terms(A_DD) * count
    name = f"Monte Carlo on {count:,} Wishart matrices"
    return second(name, steps.least_risk, terms_J.mean(), terms_J.std() / count**0.5)


def scalar_step(settings: LoopedSettings) -> Route:
    """Return the second route of the best multiple of I: the root of the slope by a Gauss rule."""
    steps, odd = settings.steps, 2 * settings.layers - 1
    nodes_J, weights_J = gauss_rule(steps.moments, settings.layers + 1)

    def slope(a: float) -> float:
        return float((weights_J * nodes_J) @ (1 - a * nodes_J) ** odd)

    return second(
        "root of the slope by a Gauss rule", steps.best, brentq(slope, 0.0, 2 * steps.best, rtol=1e-15)
    )


def separate_risk(steps: EqualSteps) -> Route:
    """Return the second route of the least risk of L multiples: least squares over q, q(0) = 1."""
    nodes_J, weights_J = gauss_rule(steps.moments, steps.layers + 1)
    design_JK = np.vander(nodes_J, steps.layers + 1, increasing=True) * np.sqrt(weights_J)[:, None]
    rest_J = design_JK[:, 0] - design_JK[:, 1:] @ np.linalg.lstsq(design_JK[:, 1:], design_JK[:, 0])[0]
    return second("least squares on a Gauss rule", float(steps.separate_risk), float(rest_J @ rest_J))


def rational_risk(plane: PlaneRisk, a: float, b: float, h: float = 0.0) -> float:
    """Return the risk of a I + b J + h H in rational numbers."""
    return float(plane.exact(Fraction(a), Fraction(b), Fraction(h)))


def rotation_risk(settings: LoopedSettings, found: Rotation) -> Route | None:
    """Return the second route of the risk of the best matrix found, where that is exact."""
    if settings.dim != 2:  # else sampled; exact where a multiple of I was best
        return scalar_risk(settings) if found.half_width == 0 else None
    return second(RATIONALS, found.risk, rational_risk(settings.plane, found.a, float(found.b[0])))


def gain(settings: LoopedSettings, found: Rotation) -> Route | None:
    """Return the second route of what that matrix gains: nothing where it is the best multiple itself."""
    if settings.dim != 2:
        return Route("definition") if found.half_width == 0 else None
    risk = rational_risk(settings.plane, found.a, float(found.b[0]))
    return second(RATIONALS, found.gain, 1 - risk / settings.steps.least_risk, size=1.0)
