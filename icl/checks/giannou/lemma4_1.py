"""giannou, Lemma 4.1: two layers of linear attention are one step of Newton's iteration."""

from dataclasses import dataclass
from random import Random

from flint import fmpq, fmpq_mat

from icl.checks.statement import Measured, Statement, setting
from icl.theory.giannou.columns import Layer, State, distance, forward, lacking_a_head, width
from icl.theory.giannou.least_squares import one_layer, two_layers
from icl.theory.giannou.logistic import whole_numbers
from icl.theory.rationals import identity, unit


@dataclass
class Lemma4_1(Statement):
    dim: int = setting(5, 1, 10, most=64, beyond="nothing new is to be seen")
    seed: int = setting(0, 0)

    paper, where = "giannou", "Lemma 4.1; Appendix A.1"
    title = "Lemma 4.1: two layers take one step of Newton's iteration"
    law = "any A and X_0, in rationals"
    claim = (
        "Two layers of linear attention with two heads and width 4d take one step of Newton's iteration, X_1 "
        "= X_0 (2I - A X_0), for every A and X_0."
    )
    quote = (
        '"there exists a linear Transformer consisting of 2 linear attention layers, each of which has 2 '
        "attention heads and width 4d, such that it can perform one step of Newton's iteration for any "
        'target matrix A" (Lemma 4.1)'
    )
    formula = r"X_1 = X_0 (2I - A X_0)"

    def measure(self, m: Measured) -> None:
        rng, d = Random(self.seed), self.dim
        A = whole_numbers(rng, d, d, 9) / 10 + 2 * unit(0, d - 1, d)  # beyond d = 1 not symmetric
        X = whole_numbers(rng, d, d, 9) / 10 + 2 * identity(d)
        two, one = two_layers(), [one_layer()]

        def error(layers: list[Layer], stored: fmpq_mat) -> fmpq:
            prompt = {"X": X, "A": stored, "Z": fmpq_mat(d, d), "I": identity(d)}
            H: State = prompt
            for layer in layers:
                H = forward(layer, H)
            return distance(H, {**prompt, "X": 2 * X - X * A * X})

        wrong = [
            error([*layers[:k], mutant, *layers[k + 1 :]], stored)
            for layers, stored in ((two, A), (one, A.transpose()))
            for k, layer in enumerate(layers)
            for mutant in lacking_a_head(layer)
        ]
        m.zero("two_layers", error(two, A), "largest difference of two layers from the step, with A stored")
        m.control("the least difference of a stack that lacks one of its heads", min(wrong), of="two_layers")
        about = "largest difference of one layer from the step, A^T stored"
        m.zero("one_layer", error(one, A.transpose()), about)
        if d > 1:
            m.control("one layer with A itself stored, which is not symmetric", error(one, A), of="one_layer")
        sizes = (len(two), max(map(len, two)), width({"X": X, "A": A, "Z": A, "I": A}))
        off = [found - stated for found, stated in zip(sizes, (2, 2, 4 * d), strict=True)]
        m.zero("sizes_off", off, "layers, heads and width less those stated")
        m.note(
            "The statement stores A^T in the second block, but the two layers of the proof use A: applied to "
            "A^T they take the step for A^T. If A^T is stored, one layer with two heads suffices for every "
            "A, because the key is read transposed: -X (A^T)^T X + X. The second layer and block 3 are "
            "needed only if A itself is stored."
        )
