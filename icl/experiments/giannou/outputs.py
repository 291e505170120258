"""Figures 3 and 4 of giannou: what LSA and Newton's iteration answer while one coordinate of the query moves.

All prompts share one w and a query of which only the first coordinate varies; contexts are drawn afresh.
R seeds, L depths, T steps, C contexts in K groups, G values of the coordinate, B = C G prompts, D covariates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import erf
from torch import Tensor

from icl.algorithms.newton import identity_start, newton_iteration, transpose_start
from icl.errors import InputError, real, whole
from icl.experiments.giannou.regression import (
    EVALUATED,
    KEY,
    PUBLISHED_LARGEST,
    TEXT_LARGEST,
    PromptLaw,
    RegressionSize,
    Stacks,
    Trained,
    identity,
    runs_of,
    store,
    train_by_depth,
)
from icl.experiments.giannou.scalars import ORDERS, STARTS
from icl.experiments.runner import Runner
from icl.models import LSA
from icl.models.encoder import apply
from icl.random import generator
from icl.runs.record import RunRecord
from icl.tasks import ConditionedRegression, TokenPrompt
from icl.training.load import restored

GROUPS = 20  # of contexts, for the errors of means
NEAR_POINTS, FAR_POINTS = 61, 41
PAPER_RANGE = 14.9
SHARE = 0.99  # of |x_1| that is called in distribution
CLIP = 10.0  # the published bound on activations
CLIPPED = 100  # contexts that are also run token by token, clipped


class Outputs:
    """records: the runs of Figure 2, masked and not, and `outputs`. `near`, `far`: of the coordinate."""

    def __init__(
        self,
        dim: int,
        context: int,
        layers: Sequence[int],
        seeds: Sequence[int],
        steps: int,
        contexts: int,
        near: float,
        far: float,
        lr: float | None = None,
        grown: bool = False,
        starts: int = 1,
    ) -> None:
        self.size = RegressionSize(dim, context, layers, seeds, steps, 100, lr=lr, grown=grown, starts=starts)
        self.contexts = whole(f"{KEY}.contexts", contexts, CLIPPED, 10**6)
        if contexts % GROUPS:
            raise InputError(f"{KEY}.contexts={contexts}: must be a multiple of {GROUPS}")
        self.near = real(f"{KEY}.near", near, 0, open_low=True)
        self.far = real(f"{KEY}.far", far, self.near, open_low=True)
        self.law = PromptLaw(1.0, PUBLISHED_LARGEST, 0.0)

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        runs: dict[str, Trained] = {}
        for mask in (False, True):
            runs |= train_by_depth(runner, self.size, self.law, mask)
        science = {
            "of": {name: of.identity for name, of in runs.items()},
            "contexts": self.contexts,
            "ranges": [self.near, self.far],
        }
        made = store(runner, "giannou/outputs", science, lambda: self._outputs(runs))
        return runs_of(runs) | {"outputs": made}

    def _outputs(self, runs: Stacks) -> dict[str, np.ndarray]:
        """Means of every group of contexts, `NAME_RKG`, of Newton's `NAME_TKG`; `NAME_clipped_RG`."""
        given = _Prompts(self.size, self.law, self.contexts, self.near, self.far)
        found = given.line_and_newton(self.size.depths) | {
            "near": np.array(self.near),
            "text_range": np.array(range_of(*TEXT_LARGEST)),
            "text_share": np.array(share_within(PAPER_RANGE, *TEXT_LARGEST)),
        }
        for name, run in runs.items():
            model, R = run.transformer, run.seeds
            found[f"{name}_RKG"] = given.outputs(model, R)
            found[f"{name}_clipped_RG"], found[f"{name}_same_RG"] = given.with_and_without_clip(model, R)
        return found


class OutputsLayerNorm:
    """Figures 5 and 6. records: those of Figures 3 and 4, runs with LayerNorm, and `layernorm_outputs` over
    the first `tokens` contexts, token by token."""

    def __init__(
        self,
        dim: int,
        context: int,
        layers: Sequence[int],
        seeds: Sequence[int],
        steps: int,
        contexts: int,
        near: float,
        far: float,
        layernorm_layers: Sequence[int],
        layernorm_steps: int,
        tokens: int,
        lr: float | None = None,
        grown: bool = False,
        starts: int = 1,
    ) -> None:
        self.plain = Outputs(
            dim, context, layers, seeds, steps, contexts, near, far, lr, grown=grown, starts=starts
        )
        self.size = RegressionSize(
            dim, context, layernorm_layers, seeds, layernorm_steps, 100, name="layernorm_", lr=lr
        )
        self.tokens = whole(f"{KEY}.tokens", tokens, GROUPS, contexts)
        if tokens % GROUPS:
            raise InputError(f"{KEY}.tokens={tokens}: must be a multiple of {GROUPS}")

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        plain, size = self.plain, self.size
        runs = {
            f"kappa1_layernorm_L{layers}": size.train_layernorm(runner, layers, plain.law)
            for layers in size.depths
        }
        science = {
            "of": {name: identity(run) for name, run in runs.items()},
            "contexts": [plain.contexts, self.tokens],
            "ranges": [plain.near, plain.far],
        }
        made = store(runner, "giannou/layernorm_outputs", science, lambda: self._outputs(runs))
        return {**plain.records(runner), **runs, "layernorm_outputs": made}

    def _outputs(self, runs: Mapping[str, RunRecord]) -> dict[str, np.ndarray]:
        plain, depths = self.plain, self.size.depths
        given = _Prompts(self.size, plain.law, plain.contexts, plain.near, plain.far)
        found = given.line_and_newton(depths)
        for name, run in runs.items():
            model, R = restored(run).transformer, len(run.run["seeds"])
            found[f"{name}_RKG"] = given.token_outputs(model, R, self.tokens)
        return found


class _Prompts:
    """The prompts: contexts with one w, and the queries."""

    def __init__(self, size: RegressionSize, law: PromptLaw, contexts: int, near: float, far: float) -> None:
        self.D, self.n, self.contexts = size.dim, size.context, contexts
        rng = generator(EVALUATED, "eval", 3)
        self.w_D = torch.from_numpy(rng.standard_normal(self.D))
        self.w_D[0] = 1.0  # of typical size: the line has a slope
        inner, outer = np.linspace(-near, near, NEAR_POINTS), np.linspace(-far, far, FAR_POINTS)
        self.x_G = torch.from_numpy(np.concatenate([inner, outer]))
        rest_D = torch.from_numpy(rng.standard_normal(self.D))
        self.query_GD = rest_D.expand(len(self.x_G), -1).clone()
        self.query_GD[:, 0] = self.x_G
        of = ConditionedRegression(self.D, self.n, **law.settings).law([EVALUATED])
        x_CND = of.token_prompts([rng], contexts).context_RBNP[0, ..., : self.D]
        self.context_CNP = torch.cat(
            [x_CND, (x_CND @ self.w_D)[..., None], torch.ones_like(x_CND[..., :1])], -1
        )
        zero_G1 = torch.zeros_like(self.x_G[:, None])
        self.query_GP = torch.cat([self.query_GD, zero_G1, zero_G1 + 1], 1)

    def line_and_newton(self, depths: Sequence[int]) -> dict[str, np.ndarray]:
        """Return the line, where the coordinate lies, and what Newton answers after up to max(depths)
        steps."""
        found = {
            "x_G": self.x_G.numpy(),
            "line_G": (self.query_GD @ self.w_D).numpy(),
            "depths_L": np.array(depths),
            "range": np.array(range_of(*PUBLISHED_LARGEST)),
        }
        for start in STARTS:
            for order in ORDERS:
                found[f"newton_{start}_{order}_TKG"] = self.newton(start, order, max(depths))
        return found

    def newton(self, start: str, order: int, steps: int) -> np.ndarray:
        """Group means after 0 to `steps` steps, (T, K, G): linear in the query."""
        x_CND, y_CN = self.context_CNP[..., : self.D], self.context_CNP[..., self.D]
        S_CDD = x_CND.mT @ x_CND / self.n
        g_CD = (x_CND * y_CN[..., None]).mean(1)
        first_CDD = transpose_start(S_CDD) if start == "transpose" else identity_start(S_CDD)
        found = []
        for X_CDD in newton_iteration(S_CDD, first_CDD, order, steps):
            slope_KD = _groups((g_CD[:, None] @ X_CDD)[:, 0])
            found.append(slope_KD @ self.query_GD.mT)
        return torch.stack(found).numpy()

    def outputs(self, model: Any, R: int) -> np.ndarray:
        """Group means, (R, K, G), in Gram form: all contexts at once, and all queries where a mask keeps them
        out of the Gram matrix."""
        gram_CPP = self.context_CNP.mT @ self.context_CNP / self.n
        gram_RPPC = gram_CPP.movedim(0, -1).expand(R, -1, -1, -1)
        queries_RPGC = self.query_GP.mT[None, ..., None].expand(R, -1, -1, self.contexts)
        with torch.no_grad():
            if model.parametrization.mask:
                out_RGC = model.parametrization.columns(gram_RPPC.contiguous(), queries_RPGC.contiguous())
            else:
                outs = []
                for g, query_P in enumerate(self.query_GP):
                    own_PP1 = torch.outer(query_P, query_P)[..., None] / self.n
                    outs.append(model.last_entry(gram_RPPC + own_PP1, queries_RPGC[:, :, g].contiguous()))
                out_RGC = torch.stack(outs, 1)
        return _groups(out_RGC.permute(2, 0, 1)).movedim(1, 0).numpy()

    def token_outputs(self, model: Any, R: int, contexts: int) -> np.ndarray:
        """Group means over the first contexts, (R, K, G), of a model of tokens (x, y)."""
        context_RCNP = self.context_CNP[:contexts, :, :-1].expand(R, -1, -1, -1)
        means, target_RC = [], torch.zeros(R, contexts).double()
        with torch.no_grad():
            for query_P in self.query_GP[:, :-1]:
                prompt = TokenPrompt(context_RCNP, query_P.expand(R, contexts, -1), target_RC, 1)
                means.append(_groups(model.predict(prompt).mT).mT)
        return torch.stack(means, -1).numpy()

    def with_and_without_clip(self, model: Any, R: int) -> tuple[np.ndarray, np.ndarray]:
        """Means over the first CLIPPED contexts with every entry bounded after each layer, and without."""
        found: list[list[Tensor]] = [[], []]
        context_RCNP = self.context_CNP[:CLIPPED].expand(R, -1, -1, -1)
        with torch.no_grad():
            for query_P in self.query_GP:
                query_RCP = query_P.expand(R, CLIPPED, -1)
                prompt = TokenPrompt(context_RCNP, query_RCP, torch.zeros(R, CLIPPED).double(), 1)
                for means, bound in zip(found, (CLIP, None), strict=True):
                    means.append(clipped_predictions(model.parametrization, prompt, bound).mean(-1))
        return torch.stack(found[0], -1).numpy(), torch.stack(found[1], -1).numpy()


def clipped_predictions(family: LSA, prompt: TokenPrompt, bound: float | None) -> Tensor:
    """(R, B) of LSA token by token, every entry clipped to +-bound after each layer, in the coordinates of
    the tokens as read in. Of a head O V (sum of z z^T) K^T Q the small product V (sum) K^T comes first."""
    O_RLHWX, V_RLHXW, K_RLHXW, Q_RLHXW = family.factors()
    _, o_RW = family.ends()
    assert o_RW is not None
    z_RBMW = family.embedded(torch.cat([prompt.context_RBNP, prompt.query_RBP[:, :, None]], 2))
    n = prompt.context_RBNP.shape[2]

    def by_head(M_RHXW: Tensor, t_RBMW: Tensor) -> Tensor:
        heads = M_RHXW.shape[1]
        return apply(M_RHXW.flatten(1, 2), t_RBMW).unflatten(-1, (heads, -1)).transpose(2, 3)

    for layer in range(family.layers):
        keys_RBMW = z_RBMW[:, :, :n] if family.mask else z_RBMW
        v_RBHMX, k_RBHMX = by_head(V_RLHXW[:, layer], keys_RBMW), by_head(K_RLHXW[:, layer], keys_RBMW)
        moved_RBHMX = by_head(Q_RLHXW[:, layer], z_RBMW) @ (k_RBHMX.mT @ v_RBHMX / n)
        out_RWY = O_RLHWX[:, layer].transpose(1, 2).flatten(2)
        z_RBMW = z_RBMW + apply(out_RWY, moved_RBHMX.transpose(2, 3).flatten(3))
        if bound is not None:
            z_RBMW = z_RBMW.clamp(-bound, bound)
    return (z_RBMW[:, :, -1] * o_RW[:, None]).sum(-1)


def share_within(bound: float, low: float, high: float) -> float:
    """P(|x_1| <= bound) for x ~ N(0, lambda I), lambda uniform in [low, high]."""

    def share(scale: float) -> float:
        return float(erf(bound / (2 * scale) ** 0.5))

    return share(low) if low == high else quad(share, low, high)[0] / (high - low)


def range_of(low: float, high: float) -> float:
    """Return the bound that holds SHARE of |x_1|."""
    return float(brentq(lambda bound: share_within(bound, low, high) - SHARE, 1e-6, 10 * high**0.5))


def _groups(value_CX: Tensor) -> Tensor:
    """Means over each of GROUPS pieces: (K, X)."""
    return value_CX.unflatten(0, (GROUPS, -1)).mean(1)
