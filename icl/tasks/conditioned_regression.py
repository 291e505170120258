"""Linear regression whose covariance is drawn, of a prescribed condition number: giannou, section 6 and
appendix D.

y = <w, x> + noise, w ~ N(0, I), x ~ N(0, Sigma), Sigma = U diag(lambda) U^T with U Haar, lambda_max uniform
in a range, lambda_min = lambda_max / kappa and the others uniform between. A prompt's tokens are (x, y), or
(x, y, 1) with the constant that a read-in with a bias makes; the query's are (x_q, 0), (x_q, 0, 1) and the
target is <w, x_q>, without noise. Losses are squared errors divided by d.

R replicas, B prompts, N context, D covariates, P token width, E = D, with noise D + 1: width of the white
vector u behind a token. x = F u with F F^T = Sigma.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from icl.errors import InputError, one_of, real, reals, whole
from icl.kernel.normal import Array, standard_normal
from icl.tasks.estimators import SampledGram, SampledTokens
from icl.tasks.law import Draw, Estimator, Generators, Model
from icl.tasks.prompts import GramPrompt, TokenPrompt
from icl.tasks.tilted import tilt
from icl.tasks.token_law import TokenLaw
from icl.tasks.wishart import bartlett_factor, squares

COVARIANCES = ("prompt", "batch")
MAX_DIM = 512
TILTS = (1.0, 1.3, 1.0, 1.7, 1.0, 2.2)  # inflations of neighbouring prompts: half of them are plain


class ConditionedRegression:
    """The task as a user states it."""

    def __init__(
        self,
        dim: int = 10,
        context: int = 50,
        condition: float = 1.0,
        largest: Sequence[float] = (1.0, 100.0),
        covariance: str = "prompt",
        label_noise: float = 0.0,
        constant: bool = False,
        prefix: str = "task",
    ) -> None:
        self.dim = whole(f"{prefix}.dim", dim, 1, MAX_DIM)
        self.context = whole(f"{prefix}.context", context, 1)
        self.condition = real(f"{prefix}.condition", condition, 1)
        low, high = reals(f"{prefix}.largest", largest, 2, 0, open_low=True)
        if low > high:
            raise InputError(f"{prefix}.largest={[low, high]}: must not fall")
        if self.dim == 1 and self.condition > 1:
            raise InputError(f"{prefix}.condition={self.condition:g}: must be 1 where {prefix}.dim=1")
        self.largest = (low, high)
        self.covariance = one_of(f"{prefix}.covariance", covariance, COVARIANCES)
        self.label_noise = real(f"{prefix}.label_noise", label_noise, 0)
        if not isinstance(constant, bool):
            raise InputError(f"{prefix}.constant={constant}: must be true or false")
        self.constant = constant

    def law(self, seeds: Sequence[int]) -> "ConditionedRegressionLaw":
        return ConditionedRegressionLaw(
            dim=self.dim,
            context_R=(self.context,) * len(seeds),
            condition=self.condition,
            largest=self.largest,
            shared=self.covariance == "batch",
            label_noise=self.label_noise,
            constant=self.constant,
            active=self.dim,
        )


@dataclass(frozen=True)
class ConditionedRegressionLaw(TokenLaw):
    """`shared`: one covariance for all prompts of a draw. `active`: how many w_i are not zero."""

    declared: ClassVar[tuple[str, ...]] = ("gram_prompts", "gram_tasks", "estimators")
    read_out: ClassVar[int] = 1  # type: ignore[misc]

    dim: int
    context_R: tuple[int, ...]
    condition: float
    largest: tuple[float, float]
    shared: bool
    label_noise: float
    constant: bool
    active: int

    def replica(self, r: int) -> Self:
        return replace(self, context_R=self.context_R[r : r + 1])

    def restricted(self, dims: int, points: int) -> Self:
        """Return an easier law of a curriculum: only `dims` coordinates of w are not zero, and `points`
        examples."""
        return replace(self, active=dims, context_R=(points,) * len(self.context_R))

    def roots(self, rng: np.random.Generator, batch: int) -> np.ndarray:
        """F of `batch` prompts, shape (B, D, D)."""
        count = 1 if self.shared else batch
        lambda_BD = self.spectra(rng, count)
        if self.condition == 1:  # a multiple of the identity in any basis
            F_BDD = np.sqrt(lambda_BD)[:, :, None] * np.eye(self.dim)
        else:
            Q_BDD, R_BDD = np.linalg.qr(standard_normal(rng, (count, self.dim, self.dim)))
            sign_BD = np.sign(np.diagonal(R_BDD, axis1=1, axis2=2))
            F_BDD = Q_BDD * (sign_BD * np.sqrt(lambda_BD))[:, None]
        return np.broadcast_to(F_BDD, (batch, self.dim, self.dim))

    def spectra(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Eigenvalues of `count` covariances, the largest first and the smallest last."""
        largest_B1 = rng.uniform(*self.largest, (count, 1))
        smallest_B1 = largest_B1 / self.condition
        share_BD = rng.uniform(0, 1, (count, self.dim))
        share_BD[:, -1], share_BD[:, 0] = 0, 1
        return smallest_B1 + share_BD * (largest_B1 - smallest_B1)

    def token_prompts(self, generators: Generators, batch: int) -> TokenPrompt:
        if len(set(self.context_R)) > 1:
            raise InputError(f"task.context={list(self.context_R)}: token prompts need one length for all")
        F_RBDD, w_RBD, x_RBD = self._draw_queries(generators, batch)
        n, E = self.context_R[0], self.dim + (self.label_noise > 0)
        u_RBNE = torch.from_numpy(np.stack([standard_normal(rng, (batch, n, E)) for rng in generators]))
        x_RBND = u_RBNE[..., : self.dim] @ F_RBDD.mT
        y_RBN = (x_RBND @ w_RBD[..., None])[..., 0]
        if self.label_noise > 0:
            y_RBN = y_RBN + self.label_noise**0.5 * u_RBNE[..., -1]
        target_RB = (w_RBD * x_RBD).sum(-1)
        return replace(self.encode(x_RBND, y_RBN, x_RBD), target_RB=target_RB)

    def encode(self, x_RBND: Tensor, y_RBN: Tensor, x_query_RBD: Tensor) -> TokenPrompt:
        prompt = super().encode(x_RBND, y_RBN, x_query_RBD)
        if not self.constant:
            return prompt
        one = torch.nn.functional.pad
        return replace(
            prompt,
            context_RBNP=one(prompt.context_RBNP, (0, 1), value=1.0),
            query_RBP=one(prompt.query_RBP, (0, 1), value=1.0),
        )

    def gram_prompts(self, generators: Generators, batch: int) -> GramPrompt:
        """Prompts by Bartlett's decomposition: no token is ever drawn."""
        F_RBDD, w_RBD, x_RBD = self._draw_queries(generators, batch)
        return self._prompt(self._grams(generators, F_RBDD, w_RBD), w_RBD, x_RBD)

    def tilted_prompts(
        self, generators: Generators, batch: int, inflations: Sequence[float]
    ) -> tuple[GramPrompt, Tensor]:
        """Prompts in some of which the largest eigenvalue of white S', the query among the tokens, is
        inflated, and their weights, (R, B): icl.tasks.tilted.

        c s_1 for s_1 multiplies all white tokens u by T = I + (sqrt(c) - 1) v v^T, v its eigenvector. What
        turns the tokens into one another is uniform and independent of S', so that query and mean of the
        tokens are those of such an S'; noise and w are drawn as ever.
        """
        F_RBDD, w_RBD, u_RBD = self._draw_tasks(generators, batch)
        found = []
        for rng, n, F_BDD, w_BD, u_BD in zip(generators, self.context_R, F_RBDD, w_RBD, u_RBD, strict=True):
            factor_EKB, u_DB = self._factor(rng, n, batch), u_BD.T.numpy()
            W_DDB = (squares(factor_EKB[: self.dim]) * n + u_DB * u_DB[:, None]) / (n + 1)
            c_B, _, top_BD, weight_B = tilt(np.moveaxis(W_DDB, -1, 0), n + 1, inflations)
            root_DDB, top_DB = F_BDD.movedim(0, -1).numpy(), top_BD.T
            stretched_DB = np.einsum("ijb,jb->ib", root_DDB, top_DB) * (np.sqrt(c_B) - 1)
            root_DDB = root_DDB + stretched_DB[:, None] * top_DB
            gram_PPB = self._gram_PPB(factor_EKB, root_DDB, w_BD.T.numpy())
            found.append((gram_PPB, np.einsum("ijb,jb->ib", root_DDB, u_DB), weight_B))
        gram_RPPB, x_RDB, weight_RB = (torch.from_numpy(np.stack(of)) for of in zip(*found, strict=True))
        return self._prompt(gram_RPPB.movedim(-1, 1), w_RBD, x_RDB.movedim(-1, 1)), weight_RB

    def _prompt(self, gram_RBPP: Tensor, w_RBD: Tensor, x_RBD: Tensor) -> GramPrompt:
        query_RBP = torch.nn.functional.pad(x_RBD, (0, 1))
        if self.constant:
            query_RBP = torch.nn.functional.pad(query_RBP, (0, 1), value=1.0)
        target_RB = (w_RBD * x_RBD).sum(-1)
        return GramPrompt(gram_RBPP, query_RBP, target_RB, self.read_out, self.context_R)

    def gram_tasks(self, generators: Generators, batch: int) -> tuple[Tensor, Tensor, Tensor]:
        """(G, F, w) of contexts without a query, with shapes (R, B, P, P), (R, B, D, D), (R, B, D)."""
        F_RBDD, w_RBD, _ = self._draw_queries(generators, batch)
        return self._grams(generators, F_RBDD, w_RBD), F_RBDD, w_RBD

    def _draw_queries(self, generators: Generators, batch: int) -> tuple[Tensor, Tensor, Tensor]:
        """F, w and the query's x, shapes (R, B, D, D), (R, B, D), (R, B, D)."""
        F_RBDD, w_RBD, u_RBD = self._draw_tasks(generators, batch)
        F_RDDB, u_RDB = F_RBDD.movedim(1, -1).numpy(), u_RBD.movedim(1, -1).numpy()
        return F_RBDD, w_RBD, torch.from_numpy(np.einsum("rijb,rjb->rib", F_RDDB, u_RDB)).movedim(-1, 1)

    def _draw_tasks(self, generators: Generators, batch: int) -> tuple[Tensor, Tensor, Tensor]:
        """F, w and the query's white u, shapes (R, B, D, D), (R, B, D), (R, B, D)."""
        F_RDDB = torch.from_numpy(
            np.stack([np.moveaxis(self.roots(rng, batch), 0, -1) for rng in generators])
        )
        normal = np.stack([standard_normal(rng, (2, self.dim, batch)) for rng in generators])
        w_RDB, u_RDB = torch.from_numpy(normal).unbind(1)
        w_RDB = w_RDB.clone()
        w_RDB[:, self.active :] = 0
        return F_RDDB.movedim(-1, 1), w_RDB.movedim(-1, 1), u_RDB.movedim(-1, 1)

    def _grams(self, generators: Generators, F_RBDD: Tensor, w_RBD: Tensor) -> Tensor:
        """Return the Gram matrices of tokens (x, y) or (x, y, 1) from factors of them."""
        per_replica = zip(generators, self.context_R, F_RBDD, w_RBD, strict=True)
        grams = [
            self._gram_PPB(self._factor(rng, n, len(w)), F.movedim(0, -1).numpy(), w.T.numpy())
            for rng, n, F, w in per_replica
        ]
        return torch.from_numpy(np.stack(grams)).movedim(-1, 1)

    def _factor(self, rng: np.random.Generator, n: int, batch: int) -> Array:
        """Return a factor of one replica's white S, (E, K, B), noise last. With a constant the mean of u is
        seen: it is one more column of the factor, and the rest is Wishart of N - 1 around it."""
        E, C = self.dim + (self.label_noise > 0), int(self.constant)
        factor_EKB = bartlett_factor(rng, n - C, E, batch)
        if self.constant:
            factor_EKB = np.concatenate([factor_EKB, standard_normal(rng, (E, 1, batch))], axis=1)
        factor_EKB /= n**0.5
        return factor_EKB

    def _gram_PPB(self, factor_EKB: Array, F_DDB: Array, w_DB: Array) -> Array:
        """Return one replica's."""
        D, B = w_DB.shape
        tokens_IKB = np.empty((D + 1, *factor_EKB.shape[1:]))
        np.einsum("ijb,jkb->ikb", F_DDB, factor_EKB[:D], out=tokens_IKB[:D])
        np.einsum("ib,ikb->kb", w_DB, tokens_IKB[:D], out=tokens_IKB[D])
        if self.label_noise > 0:
            tokens_IKB[D] += self.label_noise**0.5 * factor_EKB[D]
        if not self.constant:
            return squares(tokens_IKB)
        gram_PPB = np.ones((D + 2, D + 2, B))
        gram_PPB[:-1, :-1] = squares(tokens_IKB)
        gram_PPB[:-1, -1] = gram_PPB[-1, :-1] = tokens_IKB[:, -1]
        return gram_PPB

    def estimators(self, model: Any) -> Mapping[str, Callable[[], Estimator]]:
        """Integrate the query out with a mask: a linear stack is then linear in it."""
        if self.constant and not getattr(model.parametrization, "reads_constant", False):
            raise InputError("task.constant=true: only model=lsa reads the third entry of tokens (x, y, 1)")
        if model.path == "tokens":
            super().estimators(model)  # refuses contexts that differ
            return {"sampled": lambda: TokensPerDimension(self)}
        sampled: dict[str, Callable[[], Estimator]] = {"sampled": lambda: GramPerDimension(self, model)}
        if model.parametrization.mask:
            return {"expected": lambda: Expected(self), **sampled}
        return {**sampled, "tilted": lambda: TiltedPerDimension(self, model)}

    @property
    def exact_where(self) -> str:
        return "no model yet, since the covariance is drawn"

    def arrays(self) -> Mapping[str, np.ndarray]:
        return {"context": np.array(self.context_R)}


class OfLaw(Estimator):
    """An estimator whose prompts may come from another law of the same kind."""

    law: Any  # a ConditionedRegressionLaw

    def of(self, law: ConditionedRegressionLaw) -> Self:
        other = copy.copy(self)
        other.law = law
        return other


class GramPerDimension(OfLaw, SampledGram):
    def risk(self, model: Model, draw: Draw) -> Tensor:
        return super().risk(model, draw) / self.law.dim


class TiltedPerDimension(GramPerDimension):
    """Prompts without a mask some of which have an inflated largest eigenvalue, each with its weight: deep
    stacks are polynomials of high degree in it, and a few prompts in 10,000 carry their risk."""

    def __init__(self, law: ConditionedRegressionLaw, model: Model) -> None:
        super().__init__(law, model)
        self._plain = GramPerDimension(law, model)

    @property
    def plain(self) -> Estimator:
        return self._plain.of(self.law)

    def draw(self, generators: Generators, batch: int) -> Draw:
        prompt, weight_RB = self.law.tilted_prompts(generators, batch, TILTS)
        return self.tensors(prompt.with_query()) | {"weight": weight_RB.contiguous()}

    def risk(self, model: Model, draw: Draw) -> Tensor:
        last_RB = model.last_entry(draw["gram"], draw["query"])
        off_RB = self.law.read_out * last_RB - draw["target"]
        return (draw["weight"] * off_RB.square()).mean(-1) / self.law.dim


class TokensPerDimension(OfLaw, SampledTokens):
    def risk(self, model: Model, draw: Draw) -> Tensor:
        return super().risk(model, draw) / self.law.dim


class Expected(OfLaw):
    """Context and task sampled, the query integrated out."""

    def __init__(self, law: ConditionedRegressionLaw) -> None:
        super().__init__()
        self.law = law

    def draw(self, generators: Generators, batch: int) -> Draw:
        tensors = zip(("gram", "root", "w"), self.law.gram_tasks(generators, batch), strict=True)
        return {name: tensor.movedim(1, -1).contiguous() for name, tensor in tensors}

    def risk(self, model: Model, draw: Draw) -> Tensor:
        """Sum squares over F's columns as the query's x, and one for its constant: the mean over the
        query."""
        root_RDDB, D = draw["root"], self.law.dim
        query_RPKB = torch.nn.functional.pad(root_RDDB, (0, 0, 0, 0, 0, draw["gram"].shape[1] - D))
        target_RKB = (draw["w"][:, :, None] * root_RDDB).sum(1)
        if self.law.constant:
            one_RP1B = torch.zeros_like(query_RPKB[:, :, :1])
            one_RP1B[:, -1] = 1
            query_RPKB = torch.cat([query_RPKB, one_RP1B], 2)
            target_RKB = torch.nn.functional.pad(target_RKB, (0, 0, 0, 1))
        out_RKB = model.parametrization.columns(draw["gram"], query_RPKB)
        return (self.law.read_out * out_RKB - target_RKB).square().sum(1).mean(-1) / D
