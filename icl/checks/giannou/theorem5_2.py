"""giannou, Theorem 5.2: linear attention with ReLU layers takes damped Newton steps on the logistic loss.

Appendix C's construction, piecewise linear where the proof has step functions: each layer against the
operation stated for it, in rationals, and whole steps against exact ones, in balls.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from flint import arb, fmpq

from icl.checks.giannou.settings import NewtonSteps
from icl.checks.statement import Measured, setting
from icl.theory.giannou import newton_step as built
from icl.theory.giannou.balls import greatest
from icl.theory.giannou.columns import balls, distance, forward, lacking_a_head, near, width
from icl.theory.giannou.logistic import direction, probability
from icl.theory.rationals import rational

FEW = 64  # neurons of each function where layers are compared
POINTS = 8  # at which errors of two widths are compared
KEPT = ("I", "A", "y", "e", "one")  # rows that no layer writes


@dataclass
class Theorem5_2(NewtonSteps):
    steps: int = setting(3, 1, 3, most=200, beyond="nothing new is to be seen")  # in a row

    where = "Theorem 5.2, Remark 5.3; Appendix C, (C.6), (C.16) and (C.20)"
    title = "Theorem 5.2: one damped Newton step in 11 + 2k layers"
    claim = (
        "11 + 2k layers of linear attention and ReLU of 6d + 4 rows take one step of damped Newton on the "
        "regularised logistic loss, with an error of eps if the width is of order eps^{-4}; N neurons "
        "approximate p (1 - p) within 4/N, p within 2/N and the step size within 2/N."
    )
    quote = (
        '"there exists a Transformer consisting of linear attention with ReLU layers that can approximately '
        "perform damped Newton's method on the regularized logistic loss\" (Theorem 5.2, Section 5.1)"
    )
    formula = (
        r"x_{t+1} = x_t - \frac{2\sqrt{\mu}}{2\sqrt{\mu} + \lambda_f(x_t)} \nabla^2 f(x_t)^{-1} \nabla "
        r"f(x_t) + \varepsilon\quad\text{in } 11 + 2k \text{ layers}"
    )

    def measure(self, m: Measured) -> None:
        mu, rng, N = rational(self.mu), Random(self.seed), self.width
        by = built.Functions.of(mu, N)
        self._layers(m, built.newton_step(self.dim, self.context, mu, self.k, built.Functions.of(mu, FEW)))
        shares = [error * N / c for error, c in zip(map(arb, by.errors), (4, 2, 2), strict=True)]
        about = "errors of p (1 - p), p and the step size, over 4/N, 2/N and 2/N"
        m.below("function_errors", shares, 1, about)
        constant = fmpq(1, 2) - probability(-arb(built.radius_of_iterates(mu)).min(arb(10)))
        m.control("that of 1/2 in the place of p, less 1", constant * N / 2 - 1, of="function_errors")
        loss, x = self.draw(rng), direction(rng, self.dim)
        few = built.newton_step(self.dim, self.context, mu, self.k, built.Functions.of(mu, N // 4))
        many = built.newton_step(self.dim, self.context, mu, self.k, by)
        errors = built.follow(many, loss, x, self.steps)[0]

        points = [fmpq(i, POINTS) * direction(rng, self.dim) for i in range(POINTS)]

        def gain(*stacks: Sequence[built.StepLayer]) -> arb:
            quarter, whole = (greatest(built.follow(of, loss, x, 1)[0][0] for x in points) for of in stacks)
            return quarter / whole - arb(4) ** fmpq(1, 4)

        about = "largest error at a quarter of the width over that at the width, less 4^(1/4)"
        if self.k >= built.inversion_steps(mu):
            m.positive("rate", gain(few, many), about)
            wrong = gain(built.lacking(few, -1, 0), built.lacking(many, -1, 0))
            m.control("the same of layers that lack the head that moves x", wrong, of="rate")
        else:
            m.undecided(
                f"the error of {self.k} inversion steps hides that of the width; check.inversion=null takes "
                "as many as mu needs"
            )
        m.number("step_error", greatest(errors), "largest error of a constructed Newton step")
        m.note(
            "(C.2) is declared as (7d+5) x n, but lists 6d+4 rows, as in Remark 5.3. The two layers of "
            "Lemma 4.1 need the block of zeros. One layer per inversion step would suffice: X <- 2 X - X "
            "B^T X from X = alpha B converges to the transpose of the inverse, which step 8 can read "
            "transposed: 10 + k layers. Section 6 counts 13 layers per Newton step, which is k = 1."
        )
        m.note(
            "The width of the main text, O(d (1+mu)^8 / (eps^4 mu^10)), differs from Theorem 5.1's, O(d "
            "(1+mu)^6 / (eps^4 mu^8)). Piecewise linear layers need eps^{-1/2} neurons. The step functions "
            "of the proof need eps^{-1}, and the proof loses a square root in the step size, which is not "
            "necessary because lambda multiplies it. (C.6) and (C.16) hold in the largest entry, which the "
            "proof needs, and not in Euclidean norm for n > 64 and n > 4 examples."
        )
        m.note(
            "Steps 3 and 7 need three heads. H_{2k+4} has the identity in block 2, but no layer writes it "
            "there; the last head of the inversion can. The ReLU layer of step 6 is not needed: y p is "
            "linear in y. Step 7 writes u_4 for the u_3 of step 5."
        )

    def _layers(self, m: Measured, layers: Sequence[built.StepLayer]) -> None:
        rng = Random(self.seed)
        H = first = built.prompt(self.draw(rng), direction(rng, self.dim))
        state, apart, wrong = balls(H), [], []
        for layer in layers:  # on rationals the layer and its operation have no error
            stated = {**H, **layer.operation(H)}
            apart.append(distance(forward(layer.heads, H), stated))
            wrong += [distance(forward(mutant, H), stated) for mutant in lacking_a_head(layer.heads)]
            apart.append(distance(layer.neurons.apply(stated), {**stated, **layer.relu(stated)}))
            state = forward(layer.heads, state)
            state = {**state, **layer.relu(state)}
            H = {**near(state), **{name: first[name] for name in KEPT}}
        m.zero("layer_error", max(apart), "largest difference of a layer from the operation stated for it")
        m.control("the least difference of heads of which one is missing", min(wrong), of="layer_error")
        half = 2 * (FEW // 2)  # a square twice for each of the d entries, p once for each label
        found = [len(layers), max(len(layer.heads) for layer in layers), width(first)]
        found += [len(layer.neurons) for layer in layers if len(layer.neurons)]
        stated_sizes = [11 + 2 * self.k, 3, 6 * self.dim + 4, FEW, self.dim * half + 2, half, 6, FEW, 2]
        off = [a - b for a, b in zip(found, stated_sizes, strict=True)]
        m.zero("sizes_off", off, "layers, heads, rows and neurons less those stated")
