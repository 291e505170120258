"""Own: gradient flow from steps that are almost equal leaves balance."""

from dataclasses import dataclass
from itertools import combinations

from flint import fmpq

from icl.checks.depth.settings import OWN, Exponent
from icl.checks.statement import Measured, setting
from icl.theory.calculus import gradient
from icl.theory.depth.flow import Spectrum
from icl.theory.depth.steps import X, error, risk, shared
from icl.theory.roots import least
from icl.theory.wishart import best_polynomial, mean_trace


@dataclass
class FlowLeavesBalance(Exponent):
    layers: int = setting(2, 2, 5, most=7, beyond="moments have thousands of digits")
    dim: int = setting(8, 8, 16, most=64, beyond="moments have thousands of digits")

    where, title, origin = OWN, "Gradient flow leaves balance", "icl"
    law = "rotated, P = infinity; lambda_k = k^-nu, lambda_k omega_k ~ k^(-nu beta - 1), k = 1 .. D, sum 1"
    claim = "From steps that all differ, however little, gradient flow ends at the least risk."
    formula = (
        r"(g_l - g_m)' = 2 (g_l - g_m)\, \mathbb{E} \lambda^2 "
        r"(1 - g_l \lambda)(1 - g_m \lambda) \prod_{k \ne l, m} (1 - g_k \lambda)^2"
    )

    def measure(self, m: Measured) -> None:
        L = self.layers
        moments = Spectrum.power(self.nu, self.beta, self.dim).moments(2 * L + 2)
        steps, off, longer = [fmpq(k + 1, 10**6) + fmpq(1, 2) for k in range(L)], [], []
        slopes = gradient(lambda *g: risk(moments, g), steps)
        for one, other in combinations(range(L), 2):
            rest = error([g for k, g in enumerate(steps) if k not in (one, other)])
            rate = X**2 * error(steps) * rest
            apart = (slopes[one] - slopes[other]) / (steps[one] - steps[other])
            off.append(apart + 2 * mean_trace(moments, rate))
            longer.append(apart + 2 * mean_trace(moments, rate * error(steps[:1])))
        m.zero("rates", off, "slopes' differences over the steps' plus twice the formula, each pair")
        m.control("the formula with one factor more", min(map(abs, longer)), of="rates")
        tied, alone = least(shared(moments, L))[1], best_polynomial(moments, 1)[1]
        separate = best_polynomial(moments, L)[1]
        m.positive("fall", tied - separate, "least risk of shared layers less that of separate ones")
        m.control("the same where separate ones have one layer", tied - alone, of="fall")
        m.number("shared", tied, "least risk of shared layers: the plateau")
        m.number("separate", separate, "least risk of separate layers: the flow's end")
