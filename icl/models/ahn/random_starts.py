"""Training of eq. (11) from many random starts at once, each on weighted prompts of its own.

The starts are normal in the paper's coordinates, as in Figures 3 to 5. All else is whitened, where Sigma
drops out. The risk at an end point is sampled on fresh weighted prompts.
K starts, B prompts, L layers, D covariates, V = (2L - 1) D^2 variables.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from icl.kernel import library
from icl.kernel.fused import Fused
from icl.models.ahn.descent import Risk, descend_each
from icl.models.gram import sparse_expected_risk
from icl.progress import track
from icl.random import generator
from icl.stats import stratified_error
from icl.tasks import LinearRegressionLaw
from icl.tasks.tilted import draw_tilted, inflations_for
from icl.theory.ahn.invariant_risk import InvariantRisk, PolynomialMinimum
from icl.theory.numbers import Sample

BLOCK = 20_000  # prompts at a time
ROUGH, ROUGH_ITERATIONS = 3, 100  # first a third of the prompts, which saves half of the time


@dataclass(frozen=True, eq=False)
class WeightedPrompts:
    """Prompts that show the risk's tail, with their weights."""

    S_1DDB: Tensor
    weight_B: Tensor
    components: int

    @classmethod
    def draw(cls, rng: np.random.Generator, dim: int, context: int, layers: int, count: int) -> Self:
        inflations = inflations_for(3**layers - 1, context, dim)
        W_BDD, weight_B = draw_tilted(rng, context, dim, count, inflations)
        S_1DDB = torch.from_numpy(W_BDD).movedim(0, -1).contiguous()[None]
        return cls(S_1DDB, torch.from_numpy(weight_B), len(inflations))

    def terms(self, M_MDD: Tensor) -> Tensor:
        """(B,), whose mean is the risk."""
        A_1LDD, B_1LDD = M_MDD[None].tensor_split([(len(M_MDD) + 1) // 2], 1)
        parts = [_risks(A_1LDD, B_1LDD, S_1DDB)[0] for S_1DDB in self.S_1DDB.split(BLOCK, -1)]
        return self.weight_B * torch.cat(parts)

    def mean(self, terms_B: Tensor) -> Sample:
        return Sample(float(terms_B.mean()), stratified_error(terms_B.numpy(), self.components))

    def along(self, ends: Sequence[Tensor], apart: float) -> tuple[Sample, Sample]:
        """Return the risk halfway between two points and its derivative from the second to the first, where
        a parameter differs by `apart`: the differences are those of each prompt."""
        first_B, second_B = map(self.terms, ends)
        return self.mean((first_B + second_B) / 2), self.mean((first_B - second_B) / apart)


class Trained(NamedTuple):
    """Whitened weights where a start ends, and by what share its risk fell in the last tenth of training."""

    A_LDD: Tensor
    B_LDD: Tensor
    fall: float


class End(NamedTuple):
    """The end of one start: its risk, and the minimum on S below it."""

    risk: float
    stderr: float
    minimum: float


@dataclass(frozen=True, eq=False)
class RandomStarts:
    """`starts` initialisations, shared out among the standard deviations `init_stds`."""

    law: LinearRegressionLaw
    layers: int
    starts: int
    init_stds: Sequence[float]
    prompts: int
    iterations: int
    seed: int

    def train(self) -> list[Trained]:
        """Train every start, on prompts of its own."""
        drawn = [self.prompts_of("train", k, self.prompts) for k in range(self.starts)]
        S_KDDB = torch.cat([prompts.S_1DDB for prompts in drawn])
        weight_KB = torch.stack([prompts.weight_B for prompts in drawn])

        def risk_on(prompts: int) -> Risk:
            mean_risk = _through_the_kernel(_mean_risk)
            shown_KDDB, shown_KB = S_KDDB[..., :prompts].contiguous(), weight_KB[:, :prompts].contiguous()

            def risk(theta_KV: Tensor, index: Tensor) -> Tensor:
                A_KLDD, B_KLDD = self.matrices(theta_KV)
                every = len(index) == self.starts  # most calls: then nothing is copied
                S, weight = (shown_KDDB, shown_KB) if every else (shown_KDDB[index], shown_KB[index])
                return mean_risk({"A": A_KLDD, "B": B_KLDD}, {"S": S, "weight": weight})

            return risk

        start_KV = torch.stack([self.start(k) for k in range(self.starts)])
        rough = descend_each(risk_on(self.prompts // ROUGH), start_KV, ROUGH_ITERATIONS, _tracked)
        end = descend_each(risk_on(self.prompts), rough.theta_KV, self.iterations, _tracked)
        fall_K = (1 - end.risk_K / end.before_K).tolist()
        return [Trained(*stack) for stack in zip(*self.matrices(end.theta_KV), fall_K, strict=True)]

    def start(self, k: int) -> Tensor:
        """Draw start k, normal in the paper's coordinates."""
        shape = 2 * self.layers - 1, self.law.dim, self.law.dim
        normal_MDD = torch.from_numpy(generator(self.seed, "init", k).standard_normal(shape))
        A_LDD, B_LDD = (self.init_stds[k % len(self.init_stds)] * normal_MDD).tensor_split([self.layers])
        return torch.cat(whitened((A_LDD, B_LDD), self.law)).flatten()  # type: ignore[arg-type]

    def prompts_of(self, role: str, k: int, count: int) -> WeightedPrompts:
        rng = generator(self.seed, role, k)
        return WeightedPrompts.draw(rng, self.law.dim, self.law.context_R[0], self.layers, count)

    def matrices(self, theta_KV: Tensor) -> tuple[Tensor, Tensor]:
        theta_KMDD = theta_KV.view(len(theta_KV), 2 * self.layers - 1, self.law.dim, self.law.dim)
        return theta_KMDD[:, : self.layers], theta_KMDD[:, self.layers :]

    def end(self, k: int, A_LDD: Tensor, B_LDD: Tensor, samples: int) -> End:
        prompts = self.prompts_of("eval", k, samples)
        risk = prompts.mean(prompts.terms(torch.cat([A_LDD, B_LDD])))
        return End(risk.mean, risk.stderr, self.minimum_below(A_LDD, B_LDD))

    def minimum_below(self, A_LDD: Tensor, B_LDD: Tensor) -> float:
        """Exact risk of the local minimum on S below the projection of these whitened weights."""
        a, beta = nearest_scalars(A_LDD, B_LDD)
        risk = InvariantRisk(self.law.dim, self.law.context_R[0], self.layers, with_b=True)
        end = risk.descend([*a, *beta])
        return risk.value(end[: self.layers], end[self.layers :])

    def minimum_below_disturbed(self, best: PolynomialMinimum, share: float) -> float:
        """Exact risk of the minimum on S below one of them, its weights off S by this share."""
        rng, d, stack = generator(self.seed, "control"), self.law.dim, []
        for c_L in (-best.a_L, best.b_L):
            disturbed_LDD = np.eye(d) + share * rng.standard_normal((len(c_L), d, d))
            stack.append(torch.from_numpy(c_L[:, None, None] * disturbed_LDD))
        return self.minimum_below(*stack)


def whitened(stack: tuple[Tensor, Tensor], law: LinearRegressionLaw) -> tuple[Tensor, Tensor]:
    """root^T A root and root^{-1} B root: what the weights do to standard Gaussian u, x = root u."""
    (A_LDD, B_LDD), root_DD = stack, law.root_RDD[0]
    return root_DD.mT @ A_LDD @ root_DD, torch.linalg.inv(root_DD) @ B_LDD @ root_DD


def nearest_scalars(A_LDD: Tensor, B_LDD: Tensor) -> tuple[list[float], list[float]]:
    """Return a and beta of the point of S nearest to whitened weights."""
    a_L, b_L = (M_LDD.diagonal(dim1=-2, dim2=-1).mean(-1) for M_LDD in (A_LDD, B_LDD))
    return (-a_L).tolist(), (-a_L[: len(b_L)] * b_L).tolist()


def _tracked(steps: range) -> Iterator[int]:
    return track(steps, "iterations of all starts", len(steps))


def _mean_risk(weights: Mapping[str, Tensor], prompts: Mapping[str, Tensor]) -> Tensor:
    terms_KB = _risks(weights["A"], weights["B"], prompts["S"])
    return (terms_KB * prompts["weight"]).mean(-1)


def _through_the_kernel(risk: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return `risk` as recorded programs of the compiled kernel, one for each number of rows; as it is where
    there is no kernel."""
    if library.why_none() is not None:
        return risk
    recorded: dict[int, Fused] = {}

    def fused(weights: Mapping[str, Tensor], prompts: Mapping[str, Tensor]) -> Tensor:
        rows = len(prompts["S"])
        if rows not in recorded:
            recorded[rows] = Fused(risk, {k: w.detach() for k, w in weights.items()}, prompts)
        return recorded[rows](weights, prompts)

    return fused


def _risks(A_KLDD: Tensor, B_KLDD: Tensor, S_KDDB: Tensor) -> Tensor:
    """(K, B): risk given each context, x and w ~ N(0, I)."""
    identity_KDD = torch.eye(A_KLDD.shape[-1], dtype=torch.float64).expand(A_KLDD.shape[0], -1, -1)
    return sparse_expected_risk(A_KLDD, B_KLDD, S_KDDB, identity_KDD, identity_KDD)
