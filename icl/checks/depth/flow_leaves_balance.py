"""Own: gradient flow from layers that are almost equal leaves them."""

from dataclasses import dataclass

import numpy as np
from flint import fmpq

from icl.checks.depth.settings import OWN, Exponent
from icl.checks.statement import OPEN, Measured, setting
from icl.theory.depth.flow import Spectrum
from icl.theory.depth.steps import atoms, risk, shared
from icl.theory.rationals import rational
from icl.theory.roots import least
from icl.theory.wishart import best_polynomial


@dataclass
class FlowLeavesBalance(Exponent):
    layers: int = setting(2, 2, 3, most=7, beyond="the flow takes minutes")
    dim: int = setting(8, 8, 8, most=64, beyond="moments have thousands of digits")
    time: float = setting(1e5, 1.0, 1e5)

    where, title, origin = OWN, "Gradient flow leaves balance", "icl"
    law = "rotated, P = infinity; lambda_k = k^-nu, lambda_k omega_k ~ k^(-nu beta - 1), k = 1 .. D, sum 1"
    claim = "From layers that differ by one part in a million the flow ends below the best shared layers."
    formula = r"g_l(0) = g (1 \pm 10^{-6}) \Rightarrow f(g(t)) \lt \min_g f(g, .., g)"
    tries = 0

    def expected(self) -> str:
        return "holds" if self.time >= 1e5 else OPEN

    def measure(self, m: Measured) -> None:
        L, spectrum = self.layers, Spectrum.power(self.nu, self.beta, self.dim).normalised()
        values, weights = ([rational(float(x)) for x in of] for of in (spectrum.lambda_K, spectrum.weight_K))
        moments = atoms(values, weights, 2 * L + 1)
        tied = least(shared(moments, L))[1]

        def end(apart: float) -> fmpq:
            start_L = 0.1 * (1 + apart * np.linspace(-1, 1, L))
            end_L = spectrum.flow(start_L, np.array([self.time]))[-1]
            return risk(moments, [rational(float(g)) for g in end_L])

        fall = tied - end(1e-6)
        m.number("fall", fall, "least shared risk less that at the flow's end", searched=True)
        m.true("leaves", True if fall > 0 else None, "the flow's end is below the best shared layers")
        if not fall > 0:
            m.undecided("the flow is not below them at this time, and may be later")
        m.control("the fall from exactly equal layers", tied - end(0.0), wants="not positive")
        m.number("risk", end(1e-6), "exact risk at the end of the flow", searched=True)
        m.number("shared", tied, "least risk of shared layers: the plateau")
        m.number("separate", best_polynomial(moments, L)[1], "least risk of separate layers")
