"""The law of depth's statements, by moments, and the power law of its exponents."""

from dataclasses import dataclass

from flint import arb, fmpq

from icl.checks.statement import Statement, setting
from icl.theory.depth.power_law import PowerLaw

OWN = "own, on Section 5.1 and Appendix G.1"
LONG, FAR = "moments have thousands of digits", "sums are far from their integrals"


@dataclass
class Isotropic(Statement):
    layers: int = setting(2, 1, 6, most=20, beyond=LONG)
    dim: int = setting(8, 1, 12, most=100, beyond=LONG)
    context: int = setting(16, 1, 60)

    paper = "depth"
    law = "x ~ N(0, I), beta ~ N(0, I), P examples in D dimensions, y = x.beta / sqrt D; L layers, no noise"

    @property
    def alpha(self) -> fmpq:
        return fmpq(self.context, self.dim)


@dataclass
class Separate(Isotropic):
    layers: int = setting(2, 2, 6, most=20, beyond=LONG)


@dataclass
class Exponent(Statement):
    nu: float = setting(1.2, 1.0, 2.0, most=6.0, beyond=FAR)
    beta: float = setting(1.5, 0.5, 3.0, most=6.0, beyond=FAR)

    paper = "depth"
    law = "P = infinity; lambda_k = k^-nu, lambda_k omega_k = k^(-nu beta - 1), k = 1, 2, .."

    @property
    def power(self) -> PowerLaw:
        return PowerLaw.at(self.nu, self.beta)

    @property
    def exponents(self) -> tuple[arb, arb]:
        return arb(self.power.nu), arb(self.power.beta)
