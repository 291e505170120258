"""giannou, section 3.2.1: Newton's iteration of order k, where it may start, and how many steps it takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any

from flint import arb, fmpq, fmpq_mat

from icl.checks.statement import Measured, Statement, setting
from icl.errors import InputError, reals
from icl.theory.giannou import inversion as newton
from icl.theory.giannou.balls import greatest
from icl.theory.rationals import identity, largest, rational

CONDITIONS = (2, 10, 100, 1000, 10_000)
SHARES = tuple(fmpq(k, 1000) for k in (-100, 0, 1, 300, 500, 900, 999, 1000, 1001, 1100))  # of 2 / lambda_max
EDGES = ("1/10", "1/100", "1/10000", "1/1000000")  # distances of alpha from an end, in shares
ALLOWED = 2  # steps beyond the printed bound: 1 + log2 1.5 + log2 (1.5 ln 2) = 1.64, and rounding up
DIGITS = 4000  # powers of the residual are multiplied out up to this one over d^2


@dataclass
class Order(Statement):
    order: int = setting(3, 2, 8, most=8, beyond="an order is counted in products of a layer")
    dim: int = setting(5, 1, 6, most=200, beyond="the random matrices take minutes")
    condition: float = setting(10.0, 1.0, 1e6)  # kappa(A)
    steps: int = setting(6, 1, 6, most=64, beyond="nothing new is to be seen")
    accuracy: float = setting(1e-8, 1e-300, 0.5, most=0.99, beyond="no step is counted")
    mus: Sequence[float] = (1.0, 0.5, 0.1, 1e-2, 1e-3, 1e-4)
    accuracies: Sequence[float] = (1.0, 0.1, 1e-2, 1e-4, 1e-6)  # eps of Theorems 5.1 and 5.2
    seed: int = setting(0, 0)

    paper = "giannou"
    where = "Section 3.2.1, eqs. (3.3) and (3.4); Theorems 5.1 and 5.2, Remark C.1"
    title = "Order, start and steps of Newton's iteration"
    law = "any invertible A; X_0 any, or alpha A^T"
    claim = (
        "After t steps the iteration (3.4) of order k has the residual I - X_t A = (I - X_0 A)^{k^t}; from "
        "X_0 = alpha A^T it converges for every alpha in (0, 2 / lambda_max(A^T A)) and for no other; the k "
        "printed in Theorems 5.1 and 5.2 suffices with logarithms to the base 2 and a constant."
    )
    quote = (
        '"the corresponding algorithm has an $n$-th order convergence to the inverse matrix, i.e., $(I - '
        'X_{k+1} A) = (I - X_k A)^n$" (Section 3.2.1)'
    )
    formula = r"I - X_t A = (I - X_0 A)^{k^t},\quad X_0 = \alpha A^\top,\ \alpha \in (0, 2 / \lambda_{\max})"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("mus", "accuracies"):
            values = reals(f"check.{name}", getattr(self, name), None, 0, open_low=True)
            if max(values) > 1:
                raise InputError(f"check.{name}={values}: must be at most 1")
            setattr(self, name, values)

    def measure(self, m: Measured) -> None:
        self._identity(m)
        self._starts(m)
        self._printed(m)

    def _identity(self, m: Measured) -> None:
        rng, d, k = Random(self.seed), self.dim, self.order

        def draw() -> fmpq_mat:
            return fmpq_mat(d, d, [fmpq(rng.randint(-9, 9), 10) for _ in range(d * d)]) + 2 * identity(d)

        A, X, one = draw(), draw() / 5, identity(d)
        R, off = one - X * A, []
        wrong = largest(one - newton.step(X, A, k) * A - R ** (k + 1))
        for t in range(1, self.steps + 1):
            if t > 1 and k**t * d * d > DIGITS:
                m.note(f"Steps from {t} on follow from the first, which is true for every X_0.")
                break
            X = newton.step(X, A, k)
            off.append(largest(one - X * A - R ** (k**t)))
        m.zero("max_error", max(off), "largest entry of I - X_t A less the power of I - X_0 A, over steps")
        m.control("the same after one step with the power of the next order", wrong, of="max_error")

    def _starts(self, m: Measured) -> None:
        """Count from where it converges, and the steps from the authors' start and near the edges."""
        kappa, accuracy = rational(self.condition), rational(self.accuracy)
        converges = {share: newton.residual(2 * share, kappa) < 1 for share in SHARES}

        def mismatches(end: int | fmpq) -> int:
            return sum(found != (0 < share < end) for share, found in converges.items())

        m.zero("mismatches", mismatches(1), "number of alpha at which convergence and the claim differ")
        others = min(mismatches(fmpq(1, 2)), mismatches(2))
        about = "the same for intervals that end at 1 / lambda_max and at 4 / lambda_max, the lesser"
        m.control(about, others, of="mismatches", wants="positive")
        steps = [newton.steps_to(self.order, newton.authors_residual(fmpq(c)), accuracy) for c in CONDITIONS]
        about = "steps from the authors' start to the accuracy, by condition number of A"
        m.number("steps_by_condition", {"conditions": list(CONDITIONS), "steps": steps}, about)
        edges: dict[str, list[Any]] = {"distances": [rational(e) for e in EDGES]}
        for end, sign in ((0, 1), (2, -1)):
            starts = [end + 2 * sign * e for e in edges["distances"]]
            edges[f"from {end}"] = [newton.steps_to(2, newton.residual(x, kappa), accuracy) for x in starts]
        about = "steps of order 2 to the accuracy, by the distance of alpha from an end of the interval"
        m.number("steps_near_edges", edges, about)

    def _printed(self, m: Measured) -> None:
        excess, without = [], []
        for mu, eps in product(map(rational, self.mus), map(rational, self.accuracies)):
            kappa = (1 + mu) / mu
            needed = newton.steps_to(2, newton.authors_residual(kappa), mu * newton.needed_accuracy(mu, eps))
            excess.append(needed - newton.printed_steps(mu, eps, arb(2)))
            without.append(excess[-1] + 2 * arb(kappa).log() / arb(2).log())
        about = "most steps needed beyond the printed bound, logarithms to the base 2"
        m.below("excess", greatest(excess), ALLOWED, about)
        about = "the same beyond the bound without its 2 log kappa, less 2"
        m.control(about, greatest(without) - ALLOWED, of="excess")
