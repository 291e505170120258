"""Ahn et al. 2023, Theorem 1: the best single layer of linear attention, and its limit for long contexts."""

from dataclasses import dataclass

from icl.checks.given import LINEAR, Comparison, Given, distance
from icl.checks.prompts import Prompts
from icl.checks.statement import Measured
from icl.theory.one_layer import OneLayer, products
from icl.theory.rationals import identity, largest, rational, trace


@dataclass
class Theorem1(Prompts):
    paper, where = "ahn", "Theorem 1, eqs. (6) and (7); Lemmas 2 and 3; section 2, (i); section 3"
    title = "Theorem 1: the best single layer"
    law = "x ~ N(0, Sigma), w ~ N(0, I), n examples, y = w.x"
    claim = (
        "For every covariance Sigma of x and w ~ N(0, I), eq. (6) is a global minimum of the population "
        "risk of one layer of linear attention, over all P and Q. As n grows, its preconditioner converges "
        "to Sigma^-1."
    )
    quote = (
        '"Then, the following choice of parameters [...] is a global minimizer of $f(P, Q)$ up to '
        're-scaling" (Theorem 1, Section 3)'
    )
    formula = (
        r"\min_{P, Q} f \text{ is attained at } P = \begin{bmatrix} 0 & 0 \\ 0 & 1 \end{bmatrix},\ "
        r"Q = -\begin{bmatrix} \left(\frac{n+1}{n}\Sigma + \frac{\operatorname{tr}\Sigma}{n} I\right)^{-1} "
        r"& 0 \\ 0 & 0 \end{bmatrix}"
    )

    claim_of_weights = "These weights are at eq. (6), up to P <- gamma P, Q <- Q / gamma."

    def measure(self, m: Measured) -> None:
        sigma, n = self.sigma, rational(self.context)
        layer = OneLayer(sigma, n)
        shrunk = (n + 1) / n * sigma
        A, untraced = (shrunk + trace(sigma) / n * identity(self.dim)).inv(), shrunk.inv()
        gradient, risk = largest(layer.gradient(A)), layer.risk_at(A)
        m.zero("gradient_norm", gradient, "largest entry of the gradient of the risk at eq. (6)")
        m.control("eq. (6) without its trace term", largest(layer.gradient(untraced)), of="gradient_norm")
        about = "risk at eq. (6) minus the least of the form that bounds every P and Q"
        m.zero("risk_gap", risk - layer.least(), about)
        above = layer.risk_at(untraced) - layer.least()
        m.control("the risk without the trace term minus the least", above, of="risk_gap", wants="positive")
        nothing = layer.risk_at(0 * A)  # halfway between (P, Q) and (-P, -Q), which predict the same
        about = "risk halfway from eq. (6) to (-P, -Q) less the mean of theirs, over tr Sigma: not convex"
        m.positive("violation", 1 - risk / nothing, about)
        in_Q_alone = nothing - (risk + layer.risk_at(-A)) / 2
        m.control("the same from (P, Q) to (P, -Q)", in_Q_alone, of="violation")
        # Section 3: I - A Sigma = (n + M)^-1 M with M = I + tr(Sigma) Sigma^-1. Whitened, A is at the
        # distance r / (n + r) from I, r = 1 + tr(Sigma) / lambda_min.
        one, spread = identity(self.dim), trace(sigma) * sigma.inv()
        left = one - layer.label_form.solve(sigma) * sigma
        off = [largest(left * (n * one + M) - M) for M in (one + spread, spread)]
        about = "largest entry of (I - A Sigma)(n + M) - M at the best A, M = I + tr(Sigma) Sigma^-1"
        m.zero("rate_error", off[0], about)
        m.control("the same for M = tr(Sigma) Sigma^-1", off[1], of="rate_error")
        m.number("optimal_risk", risk, "risk at eq. (6)")
        m.note("the block of Q_0 converges to -Sigma^-1: Q_0 is minus the preconditioner")
        m.note("Sigma^-1 is close to n times the inverse of the Gram matrix of the x_i, not to that matrix")

    def compare(self, given: Given) -> Comparison:
        given.require("Theorem 1", LINEAR, w=given.task)
        layer = OneLayer(given.sigma, given.context)
        X, stated = products(*given.single_layer("Theorem 1")), products(*layer.optimum())
        return Comparison(layer.risk(X), layer.least(), distance(X, stated))
