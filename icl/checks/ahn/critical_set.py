"""The set S of Theorems 3 and 4 of ahn, on which every gradient is a multiple of Sigma or I."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from flint import fmpq, fmpq_mat

from icl.checks.given import Given
from icl.checks.prompts import Prompts
from icl.checks.statement import Measured, setting
from icl.progress import track
from icl.random import generator
from icl.theory.ahn.critical_set import changes_by_reflection, label, label_by_polynomial
from icl.theory.ahn.forward import tokens
from icl.theory.ahn.invariant_risk import InvariantRisk, PolynomialMinimum
from icl.theory.blurred import Undecided
from icl.theory.rationals import identity, matrix, unit

WHITENED = "Sigma^1/2 w"


@dataclass
class CriticalSet(Prompts):
    dim: int = setting(5, 1, 8, most=32, beyond="d^3 operations on long rationals take minutes")
    layers: int = setting(3, 1, 4, most=12, beyond="the digits of a prompt triple with each layer")
    seed: int = setting(0, 0)

    task_covariance = "inverse"

    def measure_gradients(self, m: Measured, a: Sequence[fmpq], b: Sequence[fmpq]) -> None:
        """Measure at a point of S, on a prompt, what makes the mean gradients multiples of Sigma and I."""
        d, inverse = self.dim, self.sigma.inv()
        Z, _ = tokens(Random(self.seed), d, min(self.context, d + 1))
        right, other = label(Z, a, b, inverse), [2 * a[0], *a[1:]]
        about = "label by attention at a point of S minus w.(q(G Sigma^-1) - 1) x, G the prompt's covariance"
        m.zero("attention_error", right - label_by_polynomial(Z, a, b, inverse), about)
        m.control("a_0 doubled in q", right - label_by_polynomial(Z, other, b, inverse), of="attention_error")
        A, B = [-x * identity(d) for x in a], [x * identity(d) for x in b]
        about = "a prompt's gradient along D minus that of both reflected, by matrix"
        m.zero("off_direction", changes_by_reflection(Random(self.seed), A, B), about)
        if d > 1:
            A[0] -= unit(0, 0, d)
            off = max(map(abs, changes_by_reflection(Random(self.seed), A, B)))
            m.control("that difference at a point off S", off, of="off_direction")
        m.note(
            "On S a prompt's whitened gradients turn with the prompt. Whitened prompts have one law, however "
            "turned, so that the mean gradients are multiples of I: of Sigma for A_l, of I for B_l"
        )


def minima_on_s(dim: int, context: int, layers: int, starts: int, seed: int) -> list[PolynomialMinimum]:
    """Return the local minima of eq. (11) on S that a search in floats finds, best first."""
    risk = InvariantRisk(dim, context, layers, with_b=True)
    rng, what = generator(seed, "search"), "starts of the search"
    found = risk.minimise(rng, starts, lambda each: track(each, what, len(each)))
    if not found:
        raise Undecided("the search reached no local minimum on S; more starts may (check.starts)")
    return found


def whitened(given: Given, statement: str, family: str) -> dict[str, list[fmpq_mat]]:
    """Return R^T A_l R and R^-1 B_l R with Sigma = R R^T: what the weights do to x = R u, u ~ N(0, I)."""
    root = matrix(given.law.root_RDD[0].tolist())
    given.require(statement, [family], "identity", **{WHITENED: root.transpose() * given.task * root})
    found = {"A": [root.transpose() * A * root for A in given.matrices["A"]]}
    if "B" in given.matrices:
        inverse = root.inv()
        found["B"] = [inverse * B * root for B in given.matrices["B"]]
    return found
