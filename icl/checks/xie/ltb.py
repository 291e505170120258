"""xie, section 4.2: the optimum of the linear transformer block."""

from dataclasses import dataclass
from random import Random

from flint import fmpq

from icl.checks.statement import Measured
from icl.checks.xie.settings import AroundPrior
from icl.theory.rationals import column
from icl.theory.xie.heads import Heads, descent_head, descent_risk
from icl.theory.xie.prompts import Prompt, block_of, layer_of

PROMPTS, LONGEST = 4, 50  # of contexts up to the longest


@dataclass
class Ltb(AroundPrior):
    where = "Section 4.2; Appendix B.2, eq. (30)"
    title = "Section 4.2: the optimum of the linear transformer block"
    claim = (
        "The global optimum of the linear transformer block is a Newton step and not a step of gradient "
        "descent, and it does not close the gap between one-step gradient descent and single-head LSA."
    )
    quote = (
        '"the global optimum of LTB implements a Newton step rather than one-step gradient descent. This '
        'approach fails to bridge the performance gap between one-step GD and single-head LSA" (Section 4.2)'
    )
    formula = r"\min_{\text{LTB}} R > \min_\eta R_{\text{GD}}(\eta)"
    about_a_prior = True

    def expected(self) -> str:
        return "fails"

    def measure(self, m: Measured) -> None:
        # Blocks and y_q-LSA have the same outputs (xie/theorem4), so their least risks are one.
        share = fmpq(1, self.context)
        zero, guessed = Heads(self.mean, share), Heads(self.mean, share, self.mean)
        eta, step, least = 1 / zero.square, descent_risk(self.dim, share), guessed.least_of_any_guess()
        rng, w_star, layer = Random(0), column(self.mean), layer_of(descent_head(self.mean, eta))
        block, no_guess = block_of(*layer, w_star), block_of(*layer, 0 * w_star)
        longest = min(self.context, LONGEST)
        prompts = [Prompt(rng, self.dim, rng.randint(1, longest)) for _ in range(PROMPTS)]
        errors, blind = (
            [abs(prompt.block(*of) - prompt.step(w_star, eta)) for prompt in prompts]
            for of in (block, (*block[:2], *no_guess[2:]))
        )
        about, gap = "least risk of any block less the risk of the gradient step", zero.least() - step
        m.positive("gap_left_by_block", least - step, about)
        about = "the same of multi-head LSA, without a guess"
        m.control(about, gap, of="gap_left_by_block", wants="positive")
        about = "largest difference of the best block from the gradient step, on rational prompts"
        m.positive("error_against_gradient_step", max(errors), about)
        about = "the same of the block without a guess in its MLP"
        m.control(about, max(blind), of="error_against_gradient_step", wants="positive")
        m.number("gap_of_lsa", gap, "least risk of multi-head LSA less the risk of the gradient step")
