"""Ahn et al. 2023, section 5.1 and appendix D: each layer's B improves the conditioning of the covariates.

B prompts, D covariates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

import numpy as np
from flint import fmpq

from icl.checks.ahn.critical_set import minima_on_s
from icl.checks.prompts import Prompts
from icl.checks.statement import OPEN, Measured, Sample, setting
from icl.errors import whole
from icl.random import generator
from icl.stats import proportion
from icl.tasks.wishart import draw_wishart
from icl.theory.ahn.forward import covariates, forward, second_moment, sparse, tokens
from icl.theory.ahn.invariant_risk import conditions
from icl.theory.blurred import Undecided
from icl.theory.rationals import identity, largest, rational


@dataclass
class Conditioning(Prompts):
    """`starts` of the search on S; `samples` prompts whose condition numbers are compared."""

    dim: int = setting(5, 2, 10, most=32, beyond="a prompt takes dim^3 operations")
    context: int = setting(10, 1, 1000)
    layers: int = setting(3, 2, 3, most=4, beyond="the risk has degree 80 and more")
    starts: int = setting(64, 1, most=10_000, beyond="the search takes hours")
    samples: int = setting(4000, 1000, most=200_000, beyond="they fill the memory")
    seed: int = setting(0, 0)

    paper, where = "ahn", "Section 5.1, observations 1 and 2; Appendix D"
    title = "Section 5.1: B_l improves the conditioning of the covariates"
    law = "x ~ N(0, Sigma), w ~ N(0, Sigma^-1), n >= d examples, y = w.x"
    claim = (
        "At the local minimum on S that most searches reach, every layer of eq. (11) takes a descent step "
        "on the covariates, X_(l+1) = X_l (I - |a_l b_l| M X_l^T X_l / n), and on most prompts X_(l+1) is "
        "better conditioned than X_l."
    )
    quote = (
        '"$B_i = b_i I$ transforms the covariates themselves to make the Gram matrix have better condition '
        'number with each iteration" (after Theorem 4, Section 5)'
    )
    formula = (
        r"\kappa(X_{\ell+1}) < \kappa(X_\ell)\quad"
        r"\text{on most prompts, where training of } (11) \text{ ends}"
    )
    task_covariance = "inverse"
    tries = 0  # a search, and thousands of prompts

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("check.context", self.context, self.dim)  # or no Gram matrix has an inverse

    def expected(self) -> str:
        """Return OPEN for longer prompts: at d = 8, n = 24 X_2 is worse at one of two minima."""
        return "holds" if self.context <= 2 * self.dim <= 12 else OPEN

    def measure(self, m: Measured) -> None:
        minima = minima_on_s(self.dim, self.context, self.layers, self.starts, self.seed)
        chosen, *others = sorted(minima, key=lambda minimum: -minimum.found)
        rng = generator(self.seed, "check")
        s_BD = np.linalg.eigvalsh(draw_wishart(rng, self.context, self.dim, self.samples) / self.context)
        shown = conditions(chosen.beta_L, s_BD)
        about = "share of prompts on which X_(l+1) is better conditioned than X_l, the least over layers"
        m.above("share_of_prompts", improved(shown), fmpq(1, 2), about)
        rivals = [one for one in others if proportion(0.01, chosen.found, chosen.found + one.found)[0] < 0.5]
        better = [one for one in rivals if improved(conditions(one.beta_L, s_BD)).mean > 0.5]
        if better and improved(shown).mean < 0.5:
            raise Undecided("the starts do not tell which minimum most of them reach (check.starts)")
        turned = improved(conditions(-chosen.beta_L, s_BD))
        below = Sample(turned.mean - 0.5, turned.stderr)
        m.control("the share with the sign of every B reversed, minus a half", below, of="share_of_prompts")
        steps = list(map(rational, chosen.beta_L.tolist()))
        a, b = ([rational(round(x, 3)) for x in scalars.tolist()] for scalars in (chosen.a_L, chosen.b_L))
        beta = [s * t for s, t in zip(a, b, strict=False)]
        m.positive("least_beta", min(steps), "least step a_l b_l of the covariates there", searched=True)
        m.zero("token_error", self.error(a, b, beta), "covariates after attention minus the stated step")
        m.control("with b_l for a_l b_l", self.error(a, b, b), of="token_error")
        m.number(
            "median_condition_by_layer", list(map(Sample.median, shown)), "median condition number of X_l"
        )
        shares = {f"{one.risk:.6g}": improved(conditions(one.beta_L, s_BD)) for one in minima}
        m.number("share_of_prompts_by_risk", shares, "the same share at every local minimum, by its risk")
        m.note("observation 1 omits 1/n and, where Sigma is not I, Sigma^-1 inside X_k^T X_k")
        m.note("the last layer is left out: its B has no effect. Condition numbers are those of whitened x")

    def error(self, a: Sequence[fmpq], b: Sequence[fmpq], beta: Sequence[fmpq]) -> fmpq:
        """Return the largest entry by which attention moves covariates otherwise than by steps beta."""
        d, inverse = self.dim, self.sigma.inv()
        Z, _ = tokens(Random(self.seed), d, min(self.context, d + 1))
        layers = [sparse(-s * inverse, t * identity(d)) for s, t in zip(a, b, strict=False)]
        off, states = [], pairwise([Z, *forward(Z, layers)])
        for step, (before, after) in zip(beta, states, strict=True):
            X = covariates(before)
            off.append(largest(covariates(after) - X + step * (second_moment(before) * inverse * X)))
        return max(off)


def improved(shown: Sequence[np.ndarray]) -> Sample:
    """Return the least share over layers."""
    shares = [Sample.share((after_B < before_B).tolist()) for before_B, after_B in pairwise(shown)]
    return min(shares, key=lambda share: share.mean)
