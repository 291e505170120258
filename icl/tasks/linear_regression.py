"""Random linear regression in context: y = <w, x> + noise, x ~ N(0, Sigma), w ~ N(mean, Sigma_w).

The query token is (x_q, y_q) with the initial guess y_q = <guess_vector, x_q> + guess_bias, zero by default.

R replicas, B prompts, N context, D covariates, P = D + 1 token width, E = D (or D + 1 with label noise) the
width of the Gaussian vector u behind a token: u = x, or u = (x, noise). A token is z = (x, y) = J u with
J = [[I, 0], [w^T, 1]], so the whole context enters through S = (1/N) sum u u^T, which is drawn as a Wishart
matrix: the cost of a prompt does not depend on N.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from icl.errors import InputError, given_matrix, one_of, real, reals, whole
from icl.random import generator
from icl.tasks import exact, on_s
from icl.tasks.integrated import ExpectedSparse, ExpectedStack, Tilted, degree_of_risk
from icl.tasks.law import Estimator, Law, RiskFunction
from icl.tasks.prompts import GramPrompt, TokenPrompt
from icl.tasks.tilted import draw_tilted
from icl.tasks.token_law import TokenLaw
from icl.tasks.wishart import draw_wishart

PAPER_EIGENVALUES = (1.0, 1.0, 0.25, 0.0625, 1.0)  # section 4.3 of the ahn paper, at dim 5
LARGEST = 1e76  # of an entry of w* or v: what a float64 raises to the fourth power
MAX_DIM = 512


class LinearRegression:
    """The task as a user states it; `law(seeds)` is what the seeds make of it (each has its own rotation)."""

    def __init__(
        self,
        dim: int = 5,
        context: int | Sequence[int] = 20,
        eigenvalues: Sequence[float] | None = None,
        rotation: str = "haar",
        covariance: Sequence[Sequence[float]] | str | None = None,
        distortion: Sequence[Sequence[float]] | str | None = None,
        task_covariance: Sequence[Sequence[float]] | str = "identity",
        prior_mean: Sequence[float] | None = None,
        prior_mean_norm: float | None = None,
        guess_vector: Sequence[float] | None = None,
        guess_vector_norm: float | None = None,
        guess_bias: float = 0.0,
        label_noise: float = 0.0,
        read_out: int = -1,
        prefix: str = "task",
    ) -> None:
        self.prefix = prefix
        self.dim = whole(f"{prefix}.dim", dim, 1, MAX_DIM)
        per_replica = isinstance(context, Sequence) and not isinstance(context, str)
        contexts = list(context) if isinstance(context, Sequence) and per_replica else [context]
        self.contexts = [whole(f"{prefix}.context", n, 1) for n in contexts]
        self.per_replica_context = per_replica
        self.rotation = one_of(f"{prefix}.rotation", rotation, ("haar", "none"))
        rivals = {"eigenvalues": eigenvalues, "covariance": covariance, "distortion": distortion}
        given = [name for name, value in rivals.items() if value is not None]
        if len(given) > 1:
            raise InputError(f"{prefix}.{given[0]} and {prefix}.{given[1]} exclude each other: give one")
        self.covariance = self.distortion = None
        if covariance == "identity":
            self.covariance = np.eye(self.dim)
        elif covariance is not None:
            self.covariance = _positive_definite(f"{prefix}.covariance", covariance, self.dim)
        if distortion is not None:
            self.distortion = _invertible(f"{prefix}.distortion", distortion, self.dim)
        default = PAPER_EIGENVALUES if self.dim == len(PAPER_EIGENVALUES) else (1.0,) * self.dim
        chosen = default if eigenvalues is None else eigenvalues
        self.eigenvalues = reals(f"{prefix}.eigenvalues", chosen, self.dim, 0, open_low=True)
        self.task_covariance: str | np.ndarray
        if isinstance(task_covariance, str) and task_covariance in ("identity", "inverse"):
            self.task_covariance = task_covariance
        elif isinstance(task_covariance, str) and not task_covariance.endswith(".npy"):
            choices = "identity, inverse, a nested list or a .npy file"
            raise InputError(f"{prefix}.task_covariance={task_covariance}: must be {choices}")
        else:
            self.task_covariance = _positive_definite(f"{prefix}.task_covariance", task_covariance, self.dim)
        if self.distortion is not None and self.task_covariance != "inverse":
            reason = "w = W^-T w_bar has covariance Sigma^-1"
            raise InputError(f"{prefix}.distortion needs {prefix}.task_covariance=inverse: {reason}")
        self.prior_mean = vector_or_norm(f"{prefix}.prior_mean", prior_mean, prior_mean_norm, self.dim)
        self.guess_vector = vector_or_norm(
            f"{prefix}.guess_vector", guess_vector, guess_vector_norm, self.dim
        )
        self.guess_bias = real(f"{prefix}.guess_bias", guess_bias)
        self.label_noise = real(f"{prefix}.label_noise", label_noise, 0)
        if read_out not in (-1, 1):
            raise InputError(f"{prefix}.read_out={read_out}: must be -1 or 1")
        self.read_out = read_out

    def law(self, seeds: Sequence[int]) -> LinearRegressionLaw:
        """Covariances per seed, in float64."""
        if self.per_replica_context and len(self.contexts) != len(seeds):
            count = f"{len(self.contexts)} entries for {len(seeds)} seeds"
            raise InputError(f"{self.prefix}.context={self.contexts}: has {count}")
        U_RDD, root_RDD, task_root_RDD = (torch.stack(m) for m in zip(*map(self._roots, seeds), strict=True))
        return LinearRegressionLaw(
            context_R=tuple(self.contexts) if self.per_replica_context else tuple(self.contexts) * len(seeds),
            U_RDD=U_RDD,
            root_RDD=root_RDD,
            task_root_RDD=task_root_RDD,
            mean_RD=torch.tensor(self.prior_mean, dtype=torch.float64).expand(len(seeds), -1).clone(),
            guess_RD=torch.tensor(self.guess_vector, dtype=torch.float64).expand(len(seeds), -1).clone(),
            guess_bias=self.guess_bias,
            label_noise=self.label_noise,
            read_out=self.read_out,
        )

    def _roots(self, seed: int) -> tuple[Tensor, Tensor, Tensor]:
        """(U, root, task root) with Sigma = root root^T = U diag U^T and Sigma_w = task_root task_root^T."""
        if self.distortion is not None:
            W_DD = torch.from_numpy(self.distortion)
            return torch.linalg.eigh(W_DD @ W_DD.T)[1], W_DD, torch.linalg.inv(W_DD).T.contiguous()
        if self.covariance is not None:
            lam_D, U_DD = torch.linalg.eigh(torch.from_numpy(self.covariance))
        else:
            lam_D = torch.tensor(self.eigenvalues, dtype=torch.float64)
            U_DD = torch.eye(self.dim, dtype=torch.float64)
            if self.rotation == "haar":
                U_DD = haar_orthogonal(generator(seed, "task"), self.dim)
        root_DD = (U_DD * lam_D.sqrt()) @ U_DD.T
        if isinstance(self.task_covariance, np.ndarray):
            task_root_DD = torch.linalg.cholesky(torch.from_numpy(self.task_covariance))
        elif self.task_covariance == "inverse":
            task_root_DD = (U_DD / lam_D.sqrt()) @ U_DD.T
        else:
            task_root_DD = torch.eye(self.dim, dtype=torch.float64)
        return U_DD, root_DD, task_root_DD


@dataclass(frozen=True)
class LinearRegressionLaw(TokenLaw):
    """The prompt distribution of each replica. Draws take one generator per replica."""

    declared: ClassVar[tuple[str, ...]] = (
        "covariate_grams",
        "tilted_grams",
        "gram_prompts",
        "gram_tasks",
        "gram_tasks_on",
        "label_root_REK",
        "query_root_RED",
        "query_token_root_RPK",
        "estimators",
        "risk_arguments",
        "exact_risk",
        "exact_where",
        "risk_on_s",
    )

    context_R: tuple[int, ...]
    U_RDD: Tensor
    root_RDD: Tensor
    task_root_RDD: Tensor
    mean_RD: Tensor
    guess_RD: Tensor
    guess_bias: float
    label_noise: float
    read_out: int

    @property
    def dim(self) -> int:
        return self.root_RDD.shape[-1]

    @property
    def guesses(self) -> bool:
        """Whether the query token's last entry is anything but zero."""
        return bool(self.guess_RD.any()) or self.guess_bias != 0

    @property
    def Sigma_RDD(self) -> Tensor:
        return self.root_RDD @ self.root_RDD.mT

    @property
    def Sigma_w_RDD(self) -> Tensor:
        return self.task_root_RDD @ self.task_root_RDD.mT

    @property
    def u_root_REE(self) -> Tensor:
        """Root of u's covariance: Sigma's, bordered by the noise's standard deviation if there is noise."""
        return self.root_RDD if self.label_noise == 0 else _bordered(self.root_RDD, self.label_noise**0.5)

    @property
    def label_root_REK(self) -> Tensor:
        """F with F F^T = E v v^T, y = <v, u>: v = w, or (w, 1) with noise. The mean of w adds a column."""
        R, D = self.mean_RD.shape
        root_RDK = self.task_root_RDD
        if self.label_noise == 0 and not self.mean_RD.any():
            return root_RDK
        root_RDK = torch.cat([root_RDK, self.mean_RD[:, :, None]], dim=2)
        if self.label_noise == 0:
            return root_RDK
        one_R1K = torch.zeros(R, 1, D + 1, dtype=torch.float64)
        one_R1K[:, :, -1] = 1
        return torch.cat([root_RDK, one_R1K], dim=1)

    @property
    def query_root_RED(self) -> Tensor:
        """F with F F^T = E u_q u_q^T of the query, which carries no noise."""
        if self.label_noise == 0:
            return self.root_RDD
        return torch.cat([self.root_RDD, torch.zeros_like(self.root_RDD[:, :1])], dim=1)

    @property
    def query_token_root_RPK(self) -> Tensor:
        """F with F F^T = E q q^T of the query token q = (x_q, y_q); the bias of the guess adds a column."""
        guess_R1D = self.guess_RD[:, None] @ self.root_RDD
        F_RPD = torch.cat([self.root_RDD, guess_R1D], dim=1)
        if self.guess_bias == 0:
            return F_RPD
        bias_RP1 = torch.zeros_like(F_RPD[:, :, :1])
        bias_RP1[:, -1] = self.guess_bias
        return torch.cat([F_RPD, bias_RP1], dim=2)

    def risk_arguments(self, r: int = 0) -> dict[str, Any]:
        """Replica r as icl.theory.quadratic.QuadraticRisk.linear_regression takes it."""
        return {
            "Sigma": self.Sigma_RDD[r],
            "Sigma_w": self.Sigma_w_RDD[r],
            "context": self.context_R[r],
            "prior_mean": self.mean_RD[r],
            "label_noise": self.label_noise,
            "guess_vector": self.guess_RD[r],
            "guess_bias": self.guess_bias,
            "target_sign": self.read_out,
        }

    def estimators(self, model: Any) -> Mapping[str, Callable[[], Estimator]]:
        """Linear attention sees Gram matrices alone, which leaves less to sample, where it is linear in the
        query: with a mask."""
        sampled = super().estimators(model)
        if model.path == "tokens" or not model.parametrization.mask:
            return sampled
        expected = ExpectedSparse if model.parametrization.sparse and not self.guesses else ExpectedStack
        return {
            "tilted": lambda: Tilted(expected(self), degree_of_risk(model)),
            "expected": lambda: expected(self),
            **sampled,
        }

    def coordinates(self, model: Any) -> Mapping[str, tuple[Tensor, Tensor]]:
        """In which Sigma is the identity: x = F x', hence A = F^-T A' F^-1 and B = F B' F^-1."""
        if not model.parametrization.sparse:
            return {}
        inverse_RDD = torch.linalg.inv(self.root_RDD)
        return {"A": (inverse_RDD.mT, inverse_RDD), "B": (self.root_RDD, inverse_RDD)}

    def exact_risk(self, model: Any) -> RiskFunction | None:
        return exact.exact_risk(model, self)

    @property
    def exact_where(self) -> str:
        return exact.EXACT_WHERE

    def risk_on_s(self, model: Any) -> RiskFunction | None:
        """Exact risk of the weights' projection on ahn's set S, where the law is that of Theorems 3 and 4."""
        return on_s.risk_on_s(model, self)

    def observe(self, model: Any) -> on_s.OnS:
        known = "risk_on_s" in self.declared
        return on_s.OnS(self, model, self.risk_on_s(model) if known else None)

    def arrays(self) -> Mapping[str, np.ndarray]:
        tensors = {"Sigma": self.Sigma_RDD, "Sigma_w": self.Sigma_w_RDD, "U": self.U_RDD}
        return {name: tensor.numpy() for name, tensor in tensors.items()} | {
            "context": np.array(self.context_R)
        }

    def replica(self, r: int) -> Self:
        """The distribution of one replica alone."""
        one = slice(r, r + 1)
        names = ("U_RDD", "root_RDD", "task_root_RDD", "mean_RD", "guess_RD")
        tensors = {name: getattr(self, name)[one] for name in names}
        return replace(self, context_R=self.context_R[one], **tensors)

    def covariate_grams(self, generators: Sequence[np.random.Generator], batch: int) -> Tensor:
        """S = (1/N) sum u u^T, with shape (R, B, E, E)."""
        grams = []
        for rng, n, root_EE in zip(generators, self.context_R, self.u_root_REE.numpy(), strict=True):
            W_BEE = draw_wishart(rng, n, root_EE.shape[0], batch)
            grams.append(root_EE @ W_BEE @ root_EE.T / n)
        return torch.from_numpy(np.stack(grams))

    def tilted_grams(
        self,
        generators: Sequence[np.random.Generator],
        batch: int,
        inflations_R: Sequence[Sequence[float]],
    ) -> tuple[Tensor, Tensor]:
        """(S, weight) with shapes (R, B, E, E) and (R, B): means under the law are those of weight * value
        (icl.tasks.tilted)."""
        grams, weights = [], []
        roots = self.u_root_REE.numpy()
        for rng, n, root_EE, inflations in zip(generators, self.context_R, roots, inflations_R, strict=True):
            W_BEE, weight_B = draw_tilted(rng, n, root_EE.shape[0], batch, inflations)
            grams.append(root_EE @ W_BEE @ root_EE.T)
            weights.append(weight_B)
        return torch.from_numpy(np.stack(grams)), torch.from_numpy(np.stack(weights))

    def gram_prompts(self, generators: Sequence[np.random.Generator], batch: int) -> GramPrompt:
        """Prompts by Bartlett's decomposition: no token is ever drawn."""
        S_RBEE = self.covariate_grams(generators, batch)
        query_RBP, target_RB, w_RBD = self._query_and_task(generators, batch)
        return GramPrompt(self._gram(S_RBEE, w_RBD), query_RBP, target_RB, self.read_out)

    def gram_tasks(self, generators: Sequence[np.random.Generator], batch: int) -> tuple[Tensor, Tensor]:
        """(G, w) with shapes (R, B, P, P) and (R, B, D): a context and its task, without a query."""
        return self.gram_tasks_on(self.covariate_grams(generators, batch), generators)

    def gram_tasks_on(
        self, S_RBEE: Tensor, generators: Sequence[np.random.Generator]
    ) -> tuple[Tensor, Tensor]:
        """(G, w) of contexts with these S."""
        size = (S_RBEE.shape[1], self.dim)
        normal_RBD = torch.from_numpy(np.stack([rng.standard_normal(size) for rng in generators]))
        w_RBD = normal_RBD @ self.task_root_RDD.mT + self.mean_RD[:, None]
        return self._gram(S_RBEE, w_RBD), w_RBD

    def _gram(self, S_RBEE: Tensor, w_RBD: Tensor) -> Tensor:
        R, B, E, D = *S_RBEE.shape[:3], self.dim
        J_RBPE = torch.zeros(R, B, D + 1, E, dtype=torch.float64)
        J_RBPE[:, :, :D, :D] = torch.eye(D)
        J_RBPE[:, :, D, :D] = w_RBD
        J_RBPE[:, :, D, D:] = 1  # the noise's column, where there is one
        return J_RBPE @ S_RBEE @ J_RBPE.mT

    def token_prompts(self, generators: Sequence[np.random.Generator], batch: int) -> TokenPrompt:
        """Prompts token by token."""
        if len(set(self.context_R)) > 1:
            raise InputError(
                f"task.context={list(self.context_R)}: token prompts need one length for all seeds"
            )
        n, E = self.context_R[0], self.u_root_REE.shape[-1]
        normal_RBNE = torch.from_numpy(np.stack([rng.standard_normal((batch, n, E)) for rng in generators]))
        u_RBNE = normal_RBNE @ self.u_root_REE[:, None].mT
        query_RBP, target_RB, w_RBD = self._query_and_task(generators, batch)
        x_RBND = u_RBNE[..., : self.dim]
        y_RBN1 = x_RBND @ w_RBD[..., None] + u_RBNE[..., self.dim :].sum(-1, keepdim=True)
        return TokenPrompt(torch.cat([x_RBND, y_RBN1], dim=-1), query_RBP, target_RB, self.read_out)

    def encode(self, x_RBND: Tensor, y_RBN: Tensor, x_query_RBD: Tensor) -> TokenPrompt:
        """With this law's initial guess in the query token."""
        prompt = super().encode(x_RBND, y_RBN, x_query_RBD)
        query_RBP = torch.cat([x_query_RBD, self._guess(x_query_RBD)[..., None]], dim=-1)
        return replace(prompt, query_RBP=query_RBP)

    def _guess(self, x_RBD: Tensor) -> Tensor:
        return (self.guess_RD[:, None].to(x_RBD) * x_RBD).sum(-1) + self.guess_bias

    def _query_and_task(
        self, generators: Sequence[np.random.Generator], batch: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        draws_RB2D = torch.from_numpy(
            np.stack([rng.standard_normal((batch, 2, self.dim)) for rng in generators])
        )
        w_RBD = draws_RB2D[:, :, 0] @ self.task_root_RDD.mT + self.mean_RD[:, None]
        x_RBD = draws_RB2D[:, :, 1] @ self.root_RDD.mT
        query_RBP = torch.cat([x_RBD, self._guess(x_RBD)[..., None]], dim=-1)
        return query_RBP, (w_RBD * x_RBD).sum(-1), w_RBD


def linear_regression(law: Law, asker: str) -> LinearRegressionLaw:
    """`law` if it is of this class or declares all that this class does; others `asker` cannot speak of."""
    if isinstance(law, LinearRegressionLaw) and set(law.declared) >= set(LinearRegressionLaw.declared):
        return law
    raise InputError(
        f"{asker} takes icl.tasks.LinearRegression with its Gaussian prompts, not {type(law).__name__}"
    )


def vector_or_norm(key: str, vector: Sequence[float] | None, norm: float | None, dim: int) -> list[float]:
    """The vector given, or one of this norm along (1, ..., 1), or zero."""
    if vector is not None and norm is not None:
        raise InputError(f"{key} and {key}_norm exclude each other: set one of them to null")
    if norm is not None:
        key, vector = f"{key}_norm", [real(f"{key}_norm", norm, 0) / dim**0.5] * dim
    entries = reals(key, [0.0] * dim if vector is None else vector, dim)
    if max(map(abs, entries)) > LARGEST:
        raise InputError(f"{key}: must be at most {LARGEST:g} in size; beyond, risks are no numbers")
    return entries


def haar_orthogonal(rng: np.random.Generator, dim: int) -> Tensor:
    """A uniformly distributed orthogonal matrix: QR with the signs of R's diagonal (Mezzadri 2007)."""
    Q_DD, R_DD = np.linalg.qr(rng.standard_normal((dim, dim)))
    return torch.from_numpy(Q_DD * np.sign(np.diag(R_DD)))


def _bordered(root_RDD: Tensor, corner: float) -> Tensor:
    bordered_REE = torch.nn.functional.pad(root_RDD, (0, 1, 0, 1))
    bordered_REE[:, -1, -1] = corner
    return bordered_REE


def _positive_definite(key: str, value: Any, dim: int) -> np.ndarray:
    matrix = given_matrix(key, value, dim, dim)
    if not np.allclose(matrix, matrix.T, rtol=1e-12, atol=1e-12 * np.abs(matrix).max()):
        raise InputError(f"{key}: must be symmetric")
    smallest = np.linalg.eigvalsh(matrix).min()
    if smallest <= 0:
        raise InputError(f"{key}: must be positive definite, its smallest eigenvalue is {smallest:.3g}")
    return (matrix + matrix.T) / 2


def _invertible(key: str, value: Any, dim: int) -> np.ndarray:
    matrix = given_matrix(key, value, dim, dim)
    if np.linalg.matrix_rank(matrix) < dim:
        raise InputError(f"{key}: must be invertible")
    return matrix
