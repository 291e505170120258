"""xie, Lemma 3: y_q-LSA as a linear transformer block, and the converse."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from icl.checks.statement import Measured, setting
from icl.checks.xie.settings import AroundPrior
from icl.theory.xie.prompts import Prompt, block_of, guessed_of, matrix

PROMPTS, LONGEST = 4, 50  # of contexts up to the longest: the identity is one for every C


@dataclass
class Lemma3(AroundPrior):
    """`hidden` is the width of the blocks of the converse."""

    hidden: int = setting(11, 1, 12, most=1000, beyond="a product of matrices takes minutes")

    where = "Lemma 3; Appendix B.2, eqs. (30) and (31)"
    title = "Lemma 3: y_q-LSA as a linear transformer block"
    law = "any prompt, here some with random rational entries, and any weights"
    claim = (
        "Every y_q-LSA is a linear transformer block, eq. (30), of one hidden unit; and every block, of any "
        "width, is a y_q-LSA."
    )
    quote = (
        '"[$y_q$]-LSA defined in equation 12 is a special case of linear transformer block (LTB)" '
        "(Appendix B.2)"
    )
    formula = r"\{y_q\text{-LSA}\} = \{\text{LTB}\}"

    def measure(self, m: Measured) -> None:
        # Outputs are polynomials of prompt and weights: at random rational entries wrong ones differ.
        rng, d, errors, converse, wrong = Random(0), self.dim, [], [], []
        for _ in range(PROMPTS):
            prompt = Prompt(rng, d, rng.randint(1, min(self.context, LONGEST)))
            P, Q, v = matrix(rng, d + 1, d + 1), matrix(rng, d + 1, d + 1), matrix(rng, d, 1)
            block = P, Q, matrix(rng, self.hidden, d + 1), matrix(rng, self.hidden, d + 1)
            output, made, blind = prompt.guessed(P, Q, v), block_of(P, Q, v), block_of(P, Q, 0 * v)
            errors.append(output - prompt.block(*made))
            converse.append(prompt.block(*block) - prompt.guessed(*guessed_of(*block)))
            in_keys, in_mlp = (made[0], blind[1], *made[2:]), (*made[:2], blind[2], made[3])
            wrong += [abs(output - prompt.block(*in_keys)), abs(output - prompt.block(*in_mlp))]
        m.zero("max_error", errors, "output of a random y_q-LSA less that of its block of one hidden unit")
        m.zero("max_error_converse", converse, "output of a random block less that of its y_q-LSA")
        m.control("the block without the guess in its keys, or in its MLP", min(wrong))
        more = self.hidden * 2 * (d + 1) - d
        m.number("further_parameters", more, "parameters of the block less those of y_q-LSA")
