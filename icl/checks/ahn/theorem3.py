"""Ahn et al. 2023, Theorem 3: critical points on S, for layers of eq. (8)."""

from dataclasses import dataclass
from itertools import pairwise
from random import Random

from flint import fmpq, fmpq_mat, fmpq_poly

from icl.checks.ahn.critical_set import CriticalSet, whitened
from icl.checks.given import Comparison, Given
from icl.checks.statement import Measured
from icl.errors import InputError
from icl.theory.ahn.critical_set import S, distance_from_s
from icl.theory.one_layer import OneLayer
from icl.theory.rationals import diagonal, identity, largest, matrix, trace, unit
from icl.theory.roots import real_roots
from icl.theory.wishart import best_polynomial, covariance_moments, mean_trace
from icl.theory.words import stack_risk, stack_slope

MOST_GIVEN = 4  # layers of given weights: eight factors S between other matrices take three seconds a seed
WIDE, DEEP = 3, 2  # dimensions and layers of the words of matrices off S
CONDITIONS = (1, 4, 16, 64, 256)  # of Sigma, its eigenvalues in geometric progression


@dataclass
class Theorem3(CriticalSet):
    paper, where = "ahn", "Theorem 3; Appendix B.2, eqs. (28) and (29); Sections 3 and 4.2"
    title = "Theorem 3: critical points on S, sparse layers"
    law = "x ~ N(0, Sigma), w ~ N(0, Sigma^-1), n examples, y = w.x"
    claim = (
        "Let x ~ N(0, Sigma) and w ~ N(0, Sigma^-1). The population risk of L layers of eq. (8) has a "
        "critical point at which every A_l is a multiple of Sigma^-1. At every point of the set S of these "
        "the risk falls along r_i Sigma^-1, r_i = tr(Sigma^1/2 R_i Sigma^1/2) / d, as fast as along R_i, so "
        "that the flow inside S decreases it at least as fast as gradient flow. One layer there leaves the "
        "same share of the risk for every Sigma, a plain step more, the worse Sigma is conditioned."
    )
    quote = (
        r'"$A \in \mathcal{S}$ if and only if for all $i = 0, \dots, L-1$, there exists scalars '
        r"$a_i \in \mathbb{R}$ such that $A_i = a_i \Sigma^{-1}$. Then $\inf_{(A, B) \in \mathcal{S}} "
        r'\sum_{i=0}^{L-1} \|\nabla_{A_i} f(A, B)\|_F^2 = 0$" (Theorem 3, Section 4.2); "these can converge '
        'significantly faster than vanilla gradient descent when the problem is ill-conditioned" (after it)'
    )
    formula = (
        r"\exists\, a \in \mathbb{R}^L:\quad \nabla f(A) = 0 \text{ at } A_\ell = a_\ell \Sigma^{-1},\quad "
        r"w \sim \mathcal{N}(0, \Sigma^{-1})"
    )
    claim_of_weights = (
        "These weights are at the best critical point of Theorem 3: every A_l is a multiple of Sigma^-1, and "
        "the risk is the least of all such weights."
    )

    def measure(self, m: Measured) -> None:
        L = self.layers
        moments = covariance_moments(self.dim, self.context, 2 * L + 1)
        q, least = best_polynomial(moments, L)
        gradient = [mean_trace(moments, q * S**j) for j in range(1, L + 1)]
        m.zero("gradient", gradient, "gradient on S at the optimum, as E tr S_n^j q(S_n) for j = 1 .. L")
        larger = q(fmpq_poly([0, fmpq(11, 10)]))
        m.control("every a_l a tenth larger", mean_trace(moments, larger * S), of="gradient")
        self.measure_gradients(m, [fmpq(k + 2, 7) for k in range(L)], [])
        steps = [1 / root for root in real_roots(q)]
        if self.dim > 1:
            self._flow(m)
            self._steps(m)
        m.zero("not_real", L - len(steps), "number of scalars a_l of the optimum that are not real")
        m.number("scalars", sorted(steps, key=float), "scalars a_l of the optimum on S, 1 over roots of q")
        m.number("risk", least, "least risk on S")
        m.note(
            "The optimum is the q of least E tr q(S_n)^2, q(0) = 1, so the infimum on S is attained "
            "(footnote 2). The proof prints r_i I for r_i Sigma^-1, and w^T w for w w^T; (28) and (29) hold "
            "as equalities, (29) with factor d"
        )

    def _flow(self, m: Measured) -> None:
        """Eqs. (28) and (29): both are equalities where a gradient g is a multiple of I, as <g, R> is then
        tr(g) tr(R) / d for every R."""
        rng, d, n = Random(self.seed), min(self.dim, WIDE), self.context
        on_s = [fmpq(rng.randint(20, 120), 100) * identity(d) for _ in range(min(self.layers, DEEP))]

        def off(A: list[fmpq_mat], layer: int) -> fmpq:
            g = matrix([[stack_slope(A, n, layer, unit(j, k, d)) for k in range(d)] for j in range(d)])
            return largest(g - trace(g) / d * identity(d))

        about = f"largest entry of a gradient on S off the multiples of I, by layer, up to {WIDE} dimensions"
        m.zero("flow_error", [off(on_s, layer) for layer in range(len(on_s))], about)
        tilted = [on_s[0] + unit(0, 0, d) / 2, *on_s[1:]]
        m.control("a gradient at a point off S", off(tilted, 0), of="flow_error")

    def _steps(self, m: Measured) -> None:
        """Section 4.2: the share of the risk that one step leaves, by the condition number."""
        d, n, one = min(self.dim, WIDE), self.context, identity(min(self.dim, WIDE))
        stated, white, plain = fmpq(d + 1, n + d + 1), list[fmpq](), list[fmpq]()
        for kappa in CONDITIONS:
            sigma = diagonal([kappa ** (-i / (d - 1)) for i in range(d)])
            layer = OneLayer(sigma, n, sigma.inv())
            white.append(layer.step(layer.task)[1])
            plain.append(layer.step(one)[1])
        about = "share of the risk that a step along Sigma^-1 leaves minus (d + 1)/(n + d + 1), by condition"
        m.zero("factor_error", [share - stated for share in white], about)
        m.control("the share that a plain step leaves", plain[1] - stated, of="factor_error")
        growth = [after - before for before, after in pairwise(plain)]
        about = "least growth of the share that a plain step leaves, by condition"
        m.positive("least_growth", min(growth), about)
        m.control("growth for a step along Sigma^-1", white[1] - white[0], of="least_growth")

    def compare(self, given: Given) -> Comparison:
        A = whitened(given, "Theorem 3", "sparse_a")["A"]
        if len(A) > MOST_GIVEN:
            why = f"Theorem 3 judges at most {MOST_GIVEN}, beyond, the words of their risk take minutes"
            raise InputError(f"check.weights: have {len(A)} layers; {why}")
        moments = covariance_moments(A[0].nrows(), given.context, 2 * len(A) + 1)
        least = best_polynomial(moments, len(A))[1]
        return Comparison(stack_risk(A, given.context), least, distance_from_s(A))
