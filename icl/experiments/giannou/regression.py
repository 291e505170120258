"""Figures 2 to 4, 8 and 9 of giannou: LSA trained on linear regression, at one size, and its losses beside
those of Newton's iteration and of the scalar family. Runs with the same settings are shared by figures.

R seeds, L depths, T steps, B prompts, D covariates.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from icl.config import resolve_seeds
from icl.errors import InputError, real, whole
from icl.experiments.giannou.scalars import family_best, least_squares_loss, newton_losses
from icl.experiments.runner import Runner
from icl.models import LSA, LinearTransformer
from icl.random import generator
from icl.runs.record import RunRecord
from icl.tasks import ConditionedRegression, ConditionedRegressionLaw
from icl.tasks.tilted import inflations_for
from icl.training.load import restored
from icl.training.threads import threads
from icl.weighted import tail_share

KEY = "figure.experiment"
MAX_LAYERS = 12
FITTED = 2000  # prompts on which points of the family are fitted where there is no exact rule
# Noise of the weights of runs that begin at the family's best point: the first with which the loss is below
# FIRST_LOSS times that of weights that are 0. Near deep points without a mask it may be 1e28 with either.
NOISES, FIRST_LOSS = (0.005, 1e-4), 0.5
HEADS = 4  # with which that is measured, as many as published
SLOWER = 0.1  # of the rate, for these
OTHER_START = 1000  # from the seed of a start to that of the next
STEPS_PER_BATCH = 4  # at most, where a stack grows
LESSONS = 20  # of the curriculum in as many steps as a run has: 5,000 of the paper's 100,000 each
TOGETHER = 2  # layers that a stack which grows begins with
# By mask. With one, two and three layers need larger steps and first weights to leave plateaus, and four
# diverge at these; without one, two layers stop on plateaus at larger steps.
GROWN = {
    False: {"optimizer.schedule.factors": [1, 2], "model.init_std": 0.1},
    True: {"optimizer.lr": 0.04, "optimizer.schedule.factors": [1, 1, 0.25], "model.init_std": 0.2},
}
TILTED = {"train.estimator": "tilted", "optimizer.schedule.factors": [1]}
CHUNK = 4000  # prompts at a time
EVALUATED = 0  # the seed of the prompts that all are judged on
SELDOM = 1e-3  # share of prompts that the usual ones leave out: those of largest eigenvalue
WEIGHTED, USUAL = 20_000, 4  # weighted prompts, at most, and plain ones for each of them
RISK_LAYERS = range(2, 5)  # of which there are claims; of six the weights are beyond float64
CAP = 1.0  # of a weighted loss in what a risk is certain to be above
PUBLISHED_LARGEST = (1.0, 1.0)  # the published code draws N(0, I) where kappa = 1
TEXT_LARGEST = (1.0, 100.0)


@dataclass(frozen=True)
class PromptLaw:
    """One law of prompts: kappa, the range of lambda_max, the noise's variance."""

    condition: float
    largest: tuple[float, float]
    label_noise: float

    @property
    def name(self) -> str:
        noise = f"_noise{self.label_noise:g}" if self.label_noise else ""
        return f"kappa{self.condition:g}{noise}"

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "condition": self.condition,
            "largest": list(self.largest),
            "label_noise": self.label_noise,
        }


@dataclass(frozen=True)
class RegressionSize:
    """d, n, depths, seeds and budgets. `steps`: of training from random weights; `started_steps`: of runs
    that begin at the family's best point; null: none of these. `name`: what the settings begin with. `lr`: of
    training from random weights, null for the experiment's own. `grown`: one run for all depths from
    TOGETHER on, which adds a layer after each `steps` steps and goes on from the best of so many `starts` of
    each seed; `tilted`, without a mask: on prompts that show the tail of its loss."""

    dim: int
    context: int
    layers: Sequence[int]
    seeds: Sequence[int]
    steps: int
    prompts: int
    started_steps: int | None = None
    name: str = ""
    lr: float | None = None
    grown: bool = False
    starts: int = 1
    tilted: bool = False

    def __post_init__(self) -> None:
        for name, value in (("grown", self.grown), ("tilted", self.tilted)):
            if not isinstance(value, bool):
                raise InputError(f"{KEY}.{name}={value}: must be true or false")
        if self.tilted and not self.grown:
            raise InputError(f"{KEY}.tilted=true: needs {KEY}.grown=true")
        if whole(f"{KEY}.starts", self.starts, 1, 100) > 1 and not self.grown:
            raise InputError(f"{KEY}.starts={self.starts}: needs {KEY}.grown=true")
        whole(f"{KEY}.dim", self.dim, 1, 64)
        if whole(f"{KEY}.context", self.context, 2, 5000) <= self.dim:
            raise InputError(f"{KEY}.context={self.context}: must be above {KEY}.dim={self.dim}")
        listed = isinstance(self.layers, list | tuple) and len(self.layers) > 0
        if not listed or len(set(self.layers)) < len(self.layers):
            raise InputError(
                f"{KEY}.{self.name}layers={self.layers}: must be a list of different numbers, at least one"
            )
        for count in self.layers:
            whole(f"{KEY}.{self.name}layers", count, 1, MAX_LAYERS)
        resolve_seeds(self.seeds, None)
        whole(f"{KEY}.{self.name}steps", self.steps, 10)
        whole(f"{KEY}.prompts", self.prompts, 100, 10**6)
        if self.started_steps is not None:
            whole(f"{KEY}.started_steps", self.started_steps, 10)
        if self.lr is not None:
            real(f"{KEY}.lr", self.lr, 0, open_low=True)

    @property
    def depths(self) -> list[int]:
        return sorted(self.layers)

    def law(self, law: PromptLaw) -> ConditionedRegressionLaw:
        """Return the law without the constant, which Newton and the family see."""
        return ConditionedRegression(self.dim, self.context, **law.settings, prefix=KEY).law([0])

    def train(
        self,
        runner: Runner,
        layers: int,
        law: PromptLaw,
        mask: bool,
        scalars: Sequence[float] | None = None,
        noise: float | None = None,
    ) -> RunRecord:
        """Train from random weights, or from a point of the scalar family and noise."""
        steps = self.steps if scalars is None else int(self.started_steps or 0)
        lessons = None if scalars is not None or runner.scale != "paper" else max(1, steps // LESSONS)
        settings = self._of_law(law, mask, steps) | {
            "model.layers": layers,
            "callbacks.curriculum.every": lessons,
        }
        if scalars is not None:
            settings |= {
                "model.scalars": list(scalars),
                "model.init_std": noise,
                "model.width": None,
                "model.rank": None,
                "optimizer.lr": SLOWER * (1e-2 if runner.scale != "paper" else 1e-4),
                "optimizer.schedule.min_lr": 0.0,
            }
        return runner.train("giannou/lsa", settings)

    def grow(self, runner: Runner, law: PromptLaw, mask: bool) -> RunRecord:
        """Train all depths, one after another, in one run: each from the best of the depth before it."""
        own = {
            "train.steps_per_batch": math.gcd(STEPS_PER_BATCH, self.steps),  # a layer begins with new prompts
            **GROWN[mask],
            **(TILTED if self.tilted and not mask else {}),
        }
        return runner.train("giannou/lsa", self._of_law(law, mask) | self._growing(TOGETHER) | own)

    def grow_layernorm(self, runner: Runner, law: PromptLaw) -> RunRecord:
        """Train all depths with LayerNorm in one run, from one layer on."""
        return runner.train("giannou/lsa_ln", self._common(law, self.steps) | self._growing(1))

    def _growing(self, first: int) -> dict[str, Any]:
        seeds = [seed + OTHER_START * start for seed in self.seeds for start in range(self.starts)]
        layers = max(self.depths)
        steps = (layers - first + 1) * self.steps
        return {
            "seeds": seeds,
            "model.layers": layers,
            "train.steps": steps,
            "train.log_every": max(1, steps // 20),
            "optimizer.schedule.every": self.steps,
            "callbacks.growth.every": self.steps,
            "callbacks.growth.first": first,
            "callbacks.growth.starts": self.starts,
        }

    def train_layernorm(self, runner: Runner, layers: int, law: PromptLaw) -> RunRecord:
        """Train with LayerNorm, over tokens, without a mask."""
        lessons = max(1, self.steps // LESSONS) if runner.scale == "paper" else None
        own = {"model.layers": layers, "callbacks.curriculum.every": lessons}
        return runner.train("giannou/lsa_ln", self._common(law, self.steps) | own)

    def _of_law(self, law: PromptLaw, mask: bool, steps: int | None = None) -> dict[str, Any]:
        return self._common(law, steps or self.steps) | {
            "task.constant": True,
            "model.mask": mask,
            "model.read_in": float(np.mean(law.largest)) ** -0.5,
            "train.estimator": "expected" if mask else "sampled",
        }

    def _common(self, law: PromptLaw, steps: int) -> dict[str, Any]:
        warmup = max(1, steps // 10)
        return {
            "seeds": list(self.seeds),
            "callbacks.heatmaps.count": 0,  # a run asked for by itself has its pictures
            "callbacks.gradient.count": 0,
            "task.dim": self.dim,
            "task.context": self.context,
            **{f"task.{key}": value for key, value in law.settings.items()},
            "train.steps": steps,
            "train.log_every": max(1, steps // 20),
            "optimizer.schedule.warmup": warmup,
            "optimizer.schedule.decay": steps - warmup,
            **({} if self.lr is None else {"optimizer.lr": self.lr}),
        }


def baselines(
    runner: Runner,
    size: RegressionSize,
    law: PromptLaw,
    depths: Sequence[int],
    masks: Sequence[bool] = (False, True),
) -> RunRecord:
    """Newton's losses, and the best points of the family with and without a mask."""
    science = {
        "law": law.settings,
        "size": [size.dim, size.context, size.prompts],
        "depths": list(depths),
        "masks": list(masks),
        "fitted": FITTED,
    }
    return store(runner, "giannou/baselines", science, lambda: _baselines(size, law, depths, masks))


def _baselines(
    size: RegressionSize, law: PromptLaw, depths: Sequence[int], masks: Sequence[bool]
) -> dict[str, np.ndarray]:
    of, found = size.law(law), {"depths_L": np.array(depths)}
    for name, loss_TB in newton_losses(of, EVALUATED, size.prompts, max(depths)).items():
        found |= _mean(f"newton_{name}", loss_TB)
    found["least_squares"] = np.array(least_squares_loss(of, EVALUATED, size.prompts))
    for mask in masks:
        best = family_best(of, mask, depths, EVALUATED, size.prompts, FITTED)
        found |= {f"family_{_masked(mask)}_{key}": value for key, value in best.items()}
    return found


@dataclass(frozen=True)
class Trained:
    """A trained stack: a run, or one depth of a run that grew, and of each of its seeds the best start."""

    run: RunRecord
    depth: int | None = None
    starts: int = 1

    @property
    def identity(self) -> list[Any]:
        """Return what identifies the arrays that are computed from the stack."""
        return self.run.mark if self.depth is None else [*self.run.mark, self.depth, self.starts]

    @property
    def seeds(self) -> int:
        return len(self.run.run["seeds"]) // self.starts

    @property
    def transformer(self) -> Any:
        of = restored(self.run)
        if self.depth is None:
            return of.transformer
        growth = of.config["callbacks"]["growth"]
        end = (self.depth - growth["first"] + 1) * growth["every"]
        model = next(model for step, model in of.stored_models() if step == end)
        first = model.parametrization.first(self.depth)
        return model.on(first.sharing([M[:: self.starts] for M in first.matrices().values()]))


Stacks = Mapping[str, Trained]


def train_by_depth(runner: Runner, size: RegressionSize, law: PromptLaw, mask: bool) -> dict[str, Trained]:
    """Return stacks by depth, trained from random weights."""
    name = f"{law.name}_{_masked(mask)}"
    grown = [layers for layers in size.depths if size.grown and layers >= TOGETHER]
    run = size.grow(runner, law, mask) if grown else None
    return {
        f"{name}_L{layers}": Trained(run, layers, size.starts)
        if run is not None and layers in grown
        else Trained(size.train(runner, layers, law, mask))
        for layers in size.depths
    }


def runs_of(stacks: Stacks) -> dict[str, RunRecord]:
    """Return the runs that stacks are of, each once."""
    found: dict[str, RunRecord] = {}
    for name, stack in stacks.items():
        grown = name if stack.depth is None else f"{name.rpartition('_')[0]}_grown"
        found[grown] = stack.run
    return found


def train_from_best(
    runner: Runner, size: RegressionSize, law: PromptLaw, mask: bool, known: RunRecord, depths: Sequence[int]
) -> dict[str, Trained]:
    """Return stacks by depth that begin at the family's best points: none where no steps are given them, or
    where the least noise takes the loss away from the family's."""
    if size.started_steps is None:
        return {}
    theta_LV, at = known.weights[f"family_{_masked(mask)}_theta_LV"], known.weights["depths_L"].tolist()
    found = {}
    for layers in depths:
        scalars = theta_LV[at.index(layers), : 2 * layers].tolist()
        name = f"{law.name}_{_masked(mask)}_started_L{layers}"
        noise = _noise(size, law, mask, layers, scalars)
        if noise is not None:
            found[name] = Trained(size.train(runner, layers, law, mask, scalars, noise))
    return found


def _noise(
    size: RegressionSize, law: PromptLaw, mask: bool, layers: int, scalars: Sequence[float]
) -> float | None:
    """Return the first of NOISES with which every seed's loss is below FIRST_LOSS, on FITTED prompts."""
    few = replace(size, prompts=FITTED)
    for noise in NOISES:
        near = LSA(size.dim, layers, HEADS, mask=mask, scalars=scalars, init_std=noise)
        near.initialise(size.seeds)
        loss_RB = prompt_losses(LinearTransformer(near), len(size.seeds), few, law)
        if (loss_RB.mean(-1) < FIRST_LOSS).all():
            return noise
    return None


def losses(runner: Runner, size: RegressionSize, law: PromptLaw, runs: Stacks, known: RunRecord) -> RunRecord:
    """Losses of stacks by name, on the same prompts: `NAME_mean` and `NAME_error` (R,), the share of the mean
    that the hundred largest terms carry, and `NAME_more_mean`, `NAME_more_error`: by how much the loss is
    above that of the family's best point of as many layers on these very prompts."""
    science = {
        "of": {name: of.identity for name, of in runs.items()},
        "beside": identity(known),
        "law": law.settings,
        "prompts": size.prompts,
    }
    return store(runner, "giannou/losses", science, lambda: _losses(size, law, runs, known.weights))


def layernorm(runner: Runner, size: RegressionSize, law: PromptLaw) -> dict[str, RunRecord]:
    """Return runs with LayerNorm by depth, or the one that grew through them, and their losses on the same
    prompts as all others."""
    if size.grown:
        grown = size.grow_layernorm(runner, law)
        stacks = {layers: Trained(grown, layers, size.starts) for layers in size.depths}
    else:
        stacks = {layers: Trained(size.train_layernorm(runner, layers, law)) for layers in size.depths}
    named = {f"{law.name}_layernorm_L{layers}": stack for layers, stack in stacks.items()}
    science = {
        "of": {name: of.identity for name, of in named.items()},
        "law": law.settings,
        "prompts": size.prompts,
    }

    def compute() -> dict[str, np.ndarray]:
        found: dict[str, np.ndarray] = {"depths_L": np.array(size.depths)}
        for name, of in named.items():
            loss_RB = prompt_losses(of.transformer, of.seeds, size, law)
            found |= _mean(name, loss_RB)
            found[f"{name}_tail"] = np.array([tail_share(loss_B) for loss_B in loss_RB])
        return found

    return runs_of(named) | {
        f"losses_{law.name}_layernorm": store(runner, "giannou/losses", science, compute)
    }


def _losses(
    size: RegressionSize, law: PromptLaw, runs: Stacks, known: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    beside: dict[tuple[bool, int], np.ndarray] = {}
    for name, trained in runs.items():
        model = trained.transformer
        of = model.parametrization.mask, model.parametrization.layers
        if of not in beside:
            beside[of] = prompt_losses(best_model(size, known, *of), 1, size, law)
        loss_RB = prompt_losses(model, trained.seeds, size, law)
        found |= _mean(name, loss_RB) | _mean(f"{name}_more", loss_RB - beside[of])
        found[f"{name}_tail"] = np.array([tail_share(loss_B) for loss_B in loss_RB])
    return found


def risks(
    runner: Runner, size: RegressionSize, law: PromptLaw, trained: Stacks, started: Stacks, known: RunRecord
) -> RunRecord:
    """Return expectations of stacks of RISK_LAYERS, beside those of the family's best points.

    Of stacks trained from random weights `NAME_usual` (R,), with errors: the loss over the family's on usual
    prompts, all but the share SELDOM of plain ones whose S' has the largest eigenvalues; and
    `NAME_best_seed`, the index of that with the least loss on fresh prompts for training. By weighted prompts
    that show the tail (icl.tasks.tilted), with errors: `NAME_capped`, the mean of the weighted loss, none
    above CAP, which is a lower bound of the risk however heavy its tail, and `NAME_more`, the risk minus the
    family's."""
    deep = {name: of for name, of in {**trained, **started}.items() if _layers(of) in RISK_LAYERS}
    science = {
        "of": {name: of.identity for name, of in deep.items()},
        "usual": sorted(deep.keys() & trained.keys()),
        "beside": identity(known),
        "law": law.settings,
        "prompts": min(WEIGHTED, size.prompts),
    }

    def compute() -> dict[str, np.ndarray]:
        found: dict[str, np.ndarray] = {}
        count = min(WEIGHTED, size.prompts)
        plain = _Prompts(size, law, (1.0,), USUAL * count)
        fresh = _Prompts(size, law, (1.0,), count, "search")
        shown = {
            layers: _Prompts(size, law, inflations_for(3**layers - 1, size.context + 1, size.dim), count)
            for layers in {_layers(of) for of in deep.values()}
        }
        for name, of in deep.items():
            model, layers = of.transformer, _layers(of)
            best = best_model(size, known.weights, model.parametrization.mask, layers)
            terms_RB = shown[layers].terms(model, of.seeds)
            found |= _mean(f"{name}_capped", terms_RB.clip(max=CAP))
            found |= _mean(f"{name}_more", terms_RB - shown[layers].terms(best, 1))
            if name in trained:
                usual_B = plain.usual()
                loss_RB = plain.terms(model, of.seeds)[:, usual_B]
                best_B = plain.terms(best, 1)[0, usual_B]
                ratio_R = loss_RB.mean(-1) / best_B.mean()
                off_RB = (loss_RB - ratio_R[:, None] * best_B) / best_B.mean()
                found[f"{name}_usual"] = ratio_R
                found[f"{name}_usual_error"] = off_RB.std(-1, ddof=1) / len(best_B) ** 0.5
                found[f"{name}_best_seed"] = fresh.terms(model, of.seeds).mean(-1).argmin()
        return found

    return store(runner, "giannou/risks", science, compute)


def _layers(stack: Trained) -> int:
    return int(stack.transformer.parametrization.layers)


class _Prompts:
    """Prompts some of which have an inflated largest eigenvalue, and their weights."""

    def __init__(
        self,
        size: RegressionSize,
        law: PromptLaw,
        inflations: Sequence[float],
        prompts: int,
        role: str = "eval",
    ) -> None:
        of = ConditionedRegression(size.dim, size.context, **law.settings, constant=True).law([0])
        rng, self.dim = generator(EVALUATED, role, 4), size.dim
        counts = [min(CHUNK, prompts - start) for start in range(0, prompts, CHUNK)]
        self.drawn = [of.tilted_prompts([rng], count, inflations) for count in counts]

    def terms(self, model: Any, R: int) -> np.ndarray:
        """Weights times losses, (R, B)."""
        terms = [weight.numpy() * _losses_on(prompt, model, R, self.dim) for prompt, weight in self.drawn]
        return np.concatenate(terms, 1)

    def usual(self) -> np.ndarray:
        """Return which are not among the share SELDOM whose S' has the largest eigenvalues."""
        own = [prompt.with_query().gram_RBPP[0, :, : self.dim, : self.dim] for prompt, _ in self.drawn]
        top_B = np.linalg.eigvalsh(np.concatenate(own))[:, -1]
        return top_B <= np.quantile(top_B, 1 - SELDOM)


def best_model(
    size: RegressionSize, known: Mapping[str, np.ndarray], mask: bool, layers: int
) -> LinearTransformer:
    """Return the scalar family's best point as weights of LSA."""
    at = known["depths_L"].tolist().index(layers)
    scalars = known[f"family_{_masked(mask)}_theta_LV"][at, : 2 * layers].tolist()
    family = LSA(size.dim, layers, 1, mask=mask, scalars=scalars, init_std=0.0)
    family.initialise([EVALUATED])
    return LinearTransformer(family)


def prompt_losses(model: Any, R: int, size: RegressionSize, law: PromptLaw) -> np.ndarray:
    """Squared errors over d, (R, B), on prompts that are the same for every seed and every model."""
    reads_constant = getattr(model.parametrization, "reads_constant", False)
    of = ConditionedRegression(size.dim, size.context, **law.settings, constant=reads_constant).law([0])
    rng, found = generator(EVALUATED, "eval"), []
    for start in range(0, size.prompts, CHUNK):
        count = min(CHUNK, size.prompts - start)
        drawn = of.gram_prompts([rng], count) if model.path == "gram" else of.token_prompts([rng], count)
        found.append(_losses_on(drawn, model, R, size.dim))
    return np.concatenate(found, 1)


def _losses_on(drawn: Any, model: Any, R: int, dim: int) -> np.ndarray:
    prompt = for_seeds(drawn, R)
    with torch.no_grad():
        return (model.predict(prompt) - prompt.target_RB).square().numpy() / dim


def for_seeds(prompt: Any, R: int) -> Any:
    """Return the same prompts for each of R replicas."""
    import dataclasses

    given = {f.name: getattr(prompt, f.name) for f in dataclasses.fields(prompt)}
    shared = {k: v.expand(R, *v.shape[1:]) for k, v in given.items() if isinstance(v, torch.Tensor)}
    if given.get("context_R") is not None:
        shared["context_R"] = given["context_R"] * R
    return dataclasses.replace(prompt, **shared)


def store(
    runner: Runner, name: str, science: Mapping[str, Any], compute: Callable[[], Mapping[str, np.ndarray]]
) -> RunRecord:
    """`runner.store`, computed on one thread: the matrices are tiny, and threads wait for one another."""

    @functools.wraps(compute)  # it stays the code of the module it is written in
    def alone() -> Mapping[str, np.ndarray]:
        with threads(1):
            return compute()

    return runner.store(name, {"seeds": [EVALUATED], **science}, alone)


def identity(run: RunRecord) -> list[Any]:
    """Return the settings that determine arrays computed from a run."""
    return run.mark


def _mean(name: str, loss_XB: np.ndarray) -> dict[str, np.ndarray]:
    error_X = loss_XB.std(-1, ddof=1) / loss_XB.shape[-1] ** 0.5
    return {f"{name}_mean": loss_XB.mean(-1), f"{name}_error": error_X}


def _masked(mask: bool) -> str:
    return "masked" if mask else "unmasked"


def laws(conditions: Iterable[float], noises: Iterable[float]) -> list[PromptLaw]:
    """N(0, I) where kappa = 1, as the published code draws, else lambda_max as in the text."""
    return [
        PromptLaw(float(kappa), PUBLISHED_LARGEST if kappa == 1 else TEXT_LARGEST, float(noise))
        for noise in noises
        for kappa in conditions
    ]
