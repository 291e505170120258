"""xie, Theorem 4, Lemmas 2 and 3, eqs. (7) to (10): a step of gradient descent from w*, as a layer with a
trained guess."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from flint import fmpq

from icl.checks.given import Comparison, Given, distance
from icl.checks.statement import Measured, setting
from icl.checks.xie.settings import AroundPrior, given_layer, not_convex
from icl.errors import real, reals
from icl.theory.rationals import column, rational
from icl.theory.xie.heads import Heads, descent_head, norm
from icl.theory.xie.prompts import Prompt, block_of, guessed_of, layer_of, matrix

PROMPTS, LONGEST = 2, 50  # of contexts up to the longest: outputs are polynomials, one identity for every C


@dataclass
class Theorem4(AroundPrior):
    """`eta` are the step sizes of the forward passes. Gradients are taken at 1 to 64 times `context`.
    `hidden` is the width of linear transformer blocks."""

    eta: float | Sequence[float] = (0.1, 1.0, 3.0)
    hidden: int = setting(11, 1, 12, most=1000, beyond="a product of matrices takes minutes")

    where = "Theorem 4; Lemmas 2 and 3; Sections 4.1 and 4.2, eqs. (7) to (10); Appendices A.3 and B"
    title = "Theorem 4: y_q-LSA has one in the limit of large C"
    law = "x ~ N(0, I), w ~ N(w*, I), C examples, y = w.x; y_q = v.x_q with v trained"
    claim = (
        "Eq. (7) with v = w* is one step of gradient descent from w*, and at eta = 1 the gradient of the "
        "risk of y_q-LSA is O(1/C) there. At eta = C/(C + d + 1) it is 0 for every C, and the point is the "
        "global minimum. The risk is not convex in (P, Q, v). Every y_q-LSA is a linear transformer block of "
        "one hidden unit, eq. (30), and every block, of any width, is a y_q-LSA."
    )
    quote = (
        r'"when [$C \to \infty$], the gradient vanishes at the weights in Eq. (7) with [$v = w^{\ast}$, '
        r"$\eta = 1$]. For finite [$C$], each gradient component differs from its infinite-[$C$] value by a "
        r'correction of order [$1/C$]" (after Theorem 4, Section 4.2); '
        '"[$y_q$]-LSA defined in equation 12 is a special case of linear transformer block (LTB)" '
        "(Appendix B.2)"
    )
    formula = r"\|\nabla R_C\| = O(1/C) \text{ at } (7),\quad v = w^\star,\ \eta = 1"
    claim_of_weights = "These weights are one step of gradient descent from w* with the best step size."

    def __post_init__(self) -> None:
        super().__post_init__()
        many = isinstance(self.eta, Sequence) and not isinstance(self.eta, str)
        self.etas = reals("check.eta", self.eta, None) if many else [real("check.eta", self.eta)]

    def measure(self, m: Measured) -> None:
        d, mean = self.dim, self.mean
        layers = [Heads(mean, fmpq(1, C), mean) for C in (2**k * self.context for k in range(7))]
        at_best = [norm(_gradient(layer, mean, 1 / layer.square)) for layer in layers]
        size = sum((rational(w) ** 2 for w in mean), fmpq(0))
        stated = 4 * (d + 1) ** 2 * (d**2 + d + 2 * size + size**2)  # |gradient|^2 C^2

        def off(layer: Heads, eta: int) -> fmpq:
            squares = (e * e for e in _gradient(layer, mean, eta))
            return sum(squares, fmpq(0)) / layer.share**2 - stated

        first = layers[0]
        best = descent_head(mean, 1 / first.square)
        step = first.matrices([best])
        m.zero("gradient_norm_best_eta", at_best, "norm of the gradient at eta = C/(C + d + 1), by C")
        twice = norm(_gradient(first, mean, 2 / first.square))
        m.control("the same at twice the step", twice, of="gradient_norm_best_eta")
        about = "squared norm at eta = 1, times C^2, less 4 (d + 1)^2 (d^2 + d + 2 |w*|^2 + |w*|^4)"
        m.zero("gradient_error_unit_eta", [off(layer, 1) for layer in layers], about)
        m.control("the same at eta = 2", off(first, 2), of="gradient_error_unit_eta")
        above, beyond = (
            first.risk([factor * x for x in step]) - first.least_of_any_guess() for factor in (1, 2)
        )
        m.zero("risk_error", above, "risk at the best step less the least of any heads and guess")
        m.control("the same at twice the step", beyond, of="risk_error")
        not_convex(m, "violation_trained_guess", first, [best], "with a trained guess")
        self._forward(m)
        self._blocks(m)

    def compare(self, given: Given) -> Comparison:
        layer, heads = given_layer(given, "Theorem 4", ["yq_lsa"])
        stated = Heads(layer.mean, layer.share, layer.mean)
        step = [descent_head(layer.mean, 1 / layer.square)]
        off = distance(layer.predictor(heads), stated.predictor(step))
        return Comparison(layer.risk(layer.matrices(heads)), stated.least_of_any_guess(), off)

    def _forward(self, m: Measured) -> None:
        """Compare outputs with the step on prompts with random rational entries."""
        rng, mean = Random(0), column(self.mean)
        errors, longer = [], []
        for C in sorted({1, min(self.context, LONGEST), 2 * self.dim + 1}):
            for eta in map(rational, self.etas):
                prompt, (P, Q) = Prompt(rng, self.dim, C), layer_of(descent_head(self.mean, eta))
                output = prompt.guessed(P, Q, mean)
                errors.append(output - prompt.step(mean, eta))
                longer.append(abs(output - prompt.step(mean, eta + fmpq(1, 10))))
        about = "output of eq. (7) less one gradient step from w*, on prompts with rational entries"
        m.zero("max_error", errors, about)
        m.control("the step longer by a tenth", min(longer), of="max_error")

    def _blocks(self, m: Measured) -> None:
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
        about = "output of a random y_q-LSA less that of its block of one hidden unit"
        m.zero("block_error", errors, about)
        m.control("the block without the guess in its keys, or in its MLP", min(wrong), of="block_error")
        m.zero("converse_error", converse, "output of a random block less that of its y_q-LSA")
        more = self.hidden * 2 * (d + 1) - d
        m.number("further_parameters", more, "parameters of the block less those of y_q-LSA")


def _gradient(layer: Heads, mean: Sequence[float], eta: fmpq | int) -> list[fmpq]:
    """Return every entry of the gradient in P, Q and v, at a step of this size."""
    head = descent_head(mean, eta)
    return layer.gradient([head]) + layer.slopes(layer.matrices([head]))[1]
