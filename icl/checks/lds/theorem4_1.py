"""lds, Theorem 4.1: the best single layer on AR(1) tokens is eq. (14), one step of gradient descent."""

from dataclasses import dataclass
from itertools import pairwise
from random import Random

from flint import arb, fmpq, fmpq_mat

from icl.checks.given import Comparison, Given
from icl.checks.lds.settings import Sequences
from icl.checks.statement import Measured
from icl.errors import InputError, reals
from icl.theory.lds.layer import Layer, answer
from icl.theory.lds.systems import Noise, independent_modes, listed_modes
from icl.theory.rationals import column, dot, largest, rational, unit


@dataclass
class Theorem41(Sequences):
    """`spectrum`: eigenvalues, these or minus these, in (a) and (b); null is uniform on [-1, 1]."""

    spectrum: list[float] | None = None

    where, title = "Theorem 4.1, eq. (14); Appendix D.4", "Theorem 4.1: the best layer on AR(1) tokens"
    claim = (
        "On AR(1) tokens eq. (14) is a global minimum of the population risk of one layer of linear "
        "attention over all W_V and W_QK, and its forward pass is one step of gradient descent on L_AR(1) "
        "from 0."
    )
    quote = (
        '"the optimal linear attention layer implements a step of Gradient Descent on the associated '
        'least-squares loss" (Section 1, C1)'
    )
    formula = (
        r"\min_{W_V, W_{QK}} f \text{ is attained at } W_V = \begin{bmatrix} 0 & 0 \\ 0 & 1 \end{bmatrix},\ "
        r"W_{QK} = \begin{bmatrix} \eta & 0 \\ 0 & 0 \end{bmatrix}"
    )
    claim_of_weights = "These weights make the predictions of eq. (14)."

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.spectrum is None:
            return
        self.spectrum = reals("check.spectrum", self.spectrum, self.dim)
        if max(map(abs, self.spectrum)) > 1:
            raise InputError(
                f"check.spectrum={self.spectrum}: unstable, every eigenvalue must be from -1 to 1"
            )
        if self.setting in ("c", "d"):
            raise InputError(f"check.spectrum: is for settings a and b, not {self.setting}")

    def measure(self, m: Measured) -> None:
        layer = Layer(self.sequences(self.length, self.spectrum), 1)
        c = _constant(layer)
        x, larger = _at_14(c), _at_14(c + 1)
        about = "largest entry at eq. (14) of the gradient of the risk, which is convex in X = sym(b a^T)"
        m.zero("gradient", largest(layer.gradient(x)), about)
        m.control("the same with 1 added to its constant", largest(layer.gradient(larger)), of="gradient")
        rng = Random(self.seed)
        y = [fmpq(rng.randint(1, 9)) for _ in range(self.length)]
        slope = -sum((later * one for one, later in pairwise(y[:-1])), fmpq(0)) / (self.length - 2)
        answered, stepped = answer(y, unit(1, 1, 2), c * unit(0, 0, 2)), -c * slope * y[-2]
        about = "answer of eq. (14) to one prompt less that of a gradient step"
        m.zero("gd_error", answered - stepped, about)
        m.control("the same with 1 added to the step size", answered - stepped + slope * y[-2], of="gd_error")
        m.number("constant", c, "constant of eq. (14)")
        m.number("optimal_risk", layer.half_risk(x), "risk at eq. (14)")
        about = "constant of eq. (14) where eq. (6) divides by T - 1, T the length of the sequence"
        m.number("constant_over_T_minus_1", c * fmpq(self.length - 1, self.length - 2), about)
        m.note("The mirror image, b and a exchanged, makes the same predictions; Theorem 4.1 omits it.")
        m.note(
            "Appendix D.4 prints the denominator of (14) with '+' for the product of the two sums, and with "
            "y_(T-1) y_T for y_(T-1)^2: both are moments of odd index sum, which vanish (lds/lemma4_1)."
        )

    def compare(self, given: Given) -> Comparison:
        law, matrices = given.law, given.matrices
        one_layer = given.family == "full" and given.activation == "identity" and len(matrices["P"]) == 1
        exact = getattr(law, "window", 0) == 1 and (law.has_independent_modes or law.has_listed_modes)
        if not (one_layer and exact):
            raise InputError(
                "check.weights: Theorem 4.1 is about AR(1) tokens of a dynamical system in setting a or b, "
                "and one layer of family full"
            )
        noise = Noise(*map(rational, (law.process_noise, law.observation_noise, law.initial_variance)))
        if law.has_listed_modes:
            sequences = listed_modes(law.setting, law.spectrum, law.length, noise)
        else:
            sequences = independent_modes(law.setting, law.states, law.length, noise)
        layer = Layer(sequences, 1)
        P, Q = matrices["P"][0], matrices["Q"][0]
        x = layer.coefficients([P[1, 0], P[1, 1]], [[Q[0, 0], Q[1, 0]]])
        best = _at_14(_constant(layer))
        off = dot(x - best, layer.form * (x - best)) / dot(best, layer.form * best)
        return Comparison(layer.half_risk(x), layer.half_risk(best), arb(off).sqrt())


def _constant(layer: Layer) -> fmpq:
    return layer.linear[1, 0] / layer.form[1, 1] if layer.form[1, 1] else fmpq(0)


def _at_14(c: fmpq) -> fmpq_mat:
    return column([0, c, 0])
