"""Figures 3 to 6 of giannou: what LSA and Newton's iteration answer while one coordinate of the query moves.

All prompts share one w and a query of which only the first coordinate varies; contexts are drawn afresh.
R seeds, L depths, T steps, C contexts in K groups, G values of the coordinate, B = C G prompts, D covariates.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import erf
from torch import Tensor

from icl.algorithms.newton import newton_iteration, transpose_start
from icl.errors import InputError, whole
from icl.figures.claims import Decision, sampled
from icl.figures.figure import Layout, Panels, Records
from icl.figures.giannou.regression import (
    EVALUATED,
    ORDERS,
    PUBLISHED_LARGEST,
    Arrays,
    PromptLaw,
    Regression,
    Stack,
    Value,
    depths,
    identities,
    runs_of,
)
from icl.figures.runner import Runner
from icl.figures.style import BLUE, GREY, PURPLE, exact_curve, shared_legend
from icl.figures.training import KEY
from icl.models import LSA
from icl.models.encoder import apply
from icl.random import generator
from icl.tasks import ConditionedRegression, TokenPrompt
from icl.training.threads import threads

LAW = PromptLaw()
GROUPS = 20  # of contexts, for the errors of means
NEAR_RANGE, FAR_RANGE = (14.9, 61), (100.0, 41)  # of the coordinate, and points
NEAR, FAR = slice(0, NEAR_RANGE[1]), slice(NEAR_RANGE[1], None)
SHARE = 0.99  # of |x_1| that is called in distribution
CLIP = 10.0  # the published bound on activations
CLIPPED = 100  # contexts that are also run token by token, clipped
EDGE = 1.3  # of the line's range, that a panel shows
LOST = 0.5  # of the line's size: more is called a departure


@dataclass(eq=False, kw_only=True)
class Outputs(Regression):
    """Draws the runs of Figure 2, masked and not: a panel for each depth, in a row for each model and one for
    Newton."""

    contexts: int
    shown: ClassVar[slice] = NEAR
    source: ClassVar[str] = "outputs"
    models: ClassVar[Mapping[str, str]] = {"unmasked": "LSA, no mask", "masked": "LSA, mask"}
    newton_in: ClassVar[str] = "newton"  # the row of Newton's iteration
    panel: ClassVar[tuple[float, float]] = (1.7, 1.35)  # inches
    most_columns: ClassVar[int] = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        self._in_groups("contexts", CLIPPED, 10**6)
        self.depths: Sequence[int] = self.layers  # of the models that are drawn

    def _in_groups(self, name: str, least: int, most: int) -> None:
        if whole(f"{KEY}.{name}", getattr(self, name), least, most) % GROUPS:
            raise InputError(f"{KEY}.{name}={getattr(self, name)}: must be a multiple of {GROUPS}")

    def runs(self, runner: Runner) -> Records:
        stacks: dict[str, Stack] = {}
        for mask in (False, True):
            stacks |= self.stacks(runner, LAW, mask)
        science = {"seeds": [EVALUATED], "of": identities(stacks), "contexts": self.contexts}

        def compute() -> dict[str, np.ndarray]:
            """Means of every group of contexts, `NAME_RKG`, of Newton's `NAME_TKG`; `NAME_clipped_RG`."""
            given = MovingQuery(self)
            found = given.line_and_newton(max(self.layers))
            for name, stack in stacks.items():
                model, R = stack.transformer, stack.seeds
                found[f"{name}_RKG"] = given.outputs(model, R)
                found[f"{name}_clipped_RG"] = given.clipped(model.parametrization, R)
            return found

        made = runner.store("giannou/outputs", science, threads(1)(compute))
        return {**runs_of(stacks), "outputs": made}

    def layout_of(self, records: Records) -> Layout:
        rows = dict.fromkeys((*self.models, self.newton_in))
        panels = [f"{row}, {depth}" for row in rows for depth in self.depths]
        return Layout(panels, self.panel, min(self.most_columns, len(self.depths)))

    def draw(self, panels: Panels, records: Records) -> None:
        arrays = records[self.source].weights
        x_G, line_G = arrays["x_G"][self.shown], arrays["line_G"][self.shown]
        for depth in self.depths:
            for model, title in self.models.items():
                axes, name = panels[f"{model}, {depth}"], stack_name(model, depth)
                y_RG = arrays[f"{name}_RKG"].mean(1)[:, self.shown]
                axes.plot(x_G, y_RG.T, color=BLUE, label="LSA, seeds")
                if f"{name}_clipped_RG" in arrays:
                    y_RG = arrays[f"{name}_clipped_RG"][:, self.shown]
                    axes.plot(x_G, y_RG.T, color=PURPLE, linestyle=":", label=r"clipped to $\pm 10$")
                axes.set_title(rf"{title}, $\ell = {depth}$")
            axes = panels[f"{self.newton_in}, {depth}"]
            for order, color in ORDERS.items():
                y_G = arrays[f"newton_transpose_{order}_TKG"][depth].mean(0)[self.shown]
                axes.plot(x_G, y_G, color=color, label=f"Newton, order {order}")
            axes.set(title=axes.get_title() or f"Newton, {depth} step" + ("s" if depth > 1 else ""))
        middle, reach = (line_G.max() + line_G.min()) / 2, EDGE * np.ptp(line_G) / 2
        for axes in panels.values():
            exact_curve(axes, x_G, line_G, r"$\langle w, x\rangle$")
            axes.set(xlim=(x_G.min(), x_G.max()), ylim=(middle - reach, middle + reach))
            for side in (-1, 1):
                bound = side * range_of(*PUBLISHED_LARGEST)
                axes.axvline(bound, color=GREY, linestyle="-.", label=rf"{SHARE:.0%} of $x_1$ between")
        all_axes, columns = [*panels.values()], self.layout_of(records).columns
        for axes in all_axes[::columns]:
            axes.set_ylabel("mean output")
        for axes in all_axes[-columns:]:
            axes.set_xlabel("$x_1$ of the query")
        shared_legend(panels.values())


@dataclass(eq=False, kw_only=True)
class OutputsLayerNorm(Outputs):
    """Draws the runs of Figure 2 with LayerNorm, over the first `tokens` contexts, token by token; the others
    are there to compare with."""

    layernorm_layers: Sequence[int]
    layernorm_steps: int
    tokens: int
    source: ClassVar[str] = "layernorm_outputs"
    models: ClassVar[Mapping[str, str]] = {"layernorm": "LSA + LayerNorm"}
    newton_in: ClassVar[str] = "layernorm"
    panel: ClassVar[tuple[float, float]] = (2.2, 1.6)
    most_columns: ClassVar[int] = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        self.layernorm_layers = self.depths = depths("layernorm_layers", self.layernorm_layers)
        whole(f"{KEY}.layernorm_steps", self.layernorm_steps, 10)
        self._in_groups("tokens", GROUPS, self.contexts)

    def runs(self, runner: Runner) -> Records:
        stacks = self.layernorm(runner, LAW, self.layernorm_layers, self.layernorm_steps)
        contexts = [self.contexts, self.tokens]
        science = {"seeds": [EVALUATED], "of": identities(stacks), "contexts": contexts}

        def compute() -> dict[str, np.ndarray]:
            given = MovingQuery(self)
            found = given.line_and_newton(max(self.layernorm_layers))
            for name, stack in stacks.items():
                found[f"{name}_RKG"] = given.token_outputs(stack.transformer, stack.seeds, self.tokens)
            return found

        made = runner.store("giannou/layernorm_outputs", science, threads(1)(compute))
        return {**super().runs(runner), **runs_of(stacks), "layernorm_outputs": made}


class MovingQuery:
    """The prompts: contexts with one w, and the queries."""

    def __init__(self, size: Outputs) -> None:
        self.D, self.n, self.contexts = size.dim, size.context, size.contexts
        rng = generator(EVALUATED, "eval", 3)
        self.w_D = torch.from_numpy(rng.standard_normal(self.D))
        self.w_D[0] = 1.0  # of typical size: the line has a slope
        ranges = (np.linspace(-most, most, points) for most, points in (NEAR_RANGE, FAR_RANGE))
        self.x_G = torch.from_numpy(np.concatenate([*ranges]))
        rest_D = torch.from_numpy(rng.standard_normal(self.D))
        self.query_GD = rest_D.expand(len(self.x_G), -1).clone()
        self.query_GD[:, 0] = self.x_G
        law = ConditionedRegression(self.D, self.n, **LAW.settings).law([EVALUATED])
        x_CND = law.token_prompts([rng], self.contexts).context_RBNP[0, ..., : self.D]
        self.context_CNP = torch.cat(
            [x_CND, (x_CND @ self.w_D)[..., None], torch.ones_like(x_CND[..., :1])], -1
        )
        zero_G1 = torch.zeros_like(self.x_G[:, None])
        self.query_GP = torch.cat([self.query_GD, zero_G1, zero_G1 + 1], 1)

    def line_and_newton(self, steps: int) -> dict[str, np.ndarray]:
        """Return the line, and the means of groups after 0 to `steps` steps of Newton, linear in the
        query."""
        x_CND, y_CN = self.context_CNP[..., : self.D], self.context_CNP[..., self.D]
        S_CDD = x_CND.mT @ x_CND / self.n
        g_CD = (x_CND * y_CN[..., None]).mean(1)
        found = {"x_G": self.x_G.numpy(), "line_G": (self.query_GD @ self.w_D).numpy()}
        for order in ORDERS:
            iterates = newton_iteration(S_CDD, transpose_start(S_CDD), order, steps)
            slope_TKD = torch.stack([_groups((g_CD[:, None] @ X_CDD)[:, 0]) for X_CDD in iterates])
            found[f"newton_transpose_{order}_TKG"] = (slope_TKD @ self.query_GD.mT).numpy()
        return found

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
        out_CRG = self._by_tokens(model.predict, R, contexts, self.D + 1)
        return _groups(out_CRG).movedim(1, 0).numpy()

    def clipped(self, family: LSA, R: int) -> np.ndarray:
        """Means over the first CLIPPED contexts, (R, G), with every entry bounded after each layer."""
        out_CRG = self._by_tokens(
            lambda prompt: clipped_predictions(family, prompt, CLIP), R, CLIPPED, self.D + 2
        )
        return out_CRG.mean(0).numpy()

    def _by_tokens(
        self, predict: Callable[[TokenPrompt], Tensor], R: int, contexts: int, width: int
    ) -> Tensor:
        context_RCNP = self.context_CNP[:contexts, :, :width].expand(R, -1, -1, -1)
        target_RC, found = torch.zeros(R, contexts).double(), []
        with torch.no_grad():
            for query_P in self.query_GP[:, :width]:
                prompt = TokenPrompt(context_RCNP, query_P.expand(R, contexts, -1), target_RC, 1)
                found.append(predict(prompt).mT)
        return torch.stack(found, -1)


def clipped_predictions(family: LSA, prompt: TokenPrompt, bound: float) -> Tensor:
    """(R, B) of LSA token by token, every entry clipped to +-bound after each layer, in the coordinates of
    the tokens as read in. Of a head O V (sum of z z^T) K^T Q the small product V (sum) K^T comes first."""
    O_RLHWX, V_RLHXW, K_RLHXW, Q_RLHXW = family.factors()
    _, o_RW = family.io_maps()
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
        z_RBMW = (z_RBMW + apply(out_RWY, moved_RBHMX.transpose(2, 3).flatten(3))).clamp(-bound, bound)
    return (z_RBMW[:, :, -1] * o_RW[:, None]).sum(-1)


def _groups(value_CX: Tensor) -> Tensor:
    """Means over each of GROUPS pieces: (K, X)."""
    return value_CX.unflatten(0, (GROUPS, -1)).mean(1)


def share_within(bound: float, low: float, high: float) -> float:
    """P(|x_1| <= bound) for x ~ N(0, lambda I), lambda uniform in [low, high]."""

    def share(scale: float) -> float:
        return float(erf(bound / (2 * scale) ** 0.5))

    return share(low) if low == high else quad(share, low, high)[0] / (high - low)


def range_of(low: float, high: float) -> float:
    """Return the bound that holds SHARE of |x_1|."""
    return float(brentq(lambda bound: share_within(bound, low, high) - SHARE, 1e-6, 10 * high**0.5))


def stack_name(model: str, depth: int) -> str:
    return f"{LAW.name}_{model}_L{depth}"


def misses(arrays: Arrays, mean_XKG: np.ndarray) -> list[Value]:
    """Root mean square of mean outputs' distance from the line in distribution, over the line's own; their
    errors by the jackknife over groups of contexts."""
    here = np.abs(arrays["x_G"][NEAR]) <= range_of(*PUBLISHED_LARGEST)
    line_G = arrays["line_G"][NEAR][here]
    scale = float(np.sqrt(np.mean(line_G**2)))

    def miss(mean_G: np.ndarray) -> float:
        return float(np.sqrt(np.mean((mean_G[NEAR][here] - line_G) ** 2))) / scale

    found, K = [], mean_XKG.shape[1]
    for mean_KG in mean_XKG:
        left = np.array([miss((mean_KG.sum(0) - mean_KG[k]) / (K - 1)) for k in range(K)])
        error = float(np.sqrt((K - 1) / K * np.square(left - left.mean()).sum()))
        found.append(Value(miss(mean_KG.mean(0)), error))
    return found


def lost_beyond(arrays: Arrays, model: str, depths: Sequence[int]) -> tuple[dict[str, float], Decision]:
    """Decide that models leave the line out of distribution: one that does not follow it in distribution,
    either, is no evidence. Return the distances at the edges by depth, the least of all seeds."""
    edges: dict[str, float] = {}
    near, ends = [], [NEAR_RANGE[1], -1]
    line_2 = arrays["line_G"][ends]
    for depth in depths:
        mean_RKG = arrays[f"{stack_name(model, depth)}_RKG"]
        off_R2 = mean_RKG.mean(1)[:, ends] - line_2
        edges[f"{depth} layers"] = float(np.sqrt((off_R2**2).sum(1) / (line_2**2).sum()).min())
        near += [miss.mean for miss in misses(arrays, mean_RKG)]
    if not edges:
        return edges, Decision("undecided", "sampled")
    decided = sampled(list(edges.values())).above(
        LOST,
        f"distance from <w, x> at the edges above {LOST:.0%} of its size, every seed (least shown); in "
        "distribution below it, or the verdict is undecided",
    )
    return edges, decided if max(near) < LOST else replace(decided, verdict="undecided")
