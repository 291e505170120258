"""The sets S of ahn's Theorems 3 and 4, x ~ N(0, Sigma) and w ~ N(0, Sigma^{-1}): A_l = -a_l Sigma^{-1} and
B_l = b_l I in the sign of eq. (11), whitened -a_l I and b_l I; without B, the sign of A turned, that is
eq. (8).

On S the risk of a prompt is sum_i q(s_i)^2 over the spectrum s of whitened S, q = prod_l (1 - a_l s p_l^2),
p_{l+1} = p_l (1 - b_l a_l s p_l^2), so its expectation and derivatives are exact: twice, by the polynomial of
icl.theory (beta_l = a_l b_l) and by a Gauss rule over q itself. The last B has no effect and is left out.

R prompts, C chunks of prompts, J nodes, M matrices, the A's and then the B's, V variables, L layers,
D covariates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from icl.checks.ahn.support import orbits
from icl.checks.ahn.support.orbits import Deviation, Stack
from icl.checks.numbers import exact, finding, searched
from icl.checks.rounding import ROUNDING
from icl.checks.verdict import QUANTILE, Control, Finding
from icl.progress import track
from icl.tasks import LinearRegressionLaw
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.theory.statistics import norm_and_stderr

CHUNKS = 50

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Point:
    """A point of S; b_L has one entry less than a_L, or none in the family (8)."""

    risk: InvariantRisk
    law: LinearRegressionLaw
    a_L: Array
    b_L: Array

    @property
    def beta_L(self) -> Array:
        return self.a_L[: len(self.b_L)] * self.b_L

    def value(self) -> float:
        """Return the exact risk."""
        return self.risk.value(self.a_L.tolist(), self.beta_L.tolist())

    @property
    def stack(self) -> Stack:
        """Return the whitened weights."""
        identity = torch.eye(self.law.dim, dtype=torch.float64)
        A_LDD, B_LDD = (torch.tensor(c)[:, None, None] * identity for c in (-self.a_L, self.b_L))
        return A_LDD, B_LDD if len(self.b_L) else None

    def scaled(self, factor: float) -> Point:
        """Return the point with all A times the factor and the same beta."""
        return replace(self, a_L=factor * self.a_L, b_L=self.b_L / factor)

    def positive(self) -> Point:
        """Return the point where all terms of q have one sign: rounding is relative to it."""
        return replace(self, a_L=-np.abs(self.a_L), b_L=np.abs(self.b_L))

    def on_spectra(self, s_RD: Tensor) -> tuple[Tensor, Tensor]:
        """sum_i q(s_i)^2 (R,) and its derivatives (R, M) along Sigma^{-1} for A, along I for B."""
        return spectral_risk(torch.tensor(self.a_L), torch.tensor(self.b_L), s_RD)

    def on_the_rule(self) -> tuple[float, Array]:
        """Return the expectation of `on_spectra`, which the orbits hold against the model, by the exact Gauss
        rule."""
        weights_J = torch.tensor(self.risk.weights_J)
        value_J, along_JM = self.on_spectra(torch.tensor(self.risk.nodes_J)[:, None])
        return float(weights_J @ value_J), (weights_J @ along_JM).numpy()

    def gradient(self) -> Tensor:
        """Exact whitened gradient (M, D, D) of the population risk: multiples of I."""
        along_M = torch.tensor(self.on_the_rule()[1])[:, None, None] / self.law.dim
        return along_M * torch.eye(self.law.dim, dtype=torch.float64)

    def gradient_norm(self) -> tuple[float, float]:
        """Norm of that gradient, all matrices together, and what rounding may make of 0."""
        L, here = len(self.a_L), self.risk.derivatives(self.a_L.tolist(), self.beta_L.tolist())
        curvature_V = np.sqrt(np.abs(np.diag(here.hessian_VV)))
        unit_V = ROUNDING * curvature_V * self._root_error()
        # From errors in (a, beta) to errors in (a, b), beta = a b.
        unit_beta = unit_V[L:]
        unit_V[: len(unit_beta)] += np.abs(self.b_L) * unit_beta
        unit_V[L:] = np.abs(self.a_L[: len(unit_beta)]) * unit_beta
        return self._matrix_norm(self.on_the_rule()[1]), self._matrix_norm(unit_V)

    def norm_by_polynomial(self) -> float:
        """Return that norm once more, from the polynomial's derivatives in a and beta = a b."""
        along_V, L = self.risk.derivatives(self.a_L.tolist(), self.beta_L.tolist()).gradient_V, len(self.a_L)
        along_a, along_beta = along_V[:L].copy(), along_V[L:]
        along_a[: len(along_beta)] += self.b_L * along_beta
        return self._matrix_norm(np.concatenate([along_a, self.a_L[: len(along_beta)] * along_beta]))

    def value_error(self, risk: float) -> float:
        """Relative difference of the rule's value and `risk` of the polynomial."""
        return abs(self.on_the_rule()[0] / risk - 1)

    def value_bound(self) -> float:
        """Return what rounding makes of the risk, relative: 1 - a_l s loses digits where a_l s is near 1."""
        return ROUNDING * self._root_error() / math.sqrt(self.value())

    def _matrix_norm(self, along_M: Array) -> float:
        """Norm of all gradients: multiples of Sigma and I with these derivatives along Sigma^{-1} and I."""
        sigma = float(torch.linalg.matrix_norm(self.law.Sigma_RDD[0])) / self.law.dim
        along_A, along_B = along_M[: len(self.a_L)], along_M[len(self.a_L) :]
        return float(np.hypot(sigma * np.linalg.norm(along_A), np.linalg.norm(along_B) / self.law.dim**0.5))

    def _root_error(self) -> float:
        """Root mean square over the spectrum of what a relative error of 1 in every factor makes of q."""
        here = self.risk.derivatives(self.a_L.tolist(), self.beta_L.tolist())
        curvature_V = np.sqrt(np.abs(np.diag(here.hessian_VV)))
        return math.sqrt(here.value) + float(curvature_V @ np.abs([*self.a_L, *self.beta_L]))


def share_of_rounding(point: Point) -> float:
    """Return the gradient's norm over what rounding can make of 0."""
    norm, bound = point.gradient_norm()
    return norm / bound


def share_by_polynomial(point: Point) -> float:
    return point.norm_by_polynomial() / point.gradient_norm()[1]


def distance(one: Point, other: Point) -> float:
    here, there = (np.concatenate([point.a_L, point.beta_L]) for point in (one, other))
    return float(np.linalg.norm(here - there) / np.linalg.norm(here))


def halfway(one: Point, other: Point) -> Point:
    return Point(one.risk, one.law, (one.a_L + other.a_L) / 2, (one.b_L + other.b_L) / 2)


def spectral_risk(a_L: Tensor, b_L: Tensor, s_RD: Tensor) -> tuple[Tensor, Tensor]:
    a, b = (theta.expand(len(s_RD), -1).clone().requires_grad_() for theta in (a_L, b_L))
    q = p = torch.ones_like(s_RD)
    for layer in range(len(a_L)):
        step = a[:, layer, None] * s_RD * p * p
        q = q * (1 - step)
        if layer < len(b_L):
            p = p * (1 - b[:, layer, None] * step)
    risk_R = q.square().sum(1)
    along_a, *along_b = torch.autograd.grad(risk_R.sum(), [a, b] if len(b_L) else [a])
    return risk_R.detach(), torch.cat([-along_a, *along_b], 1)  # A_l = -a_l Sigma^{-1}


def whitened(stack: Stack, law: LinearRegressionLaw) -> Stack:
    """root^T A root and root^{-1} B root: what the weights do to standard Gaussian u, x = root u."""
    (A_LDD, B_LDD), root_DD = stack, law.root_RDD[0]
    white_B_LDD = None if B_LDD is None else torch.linalg.inv(root_DD) @ B_LDD @ root_DD
    return root_DD.mT @ A_LDD @ root_DD, white_B_LDD


def as_printed(stack: Stack, law: LinearRegressionLaw) -> Stack:
    """Return the weights in the paper's coordinates that are these when whitened."""
    (A_LDD, B_LDD), root_DD = stack, law.root_RDD[0]
    inverse_DD = torch.linalg.inv(root_DD)
    return inverse_DD.mT @ A_LDD @ inverse_DD, None if B_LDD is None else root_DD @ B_LDD @ inverse_DD


def gradient_as_printed(white_MDD: Tensor, layers: int, law: LinearRegressionLaw) -> Tensor:
    """Gradients in the paper's coordinates: root G root^T for A, and root^{-T} G root^T for B."""
    root_DD, A, B = law.root_RDD[0], white_MDD[..., :layers, :, :], white_MDD[..., layers:, :, :]
    return torch.cat([root_DD @ A, torch.linalg.inv(root_DD).mT @ B], -3) @ root_DD.mT


def nearest_point(stack: Stack, law: LinearRegressionLaw) -> Point:
    """Return the point of S nearest to given whitened weights."""
    a_L, b_L = (
        np.zeros(0) if M_LDD is None else M_LDD.diagonal(dim1=-2, dim2=-1).mean(-1).numpy() for M_LDD in stack
    )
    return Point(InvariantRisk(law.dim, law.context_R[0], len(a_L), stack[1] is not None), law, -a_L, b_L)


def track_starts(starts: range) -> Iterator[int]:
    """Yield the starts of a search for minima on S and show how far it is."""
    return track(starts, "starts of the search", len(starts))


def no_minimum(**settings: Any) -> Finding:
    """Return an undecided finding: no start of the search ended at a local minimum."""
    why = "the search reached no local minimum"
    found = searched(found=0).means("number of local minima found on S").judged("undecided", ">", 0.0, why)
    given = exact(**settings).means("number of starts of the search")
    note = f"undecided: {why}; more starts may (check.starts)."
    return finding([found, given], Control(f"none: {why}", 0.0, False), notes=[note])


def directions(points: Sequence[Point], W_RDD: Tensor) -> Deviation:
    """Gradients at points of S on the orbits of these prompts, against those that the spectrum names."""
    s_RD = torch.linalg.eigvalsh(W_RDD)
    named = torch.cat([point.on_spectra(s_RD)[1] for point in points])
    found = torch.cat([orbits.orbit_gradient(point.stack, W_RDD) for point in points])
    plus = torch.cat([orbits.orbit_gradient(point.positive().stack, W_RDD) for point in points])
    return orbits.deviation(found, plus, named)


def off_direction(point: Point, W_RDD: Tensor) -> Deviation:
    """Return the same off S: A_0 of the point doubled along one whitened axis."""
    A_LDD, B_LDD = point.stack
    A_LDD = orbits.tilted(A_LDD)
    found, plus = (orbits.orbit_gradient((A, B_LDD), W_RDD) for A in (A_LDD, -A_LDD))
    return orbits.deviation(found, plus, None)


def sampled_near(
    stack: Stack, point: Point, rng: np.random.Generator, samples: int
) -> tuple[float, float, float, float]:
    """Risk of whitened weights minus risk of a point of S near them, with its 99.9 % half-width; and the norm
    of the population gradient at the weights, in the paper's coordinates, with its standard error.

    Both are sampled as differences on the same prompts, small near S, to what is exact at the point.
    """
    law, count = point.law, CHUNKS * (samples // CHUNKS)
    W_BDD = orbits.whitened_prompts(law, rng, count)
    (risk_CB, grad_CMDD), (risk_there_CB, grad_there_CMDD) = (
        orbits.prompt_gradients(at, W_BDD.unflatten(0, (CHUNKS, -1))) for at in (stack, point.stack)
    )
    shift_B = (risk_CB - risk_there_CB).flatten()
    half_width = QUANTILE * float(shift_B.std()) / math.sqrt(len(shift_B))
    gradient_CMDD = gradient_as_printed(grad_CMDD - grad_there_CMDD + point.gradient(), len(stack[0]), law)
    size_R, stderr_R = norm_and_stderr(gradient_CMDD.flatten(1)[:, None])
    return float(shift_B.mean()), half_width, float(size_R), float(stderr_R)
