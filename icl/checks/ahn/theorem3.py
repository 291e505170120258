"""Theorem 3 of ahn: with w ~ N(0, Sigma^{-1}) the set S = {A_l = a_l Sigma^{-1}} of (8) has critical points.

The proof's content: at *every* point of S the gradient with respect to A_l is a multiple of Sigma, so a
minimum on S is a critical point of the whole family. It is measured here on two laws of W = whitened S:
Wishart, exactly, by words (L <= 3); and the orbit of one drawn prompt under a finite group of rotations
whose average of R^T X R is tr(X)/D I for every X, as for Haar's measure. The second has no sampling
error for any L, however heavy the tails: the off-direction part of an orbit's mean gradient is a polynomial
in a_l and W, and one that vanishes at a point drawn from a density vanishes identically.

P points, R prompts, G rotations, B prompts of a batch, L layers, D covariates, C chunks, V components. A has
the sign of (8) in this file's public results and of (11) where the kernel reads it; B = None is (8).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy.stats import norm
from torch import Tensor

from icl.checks.verdict import Bound, Control, Finding, Weights, decide, joint
from icl.errors import InputError, whole
from icl.models.gram import sparse_expected_risk
from icl.random import generator
from icl.tasks import LinearRegression, LinearRegressionLaw
from icl.theory.distance import distance_to_identity
from icl.theory.polynomial import Derivatives, InvariantRisk, Minimum, scalars_on_s
from icl.theory.words import MAX_LAYERS as WORDS_LAYERS
from icl.theory.words import sparse_a_risk

ROUNDING = 64 * torch.finfo(torch.float64).eps  # times the condition numbers named in Bound.source
CONFIDENCE = 0.999
DISTANCE = 0.05  # of given weights to S: Dist(Sigma^{1/2} A_l Sigma^{1/2}, I), as in figure 1
EXCESS = 0.02  # of the exact risk of given weights over the optimum on S
POINTS = 3  # random points of S
PROMPTS = 8  # orbits
STARTS = 8  # of the search that must find the closed-form optimum again
CHUNKS = 50
USELESS = 0.01  # a relative rounding bound above which nothing was measured
NO_B = torch.zeros(0, dtype=torch.float64)
MIN_SAMPLES = 1000  # below, the sampled test rejects more often than one time in a thousand (measured)
MAX_LAYERS = 12
MAX_DIM = 32
WORDS_DIM = 10


class Deviation(NamedTuple):
    """A stack of gradients against multiples of Sigma (of I for B), each relative to its own norm."""

    off_direction: float
    derivative_error: float  # against the multiple that the polynomial's derivative names
    bound: float  # of rounding, at the matrix where the larger of the two is largest
    share: float  # of its own bound that any matrix takes up


class Theorem3:
    reference = "Theorem 3"
    claim = (
        "With x ~ N(0, Sigma) and w ~ N(0, Sigma^-1) the risk of L layers of the form (8) has critical "
        "points "
        "with every A_l a multiple of Sigma^-1."
    )

    def __init__(
        self,
        dim: int = 5,
        context: int = 20,
        eigenvalues: Sequence[float] | None = None,
        covariance: Sequence[Sequence[float]] | str | None = None,
        distortion: Sequence[Sequence[float]] | str | None = None,
        layers: int = 3,
        seed: int = 0,
        samples: int = 20000,
    ) -> None:
        self.layers = bounded_layers(
            layers, MAX_LAYERS, "the alternating product of the layers loses its digits"
        )
        self.law = inverse_law(dim, context, eigenvalues, covariance, distortion, seed)
        self.seed, self.distorted = seed, distortion is not None
        self.samples = whole("check.samples", samples, MIN_SAMPLES)
        self.risk = InvariantRisk(self.law.dim, context, self.layers)

    def measure(self) -> Finding:
        best = self.risk.optimum()
        rng = generator(self.seed, "check")
        a_PL = rng.uniform(0.1, 0.6, (POINTS, self.layers)) * best.a_L
        deviations = [self._on_orbits(a_PL, rng)]
        if self._has_words():
            deviations.append(self._expected(a_PL))
        worst = worst_of(deviations)
        gradient, gradient_bound = self._gradient_norm(best.a_L)
        found = self.risk.minimise(rng, STARTS)
        lower = float(self.risk.lower_bound())
        value_error = abs(on_the_rule(self.risk, torch.tensor(best.a_L), NO_B)[0] / best.risk - 1)
        value_bound = rounding_of_value(self.risk.derivatives(best.a_L.tolist()), best.a_L)
        z, quantile = rotation_test(*self._weights(best.a_L), self.law, rng, self.samples)
        measured = {
            "scalars": best.a_L.tolist(),
            "risk": best.risk,
            "risk_by_layers": [self._least_risk(layers) for layers in range(1, max(self.layers, 4) + 1)],
            "lower_bound": lower,
            "local_minima": len(found),
            "gradient_norm": gradient,
            "gradient_norm_stderr": 0.0,
            "gradient_norm_bound": gradient_bound,
            "off_direction": worst.off_direction,
            "derivative_error": worst.derivative_error,
            "sampled_z": z,
            "sampled_z_bound": quantile,
        }
        verdicts = [
            within_rounding(worst),
            decide(gradient, gradient_bound),
            decide(abs(best.risk / lower - 1), ROUNDING * self.layers),
            decide(value_error, value_bound),
            decide(max(0, best.risk / found[0].risk - 1) if found else 0.0, ROUNDING * self.layers),
            decide(z, quantile),
        ]
        bound = Bound(
            worst.bound,
            "rounding, of off_direction and derivative_error: 64 eps cond(Sigma) times the gradient with "
            "all terms "
            f"made positive (at -A) over the gradient; of gradient_norm, at most {gradient_bound:.2g}; "
            f"sampled_z at 99.9 % over all components, at most {quantile:.3g}",
        )
        return Finding(joint(verdicts), measured, bound, self._control(best, rng), self._notes())

    def judge(self, weights: Weights) -> Finding:
        """Do these weights of (8) sit at the optimum on S, up to the order of the layers?"""
        laws = laws_of_weights(weights, "sparse_a", "Theorem 3")
        A_RLDD = weights.matrices["A"].detach().to(torch.float64)
        rows = [self._judge_seed(A, law) for A, law in zip(A_RLDD, laws, strict=True)]
        tilted = [
            self._judge_seed(tilt(A, law), law, gradient=False) for A, law in zip(A_RLDD, laws, strict=True)
        ]
        measured = {
            name: max(row[name] for row in rows)
            for name in ("distance", "excess", "gradient_norm", "gradient_norm_stderr")
        }
        by_seed = {f"{name}_by_seed": [row[name] for row in rows] for name in rows[0]}
        return Finding(
            joint([judged(row) for row in rows]),
            measured | by_seed,
            Bound(
                DISTANCE,
                f"Dist(Sigma^1/2 A_l Sigma^1/2, I), all layers and seeds; exact risk within {EXCESS:.0%} "
                "of the optimum on S",
            ),
            Control(
                "the same weights with A_0 doubled along one whitened axis: distance to S, or excess "
                "risk in one dimension",
                min(row["distance"] if laws[0].dim > 1 else row["excess"] for row in tilted),
                all(judged(row) == "fails" for row in tilted),
            ),
            [
                "gradient_norm is that of the population risk at the weights: exact where its standard "
                "error is 0"
            ],
        )

    def _on_orbits(self, a_PL: np.ndarray, rng: np.random.Generator) -> Deviation:
        """At every point, one orbit per prompt; the derivative is that of the mean over the orbit."""
        W_RDD = whitened_prompts(self.law, rng, PROMPTS)
        parts = []
        for a_L in a_PL:
            A_LDD, _ = self._weights(a_L)
            found = orbit_gradient(A_LDD, None, W_RDD, self.law)
            plus = orbit_gradient(-A_LDD, None, W_RDD, self.law)
            _, named = spectral_risk(torch.tensor(a_L), NO_B, torch.linalg.eigvalsh(W_RDD))
            parts.append(deviation(found, plus, named, self.law))
        return worst_of(parts)

    def _expected(self, a_PL: np.ndarray) -> Deviation:
        """The same for the Wishart law itself, by words; the derivative is the exact polynomial's."""
        A_PLDD = torch.stack([-self._weights(a_L)[0] for a_L in a_PL])
        named_PL = torch.tensor(np.stack([self.risk.derivatives(a_L.tolist()).gradient_V for a_L in a_PL]))
        found, plus = (whiten_A(expected_gradient(A, self.law), self.law) for A in (A_PLDD, -A_PLDD))
        return deviation(found, plus, named_PL, self.law)

    def _gradient_norm(self, a_L: np.ndarray) -> tuple[float, float]:
        """Norm of the population gradient on S, all layers together, and what rounding may make of 0."""
        # dR/da_l = <G_l, Sigma^{-1}> with G_l = c_l Sigma, so ||G_l|| = |dR/da_l| ||Sigma|| / D.
        factor = float(torch.linalg.matrix_norm(self.law.Sigma_RDD[0])) / self.law.dim
        if self._has_words():
            plus = factor * float(np.linalg.norm(self.risk.derivatives((-a_L).tolist()).gradient_V))
            exact = float(expected_gradient(-self._weights(a_L)[0], self.law).norm())
            return exact, ROUNDING * condition(self.law) * plus
        _, along_V = on_the_rule(self.risk, torch.tensor(a_L), NO_B)
        unit_V = rounding_of(self.risk.derivatives(a_L.tolist()), a_L)
        return factor * float(np.linalg.norm(along_V)), factor * float(np.linalg.norm(unit_V))

    def _control(self, best: Minimum, rng: np.random.Generator) -> Control:
        shifted, bound = self._gradient_norm(1.1 * best.a_L)
        moved = decide(shifted, bound) == "fails"
        if self.law.dim == 1:
            return Control(
                "gradient norm on S at scalars a tenth too large (no point is off S at dim 1)", shifted, moved
            )
        A_LDD = tilt(-self._weights(0.5 * best.a_L)[0], self.law)
        W_RDD = whitened_prompts(self.law, rng, PROMPTS)
        found, plus = (orbit_gradient(A, None, W_RDD, self.law) for A in (-A_LDD, A_LDD))
        off = deviation(found, plus, None, self.law)
        return Control(
            "off_direction off S, half the optimum with A_0 doubled along one whitened axis; "
            f"also gradient norm {shifted:.2g} on S at scalars a tenth too large",
            off.off_direction,
            moved and decide(off.share, 1) == "fails",
        )

    def _notes(self) -> list[str]:
        notes = [
            "Footnote 2 is settled for (8): the risk on S is the integral of q^2 with q(0) = 1, coercive "
            "in a, "
            "so its infimum is attained, at a_l = 1 / root of the best q; `risk` equals the rational "
            "lower_bound.",
            "gradient_norm is exact: by words in S for L <= 3, else by the derivative of the exact "
            "polynomial, "
            "since the gradient on S is that multiple of Sigma.",
            "The proof's R~_i = r_i I must read r_i Sigma^-1, and w^T w must read w w^T; statement and "
            "proof keep "
            "B_i, which (8) does not have.",
            f"The optimal risk is {self.risk.optimum().risk:.4g}: section 4.3's 'almost 0' is not the case.",
        ]
        if self.distorted:
            root = self.law.root_RDD[0]
            U = torch.linalg.svd(root)[0]  # Sigma^{-1/2} = U diag U^T
            printed = (U / torch.linalg.svdvals(root)) @ U.mT
            wrong = float((root.mT @ printed - torch.eye(self.law.dim).double()).abs().max())
            notes.append(
                "Section 4.2: y = <x, w> takes w = W^-T w_bar; the printed Sigma^-1/2 w_bar misses W^T w "
                "= w_bar by up "
                f"to {wrong:.2g} per entry here (0 for symmetric positive W)."
            )
        return notes

    def _judge_seed(self, A_LDD: Tensor, law: LinearRegressionLaw, gradient: bool = True) -> dict[str, float]:
        layers = len(A_LDD)
        a_L = scalars_on_s(A_LDD, law.Sigma_RDD[0])[0].numpy()
        on_s = InvariantRisk(law.dim, law.context_R[0], layers)
        optimum = on_s.optimum().risk
        distance = float(distance_to_identity(law.root_RDD.mT @ A_LDD @ law.root_RDD).max())
        if layers <= WORDS_LAYERS and law.dim <= WORDS_DIM:
            risk, error = (
                float(sparse_a_risk(A_LDD, law.Sigma_RDD[0], law.Sigma_w_RDD[0], law.context_R[0])),
                0.0,
            )
            size, size_error = (float(expected_gradient(A_LDD, law).norm()) if gradient else math.nan), 0.0
        else:
            here, there = -A_LDD, -torch.tensor(a_L)[:, None, None] * inverse_sigma(law)
            shift, error, gradients_CV = sampled_difference(
                (here, None), (there, None), law, generator(self.seed, "eval"), self.samples
            )
            risk = on_s.value(a_L.tolist()) + shift
            exact_V = (
                torch.tensor(-on_s.derivatives(a_L.tolist()).gradient_V)[:, None, None]
                * law.Sigma_RDD[0]
                / law.dim
            ).reshape(-1)
            size, size_error = unbiased_norm(gradients_CV + exact_V)
        return {
            "distance": distance,
            "excess": risk / optimum - 1,
            "excess_error": error / optimum,
            "gradient_norm": size,
            "gradient_norm_stderr": size_error,
            "risk": risk,
            "risk_on_s": on_s.value(a_L.tolist()),
            "optimum": optimum,
        }

    def _weights(self, a_L: np.ndarray) -> tuple[Tensor, None]:
        """A in the sign of (11), as the kernels read it."""
        return -torch.tensor(a_L)[:, None, None] * inverse_sigma(self.law), None

    def _has_words(self) -> bool:
        return self.layers <= WORDS_LAYERS and self.law.dim <= WORDS_DIM

    def _least_risk(self, layers: int) -> float:
        return InvariantRisk(self.law.dim, self.law.context_R[0], layers).optimum().risk


def bounded_layers(layers: int, limit: int, reason: str) -> int:
    if whole("check.layers", layers, 1) > limit:
        raise InputError(f"check.layers={layers}: must be from 1 to {limit}; beyond, {reason}")
    return layers


def inverse_law(
    dim: int,
    context: int,
    eigenvalues: Sequence[float] | None,
    covariance: Sequence[Sequence[float]] | str | None,
    distortion: Sequence[Sequence[float]] | str | None,
    seed: int,
) -> LinearRegressionLaw:
    """x ~ N(0, Sigma), w ~ N(0, Sigma^{-1})."""
    if whole("check.dim", dim, 1) > MAX_DIM:
        raise InputError(
            f"check.dim={dim}: at most {MAX_DIM}; a prompt is turned by {MAX_DIM}^2 rotations there, at "
            "D^3 each"
        )
    whole("check.context", context, 1)
    whole("check.seed", seed, 0)
    task = LinearRegression(
        dim,
        context,
        eigenvalues,
        covariance=covariance,
        distortion=distortion,
        task_covariance="inverse",
        prefix="check",
    )
    return task.law([seed])


def laws_of_weights(weights: Weights, family: str, theorem: str) -> list[LinearRegressionLaw]:
    """The law of each seed; weights that the theorem does not speak of are refused."""
    if weights.family != family or weights.activation != "identity":
        raise InputError(
            f"weights of {weights.family} with activation {weights.activation}: {theorem} speaks of "
            f"linear {family}"
        )
    law = weights.law
    whitened_w = law.root_RDD.mT @ law.Sigma_w_RDD @ law.root_RDD
    error = float((whitened_w - torch.eye(law.dim).double()).abs().max())
    if error > ROUNDING * condition(law) or law.label_noise or bool(law.mean_RD.any()):
        raise InputError(
            f"weights: {theorem} needs w ~ N(0, Sigma^-1) and no label noise (task.task_covariance=inverse)"
        )
    return [law.replica(r) for r in range(len(law.root_RDD))]


def judged(row: dict[str, float]) -> str:
    return joint([decide(row["distance"], DISTANCE), decide(row["excess"], EXCESS, row["excess_error"])])


def tilt(A_LDD: Tensor, law: LinearRegressionLaw) -> Tensor:
    """A_0 doubled along the first whitened axis: off S for D > 1."""
    root, inverse = law.root_RDD[0], law.task_root_RDD[0]
    first = root.mT @ A_LDD[0] @ root
    first[0] = 2 * first[0]
    return torch.cat([(inverse @ first @ inverse.mT)[None], A_LDD[1:]])


def condition(law: LinearRegressionLaw) -> float:
    return float(torch.linalg.cond(law.Sigma_RDD).max())


def inverse_sigma(law: LinearRegressionLaw) -> Tensor:
    return law.task_root_RDD[0] @ law.task_root_RDD[0].mT


def whiten_A(gradient: Tensor, law: LinearRegressionLaw) -> Tensor:
    """Gradient with respect to root^T A root; Sigma becomes I."""
    return law.task_root_RDD[0].mT @ gradient @ law.task_root_RDD[0]


def whiten_B(gradient: Tensor, law: LinearRegressionLaw) -> Tensor:
    """Gradient with respect to root^{-1} B root; I stays I."""
    return law.root_RDD[0].mT @ gradient @ law.task_root_RDD[0]


def rotations(dim: int) -> Tensor:
    """D 2^ceil(log2 D) signed cyclic permutations whose mean of R^T X R is tr(X)/D I for every X.

    The signs are rows of a Hadamard matrix, orthogonal in pairs of columns, and remove what is off the
    diagonal; the cyclic shifts level the diagonal.
    """
    signs = torch.ones(1, 1, dtype=torch.float64)
    while len(signs) < dim:
        signs = torch.cat([torch.cat([signs, signs], 1), torch.cat([signs, -signs], 1)])
    shifts = torch.stack([torch.eye(dim, dtype=torch.float64).roll(shift, 0) for shift in range(dim)])
    return (shifts[:, None] * signs[None, :, None, :dim]).reshape(-1, dim, dim)


def whitened_prompts(law: LinearRegressionLaw, rng: np.random.Generator, count: int) -> Tensor:
    """W with S = root W root^T."""
    S_BDD = law.covariate_grams([rng], count)[0]
    return law.task_root_RDD[0].mT @ S_BDD @ law.task_root_RDD[0]


def prompt_gradients(
    A_LDD: Tensor, B_LDD: Tensor | None, W_RBDD: Tensor, law: LinearRegressionLaw
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Risk (R, B) given the prompts and its gradients (R, L, D, D), averaged over B, in raw coordinates."""
    R = len(W_RBDD)
    root_DD, task_root_DD = law.root_RDD[0], law.task_root_RDD[0]
    S_RDDB = (root_DD @ W_RBDD @ root_DD.mT).movedim(1, -1).contiguous()
    leaves = [M.expand(R, *M.shape).clone().requires_grad_() for M in (A_LDD, B_LDD) if M is not None]
    A, B = leaves[0], leaves[1] if len(leaves) > 1 else None
    risk_RB = sparse_expected_risk(A, B, S_RDDB, task_root_DD.expand(R, -1, -1), root_DD.expand(R, -1, -1))
    gradients = torch.autograd.grad(risk_RB.mean(1).sum(), leaves)
    return risk_RB.detach(), gradients[0], gradients[1] if B is not None else None


def orbit_gradient(A_LDD: Tensor, B_LDD: Tensor | None, W_RDD: Tensor, law: LinearRegressionLaw) -> Tensor:
    """Whitened gradients (R, M, D, D) of the mean risk over each orbit; M counts the A's, then the B's."""
    turn_GDD = rotations(law.dim)
    parts = []
    for W_DD in W_RDD:
        _, grad_A, grad_B = prompt_gradients(A_LDD, B_LDD, (turn_GDD @ W_DD @ turn_GDD.mT)[None], law)
        white = [whiten_A(grad_A[0], law)] + ([] if grad_B is None else [whiten_B(grad_B[0], law)])
        parts.append(torch.cat(white))
    return torch.stack(parts)


def spectral_risk(a_L: Tensor, b_L: Tensor, eigenvalues_RD: Tensor) -> tuple[Tensor, Tensor]:
    """sum_i q(s_i)^2 over each spectrum (R,), q of icl.theory.polynomial, and its derivatives (R, M) along
    A_l = Sigma^{-1}, then along B_l = I.
    """
    a, b = (theta.expand(len(eigenvalues_RD), -1).clone().requires_grad_() for theta in (a_L, b_L))
    q = p = torch.ones_like(eigenvalues_RD)
    for layer in range(len(a_L)):
        step = a[:, layer, None] * eigenvalues_RD * p * p
        q = q * (1 - step)
        if layer < len(b_L):
            p = p * (1 - b[:, layer, None] * step)
    risk_R = q.square().sum(1)
    along_a, *along_b = torch.autograd.grad(risk_R.sum(), [a, b] if len(b_L) else [a])
    return risk_R.detach(), torch.cat([-along_a, *along_b], 1)  # A_l = -a_l Sigma^{-1} in (11)


def on_the_rule(risk: InvariantRisk, a_L: Tensor, b_L: Tensor) -> tuple[float, np.ndarray]:
    """Expectation of spectral_risk, which the orbits hold against the model, by the exact Gauss rule."""
    weights_J = torch.tensor(risk.weights_J)
    value_J, along_JM = spectral_risk(a_L, b_L, torch.tensor(risk.nodes_J)[:, None])
    return float(weights_J @ value_J), (weights_J @ along_JM).numpy()


def expected_gradient(A_LDD: Tensor, law: LinearRegressionLaw) -> Tensor:
    """Exact gradient of the population risk at A of (8), over any leading axes, in raw coordinates."""
    A = A_LDD.clone().requires_grad_()
    risk = sparse_a_risk(A, law.Sigma_RDD[0], law.Sigma_w_RDD[0], law.context_R[0])
    return torch.autograd.grad(risk.sum(), A)[0]


def deviation(found: Tensor, plus: Tensor, named: Tensor | None, law: LinearRegressionLaw) -> Deviation:
    """Whitened gradients (P, M, D, D) against multiples of I.

    `plus` is the gradient where all terms have one sign, which is what rounding is relative to; `named`
    (P, M) are derivatives along the multiples.
    """
    dim = found.shape[-1]
    identity = torch.eye(dim, dtype=torch.float64)
    size = torch.linalg.matrix_norm(found)
    mean = found.diagonal(dim1=-2, dim2=-1).mean(-1)
    off = torch.linalg.matrix_norm(found - mean[..., None, None] * identity) / size
    error = torch.zeros_like(off) if named is None else (mean - named / dim).abs() * math.sqrt(dim) / size
    bound = ROUNDING * condition(law) * torch.linalg.matrix_norm(plus) / size
    larger = torch.maximum(off, error)
    at_largest = bound.reshape(-1)[larger.argmax()]
    return Deviation(float(off.max()), float(error.max()), float(at_largest), float((larger / bound).max()))


def rounding_of(here: Derivatives, theta_V: np.ndarray) -> np.ndarray:
    """What a relative error of 64 eps in each factor of q makes of the polynomial's gradient."""
    root_V = np.sqrt(np.abs(np.diag(here.hessian_VV)))
    return ROUNDING * root_V * _root_error(here, theta_V)


def rounding_of_value(here: Derivatives, theta_V: np.ndarray) -> float:
    """The same of the risk, relative to it."""
    return ROUNDING * _root_error(here, theta_V) / math.sqrt(here.value)


def _root_error(here: Derivatives, theta_V: np.ndarray) -> float:
    """Root mean square over the spectrum of what one relative unit of error in every factor makes of q."""
    return math.sqrt(here.value) + float(np.sqrt(np.abs(np.diag(here.hessian_VV))) @ np.abs(theta_V))


def within_rounding(worst: Deviation) -> str:
    """Undecided where rounding could hide any direction at all."""
    return decide(worst.share, 1) if worst.bound < USELESS else "undecided"


def worst_of(parts: Sequence[Deviation]) -> Deviation:
    largest = max(parts, key=lambda part: max(part.off_direction, part.derivative_error))
    return Deviation(
        max(part.off_direction for part in parts),
        max(part.derivative_error for part in parts),
        largest.bound,
        max(part.share for part in parts),
    )


def rotation_test(
    A_LDD: Tensor, B_LDD: Tensor | None, law: LinearRegressionLaw, rng: np.random.Generator, samples: int
) -> tuple[float, float]:
    """max |z| of the off-direction components of the sampled gradient, and its 99.9 % quantile.

    Each prompt's gradient is divided by its own norm, on S a function of the spectrum: rotation invariance
    and so the zero mean are kept, and the terms are bounded however heavy the tails of the gradient.
    """
    parts = []
    for chunk in whitened_prompts(law, rng, samples).split(2000):
        _, grad_A, grad_B = prompt_gradients(A_LDD, B_LDD, chunk[:, None], law)
        white = torch.cat([whiten_A(grad_A, law)] + ([] if grad_B is None else [whiten_B(grad_B, law)]), 1)
        unit = white / torch.linalg.matrix_norm(white)[..., None, None]
        trace = unit.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None]
        parts.append((unit - trace * torch.eye(law.dim, dtype=torch.float64)).reshape(len(chunk), -1))
    off_BV = torch.cat(parts)
    if law.dim == 1:
        return 0.0, 0.0
    z_V = off_BV.mean(0) / (off_BV.std(0) / math.sqrt(len(off_BV)))
    return float(z_V.abs().max()), float(norm.isf((1 - CONFIDENCE) / (2 * len(z_V))))


def sampled_difference(
    here: tuple[Tensor, Tensor | None],
    there: tuple[Tensor, Tensor | None],
    law: LinearRegressionLaw,
    rng: np.random.Generator,
    samples: int,
) -> tuple[float, float, Tensor]:
    """Risk at `here` minus risk at `there` on the same prompts, its 99.9 % half-width, and chunk means of the
    difference of raw gradients (C, V). `there` is the point of S whose exact risk is added back."""
    W_CBDD = whitened_prompts(law, rng, CHUNKS * (samples // CHUNKS)).unflatten(0, (CHUNKS, -1))
    ours, theirs = (prompt_gradients(*point, W_CBDD, law) for point in (here, there))
    difference = (ours[0] - theirs[0]).reshape(-1)
    half_width = float(norm.isf((1 - CONFIDENCE) / 2) * difference.std() / math.sqrt(len(difference)))
    gradients = [
        (x - y).reshape(CHUNKS, -1)
        for x, y in zip(ours[1:], theirs[1:], strict=True)
        if x is not None and y is not None
    ]
    return float(difference.mean()), half_width, torch.cat(gradients, 1)


def unbiased_norm(gradients_CV: Tensor) -> tuple[float, float]:
    """Norm of the expectation from independent chunks, and its standard error.

    The norm of a noisy mean is too large. ||E g||^2 is estimated by the mean of <g_c, g_c'> over pairs of
    distinct chunks, without bias, with the jackknife over chunks for its error.
    """
    C = len(gradients_CV)
    gram_CC = gradients_CV @ gradients_CV.mT
    off_diagonal = gram_CC.sum() - gram_CC.trace()
    square = off_diagonal / (C * (C - 1))
    own_C = 2 * (gram_CC.sum(1) - gram_CC.diagonal())
    without_C = (off_diagonal - own_C) / ((C - 1) * (C - 2))
    error = float(((C - 1) / C * (without_C - without_C.mean()).square().sum()).sqrt())
    estimate = math.sqrt(max(float(square), 0.0))
    return estimate, error / (2 * max(estimate, math.sqrt(error))) if error else 0.0
