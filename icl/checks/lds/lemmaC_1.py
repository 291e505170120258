"""lds, Lemma C.1: (A, c) is observable with probability one under Assumption 3.2."""

from dataclasses import dataclass
from random import Random

from flint import fmpq, fmpq_mat

from icl.checks.statement import Measured, Statement, setting
from icl.theory.lds.systems import System, draw, observability
from icl.theory.rationals import column, diagonal

SETTINGS, STEPS = ("a", "b", "c", "d"), 2**30  # no two eigenvalues are drawn alike


@dataclass
class LemmaC1(Statement):
    """`samples` systems of each setting, and as many with entries of A and c drawn one by one."""

    dim: int = setting(5, 1, 6, most=20, beyond="the determinants have too many digits")
    samples: int = setting(20, 1, 20, most=10_000, beyond="it takes minutes")
    seed: int = setting(0, 0, 1000)

    paper, where = "lds", "Lemma C.1; Assumptions 3.1 and 3.2, eq. (5); Appendix E.1"
    title = "Lemma C.1: random systems are observable"
    law = "A and c drawn from a density, or c = (1, .., 1) and A = diag(v) in (a)"
    claim = (
        "A system (A, c) drawn under Assumption 3.2 is observable with probability one: the observability "
        "matrix has rank d."
    )
    quote = (
        r'"Assumption 3.2 ensures the pair $(\mathbf{A}, \mathbf{c})$ is observable w.p. 1" '
        "(Lemma C.1, Appendix C.2)"
    )
    formula = (
        r"\Pr\left[\operatorname{rank} \begin{bmatrix} c & A^\top c & \cdots & (A^{d-1})^\top c \end{bmatrix}"
        r" = d\right] = 1"
    )

    def measure(self, m: Measured) -> None:
        rng, d = Random(self.seed), self.dim
        drawn: dict[str, list[System]] = {
            name: [draw(name, d, rng, STEPS) for _ in range(self.samples)] for name in SETTINGS
        }
        drawn["any A"] = [(_any(rng, d, d), _any(rng, d, 1)) for _ in range(self.samples)]
        for name, systems in drawn.items():
            full = sum(observability(A, c).rank() == d for A, c in systems)
            key = name.replace(" ", "_")
            m.positive(f"observable_{key}", full, f"systems of rank d, of {self.samples}, in setting {name}")
            repeated = sum(observability(*_repeated(A, c)).rank() == d for A, c in systems)
            about = f"the same for systems of {name} with a repeated eigenvalue, at d = 1 with c = 0"
            m.control(about, repeated, of=f"observable_{key}")
        m.note(
            "det O is analytic in the numbers that a system is made of, drawn from a connected set: "
            "one system at which it is not 0 proves that it is 0 on a null set only. In (a) c is not drawn; "
            "distinct eigenvalues suffice, O is a Vandermonde matrix."
        )


def _any(rng: Random, rows: int, columns: int) -> fmpq_mat:
    drawn = [rng.choice((-1, 1)) * fmpq(rng.randint(1, STEPS), STEPS) for _ in range(rows * columns)]
    return fmpq_mat(rows, columns, drawn)


def _repeated(A: fmpq_mat, c: fmpq_mat) -> System:
    """Return a system with A's diagonal as eigenvalues, the first one twice."""
    d = A.nrows()
    if d == 1:
        return A, 0 * c
    values = [A[max(i, 1), max(i, 1)] for i in range(d)]
    return diagonal(values), column(c.entries())
