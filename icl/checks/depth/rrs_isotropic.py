"""depth, Result 6: under random rotations the flow keeps Gamma a multiple of the identity."""

from dataclasses import dataclass

from flint import fmpq

from icl.checks.statement import Measured, Statement, setting
from icl.theory.depth.matrices import rotated_flow, signed_permutations
from icl.theory.depth.steps import atoms, shared
from icl.theory.rationals import identity, unit


@dataclass
class RrsIsotropic(Statement):
    layers: int = setting(2, 1, 5)
    dim: int = setting(3, 2, 4, most=5, beyond="the group has 46080 elements")

    paper, where, title = "depth", "Section 3.3, Result 6", "Random rotations keep Gamma isotropic"
    law = "x ~ N(0, O Lambda O^T), beta ~ N(0, O Omega O^T), O Haar, new in each context; P = infinity"
    claim = "At gamma I the flow moves Gamma along I, by tr Lambda^2 Omega (1 - gamma Lambda / L)^(2L - 1)."
    quote = r'"Gradient flow on the $\Gamma$-reduced model maintains the isotropy condition" (Result 6)'
    formula = r"\gamma' = \mathrm{tr}\, \Lambda^2 \Omega (1 - L^{-1} \gamma \Lambda)^{2L-1}"

    def measure(self, m: Measured) -> None:
        d, L, g = self.dim, self.layers, fmpq(1, 4)
        lam, omega = [fmpq(1, k + 1) for k in range(d)], [fmpq(k + 2, k + 1) for k in range(d)]
        moments = atoms(lam, [x * w / d for x, w in zip(lam, omega, strict=True)], 2 * L + 1)
        rate = -shared(moments, L).derivative()(g) / (2 * L)
        flat, group = [g * identity(d)] * L, list(signed_permutations(d))
        corner, beside = (rotated_flow(lam, omega, flat, unit(0, j, d), group) for j in (0, 1))
        m.zero("diagonal", corner - rate, "entry (1, 1) of Gamma' less gamma', the trace over D")
        fixed = rotated_flow(lam, omega, flat, unit(0, 0, d), [identity(d)])
        m.control("the same without rotations", fixed - rate, of="diagonal")
        m.zero("beside", beside, "entry (1, 2) of Gamma'")
        m.control("entry (1, 1)", corner, of="beside")
        m.note("At finite P the minimiser need not be a multiple of I: looped/minimiser_symmetric.")
