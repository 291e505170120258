"""looped: is the best single matrix, applied L times, symmetric, as a preconditioner is?"""

from dataclasses import dataclass

from flint import fmpq, fmpq_poly

from icl.checks.looped.settings import Searched
from icl.checks.statement import OPEN, Blurred, Measured, setting
from icl.theory.looped.search import rounded
from icl.theory.looped.tokens import paths_error, turned
from icl.theory.roots import real_roots


@dataclass
class MinimiserSymmetric(Searched):
    layers: int = setting(2, 1, 4, most=8, beyond="a search takes minutes")

    where, title = "statement 1", "Is the best shared matrix symmetric?"
    claim = "The matrix with the least risk, applied L times, is symmetric."
    formula = r"\min_A f(A) = \min_{A = A^\top} f(A),\quad f(A) = \mathbb{E} \|(I - A^\top G)^L\|_F^2"

    def expected(self) -> str:
        return {"holds": "fails", "fails": "holds"}.get(super().expected(), OPEN)

    def measure(self, m: Measured) -> None:
        found, (_, lowest) = self.found(), self.steps.optimum

        def roots(risk: fmpq) -> int:
            return len(real_roots(self.steps.polynomial - fmpq_poly([risk])))

        witness = rounded(self.steps, found, lambda one: roots(one.risk) == 0)
        lower = self.lower(roots(witness.risk) == 0)
        m.true("symmetric", None if lower is None else not lower, "no matrix is below every symmetric one")
        a, b = witness.a, witness.b
        about = "the rational witness: its entries in a plane in which it turns"
        m.number("witness", [[a, -b], [b, a]], about, searched=True)
        m.number("witness_risk", witness.risk, "exact risk of the witness")
        needed = (8 ** (2 * self.layers + 1) * self.layers * self.dim**2) ** 2
        about = "context length from which the sandwich says anything that a reading note quotes"
        m.number("needed_context", needed, about)
        wrong = found.a if found.b else found.a * fmpq(11, 10)
        excess = self.steps.polynomial(wrong) / lowest - 1
        if excess.contains(0):
            raise Blurred
        about = "the symmetric part of the best matrix (a wrong step without one), less 1"
        m.control(about, excess, wants="positive")
        A, L = turned(self.dim, found.a, found.b, found.planes), self.layers
        errors = [paths_error(A, self.sigma, self.context, L, loops) for loops in (L, L + 1)]
        about = "attention over tokens of Sigma minus the whitened formula, a prompt"
        m.zero("paths_error", errors[0], about)
        m.control("the same of one loop more over tokens", errors[1], of="paths_error")
        m.note("The risk does not depend on Sigma in whitened coordinates; paths_error is of a prompt of it.")
        m.note("No symmetric matrix is below the best multiple of Sigma^-1 (symmetric_optimum_is_scalar).")
