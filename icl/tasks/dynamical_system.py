"""Sequences of random linear dynamical systems: x_t = A x_{t-1} + w_t, y_t = c^T x_t + v_t.

x_0 ~ N(0, initial_variance I) at t = 0 and the sequence is y_1 .. y_T: entry 0 of the last axis is y_1. Every
sequence has a system (A, c) of its own. In the lds paper's section 5:
    a  A = diag(v), c = (1, ..., 1)
    b  A = Q^T diag(v) Q, Q Haar, c uniform on [-5, 5]^D
    c  A = P^-1 diag(v) P, P = Q R of uniform entries with R's diagonal moved until max / min = 2, c as in b
    d  as b, with process noise Q_w^T diag(.8 .. 1) Q_w instead of I (Q_w fixed; the law of y does not depend
       on it, for Q Q_w^T is Haar too)
With `systems` set, each sequence's system is one of that number, drawn once and the same for every replica,
or one of these with -A for A: a law of its own, that keeps Assumption 3.2, and whose risk
is exact in every setting.
The eigenvalues v are uniform on [-1, 1]^D, on the unit sphere, in the unit ball, or a list with a common
random sign: A and -A have the same law (Assumption 3.2).

AR(s) tokens, eq. (7): z_t = (y_t, ..., y_{t+s}) for t = 1 .. T-s-1, the query (y_{T-s}, ..., y_{T-1}, 0), the
target y_T.

R replicas, B sequences, D states, T observations, s window, N = T - s - 1 context tokens, P = s + 1 width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from icl.errors import InputError, one_of, real, reals, whole
from icl.kernel.normal import Array, standard_normal
from icl.random import generator
from icl.tasks.estimators import SampledGram, SampledTokens
from icl.tasks.law import Draw, Estimator, Model, RiskFunction
from icl.tasks.prompts import GramPrompt, TokenPrompt
from icl.tasks.quadratic import QuadraticRisk
from icl.tasks.sequence_moments import (
    Covariances,
    covariances_of_independent_modes,
    covariances_of_listed_modes,
    covariances_of_systems,
    moments,
    parity_mask,
    quadratic_risk,
)
from icl.tasks.token_law import TokenLaw

SETTINGS = ("a", "b", "c", "d")
SPECTRA = ("uniform", "sphere", "ball")
HALF_WIDTH = 5.0  # c is uniform on [-5, 5]^D in (b), (c), (d)
SPREAD = (0.8, 1.0)  # of the process noise in (d)
RATIO = 2.0  # of R's largest to its smallest diagonal entry in (c)
MAX_DIM, MAX_LENGTH, MAX_SYSTEMS = 64, 1024, 100_000
BLOCK = 512  # sequences whose noise is one stream: blocks of any replica are drawn side by side
MAX_LISTED = 20  # states of (b) with listed eigenvalues whose mean is a sum: it has 2 states^2 terms
POOL = 0  # the seed of the systems that `systems` draws once


class DynamicalSystem:
    """The task as a user states it; `law(seeds)` is the distribution of sequences and prompts."""

    def __init__(
        self,
        dim: int = 5,
        length: int = 30,
        window: int = 1,
        setting: str = "a",
        spectrum: str | Sequence[float] = "uniform",
        process_noise: float = 0.01,
        observation_noise: float = 0.01,
        initial_variance: float = 0.01,
        systems: int | None = None,
        prefix: str = "task",
    ) -> None:
        self.states = whole(f"{prefix}.dim", dim, 1, MAX_DIM)
        self.window = whole(f"{prefix}.window", window, 1)
        self.length = whole(f"{prefix}.length", length, 1, MAX_LENGTH)
        if length <= window + 1:
            raise InputError(
                f"{prefix}.length={length}: must be at least window + 2 = {window + 2}, one token of context"
            )
        self.setting = one_of(f"{prefix}.setting", setting, SETTINGS)
        self.spectrum: str | tuple[float, ...]
        if isinstance(spectrum, str):
            self.spectrum = one_of(f"{prefix}.spectrum", spectrum, SPECTRA)
        else:
            self.spectrum = tuple(reals(f"{prefix}.spectrum", spectrum, self.states))
            if max(map(abs, self.spectrum)) > 1:
                raise InputError(
                    f"{prefix}.spectrum={list(spectrum)}: unstable, every eigenvalue must be from -1 to 1"
                )
        self.process_noise = real(f"{prefix}.process_noise", process_noise, 0)
        self.observation_noise = real(f"{prefix}.observation_noise", observation_noise, 0)
        self.initial_variance = real(f"{prefix}.initial_variance", initial_variance, 0)
        self.systems = systems if systems is None else whole(f"{prefix}.systems", systems, 1, MAX_SYSTEMS)
        if process_noise + observation_noise + initial_variance == 0:
            raise InputError(f"{prefix}.process_noise=0: with no noise and x_0 = 0 every observation is 0")

    @property
    def dim(self) -> int:
        """Dimension that a model is built for: tokens have window + 1 entries, whatever the number of states
        is."""
        return self.window

    def law(self, seeds: Sequence[int]) -> DynamicalSystemLaw:
        if self.systems is not None:
            seeds = [POOL] * len(seeds)
        law = DynamicalSystemLaw(
            length=self.length,
            window=self.window,
            setting=self.setting,
            spectrum=self.spectrum,
            root_w_RDD=torch.stack([self._root_w(seed) for seed in seeds]),
            process_noise=self.process_noise,
            observation_noise=self.observation_noise,
            initial_variance=self.initial_variance,
        )
        if self.systems is None:
            return law
        drawn = law.replica(0).systems([generator(POOL, "task", 1)], self.systems)
        return replace(law, pool=drawn.and_mirrored())

    def _root_w(self, seed: int) -> Tensor:
        """Return a root of Sigma_w; each seed has its own Q_w in (d)."""
        if self.setting != "d":
            return self.process_noise**0.5 * torch.eye(self.states, dtype=torch.float64)
        spread_D = torch.linspace(*SPREAD, self.states, dtype=torch.float64)
        Q_DD = torch.from_numpy(_orthogonal(generator(seed, "task"), 1, self.states)[..., 0])
        return self.process_noise**0.5 * Q_DD.T * spread_D.sqrt()


@dataclass(frozen=True)
class Systems:
    """A (R, B, D, D) and c (R, B, D) of every sequence."""

    A_RBDD: Tensor
    c_RBD: Tensor

    def and_mirrored(self) -> Systems:
        """Return these systems, and each with -A."""
        signed = torch.cat([self.A_RBDD, -self.A_RBDD], 1)
        return Systems(signed, torch.cat([self.c_RBD, self.c_RBD], 1))

    def some(self, rng: np.random.Generator, batch: int) -> tuple[Tensor, Tensor]:
        """`batch` of the first replica's, each as likely as any other."""
        chosen_B = torch.from_numpy(rng.integers(self.c_RBD.shape[1], size=batch))
        return self.A_RBDD[0, chosen_B], self.c_RBD[0, chosen_B]


@dataclass(frozen=True)
class DynamicalSystemLaw(TokenLaw):
    """The distribution of each replica. Draws take one generator per replica. The risk is half the squared
    error, eq. (9)."""

    declared: ClassVar[tuple[str, ...]] = (
        "gram_prompts",
        "sequences",
        "systems",
        "observations",
        "estimators",
        "exact_risk",
        "exact_where",
        "covariances",
        "quadratic_risk",
        "has_independent_modes",
        "has_listed_modes",
        "mode_arguments",
    )

    length: int
    window: int
    setting: str
    spectrum: str | tuple[float, ...]
    root_w_RDD: Tensor
    process_noise: float
    observation_noise: float
    initial_variance: float
    pool: Systems | None = None  # what every sequence's system is one of, R = 1
    read_out: int = 1

    @property
    def dim(self) -> int:
        """Entries of a token but for its last."""
        return self.window

    @property
    def states(self) -> int:
        return self.root_w_RDD.shape[-1]

    @property
    def context(self) -> int:
        """N, the number of context tokens."""
        return self.length - self.window - 1

    @property
    def context_R(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.context,) * len(self.root_w_RDD)

    def estimators(self, model: Any) -> Mapping[str, Callable[[], Estimator]]:
        return {"sampled": lambda: _HalfTokens(self) if model.path == "tokens" else _HalfGram(self, model)}

    def exact_risk(self, model: Any) -> RiskFunction | None:
        """Return the risk of one layer of linear attention, any number of heads, in settings (a) and (b) or
        with a pool."""
        family = model.parametrization
        plain = model.activation == "identity" and family.layers == 1 and family.io_maps() == (None, None)
        if not plain or self.quadratic_risk is None:
            return None
        risk = self.quadratic_risk

        def of(model: Any) -> Tensor:
            P_RLHPP, Q_RLHPP = model.parametrization.stack()
            return risk.value_of_layer(P_RLHPP[:, 0], Q_RLHPP[:, 0])

        return of

    @cached_property
    def covariances(self) -> Covariances | None:
        """Covariances of the observations, with which means over systems are exact; None where there is no
        such sum."""
        if self.pool is not None:
            A_QDD, c_QD = self.pool.A_RBDD[0], self.pool.c_RBD[0]
            arguments = self.Sigma_w_RDD[0], self.observation_noise, self.initial_variance, self.length
            share_Q = torch.full((len(c_QD),), 1 / len(c_QD), dtype=torch.float64)
            return Covariances(share_Q, covariances_of_systems(A_QDD, c_QD, *arguments))
        if self.has_independent_modes:
            return covariances_of_independent_modes(**self.mode_arguments())
        if self.has_listed_modes:
            others = {name: value for name, value in self.mode_arguments().items() if name != "dim"}
            return covariances_of_listed_modes(self.spectrum, **others)  # type: ignore[arg-type]
        return None

    @cached_property
    def quadratic_risk(self) -> QuadraticRisk | None:
        """Half the squared error of one layer without sampling error; None where the law has no such form."""
        if self.covariances is None:
            return None
        return quadratic_risk(moments(self.covariances, self.window), self.window)

    @property
    def exact_where(self) -> str:
        return (
            "one plain layer of linear attention in settings a and b with a uniform spectrum or a list of "
            f"eigenvalues (in b at most {MAX_LISTED}), or with task.systems drawn once"
        )

    def arrays(self) -> Mapping[str, np.ndarray]:
        """Return also pattern (13)'s free entries, which pictures of the weights outline."""
        mask_P, free_QK_PP = parity_mask(self.window)
        free_V_PP = torch.zeros_like(free_QK_PP)
        free_V_PP[:, -1] = mask_P
        free = {"free_W_V": free_V_PP, "free_W_QK": free_QK_PP}
        each = {name: mask_PP.expand(len(self.root_w_RDD), -1, -1).numpy() for name, mask_PP in free.items()}
        return {"Sigma_w": self.Sigma_w_RDD.numpy()} | each

    @property
    def Sigma_w_RDD(self) -> Tensor:
        return self.root_w_RDD @ self.root_w_RDD.mT

    @property
    def has_independent_modes(self) -> bool:
        """True if icl.tasks.sequence_moments integrates over the systems exactly."""
        return self.setting in ("a", "b") and self.spectrum == "uniform" and self.pool is None

    @property
    def has_listed_modes(self) -> bool:
        """True if the systems are A and -A of a list of eigenvalues, short enough to be summed exactly."""
        short = self.setting == "a" or (self.setting == "b" and self.states <= MAX_LISTED)
        return short and not isinstance(self.spectrum, str) and self.pool is None

    def mode_arguments(self) -> dict[str, Any]:
        """Return the arguments of icl.tasks.sequence_moments.covariances_of_independent_modes."""
        return {
            "dim": self.states,
            "process": self.process_noise,
            "noise": self.observation_noise,
            "start": self.initial_variance,
            "length": self.length,
            "half_width": None if self.setting == "a" else HALF_WIDTH,
        }

    def replica(self, r: int) -> DynamicalSystemLaw:
        """Return the distribution of one replica alone."""
        return replace(self, root_w_RDD=self.root_w_RDD[r : r + 1])

    def systems(self, generators: Sequence[np.random.Generator], batch: int) -> Systems:
        """Return a system for each sequence."""
        if self.pool is not None:
            chosen = [self.pool.some(rng, batch) for rng in generators]
            return Systems(*(torch.stack(part) for part in zip(*chosen, strict=True)))
        drawn = [self._systems(rng, batch) for rng in generators]
        A_RDDB, c_RDB = (torch.from_numpy(np.stack(part)) for part in zip(*drawn, strict=True))
        return Systems(A_RDDB.permute(0, 3, 1, 2), c_RDB.mT)

    def observations(self, systems: Systems, generators: Sequence[np.random.Generator]) -> Tensor:
        """y_1 .. y_T of each system, (R, B, T), as many blocks at a time as torch has threads."""
        A_RDDB, c_RDB = systems.A_RBDD.permute(0, 2, 3, 1).numpy(), systems.c_RBD.mT.numpy()
        y_RTB = torch.empty(len(c_RDB), self.length, c_RDB.shape[-1], dtype=torch.float64)

        def block(r: int, first: int, rng: np.random.Generator) -> None:
            some = slice(first, first + BLOCK)
            A_DDB, c_DB = (np.ascontiguousarray(M_RXB[r][..., some]) for M_RXB in (A_RDDB, c_RDB))
            y_RTB[r, :, some] = torch.from_numpy(self._observe(A_DDB, c_DB, self.root_w_RDD[r].numpy(), rng))

        firsts = range(0, c_RDB.shape[-1], BLOCK)
        streams = [zip(firsts, rng.spawn(len(firsts)), strict=True) for rng in generators]
        blocks = [(r, first, rng) for r, of_replica in enumerate(streams) for first, rng in of_replica]
        count = torch.get_num_threads()
        with ThreadPoolExecutor(count) as pool:
            run = pool.map if count > 1 else map  # a thread for so little costs a fifth of it
            list(run(block, *zip(*blocks, strict=True)))
        return y_RTB.mT

    def sequences(self, generators: Sequence[np.random.Generator], batch: int) -> Tensor:
        """y_1 .. y_T, (R, B, T), of fresh systems."""
        return self.observations(self.systems(generators, batch), generators)

    def token_prompts(self, generators: Sequence[np.random.Generator], batch: int) -> TokenPrompt:
        return token_prompts(self.sequences(generators, batch), self.window)

    def gram_prompts(self, generators: Sequence[np.random.Generator], batch: int) -> GramPrompt:
        return gram_prompts(self.sequences(generators, batch), self.window)

    def _observe(self, A_DDB: Array, c_DB: Array, root_w_DD: Array, rng: np.random.Generator) -> Array:
        """y_1 .. y_T, (T, B). Only time is a loop: what takes the time are the normal numbers."""
        x_TDB = standard_normal(rng, (self.length + 1, *c_DB.shape))  # becomes x_0 .. x_T
        x_TDB[0] *= self.initial_variance**0.5
        if self.setting == "d":
            x_TDB[1:] = root_w_DD @ x_TDB[1:]
        else:
            x_TDB[1:] *= self.process_noise**0.5
        diagonal_DB = np.ascontiguousarray(A_DDB.diagonal().T)
        moved_DB = np.empty_like(diagonal_DB)
        for x_DB, next_DB in pairwise(x_TDB):
            if self.setting == "a":
                np.multiply(diagonal_DB, x_DB, out=moved_DB)
            else:
                np.einsum("ijb,jb->ib", A_DDB, x_DB, out=moved_DB)
            next_DB += moved_DB
        y_TB = standard_normal(rng, (self.length, c_DB.shape[1]))
        y_TB *= self.observation_noise**0.5
        y_TB += np.einsum("ib,tib->tb", c_DB, x_TDB[1:])
        return y_TB

    def _systems(self, rng: np.random.Generator, B: int) -> tuple[Array, Array]:
        """Return A (D, D, B) and c (D, B)."""
        D = self.states
        v_DB = np.ascontiguousarray(_eigenvalues(rng, self.spectrum, B, D).T)
        if self.setting == "a":
            A_DDB = np.zeros((D, D, B))
            A_DDB[range(D), range(D)] = v_DB
            return A_DDB, np.ones((D, B))
        if self.setting == "c":
            Q_DDB, R_DDB = _well_conditioned(rng, B, D)
            A_DDB = np.einsum("ijb,jkb->ikb", _with_eigenvalues(v_DB, Q_DDB), R_DDB)
            for i in reversed(range(D)):  # R^-1 of it, by back substitution
                A_DDB[i] -= np.einsum("jb,jkb->kb", R_DDB[i, i + 1 :], A_DDB[i + 1 :])
                A_DDB[i] /= R_DDB[i, i]
        else:
            A_DDB = _with_eigenvalues(v_DB, _orthogonal(rng, B, D))
        return A_DDB, np.ascontiguousarray(rng.uniform(-HALF_WIDTH, HALF_WIDTH, (B, D)).T)


class _HalfGram(SampledGram):
    def risk(self, model: Model, draw: Draw) -> Tensor:
        return super().risk(model, draw) / 2


class _HalfTokens(SampledTokens):
    def risk(self, model: Model, draw: Draw) -> Tensor:
        return super().risk(model, draw) / 2


def token_prompts(y_RBT: Tensor, window: int) -> TokenPrompt:
    """Eq. (7)'s tokens of given sequences."""
    tokens_RBNP, query_RBP = _tokens(y_RBT, window)
    return TokenPrompt(tokens_RBNP.contiguous(), query_RBP, y_RBT[..., -1], read_out=1)


def gram_prompts(y_RBT: Tensor, window: int) -> GramPrompt:
    """Return the same prompts through G_ab = (1/N) sum_t y_{t+a} y_{t+b}, without making the tokens."""
    N, y_RTB = y_RBT.shape[-1] - window - 1, y_RBT.mT.numpy()
    gram_RPPB = np.empty((len(y_RTB), window + 1, window + 1, y_RTB.shape[-1]))
    for a in range(window + 1):
        for b in range(a, window + 1):
            summed_RB = np.einsum("rtb,rtb->rb", y_RTB[:, a : a + N], y_RTB[:, b : b + N])
            gram_RPPB[:, a, b] = gram_RPPB[:, b, a] = summed_RB / N
    gram_RBPP = torch.from_numpy(gram_RPPB).movedim(-1, 1)
    return GramPrompt(gram_RBPP, _tokens(y_RBT, window)[1], y_RBT[..., -1], 1, (N,) * len(y_RBT))


def _tokens(y_RBT: Tensor, window: int) -> tuple[Tensor, Tensor]:
    """Context tokens and the query, whose last entry, y_T, is hidden."""
    z_RBXP = y_RBT.unfold(-1, window + 1, 1)
    query_RBP = z_RBXP[:, :, -1].clone()
    query_RBP[..., -1] = 0
    return z_RBXP[:, :, :-1], query_RBP


def _eigenvalues(rng: np.random.Generator, spectrum: str | tuple[float, ...], B: int, D: int) -> Array:
    """(B, D)."""
    if not isinstance(spectrum, str):
        return rng.choice([-1.0, 1.0], (B, 1)) * np.array(spectrum)
    if spectrum == "uniform":
        return rng.uniform(-1.0, 1.0, (B, D))
    v_BD = standard_normal(rng, (B, D))
    v_BD /= np.linalg.norm(v_BD, axis=1, keepdims=True)
    return v_BD if spectrum == "sphere" else v_BD * rng.random((B, 1)) ** (1 / D)


def _with_eigenvalues(v_DB: Array, Q_DDB: Array) -> Array:
    """Q^T diag(v) Q."""
    return np.einsum("kib,kjb->ijb", v_DB[:, None] * Q_DDB, Q_DDB)


def _orthogonal(rng: np.random.Generator, B: int, D: int) -> Array:
    """Haar matrices (D, D, B): Q of a normal matrix's QR with R's diagonal made positive."""
    Q_DDB, R_DDB = _qr(standard_normal(rng, (D, D, B)))
    return Q_DDB * np.sign(R_DDB[range(D), range(D)])


def _well_conditioned(rng: np.random.Generator, B: int, D: int) -> tuple[Array, Array]:
    """Q and R (D, D, B) of appendix B.6's P = Q R: a uniform matrix's, |R_ii| moved affinely to [r / 2, r], r
    their largest.

    The paper says only that the ratio is made 2; order and signs are kept here.
    """
    Q_DDB, R_DDB = _qr(rng.uniform(-1.0, 1.0, (D, D, B)))
    if D > 1:
        diagonal_DB = R_DDB[range(D), range(D)]
        size_DB = np.abs(diagonal_DB)
        low_B, high_B = size_DB.min(0), size_DB.max(0)
        place_DB = (size_DB - low_B) / (high_B - low_B)
        moved_DB = high_B * (1 / RATIO + (1 - 1 / RATIO) * place_DB)
        R_DDB[range(D), range(D)] = np.copysign(moved_DB, diagonal_DB)
    return Q_DDB, R_DDB


def _qr(M_DDB: Array) -> tuple[Array, Array]:
    """Householder's, vectorised over the batch: many small matrices take LAPACK five times as long."""
    D, B = len(M_DDB), M_DDB.shape[-1]
    R_DDB, transposed_DDB = M_DDB.copy(), np.repeat(np.eye(D)[..., None], B, -1)
    for k in range(D - 1):
        u_IB = R_DDB[k:, k].copy()
        u_IB[0] += np.copysign(np.sqrt(np.einsum("ib,ib->b", u_IB, u_IB)), u_IB[0])
        u_IB *= np.sqrt(2 / np.einsum("ib,ib->b", u_IB, u_IB))
        for part_IJB in (R_DDB[k:, k:], transposed_DDB[k:]):
            part_IJB -= u_IB[:, None] * np.einsum("ib,ijb->jb", u_IB, part_IJB)  # 1 - u u^T
    return transposed_DDB.swapaxes(0, 1), R_DDB
