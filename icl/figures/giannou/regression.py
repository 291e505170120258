"""Figures 2 to 6, 8 and 9 of giannou: LSA trained on linear regression, beside Newton's iteration and the
scalar family. Runs with the same settings are shared by figures.

R seeds, L depths, T steps, B prompts, D covariates.
"""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from matplotlib.axes import Axes

from icl import stats
from icl.errors import InputError, reals, whole
from icl.figures.claims import Claim
from icl.figures.figure import Figure, Layout, Panels, Records
from icl.figures.giannou.family import family_best, newton_losses
from icl.figures.runner import Runner
from icl.figures.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    band,
    exact_curve,
    exact_line,
    log_axis,
    shared_legend,
)
from icl.figures.training import KEY, TrainingSettings, different
from icl.random import generator
from icl.runs.record import RunRecord
from icl.stats import tail_share
from icl.tasks import ConditionedRegression, ConditionedRegressionLaw
from icl.training.load import restored
from icl.training.threads import threads

Arrays = Mapping[str, np.ndarray]

MAX_LAYERS = 12
FITTED = 2000  # prompts on which points of the family are fitted where there is no exact rule
OTHER_START = 1000  # from the seed of a start to that of the next
STEPS_PER_BATCH = 4  # at most, where a stack grows
STAGES = 20  # of the curriculum in as many steps as a run has: 5,000 of the paper's 100,000 each
TOGETHER, NEVER = 2, MAX_LAYERS + 1  # layers that a stack which grows begins with
# By mask. With one, two and three layers need larger steps and first weights to leave plateaus, and four
# diverge at these; without one, two layers stop on plateaus at larger steps.
GROWN = {
    False: {"optimizer.schedule.factors": [1, 2], "model.init_std": 0.1},
    True: {"optimizer.lr": 0.04, "optimizer.schedule.factors": [1, 1, 0.25], "model.init_std": 0.2},
}
TILTED = {"train.estimator": "tilted", "optimizer.schedule.factors": [1]}
CHUNK = 4000  # prompts at a time
EVALUATED = 0  # the seed of the prompts that all are judged on
PUBLISHED_LARGEST = (1.0, 1.0)  # the published code draws N(0, I) where kappa = 1
TEXT_LARGEST = (1.0, 100.0)

LEVEL = 0.999  # of every interval
HALF = stats.normal((1 - LEVEL) / 2)
HEAVY = 0.5  # of a mean that the hundred largest of its terms may carry where it is to be believed
ORDERS = {2: ORANGE, 3: GREEN}
START_FORMULAS = {"transpose": "X_0 = A^T / (s_1^2 + s_d^2)", "identity": "X_0 = 2 I / (s_1 + s_d)"}


@dataclass(frozen=True)
class PromptLaw:
    """One law of prompts: kappa, the range of lambda_max, the noise's variance."""

    condition: float = 1.0
    largest: tuple[float, float] = PUBLISHED_LARGEST
    label_noise: float = 0.0

    @property
    def name(self) -> str:
        noise = f"_noise{self.label_noise:g}" if self.label_noise else ""
        return f"kappa{self.condition:g}{noise}"

    @property
    def title(self) -> str:
        noise = f", noise {self.label_noise:g}" if self.label_noise else ""
        return f"kappa = {self.condition:g}{noise}"

    @property
    def settings(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "largest": list(self.largest)}

    @property
    def loss_of_zero(self) -> float:
        """Return the loss of the output 0, E tr Sigma / d."""
        return float(np.mean(self.largest)) * (1 + 1 / self.condition) / 2


@dataclass(frozen=True)
class Stack:
    """A trained stack: a run, or one depth of a run that grew, and of each of its seeds the best start."""

    run: RunRecord
    depth: int | None = None
    starts: int = 1

    @property
    def identity(self) -> list[Any]:
        """Return what identifies the arrays that are computed from the stack."""
        return self.run.content_id if self.depth is None else [*self.run.content_id, self.depth, self.starts]

    @property
    def seeds(self) -> int:
        return len(self.run.run["seeds"]) // self.starts

    @property
    def transformer(self) -> Any:
        trained = restored(self.run)
        if self.depth is None:
            return trained.transformer
        growth = trained.config["callbacks"]["growth"]
        end = (self.depth - growth["first"] + 1) * growth["every"]
        model = next(model for step, model in trained.stored_models() if step == end)
        first = model.parametrization.first(self.depth)
        return model.on(first.sharing([M[:: self.starts] for M in first.matrices().values()]))


Stacks = Mapping[str, Stack]


def runs_of(stacks: Stacks) -> dict[str, RunRecord]:
    """Return the runs that stacks are of, each once."""
    return {
        name if stack.depth is None else f"{name.rpartition('_')[0]}_grown": stack.run
        for name, stack in stacks.items()
    }


def identities(stacks: Stacks) -> dict[str, list[Any]]:
    return {name: stack.identity for name, stack in stacks.items()}


def depths(name: str, values: Any) -> list[int]:
    """Return a setting: different numbers of layers, in rising order."""
    return sorted(different(name, values, 1, MAX_LAYERS))


def masked(mask: bool) -> str:
    return "masked" if mask else "unmasked"


@dataclass(eq=False, kw_only=True)
class Regression(Figure):
    """LSA trained at one size.

    `steps`: of training from random weights, of each depth where the stack grows. `lr`: null for the
    experiment's own. `grown`: one run for all depths from two on, which adds a layer after each `steps` steps
    and goes on from the best of each seed's `starts`; `tilted`, without a mask: on prompts that show the
    tail of its loss. `decisive`: whether training is the paper's own, so that what it misses says
    something of the paper.
    """

    dim: int
    context: int
    layers: Sequence[int]
    seeds: Sequence[int]
    steps: int
    lr: float | None = None
    grown: bool = False
    starts: int = 1
    tilted: bool = False
    decisive: bool = False

    def __post_init__(self) -> None:
        for name in ("grown", "tilted", "decisive"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{KEY}.{name}={getattr(self, name)}: must be true or false")
        if self.tilted and not self.grown:
            raise InputError(f"{KEY}.tilted=true: needs {KEY}.grown=true")
        if whole(f"{KEY}.starts", self.starts, 1, 100) > 1 and not self.grown:
            raise InputError(f"{KEY}.starts={self.starts}: needs {KEY}.grown=true")
        for name in ("dim", "context", "steps"):
            whole(f"{KEY}.{name}", getattr(self, name), 1)
        TrainingSettings(seeds=self.seeds, lr=self.lr)
        if self.context <= self.dim:
            raise InputError(f"{KEY}.context={self.context}: must be above {KEY}.dim={self.dim}")
        self.layers = depths("layers", self.layers)

    def stacks(self, runner: Runner, law: PromptLaw, mask: bool) -> dict[str, Stack]:
        """Return stacks by name, trained from random weights."""
        own = {
            "train.steps_per_batch": math.gcd(STEPS_PER_BATCH, self.steps),  # a depth has new prompts
            **GROWN[mask],
            **(TILTED if self.tilted and not mask else {}),
        }
        asked, first = self.settings(law, mask, self.steps), TOGETHER if self.grown else NEVER
        found = self._trained(runner, "giannou/lsa", asked, self.layers, first, own)
        return {f"{law.name}_{masked(mask)}_L{layers}": stack for layers, stack in found.items()}

    def layernorm(
        self, runner: Runner, law: PromptLaw, depths: Sequence[int], steps: int, grown: bool = False
    ) -> dict[str, Stack]:
        """Return stacks by name, trained with LayerNorm, over tokens, without a mask."""
        asked, first = self._of_tokens(law, steps), 1 if grown else NEVER
        found = self._trained(runner, "giannou/lsa_ln", asked, depths, first, {})
        return {f"{law.name}_layernorm_L{layers}": stack for layers, stack in found.items()}

    def _trained(
        self,
        runner: Runner,
        experiment: str,
        asked: Mapping[str, Any],
        depths: Sequence[int],
        first: int,
        own: Mapping[str, Any],
    ) -> dict[int, Stack]:
        """Train those of fewer than `first` layers by themselves, and the others in one run that grows."""
        steps, found = asked["train.steps"], {}
        for layers in depths:
            if layers < first:
                every = max(1, steps // STAGES) if runner.scale == "paper" else None
                alone = {"model.layers": layers, "callbacks.curriculum.every": every}
                found[layers] = Stack(runner.train(experiment, {**asked, **alone}))
        if max(depths) >= first:
            total = (max(depths) - first + 1) * steps
            growing = {
                "seeds": [seed + OTHER_START * start for seed in self.seeds for start in range(self.starts)],
                "model.layers": max(depths),
                "train.steps": total,
                "train.log_every": max(1, total // 20),
                "optimizer.schedule.every": steps,
                "callbacks.growth.every": steps,
                "callbacks.growth.first": first,
                "callbacks.growth.starts": self.starts,
            }
            run = runner.train(experiment, {**asked, **growing, **own})
            found |= {layers: Stack(run, layers, self.starts) for layers in depths if layers >= first}
        return found

    def settings(self, law: PromptLaw, mask: bool, steps: int) -> dict[str, Any]:
        """Return overrides of experiment=giannou/lsa."""
        return self._of_tokens(law, steps) | {
            "task.constant": True,
            "model.mask": mask,
            "model.read_in": float(np.mean(law.largest)) ** -0.5,
            "train.estimator": "expected" if mask else "sampled",
        }

    def _of_tokens(self, law: PromptLaw, steps: int) -> dict[str, Any]:
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


@dataclass(eq=False, kw_only=True)
class Losses(Regression):
    """Figures 2, 8 and 9: losses by layers beside Newton's by steps, means over `prompts` prompts."""

    prompts: int

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(f"{KEY}.prompts", self.prompts, 100, 10**6)

    def law(self, law: PromptLaw, R: int = 1, constant: bool = False) -> ConditionedRegressionLaw:
        return ConditionedRegression(self.dim, self.context, **law.settings, constant=constant).law([0] * R)

    def baselines(self, runner: Runner, law: PromptLaw, masks: Sequence[bool]) -> RunRecord:
        """Return Newton's losses, and the best points of the family with and without a mask."""
        science = {
            "seeds": [EVALUATED],
            "law": law.settings,
            "size": [self.dim, self.context, self.prompts],
            "depths": list(self.layers),
            "masks": list(masks),
            "fitted": FITTED,
        }

        def compute() -> dict[str, np.ndarray]:
            task_law = self.law(law)
            by_start, exact = newton_losses(task_law, EVALUATED, self.prompts, max(self.layers))
            found = {"least_squares": np.array(exact)}
            for name, loss_TB in by_start.items():
                found |= mean_and_error(f"newton_{name}", loss_TB)
            for mask in masks:
                best = family_best(task_law, mask, self.layers, EVALUATED, self.prompts, FITTED)
                found |= {f"family_{masked(mask)}_{key}": value for key, value in best.items()}
            return found

        return runner.store("giannou/baselines", science, threads(1)(compute))

    def losses(self, runner: Runner, law: PromptLaw, stacks: Stacks, prompts: int | None = None) -> RunRecord:
        """Return losses of stacks by name, on the same prompts: `NAME_mean` and `NAME_error` (R,), and the
        share of the mean that the hundred largest terms carry, `NAME_tail`."""
        count = prompts or self.prompts
        science = {"of": identities(stacks), "law": law.settings, "prompts": count, "seeds": [EVALUATED]}

        def compute() -> dict[str, np.ndarray]:
            found: dict[str, np.ndarray] = {}
            for name, stack in stacks.items():
                loss_RB = self.prompt_losses(stack.transformer, stack.seeds, law, count)
                found |= mean_and_error(name, loss_RB)
                found[f"{name}_tail"] = np.array([tail_share(loss_B) for loss_B in loss_RB])
            return found

        return runner.store("giannou/losses", science, threads(1)(compute))

    def prompt_losses(self, model: Any, R: int, law: PromptLaw, prompts: int) -> np.ndarray:
        """Squared errors over d, (R, B), on prompts that are the same for every seed and every model."""
        task_law = self.law(law, R, getattr(model.parametrization, "reads_constant", False))
        draw = task_law.gram_prompts if model.path == "gram" else task_law.token_prompts
        rngs, found = [generator(EVALUATED, "eval") for _ in range(R)], []
        with torch.no_grad():
            for start in range(0, prompts, CHUNK):
                prompt = draw(rngs, min(CHUNK, prompts - start))
                found.append((model.predict(prompt) - prompt.target_RB).square() / self.dim)
        return torch.cat(found, 1).numpy()

    def family(self, known: Arrays, mask: str, depth: int) -> Value:
        at = self.layers.index(depth)
        return Value(float(known[f"family_{mask}_risk_L"][at]), float(known[f"family_{mask}_error_L"][at]))


def mean_and_error(name: str, loss_XB: np.ndarray) -> dict[str, np.ndarray]:
    error_X = loss_XB.std(-1, ddof=1) / loss_XB.shape[-1] ** 0.5
    return {f"{name}_mean": loss_XB.mean(-1), f"{name}_error": error_X}


@dataclass(eq=False, kw_only=True)
class LossesByLaw(Losses):
    """Figures 8 and 9: without a mask, a panel for each condition number and each variance of the noise.
    Records: the runs of every law, `losses_LAW` and `baselines_LAW`."""

    conditions: Sequence[float]
    noises: Sequence[float]
    kind: ClassVar[str]  # of the stacks, in their names
    sentence: ClassVar[str]  # of the paper, in numbers
    least: ClassVar[int] = 1  # layers that it speaks of
    remarks: ClassVar[Sequence[str]]
    masks: ClassVar[Sequence[bool]] = ()  # of the families drawn beside them

    def __post_init__(self) -> None:
        super().__post_init__()
        conditions = reals(f"{KEY}.conditions", self.conditions, None, 1)
        self.laws = [  # N(0, I) where kappa = 1, as the published code draws, else lambda_max as in the text
            PromptLaw(kappa, PUBLISHED_LARGEST if kappa == 1 else TEXT_LARGEST, noise)
            for noise in reals(f"{KEY}.noises", self.noises, None, 0)
            for kappa in conditions
        ]

    @abstractmethod
    def trained(self, runner: Runner, law: PromptLaw) -> dict[str, Stack]:
        """Return the stacks of a law by name."""

    def runs(self, runner: Runner) -> Records:
        found: dict[str, RunRecord] = {}
        for law in self.laws:
            stacks = self.trained(runner, law)
            found |= runs_of(stacks)
            found[f"losses_{law.name}"] = self.losses(runner, law, stacks)
            found[f"baselines_{law.name}"] = self.baselines(runner, law, self.masks)
        return found

    def layout_of(self, records: Records) -> Layout:
        names = [law.name for law in self.laws]
        return Layout(names, (2.5, 2.1), columns=2 if len(names) == 4 else min(3, len(names)))

    def draw(self, panels: Panels, records: Records) -> None:
        for law in self.laws:
            axes, known = panels[law.name], records[f"baselines_{law.name}"].weights
            newton_lines(axes, known, max(self.layers))
            losses = records[f"losses_{law.name}"].weights
            training_curve(axes, self.layers, losses, f"{law.name}_{self.kind}")
            for mask in map(masked, self.masks):
                family_line(axes, self.layers, known, mask)
            if float(known["least_squares"]) > 0:
                exact_line(axes, float(known["least_squares"]), "least squares", linestyle=":")
            label_losses(axes, law.title.replace("kappa", r"$\kappa$"), self.layers, law)
        shared_legend(panels.values())

    def claims(self, records: Records) -> list[Claim]:
        """Claim the paper's sentence in numbers. A loss that is below stays there; one that is above may fall
        with longer training."""
        measured, every = {}, []
        for law in self.laws:
            known = records[f"baselines_{law.name}"].weights
            losses = records[f"losses_{law.name}"].weights
            for depth in [depth for depth in self.layers if depth >= self.least]:
                values = of_seeds(losses, f"{law.name}_{self.kind}_L{depth}")
                below = [value.below(newton(known, "transpose", 2, depth)) for value in values]
                where = place(values, known, "transpose", depth)
                measured[f"{law.title}, L = {depth}"] = f"{sum(below)} of {len(below)} seeds, {where}"
                every += below
        return [
            Claim(
                f"{self.sentence} (authors' start), for every kappa and noise",
                measured,
                f"every seed, {LEVEL:.1%} intervals over prompts; all seeds beside orders 2 and 3",
                "holds" if all(every) else "fails" if self.decisive else "undecided",
                remarks=self.remarks,
                kind="sampled",
            )
        ]


@dataclass(frozen=True)
class Value:
    """A mean over prompts and its standard error."""

    mean: float
    error: float

    def below(self, other: Value) -> bool:
        return self.mean + HALF * np.hypot(self.error, other.error) < other.mean


def newton(known: Arrays, start: str, order: int, step: int) -> Value:
    name = f"newton_{start}_{order}"
    return Value(float(known[f"{name}_mean"][step]), float(known[f"{name}_error"][step]))


def of_seeds(arrays: Arrays, name: str) -> list[Value]:
    """Losses of a stack by seed; where a few prompts carry the mean its error is not known."""
    rows = zip(arrays[f"{name}_mean"], arrays[f"{name}_error"], arrays[f"{name}_tail"], strict=True)
    return [Value(float(m), float(e) if tail < HEAVY and np.isfinite(m) else np.inf) for m, e, tail in rows]


def place(values: Sequence[Value], known: Arrays, start: str, step: int) -> str:
    """Say where all of these lie among as many steps of orders 2 and 3."""
    return place_between(values, *(newton(known, start, order, step) for order in ORDERS))


def place_between(values: Sequence[Value], second: Value, third: Value) -> str:
    if all(value.below(third) for value in values):
        return "below order 3"
    if all(second.below(value) for value in values):
        return "above order 2"
    if all(third.below(value) and value.below(second) for value in values):
        return "between"
    return "not told apart"


def newton_lines(axes: Axes, known: Arrays, most: int, start: str = "transpose") -> None:
    steps_T, of_authors = np.arange(1, most + 1), start == "transpose"
    for order, color in ORDERS.items():
        label = f"Newton, order {order}" + ("" if of_authors else ", $X_0 = 2I/(s_1+s_d)$")
        y_T = known[f"newton_{start}_{order}_mean"][1 : most + 1]
        axes.plot(steps_T, y_T, color=color, linestyle="-" if of_authors else ":", label=label)


def family_line(axes: Axes, depths: Sequence[int], known: Arrays, mask: str) -> None:
    exact_curve(axes, depths, known[f"family_{mask}_risk_L"], "scalar family, best found")


def training_curve(axes: Axes, depths: Sequence[int], losses: Arrays, name: str) -> None:
    """Draw the losses of the stacks NAME_L1 and so on, of these depths."""
    y_RL = np.stack([losses[f"{name}_L{layers}_mean"] for layers in depths], 1)
    if name.endswith("layernorm"):
        band(axes, depths, y_RL, RED, "LSA + LayerNorm, trained", marker="^")
    else:
        band(axes, depths, y_RL, BLUE, "LSA, trained", marker="o")


def label_losses(axes: Axes, title: str, depths: Sequence[int], law: PromptLaw) -> None:
    axes.axhline(law.loss_of_zero, label="output 0", color=GREY, zorder=1)
    axes.set(title=title, xlabel="layers, steps", ylabel="loss / $d$", xticks=list(depths))
    log_axis(axes)
