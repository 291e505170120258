"""Random linear regression in context: y = <w, x> + noise, x ~ N(0, Sigma), w ~ N(mean, Sigma_w): the task,
and its law with what is known of risks under it. Draws and moments are in icl.tasks.gaussian_prompts.

Tasks may also be uniform on a sphere (w = mean + F s, F F^T = Sigma_w, |s|^2 = D), and they may be finitely
many: then a replica's are drawn once, from its seed, and those of fewer tasks are the first of those of more.

R replicas, B prompts, K tasks, D covariates, E width of the vector u behind a token.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self, TypeGuard

import numpy as np
import torch
from torch import Tensor

from icl.errors import InputError, given_matrix, one_of, real, reals, whole
from icl.random import generator
from icl.tasks import exact
from icl.tasks.distances import Distances
from icl.tasks.gaussian_prompts import GaussianPrompts
from icl.tasks.integrated import ExpectedSparse, ExpectedStack, Tilted, degree_of_risk
from icl.tasks.law import Estimator, Generators, Law, RiskFunction
from icl.tasks.quadratic import SphereTasks, TaskList

PAPER_EIGENVALUES = (1.0, 1.0, 0.25, 0.0625, 1.0)  # section 4.3 of the ahn paper, at dim 5
LARGEST = 1e76  # of an entry of w* or v: what a float64 raises to the fourth power
MAX_DIM = 512
MAX_TASKS = 2**20


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
        tasks: int | None = None,
        task_law: str = "gaussian",
        task_draw: str = "drawn",
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
        self.tasks = None if tasks is None else whole(f"{prefix}.tasks", tasks, 1, MAX_TASKS)
        self.sphere = one_of(f"{prefix}.task_law", task_law, ("gaussian", "sphere")) == "sphere"
        self.balanced = one_of(f"{prefix}.task_draw", task_draw, ("drawn", "balanced")) == "balanced"
        if self.balanced and self.tasks is None:
            raise InputError(f"{prefix}.task_draw=balanced: needs {prefix}.tasks, a number of tasks")
        if read_out not in (-1, 1):
            raise InputError(f"{prefix}.read_out={read_out}: must be -1 or 1")
        self.read_out = read_out

    def law(self, seeds: Sequence[int]) -> "LinearRegressionLaw":
        """Covariances per seed, in float64."""
        if self.per_replica_context and len(self.contexts) != len(seeds):
            count = f"{len(self.contexts)} entries for {len(seeds)} seeds"
            raise InputError(f"{self.prefix}.context={self.contexts}: has {count}")
        U_RDD, root_RDD, task_root_RDD = (torch.stack(m) for m in zip(*map(self._roots, seeds), strict=True))
        law = LinearRegressionLaw(
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
        if self.tasks is None and not self.sphere:
            return law
        everything = TaskDiversityLaw(**_fields(law), sphere=self.sphere)
        return everything if self.tasks is None else everything.with_tasks(seeds, self.tasks, self.balanced)

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
class LinearRegressionLaw(GaussianPrompts):
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
    )

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

    def observe(self, model: Any) -> Distances:
        return Distances(self.root_RDD, model)


@dataclass(frozen=True)
class TaskDiversityLaw(LinearRegressionLaw):
    """The law of other tasks than Gaussian ones: each of `tasks_RKD` has the probability 1/K; where that is
    None they are all those of the sphere. `balanced`: every task has as many of the prompts of a draw, or one
    more."""

    declared: ClassVar[tuple[str, ...]] = LinearRegressionLaw.declared

    tasks_RKD: Tensor | None = None
    sphere: bool = False
    balanced: bool = False

    def with_tasks(self, seeds: Sequence[int], tasks: int, balanced: bool = False) -> Self:
        """Return the law of a number of tasks drawn from this one."""
        white = [generator(seed, "task", 1).standard_normal((tasks, self.dim)) for seed in seeds]
        w_RDK = self.task_root_RDD @ self._on_sphere(torch.from_numpy(np.stack(white)).mT)
        return replace(self, tasks_RKD=w_RDK.mT + self.mean_RD[:, None], balanced=balanced)

    @property
    def new_tasks(self) -> LinearRegressionLaw | None:
        """The law from which they were drawn, finitely many as they are."""
        if self.tasks_RKD is None:
            return None
        return replace(self, tasks_RKD=None, balanced=False) if self.sphere else self._gaussian()

    def with_gaussian_labels(self) -> LinearRegressionLaw:
        if self.tasks_RKD is None:
            return self._gaussian()
        roots = {"task_root_RDD": self.label_root_REK[:, : self.dim], "mean_RD": 0 * self.mean_RD}
        return self._gaussian(**roots)

    def _gaussian(self, **changes: Tensor) -> LinearRegressionLaw:
        return LinearRegressionLaw(**_fields(self) | changes)

    def replica(self, r: int) -> Self:
        tasks_RKD = None if self.tasks_RKD is None else self.tasks_RKD[r : r + 1]
        return replace(super().replica(r), tasks_RKD=tasks_RKD)

    @property
    def label_root_REK(self) -> Tensor:
        if self.tasks_RKD is None:
            return super().label_root_REK
        v_RKE = torch.nn.functional.pad(self.tasks_RKD, (0, int(self.label_noise > 0)), value=1.0)
        return torch.linalg.qr(v_RKE / v_RKE.shape[1] ** 0.5, "r").R.mT.contiguous()

    def risk_arguments(self, r: int = 0) -> dict[str, Any]:
        given = super().risk_arguments(r)
        if self.tasks_RKD is None:
            return given | {"tasks": SphereTasks(given["Sigma_w"])}
        mean_D = self.tasks_RKD[r].mean(0)
        u_KD = self.tasks_RKD[r] - mean_D
        Sigma_w = u_KD.mT @ u_KD / len(u_KD)
        return given | {"Sigma_w": Sigma_w, "prior_mean": mean_D, "tasks": TaskList(u_KD)}

    def _tasks(self, generators: Generators, batch: int) -> Tensor:
        if self.tasks_RKD is None:
            return super()._tasks(generators, batch)
        each = zip(generators, self.tasks_RKD, strict=True)
        return torch.stack([tasks_KD[self._numbers(rng, len(tasks_KD), batch)].T for rng, tasks_KD in each])

    def _numbers(self, rng: np.random.Generator, K: int, batch: int) -> np.ndarray:
        """Return the number of each prompt's task."""
        if not self.balanced:
            return rng.integers(K, size=batch)
        once_more = rng.choice(K, batch % K, replace=False)
        return rng.permutation(np.concatenate([np.arange(batch - batch % K) % K, once_more]))

    def _white_tasks(self, generators: Generators, batch: int) -> Tensor:
        return self._on_sphere(super()._white_tasks(generators, batch))

    def _on_sphere(self, white_RDB: Tensor) -> Tensor:
        return white_RDB * (self.dim**0.5 / white_RDB.norm(dim=1, keepdim=True)) if self.sphere else white_RDB


def _fields(law: LinearRegressionLaw) -> dict[str, Any]:
    return {field.name: getattr(law, field.name) for field in fields(LinearRegressionLaw)}


def is_linear_regression(law: Law) -> TypeGuard[LinearRegressionLaw]:
    """Return True if `law` declares all that LinearRegressionLaw does, a subclass may draw otherwise, and its
    tasks are Gaussian."""
    declares = isinstance(law, LinearRegressionLaw) and set(law.declared) >= set(LinearRegressionLaw.declared)
    return declares and not isinstance(law, TaskDiversityLaw)


def linear_regression(law: Law, caller: str) -> LinearRegressionLaw:
    """Return `law`; raise InputError, in the name of `caller`, if it is not such a law."""
    if is_linear_regression(law):
        return law
    if isinstance(law, TaskDiversityLaw):
        raise InputError(
            f"{caller} takes Gaussian tasks, task.tasks=null task.task_law=gaussian; to train on others, set "
            "checks=[]"
        )
    raise InputError(
        f"{caller} takes icl.tasks.LinearRegression with its Gaussian prompts, not {type(law).__name__}"
    )


def vector_or_norm(key: str, vector: Sequence[float] | None, norm: float | None, dim: int) -> list[float]:
    """Return the vector given, or one of this norm along (1, ..., 1), or zero."""
    if vector is not None and norm is not None:
        raise InputError(f"{key} and {key}_norm exclude each other: set one of them to null")
    if norm is not None:
        key, vector = f"{key}_norm", [real(f"{key}_norm", norm, 0) / dim**0.5] * dim
    entries = reals(key, [0.0] * dim if vector is None else vector, dim)
    if max(map(abs, entries)) > LARGEST:
        raise InputError(f"{key}: must be at most {LARGEST:g} in size; beyond, risks are no numbers")
    return entries


def haar_orthogonal(rng: np.random.Generator, dim: int) -> Tensor:
    """Return a uniformly distributed orthogonal matrix: QR with the signs of R's diagonal (Mezzadri 2007)."""
    Q_DD, R_DD = np.linalg.qr(rng.standard_normal((dim, dim)))
    return torch.from_numpy(Q_DD * np.sign(np.diag(R_DD)))


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
