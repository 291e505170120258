"""lds, section 5: a layer of pattern (13) as two steps of preconditioned conjugate gradients on L_AR(s)."""

from contextlib import suppress
from dataclasses import dataclass
from random import Random

import torch
from flint import fmpq, fmpq_mat

from icl.algorithms import ConjugateGradient, GradientDescent
from icl.checks.lds.settings import Windows, ranged
from icl.checks.statement import OPEN, UNREFUTED, Measured, Sample, as_float
from icl.random import generator
from icl.tasks import DynamicalSystem
from icl.tasks.dynamical_system import gram_prompts
from icl.theory.lds.heads import Head, Heads, floats
from icl.theory.lds.layer import answer, gram, hessian_traces, in_pattern, weights
from icl.theory.lds.pcg import Section5
from icl.theory.rationals import column, dot, identity, matrix

SEQUENCES = 100  # drawn at most, for one with two steps
VARIANCES = "process_noise", "observation_noise", "initial_variance"


@dataclass
class Pcg(Windows):
    """Settings (a) and (b); `samples` sequences are simulated."""

    setting: str = ranged("a", choices=("a", "b"))
    length: int = ranged(30, 5, 30, most=100, beyond="the moments take minutes")
    window: int = ranged(2, 2, 2, most=3, beyond="the moments take minutes")
    samples: int = ranged(100_000, 320, 100_000, most=10_000_000, beyond="the sequences fill the memory")

    where = "Section 5, eqs. (15) to (17); Appendices E.2 and E.3"
    title = "Section 5: two steps of preconditioned conjugate gradients"
    claim = (
        "For s >= 2 a layer of pattern (13) predicts by (17), and its predictions are closer to two steps of "
        "preconditioned conjugate gradients on L_AR(s), with preconditioner P^-1 and first direction q, than "
        "to one step of gradient descent."
    )
    quote = (
        '"Expression (17) resembles the predictor obtained after two PCG steps [...] on loss '
        r"$\mathcal{L}_{AR(s)}$ with preconditioner $\mathbf{P}^{-1}$ starting from "
        r'$\mathbf{w}_0 = \mathbf{0}$ and initial conjugate direction $\mathbf{d}_0 = \mathbf{q}$" '
        "(Section 5)"
    )
    formula = (
        r"\|\hat y_{\text{layer}} - \hat y_{\text{2 PCG steps}}\| < "
        r"\|\hat y_{\text{layer}} - \hat y_{\text{1 GD step}}\|"
    )
    tries = 0

    def expected(self) -> str:
        """On short sequences the steps divide by small sums; how short depends on the noise. Of few
        sequences the medians are not precise."""
        equal = len({getattr(self, name) for name in VARIANCES}) == 1
        if not (equal and self.window == 2 and self.dim == 5 and self.length >= 30):
            return OPEN
        return "holds" if self.samples >= type(self).samples else UNREFUTED

    def measure(self, m: Measured) -> None:
        layer, rng = self.regular_layer(), Random(self.seed)
        self._identities(m, rng)
        head = Heads(layer).search(in_pattern(self.window)[0], rng)
        units = identity(self.window + 1).tolist()
        step = layer.coefficients(units[-1], units[:-1])
        eta = dot(layer.linear, step) / dot(step, layer.form * step)
        x = layer.coefficients(head.b[0], head.keys[0])
        self._distances(m, head, eta, dot(x, layer.form * x))
        trace, square = self.sequences(self.length).mean(lambda C: hessian_traces(C, self.window))
        error = 1 + (square - 2 * trace) / self.window
        m.number("neumann_error", error, "mean of (1 - h)^2, h the eigenvalues of H: the error of 2 I - H")
        m.note(
            "In (15) and (60) the vector called the gradient of L_AR(s) at 0 is minus the gradient. In E.2, "
            "f has + b^T w, but r_0 = b - A w_0 belongs to - b^T w. The step size in Algorithm 1 must divide "
            "by d_i^T z_i, not by d_0^T z_0. That P' is invertible can only be said of P: Gamma and P' have "
            "rank one."
        )

    def _identities(self, m: Measured, rng: Random) -> None:
        """Compare (17) with any layer's answer to one sequence, and E.2 with the algorithm."""

        def drawn(count: int) -> list[fmpq]:
            return [fmpq(rng.choice((-1, 1)) * rng.randint(1, 9)) for _ in range(count)]

        s = self.window
        for _ in range(SEQUENCES):
            y, b, keys = drawn(self.length), drawn(s + 1), [drawn(s + 1) for _ in range(s)]
            one, out = Section5(b, keys, gram(y, s)), answer(y, *weights(b, keys))
            with suppress(ZeroDivisionError):  # no second step where q solves it or q.g = 0
                unit, steps = 1 / out, one.two_steps()
                break
        else:
            return m.undecided(f"none of {SEQUENCES} drawn sequences has a second step")
        query = column(y[-s - 1 : -1])

        def off(w: fmpq_mat) -> fmpq:
            return dot(w, query) - out

        m.zero("predictor_error", off(one.weights()), "answer by w = P H q + .. less that of the layer")
        about = "the same by (17) with Gamma + P"
        m.zero("gamma_error", off(one.seventeen(one.gamma(one.q) + one.P)), about)
        printed = off(one.seventeen(one.gamma(one.q) * one.H + one.P)) * unit
        m.control("(17) as printed, with Gamma H + P, less the layer, relative", printed, of="gamma_error")
        of_e3 = off(one.seventeen(one.gamma(one.H * one.q) + one.P))
        m.zero("e3_error", of_e3, "the same by (17) with the P' of E.3")
        off_e2 = list((steps[0] - steps[1]).entries())
        m.zero("expansion_error", off_e2, "w after two PCG steps less the expansion of E.2")

    def _distances(self, m: Measured, head: Head, eta: fmpq, mean_square: fmpq) -> None:
        """Compare answers to simulated sequences. Two steps divide by what may be near 0, so that squares
        need have no mean: by medians."""
        variances = {name: getattr(self, name) for name in VARIANCES}
        task = DynamicalSystem(self.dim, self.length, self.window, self.setting, **variances)
        law = task.law([self.seed])
        prompt = gram_prompts(law.sequences([generator(self.seed, "eval")], self.samples), self.window)
        [b_P], a_KP = (torch.from_numpy(floats(matrix(of))) for of in (head.b, head.keys[0]))
        out_B = torch.einsum("bk,kp,bpr,r->b", prompt.query_RBP[0, :, :-1], a_KP, prompt.gram_RBPP[0], b_P)
        size = (as_float(mean_square) or 0.0) ** 0.5
        pcg_B = ConjugateGradient(2, a_KP[:, :-1], b_P[:-1]).predict(prompt)[0]
        gd_B = GradientDescent(as_float(eta) or 0.0, 1).predict(prompt)[0]
        pcg, gd, apart = (
            Sample.median(off_B.abs() / size) for off_B in (pcg_B - out_B, gd_B - out_B, gd_B - pcg_B)
        )
        nearer = Sample(gd.mean - pcg.mean, gd.stderr + pcg.stderr)
        about = "median distance of the layer from"
        m.positive("nearer", nearer, f"{about} one gradient step less that from two PCG steps")
        of_step = Sample(-apart.mean, apart.stderr)
        m.control("the same of one gradient step in the layer's place", of_step, of="nearer")
        m.number("distance_pcg", pcg, f"{about} two PCG steps, over its root mean square")
        m.number("distance_gd", gd, f"{about} one gradient step, over its root mean square")
