"""Scalar layers of linear attention without a mask, as in giannou: a floor of the loss at every depth."""

from dataclasses import dataclass
from random import Random

from flint import fmpq, fmpq_mat

from icl.checks.statement import Measured, Sample, Statement, as_float, setting, sign
from icl.errors import whole
from icl.random import generator
from icl.theory.giannou.columns import forward
from icl.theory.giannou.logistic import whole_numbers
from icl.theory.giannou.own_token import layers_of, least_by_spectrum, masked_risks, prediction, spectra

DEEPEST = 4  # masked layers whose risk a Gauss rule is exact for
COMPARED = 3  # layers of the transformer that the formula is compared with


@dataclass
class MaskFloor(Statement):
    dim: int = setting(5, 1, 10, most=50, beyond="the rationals take minutes")
    context: int = setting(25, 2, 100, most=5000, beyond="the rationals take minutes")
    layers: int = setting(4, 1, 3, most=DEEPEST, beyond="no rule is exact")  # with a mask, or more
    seed: int = setting(0, 0, 1000)
    samples: int = setting(10_000, 200, 2000, most=200_000, beyond="the spectra take a gigabyte")

    paper, where = "giannou", "icl, beside section 6 and eq. (3.1a) without a mask"
    title = "Layers with A_l and B_l multiples of I, without a mask: a floor of that family"
    origin = "icl"
    law = "x ~ N(0, I), w ~ N(0, I), n examples, y = w.x; the query among the tokens"
    claim = (
        "Without a mask, scalar layers of linear attention, with every A_l and B_l a multiple of I, have a "
        "loss above a positive floor at every depth; with a mask they pass below it."
    )
    formula = r"\inf_{L, a, b} f_{\text{no mask}}(a, b) > 0,\quad A_\ell = a_\ell I,\ B_\ell = b_\ell I"
    tries = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("check.context", self.context, self.dim + 1)

    def measure(self, m: Measured) -> None:
        n, tokens = self.context, self.context + 1
        self._transformer(m)
        s_BD = spectra(generator(self.seed, "check"), self.samples, tokens, self.dim) * tokens / n
        least_B = least_by_spectrum(s_BD, n)
        floor = Sample.of(least_B)
        m.positive("floor", floor, "least loss over d of scalar layers at any depth, without a mask")
        for layers in range(self.layers, DEEPEST + 1):
            masked = masked_risks(self.dim, n, layers)
            above = Sample((as_float(masked[-1]) or 0) - floor.mean, floor.stderr)
            if sign(above) == -1:
                break
        about = f"the loss of {len(masked)} layers with a mask, less it"
        m.control(about, above, of="floor", wants="negative")
        m.number("masked", masked[-1], "loss over d of the deepest layers with a mask")
        m.note(
            "The floor is the mean over drawn spectra of S' of the least loss that any function of the whole "
            "spectrum has, the query integrated out. It is not one of linear attention: heads with free P "
            "and Q can have a smaller loss, and clipping and LayerNorm are not covered."
        )

    def _transformer(self, m: Measured) -> None:
        """Compare the formula for e with layers of (3.1a), at drawn step sizes and tokens."""
        rng, d, n = Random(self.seed), self.dim, min(self.context, 2 * self.dim + 2)
        theta = [fmpq(rng.randint(10, 40), 100) for _ in range(2 * COMPARED)]
        X = whole_numbers(rng, d, n + 1, 9) / 5
        w = fmpq_mat(d, 1, [rng.randint(1, 9) * (1 if X[i, n] > 0 else -1) for i in range(d)])  # y_q > 0
        labels = (w.transpose() * X).entries()
        H = {"x": X, "y": fmpq_mat([[*labels[:-1], fmpq(0)]])}
        for layer in layers_of(theta, n):
            H = forward(layer, H)
        answer = -theta[-1] * H["y"][0, n]
        off = prediction(theta, X, w) - answer
        m.zero("token_error", off, "prediction by the formula less the transformer's")
        wrong = prediction(theta, X, w, own=False) - answer
        m.control("the same without the query's own term", wrong, of="token_error")
