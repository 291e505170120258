"""Ahn et al. 2023, Theorem 5: the best single layer of ReLU attention."""

from dataclasses import dataclass
from typing import Any

from flint import arb, fmpq, fmpq_mat

from icl.checks.given import LINEAR, Comparison, Given
from icl.checks.statement import Measured, Statement, setting
from icl.errors import InputError
from icl.theory.ahn.relu_layer import curvature, relu_layer_risk, steepest, terms_of_b_0
from icl.theory.rationals import column, dot, identity, matrix, rational, trace


@dataclass
class Theorem5(Statement):
    dim: int = setting(5, 1, 8, most=64, beyond="the gradient takes dim^4 operations")
    context: int = setting(20, 1, 10**6)

    paper, where = "ahn", "Theorem 5"
    title = "Theorem 5: the best layer of ReLU attention"
    law = "x ~ N(0, I), w ~ N(0, I), n examples, y = w.x"
    claim = (
        "Let x and w be isotropic. Over all P and all Q whose last row is zero, the risk of one layer of "
        "ReLU attention has its global minimum at P = e e^T, with e the last unit vector, and Q = -I / "
        "((n - 1)/(2n) + (d + 2)/n) on the covariates."
    )
    quote = (
        '"the following parameters form a global minimizer of the corresponding in-context loss" (Theorem 5, '
        "Section 6)"
    )
    formula = (
        r"\min f_{\text{ReLU}} = d - \frac{d n}{2(d + 2) + n - 1}\quad\text{at } A = "
        r"-\left(\tfrac{n-1}{2n} + \tfrac{d+2}{n}\right)^{-1} I"
    )

    claim_of_weights = (
        "These ReLU layers are at the global minimum of Theorem 5, up to P <- gamma P, Q <- Q / gamma."
    )

    def measure(self, m: Measured) -> None:
        d, n = self.dim, rational(self.context)
        A, zero = stated(d, n), fmpq_mat(d, 1)
        risk, value = relu_layer_risk(zero, fmpq(1), A, n), d - d * n / (2 * (d + 2) + n - 1)
        bend, linear = curvature(d, n), -n / (n + d + 1)
        least = d - d / (4 * bend)
        wrong = identity(d) * (linear if n > 1 else linear * fmpq(11, 10))  # at n = 1 the two steps agree
        about = "largest entry of the gradient of the risk at the stated P and Q"
        m.zero("gradient_norm", steepest(A, n), about)
        m.control("the step of eq. (7)", steepest(wrong, n), of="gradient_norm")
        m.zero("risk_gap", risk - least, "risk there minus the least of the form in b_1 A that bounds all")
        above = relu_layer_risk(zero, fmpq(1), wrong, n) - least
        m.control("the step of eq. (7)", above, of="risk_gap", wants="positive")
        m.zero("stated_value_error", risk - value, "risk there minus d - d n / (2 (d + 2) + n - 1)")
        dense = fmpq_mat(d, d, list(range(1, d * d + 1)))
        apart = relu_layer_risk(zero, fmpq(1), dense, n) - (d + trace(dense) + bend * dot(dense, dense))
        m.zero("form", apart, "risk at a matrix of other entries minus that form, d + tr A + c |A|^2")
        m.positive("curvature", 2 * bend, "curvature 2 c of the form")
        m.positive("b_0", list(terms_of_b_0(n)), "factors of the squares that the rest b_0 of P's row adds")
        m.number("step_over_linear", A[0, 0] / linear, "stated step over that of eq. (7), linear attention's")
        m.number("risk_at_claim", risk, "risk at the stated P and Q")

    def compare(self, given: Given) -> Comparison:
        given.require("Theorem 5", LINEAR, "relu", x=given.sigma, w=given.task)
        P, Q = given.single_layer("Theorem 5")
        d, n = P.nrows() - 1, rational(given.context)
        if any(Q[d, j] != 0 for j in range(d + 1)):
            raise InputError("check.weights: the last row of Q is not zero, as Theorem 5 assumes")
        b_0, b_1 = column(P[d, i] for i in range(d)), P[d, d]
        A, best = matrix(row[:d] for row in Q.tolist()[:d]), stated(d, n)
        off = dot(b_1 * A - best, b_1 * A - best) + dot(b_0, b_0) * dot(A, A)
        least = relu_layer_risk(fmpq_mat(d, 1), fmpq(1), best, n)
        return Comparison(relu_layer_risk(b_0, b_1, A, n), least, arb(off / dot(best, best)).sqrt())

    def prompts(self) -> Any:
        from icl.tasks import LinearRegression

        return LinearRegression(self.dim, self.context, prefix="check", covariance="identity").law([0])


def stated(d: int, n: fmpq) -> fmpq_mat:
    return -identity(d) / ((n - 1) / (2 * n) + (d + 2) / n)
