"""xie, section 5.1.1: one gradient step from w* against multi-head LSA."""

from dataclasses import dataclass

from flint import fmpq

from icl.checks.statement import Measured
from icl.checks.xie.settings import AroundPrior
from icl.theory.xie.heads import Heads, descent_risk


@dataclass
class GdLowerBound(AroundPrior):
    where = "Section 5.1.1; Figure 2 (b)"
    title = "Section 5.1.1: gradient descent is strictly better than multi-head LSA"
    claim = (
        "For w* != 0 and y_q = 0, the risk of one gradient step from w* with the best step size is strictly "
        "less than the risk of multi-head LSA, for any weights and any number of heads."
    )
    quote = (
        '"one-step GD loss serves as a strict lower bound of the ICL risk for multi-head LSA empirically" '
        "(Section 5.1.1)"
    )
    formula = r"\min_\eta R_{\text{GD}}(\eta) < \min_{H, P, Q} R_{\text{LSA}},\quad w^\star \ne 0,\ y_q = 0"
    about_a_prior = True

    def measure(self, m: Measured) -> None:
        d, C, share = self.dim, self.context, fmpq(1, self.context)
        layer, step = Heads(self.mean, share), descent_risk(self.dim, share)
        gap = layer.least() - step
        m.positive("gap", gap, "least risk of multi-head LSA less the risk of the gradient step")
        with_guess = Heads(self.mean, share, self.mean).least() - step
        m.control("the same for y_q = w*.x_q, where the step is one of the heads", with_guess, of="gap")
        m.zero("gap_error", gap - 2 * layer.guess_error / (d * C + 2), "the gap less 2 |w*|^2 / (d C + 2)")
        m.control("the gap less 2 |w*|^2 / (d C)", gap - 2 * layer.guess_error / (d * C), of="gap_error")
        m.number("gd_risk", step, "risk of one gradient step from w* with the best step size")
        m.number("lsa_risk", layer.least(), "least risk of multi-head LSA")
