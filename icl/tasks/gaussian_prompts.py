"""Gaussian prompts of linear regression: their moments and draws, token by token or through Gram matrices.

The query token is (x_q, y_q) with the initial guess y_q = <guess_vector, x_q> + guess_bias, zero by default.

R replicas, B prompts, N context, D covariates, P = D + 1 token width, E = D (or D + 1 with label noise) the
width of the Gaussian vector u behind a token: u = x, or u = (x, noise). A token is z = (x, y) = J u with
J = [[I, 0], [w^T, 1]], so the whole context enters through S = (1/N) sum u u^T, which is drawn as a Wishart
matrix: the cost of a prompt does not depend on N.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from icl.errors import InputError
from icl.kernel.normal import standard_normal
from icl.tasks.prompts import GramPrompt, TokenPrompt
from icl.tasks.tilted import draw_tilted
from icl.tasks.token_law import TokenLaw
from icl.tasks.wishart import bartlett_factor, squares


@dataclass(frozen=True)
class GaussianPrompts(TokenLaw):
    """y = <w, x> + noise, x ~ N(0, Sigma), w ~ N(mean, Sigma_w). Draws take one generator per replica."""

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
        """True if the query token's last entry can be anything but zero."""
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
        return self.root_RDD if self.label_noise == 0 else _border(self.root_RDD, self.label_noise**0.5)

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
        """Replica r as icl.tasks.quadratic.QuadraticRisk.linear_regression takes it."""
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

    def with_gaussian_labels(self) -> "GaussianPrompts":
        """Return the Gaussian law of the same E v v^T. The risk of a stack whose output is linear in the
        labels, without a guess, depends on no more."""
        return self

    def arrays(self) -> Mapping[str, np.ndarray]:
        tensors = {"Sigma": self.Sigma_RDD, "Sigma_w": self.Sigma_w_RDD, "U": self.U_RDD}
        return {name: tensor.numpy() for name, tensor in tensors.items()} | {
            "context": np.array(self.context_R)
        }

    def replica(self, r: int) -> Self:
        """Return the distribution of one replica alone."""
        one = slice(r, r + 1)
        names = ("U_RDD", "root_RDD", "task_root_RDD", "mean_RD", "guess_RD")
        tensors = {name: getattr(self, name)[one] for name in names}
        return replace(self, context_R=self.context_R[one], **tensors)

    def covariate_grams(self, generators: Sequence[np.random.Generator], batch: int) -> Tensor:
        """S = (1/N) sum u u^T, with shape (R, B, E, E)."""
        grams = []
        for rng, n, root_EE in zip(generators, self.context_R, self.u_root_REE.numpy(), strict=True):
            F_EKB = bartlett_factor(rng, n, root_EE.shape[0], batch)
            grams.append(squares(np.tensordot(root_EE / n**0.5, F_EKB, 1)))
        return torch.from_numpy(np.stack(grams)).movedim(-1, 1)

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
        gram_RBPP = self._gram(S_RBEE, w_RBD.movedim(1, -1))
        return GramPrompt(gram_RBPP, query_RBP, target_RB, self.read_out, self.context_R)

    def gram_tasks(self, generators: Sequence[np.random.Generator], batch: int) -> tuple[Tensor, Tensor]:
        """(G, w) with shapes (R, B, P, P) and (R, B, D): a context and its task, without a query."""
        return self.gram_tasks_on(self.covariate_grams(generators, batch), generators)

    def gram_tasks_on(
        self, S_RBEE: Tensor, generators: Sequence[np.random.Generator]
    ) -> tuple[Tensor, Tensor]:
        """(G, w) of contexts with these S."""
        w_RDB = self._tasks(generators, S_RBEE.shape[1])
        return self._gram(S_RBEE, w_RDB), w_RDB.movedim(-1, 1)

    def _tasks(self, generators: Sequence[np.random.Generator], batch: int) -> Tensor:
        """Return w, (R, D, B)."""
        return self.task_root_RDD @ self._white_tasks(generators, batch) + self.mean_RD[..., None]

    def _white_tasks(self, generators: Sequence[np.random.Generator], batch: int) -> Tensor:
        return _normal(generators, self.dim, batch)

    def _gram(self, S_RBEE: Tensor, w_RDB: Tensor) -> Tensor:
        """Return the Gram matrices (R, B, P, P) of tokens (x, <v, u>), v = w, or (w, 1) with noise."""
        S_REEB, D = S_RBEE.movedim(1, -1), self.dim
        v_REB = torch.nn.functional.pad(w_RDB, (0, 0, 0, S_REEB.shape[1] - D), value=1.0)
        y_REB = torch.from_numpy(np.einsum("reb,refb->rfb", v_REB.numpy(), S_REEB.numpy()))
        G_RPPB = torch.empty(len(S_REEB), D + 1, D + 1, S_REEB.shape[-1], dtype=torch.float64)
        G_RPPB[:, :D, :D] = S_REEB[:, :D, :D]
        G_RPPB[:, D, :D] = G_RPPB[:, :D, D] = y_REB[:, :D]
        G_RPPB[:, D, D] = (v_REB * y_REB).sum(1)
        return G_RPPB.movedim(-1, 1)

    def token_prompts(self, generators: Sequence[np.random.Generator], batch: int) -> TokenPrompt:
        """Prompts token by token."""
        if len(set(self.context_R)) > 1:
            raise InputError(
                f"task.context={list(self.context_R)}: token prompts need one length for all seeds"
            )
        n, E = self.context_R[0], self.u_root_REE.shape[-1]
        normal_RBNE = torch.from_numpy(np.stack([standard_normal(rng, (batch, n, E)) for rng in generators]))
        u_RBNE = normal_RBNE @ self.u_root_REE[:, None].mT
        query_RBP, target_RB, w_RBD = self._query_and_task(generators, batch)
        x_RBND = u_RBNE[..., : self.dim]
        y_RBN1 = x_RBND @ w_RBD[..., None] + u_RBNE[..., self.dim :].sum(-1, keepdim=True)
        return TokenPrompt(torch.cat([x_RBND, y_RBN1], dim=-1), query_RBP, target_RB, self.read_out)

    def encode(self, x_RBND: Tensor, y_RBN: Tensor, x_query_RBD: Tensor) -> TokenPrompt:
        """Return prompts with this law's initial guess in the query token."""
        prompt = super().encode(x_RBND, y_RBN, x_query_RBD)
        query_RBP = torch.cat([x_query_RBD, self._guess(x_query_RBD)[..., None]], dim=-1)
        return replace(prompt, query_RBP=query_RBP)

    def _guess(self, x_RBD: Tensor) -> Tensor:
        return (self.guess_RD[:, None].to(x_RBD) * x_RBD).sum(-1) + self.guess_bias

    def _query_and_task(
        self, generators: Sequence[np.random.Generator], batch: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        w_RDB = self._tasks(generators, batch)
        x_RDB = self.root_RDD @ _normal(generators, self.dim, batch)
        guess_R1B = self._guess(x_RDB.movedim(1, -1))[:, None]
        query_RPB = torch.cat([x_RDB, guess_R1B], dim=1)
        return query_RPB.movedim(-1, 1), (w_RDB * x_RDB).sum(1), w_RDB.movedim(-1, 1)


def _normal(generators: Sequence[np.random.Generator], *shape: int) -> Tensor:
    """Return normal numbers of this shape for each replica."""
    return torch.from_numpy(np.stack([standard_normal(rng, shape) for rng in generators]))


def _border(root_RDD: Tensor, corner: float) -> Tensor:
    bordered_REE = torch.nn.functional.pad(root_RDD, (0, 1, 0, 1))
    bordered_REE[:, -1, -1] = corner
    return bordered_REE
