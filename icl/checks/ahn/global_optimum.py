"""ahn, section 4.3: the parameters at convergence "indeed appear to be globally optimal".

Tested over all A of eq. (8), w ~ N(0, Sigma^{-1}): the minimum on S = {A_l = a_l Sigma^{-1}} as the least
risk of L layers. The risk is exact off S as well, by words in S. For L = 1 it is convex in A, and the
minimum on S is the global one. For L = 2 the excess over the minimum on S is a sum of squares of invariant
polynomials in A_0 and A_1, which proves it (icl.theory.two_layer_certificate). For L = 3 this is open;
how far a rational lower bound over all A says (icl.theory.ahn.equivariant_bound). Descents from many random
starts, none of them symmetric, look for a lower risk: finding one would refute the claim.

Whitened throughout, where Sigma drops out. L layers, D covariates, K starts.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from icl.checks.ahn.support.certificate import CERTIFIED, certified_bound
from icl.checks.ahn.support.critical_point import RATIONAL_BOUND
from icl.checks.ahn.support.search import descend
from icl.checks.numbers import exact, finding, searched, tried
from icl.checks.rounding import ROUNDING
from icl.checks.settings import integer, search_starts, validate
from icl.checks.verdict import Control, Finding
from icl.random import generator
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.theory.closed_forms import isotropic_step
from icl.theory.expected_traces import sparse_a_risk
from icl.theory.quadratic import EPSILON
from icl.theory.two_layer_certificate import certify

REACHED = 1e-6  # relative: a start that ends so near to the minimum on S counts as ending there
CONTROL_EIGENVALUES = (1.0, 0.25)  # in turn
RISK_OF_K = "the risk of the K that the lower bound comes with"
SOURCE = (
    "0 minus rounding: 2^-52 times the operations of one term times the sum of the sizes of all terms; "
    "relative to the minimum on S, the largest over the depths"
)
GAP = "rounding, as for the search: a lower bound that S attains"
SQUARES = "least eigenvalue of the sum of squares, as a share of its trace: more would make it a difference"
CONTROL_SCALE = 1.001
SLOPE = "rounding: 64 eps times the dimension, as a share of the gradient at A = 0"


@dataclass(eq=False)
class GlobalOptimum:
    """Settings: dimension, context length, the most layers, random starts per depth, their seed."""

    dim: int = integer(5, 2, 6, "words of length 6 in dim x dim matrices take minutes")
    context: int = integer(20, 1, 100_000, "the risk falls into the rounding of its terms")
    layers: int = integer(2, 2, 3, "the risk has words longer than 6")
    starts: int = search_starts(4)
    seed: int = integer(0, 0)

    reference = "Section 4.3; Theorem 3"
    claim = (
        "For w ~ N(0, Sigma^-1) the best point of S, the weights with every A_l a multiple of Sigma^-1, is a "
        "global minimum of the risk of eq. (8) over all A."
    )

    def __post_init__(self) -> None:
        validate(self)

    def measure(self) -> Finding:
        depths = range(2, self.layers + 1)
        optima = {depth: InvariantRisk(self.dim, self.context, depth).optimum() for depth in depths}
        risks = {str(depth): optimum.risk for depth, optimum in optima.items()}
        ends = {depth: self._ends(depth) / optimum.risk - 1 for depth, optimum in optima.items()}
        excess = {str(depth): float(end_K.min()) for depth, end_K in ends.items()}
        shares = [self._rounding(torch.from_numpy(best.a_L)) / best.risk for best in optima.values()]
        lower = any(low < -share for low, share in zip(excess.values(), shares, strict=True))
        certified = {
            str(depth): certified_bound(self.dim, self.context, depth, self.seed) for depth in depths
        }
        squares = certify(self.dim, self.context, generator(self.seed, "check"))
        error, rounding = max(((e, r) for _, e, r in certified.values()), key=lambda pair: pair[0] / pair[1])
        lower_bounds = {L: bound for L, (bound, _, _) in certified.items()}
        proved = 0 <= squares.error < squares.margin
        if proved:
            lower_bounds["2"] = risks["2"]
        possible = {L: bound / risks[L] - 1 for L, bound in lower_bounds.items()}
        lower_than_on_s = self._control()
        off = certify(self.dim, self.context, generator(self.seed, "check"), CONTROL_SCALE)
        return finding(
            [
                # what no A can be below decides for S; that a search finds nothing does not
                exact(certified_gap=abs(min(possible.values())))
                .means("share by which the lower bound for every A is below the least risk on S, over depths")
                .compared_by("squares_error", "the risk as a sum of squares, at random A")
                .at_most(max(shares), GAP, otherwise="undecided"),
                searched(lowest_excess=min(excess.values()))
                .means("lowest risk found over all A minus the least risk on S, relative, over depths")
                .judged("fails" if lower else "holds", ">", -max(shares), SOURCE),
                tried(squares_error=squares.error)
                .means("error at random A of the risk less that on S, two layers, as a sum of squares")
                .at_most(squares.margin, SQUARES, otherwise="undecided"),
                tried(squares_error_off_optimum=off.error).means(
                    "that error at 1.001 times the best multiples, where no sum of squares exists"
                ),
                tried(certificate_error=error)
                .means("inner product that must vanish for the lower bound, at a random A")
                .at_most(rounding, CERTIFIED),
                exact(one_layer_excess=self._one_layer_excess())
                .means("gradient at the optimum on S for one layer, as a share of the gradient at A = 0")
                .also_by("the closed form of the best step", one_layer_excess=self._step_excess(), size=1.0)
                .at_most(ROUNDING * self.dim, SLOPE),
                searched(
                    lowest_excess_by_layers=excess,
                    starts_that_end_there={str(L): int((end_K < REACHED).sum()) for L, end_K in ends.items()},
                ).means(
                    lowest_excess_by_layers="lowest risk found over all A minus the least risk on S, "
                    "relative, by depth",
                    starts_that_end_there="number of starts that end at the least risk on S, by depth",
                ),
                exact(
                    starts=self.starts,
                    lower_bound_by_layers=lower_bounds,
                    least_possible_excess_by_layers=possible,
                )
                .means(
                    starts="number of random starts per depth",
                    lower_bound_by_layers="certified lower bound of the risk for every A, by depth",
                    least_possible_excess_by_layers="relative difference of the lower bound from the "
                    "least risk on S, by depth",
                )
                .compared_by("squares_error", "the risk as a sum of squares, at random A"),
                exact(equivariant_bound_by_layers={L: bound for L, (bound, _, _) in certified.items()})
                .means("rational lower bound of the risk for every A, by depth")
                .in_tests(RISK_OF_K),
                exact(risk_by_layers=risks).means("least risk on S, by depth").in_tests(RATIONAL_BOUND),
            ],
            Control(
                "the same excess for w ~ N(0, I) and L = 2, where the search finds matrices of lower risk "
                "than the multiples of Sigma^-1",
                lower_than_on_s,
                lower_than_on_s < -max(shares) and off.error > off.margin,
            ),
            notes=[
                *self._undecided(proved),
                "For two layers the risk less that on S is a sum of squares: <m, G m'> over products of the "
                "entries of A_0 and A_1 that vanish on S's best point, with positive definite G.",
                "For one layer the risk is convex in A and its minimum is on S.",
                "The lower bound holds for every A: it is the least risk over all K = I + S T(S) with a "
                "polynomial T of the same degree, in exact rational numbers. The K that attains it must be "
                "orthogonal to the change that any A makes, which certificate_error tests at a random A.",
            ],
        )

    def _undecided(self, proved: bool) -> list[str]:
        open_depths = [] if proved else ["two"]
        if self.layers == 3:
            open_depths.append("three")
        return [
            f"undecided: for {depth} layers none of {self.starts} random starts ends below the best point "
            "of S, and least_possible_excess_by_layers says how much lower any A can be. No number of starts "
            "(check.starts) proves that none is lower; one that ends lower refutes it."
            for depth in open_depths
        ]

    def _ends(self, depth: int) -> Tensor:
        """(K,): exact risk where a descent over all A from each random start ends."""
        start_KLDD = self._starts(depth)
        return self._risk(descend(self._risk, start_KLDD))

    def _starts(self, depth: int) -> Tensor:
        rng = generator(self.seed, "search", depth)
        noise = rng.standard_normal((self.starts, depth, self.dim, self.dim))
        return torch.from_numpy(noise * rng.uniform(0.05, 1.0, (self.starts, 1, 1, 1))) / self.dim**0.5

    def _risk(self, A_LDD: Tensor) -> Tensor:
        identity_DD = torch.eye(self.dim, dtype=torch.float64)
        return sparse_a_risk(A_LDD, identity_DD, identity_DD, self.context)

    def _rounding(self, a_L: Tensor) -> float:
        """Return the risk's rounding by words at a point of S: with -|A| all terms are positive."""
        identity_DD = torch.eye(self.dim, dtype=torch.float64)
        operations = 4 * len(a_L) * self.dim + 10395 + 64  # products of 4 L matrices, pairings, words
        return EPSILON * operations * float(self._risk(-a_L.abs()[:, None, None] * identity_DD))

    def _one_layer_excess(self) -> float:
        a = InvariantRisk(self.dim, self.context, 1).optimum().a_L
        norms = []
        for scale in (float(a[0]), 0.0):
            A_LDD = (scale * torch.eye(self.dim, dtype=torch.float64))[None].requires_grad_()
            norms.append(float(torch.autograd.grad(self._risk(A_LDD), A_LDD)[0].norm()))
        return norms[0] / norms[1]

    def _step_excess(self) -> float:
        """Return the relative difference of that optimum from the closed form of the best step."""
        a = InvariantRisk(self.dim, self.context, 1).optimum().a_L
        return abs(float(a[0]) / isotropic_step(self.dim, self.context) - 1)

    def _control(self) -> float:
        """Violate a hypothesis, w ~ N(0, I) with a Sigma that is not I."""
        eigenvalues = [CONTROL_EIGENVALUES[i % 2] for i in range(self.dim)]
        Sigma = torch.tensor(eigenvalues, dtype=torch.float64).diag()
        identity_DD = torch.eye(self.dim, dtype=torch.float64)

        def risk(A_LDD: Tensor) -> Tensor:
            return sparse_a_risk(A_LDD, Sigma, identity_DD, self.context)

        def on_s(a_KL: Tensor) -> Tensor:
            return risk(a_KL[..., None, None] * torch.linalg.inv(Sigma))

        a_KL = descend(on_s, torch.tensor([[0.3, 0.6]], dtype=torch.float64))
        A_KLDD = a_KL[..., None, None] * torch.linalg.inv(Sigma)
        return float(risk(descend(risk, A_KLDD)).min() / on_s(a_KL).min() - 1)
