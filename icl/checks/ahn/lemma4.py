"""Ahn et al. 2023, Lemma 4: layers of eq. (8) commute where all A are multiples of one matrix."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random

from flint import fmpq, fmpq_mat

from icl.checks.prompts import Prompts
from icl.checks.statement import Measured, setting
from icl.theory.ahn.forward import positive, query_label, tokens
from icl.theory.rationals import identity
from icl.theory.words import stack_risk

WORDS = 3  # layers of the exact risk


@dataclass
class Lemma4(Prompts):
    dim: int = setting(5, 1, 6, most=32, beyond="rationals of this length take minutes")
    context: int = setting(20, 1, 40, most=1000, beyond="all tokens are moved in rationals")
    layers: int = setting(3, 2, 4, most=12, beyond="every pair of layers is swapped")
    seed: int = setting(0, 0)

    paper, where = "ahn", "Lemma 4"
    title = "Lemma 4: layers commute on S"
    law = "any prompt in rationals; for the risk x ~ N(0, Sigma), w ~ N(0, Sigma^-1), n examples, y = w.x"
    claim = (
        "Let w ~ N(0, Sigma^-1) and every A_l be a multiple of Sigma^-1. The population risk does not change "
        "when two layers are swapped."
    )
    quote = (
        r'"let $\tilde{A}_i = A_j$, $\tilde{A}_j = A_i$, and let $\tilde{A}_\ell = A_\ell$ for all $\ell \in '
        r'\{0, \dots, k\} \setminus \{i, j\}$. Then $f(A) = f(\tilde{A})$" (Lemma 4, Appendix B.4)'
    )
    formula = (
        r"f(\ldots, a_i, \ldots, a_j, \ldots) = f(\ldots, a_j, \ldots, a_i, \ldots)"
        r"\quad\text{for } A_\ell = a_\ell \Sigma^{-1}"
    )
    task_covariance = "inverse"
    tries = 10

    def measure(self, m: Measured) -> None:
        rng = Random(self.seed)
        Z, _ = tokens(rng, self.dim, self.context)
        inverse = self.sigma.inv()
        a = [fmpq(rng.randint(20, 120), 100 + 100 * self.dim // self.context) for _ in range(self.layers)]
        on_s, white = [-s * inverse for s in a], [s * identity(self.dim) for s in a[:WORDS]]
        m.zero("max_error", changes(Z, on_s), "changes of the query's label when two layers are swapped")
        n = self.context
        words = [stack_risk(x, n) - stack_risk(white, n) for x in swaps(white)]
        about = f"changes of the exact risk when two of up to {WORDS} layers are swapped"
        m.zero("words_error", words, about)
        if self.dim == 1:
            longer = [on_s[0] * fmpq(11, 10), *on_s[1:]]
            m.control("a_0 a tenth larger", query_label(Z, longer) - query_label(Z, on_s), of="max_error")
            risks = [stack_risk(x, n) for x in (white[:2], [white[0] * fmpq(11, 10), white[1]])]
            m.control("a_0 a tenth larger, L = 2", risks[1] - risks[0], of="words_error")
        else:
            tilt = positive(rng, self.dim, self.dim)
            off = [on_s[0] - tilt, *on_s[1:]]
            m.control("A_0 off S, swapped with A_1", changes(Z, off)[0], of="max_error")
            corner = [white[0] + tilt, white[1] + tilt.transpose()]
            change = stack_risk(corner[::-1], n) - stack_risk(corner, n)
            m.control("A_0 and A_1 off S, L = 2", change, of="words_error")
        m.note("more is true: on S every prediction is unchanged, on every prompt; w may have any law")


def swaps(A: Sequence[fmpq_mat]) -> list[list[fmpq_mat]]:
    found = []
    for i, j in combinations(range(len(A)), 2):
        swapped = list(A)
        swapped[i], swapped[j] = A[j], A[i]
        found.append(swapped)
    return found


def changes(Z: fmpq_mat, A: Sequence[fmpq_mat]) -> list[fmpq]:
    right = query_label(Z, A)
    return [query_label(Z, swapped) - right for swapped in swaps(A)]
