"""Linear regression whose covariances are rotated anew in each context: RRS of depth, section 3.3.

x ~ N(0, O Lambda O^T), w ~ N(0, O Omega O^T), O Haar, y = <w, x> + noise. Losses are squared errors divided
by d, which is the paper's y = <w, x> / sqrt d.

R replicas, B prompts, D covariates, F = O Lambda^(1/2), T = O Omega^(1/2).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from icl.errors import real, reals
from icl.tasks.conditioned_regression import ConditionedRegression, ConditionedRegressionLaw, Expected
from icl.tasks.law import Draw, Estimator, Generators, Model


class RotatedRegression(ConditionedRegression):
    """The task as a user states it: Lambda and Omega, or the exponents of a power law."""

    def __init__(
        self,
        dim: int = 8,
        context: int = 64,
        nu: float = 1.2,
        beta: float = 1.5,
        eigenvalues: Sequence[float] | None = None,
        task_eigenvalues: Sequence[float] | None = None,
        label_noise: float = 0.0,
        prefix: str = "task",
    ) -> None:
        super().__init__(dim, context, label_noise=label_noise, prefix=prefix)
        nu, beta = real(f"{prefix}.nu", nu, 0), real(f"{prefix}.beta", beta, 0)
        k_D = np.arange(1.0, self.dim + 1)
        given = (k_D**-nu).tolist() if eigenvalues is None else eigenvalues
        self.eigenvalues = reals(f"{prefix}.eigenvalues", given, self.dim, 0, open_low=True)
        share_D = k_D ** (-nu * beta - 1)
        omega_D = self.dim * share_D / share_D.sum() / np.array(self.eigenvalues)
        given = omega_D.tolist() if task_eigenvalues is None else task_eigenvalues
        self.task_eigenvalues = reals(f"{prefix}.task_eigenvalues", given, self.dim, 0)

    def law(self, seeds: Sequence[int]) -> "RotatedRegressionLaw":
        given = {**vars(super().law(seeds)), "condition": np.inf}  # at 1 no basis is drawn
        lambda_D, omega_D = tuple(self.eigenvalues), tuple(self.task_eigenvalues)
        return RotatedRegressionLaw(**given, lambda_D=lambda_D, omega_D=omega_D)


@dataclass(frozen=True)
class RotatedRegressionLaw(ConditionedRegressionLaw):
    declared: ClassVar[tuple[str, ...]] = ConditionedRegressionLaw.declared
    read_out: ClassVar[int] = -1  # type: ignore[misc]  # A_l of eq. (8) of ahn is then Gamma_l / L

    lambda_D: tuple[float, ...]
    omega_D: tuple[float, ...]

    def spectra(self, rng: np.random.Generator, count: int) -> np.ndarray:
        return np.broadcast_to(np.array(self.lambda_D), (count, self.dim))

    def _draw_tasks(self, generators: Generators, batch: int) -> tuple[Tensor, Tensor, Tensor]:
        F_RBDD, white_RBD, u_RBD = super()._draw_tasks(generators, batch)
        return F_RBDD, (self.task_roots(F_RBDD) @ white_RBD[..., None])[..., 0], u_RBD

    def task_roots(self, F_RBDD: Tensor) -> Tensor:
        """Return T of these F."""
        return F_RBDD * torch.from_numpy(np.sqrt(np.divide(self.omega_D, self.lambda_D)))

    def estimators(self, model: Any) -> Mapping[str, Callable[[], Estimator]]:
        offered = super().estimators(model)
        family = model.parametrization
        if "expected" in offered and family.sparse and self.label_noise == 0:
            return {**offered, "expected": lambda: RotatedContexts(self)}
        return offered


class RotatedContexts(Expected):
    """Only the contexts are sampled, task and query integrated out: for sparse layers."""

    def draw(self, generators: Generators, batch: int) -> Draw:
        gram_RBPP, F_RBDD, _ = self.law.gram_tasks(generators, batch)
        D = self.law.dim
        drawn = {"S": gram_RBPP[..., :D, :D], "F": F_RBDD, "T": self.law.task_roots(F_RBDD)}
        return {name: tensor.movedim(1, -1).contiguous() for name, tensor in drawn.items()}

    def risk(self, model: Model, draw: Draw) -> Tensor:
        given = draw["S"], draw["T"], draw["F"]
        return model.risk_given_gram(*given, read_out=self.law.read_out).mean(-1) / self.law.dim
