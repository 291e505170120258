"""Shared parts of xie's Figures 1 to 5: runs of H heads or of y_q-LSA at one size, their exact risks, claims.

Vectors point along (1, ..., 1): at Sigma = I and Sigma_w = I only their lengths and the angle between them
count, and settings give squared lengths, in which every effect is linear.
R seeds, S stored steps, X settings, H heads, D covariates, C `context` tokens.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import matplotlib
import numpy as np
import torch
from matplotlib.axes import Axes

from icl.errors import real, whole
from icl.figures.claims import Claim, ClaimNumbers, all_of, exact
from icl.figures.figure import Figure
from icl.figures.runner import Runner
from icl.figures.style import GREY, band, log_axis, step_axis
from icl.figures.training import KEY, TrainingSettings, different
from icl.random import generator
from icl.runs.record import RunRecord
from icl.tasks import LinearRegression
from icl.tasks.exact import EXACT_LAYER_DIM
from icl.tasks.quadratic import QuadraticRisk
from icl.theory.closed_forms import isotropic_risk
from icl.training.load import restored
from icl.training.threads import threads

MAX_HEADS = 64
RESTARTS = 2  # of alternating least squares, for each number of heads
NEAR = 0.01  # of the risk that training is to reach
SHORT = 0.05  # and for a few hundred steps on minibatches
SLOPE = 0.05  # of the stated slope
R_SQUARED = 0.99
MOST_RANGES = 6  # in one panel
DOTTED: dict[str, Any] = {"linestyle": ":"}  # minibatch runs

Arrays = Mapping[str, np.ndarray]


@dataclass(kw_only=True, eq=False)
class Sized(Figure):
    """d, C and the seeds of every run; steps and learning rate of the long ones, null for the experiment's.
    Runs with the same settings are shared by figures."""

    dim: int
    context: int
    seeds: Sequence[int]
    steps: int | None = None
    lr: float | None = None

    def __post_init__(self) -> None:
        whole(f"{KEY}.dim", self.dim, 1, EXACT_LAYER_DIM)
        whole(f"{KEY}.context", self.context, 1)
        self.training = TrainingSettings(seeds=self.seeds, steps=self.steps, lr=self.lr)

    def lsa(self, runner: Runner, heads: int, **settings: Any) -> RunRecord:
        """Train H heads; the settings are those of `_overrides`."""
        return runner.train("xie/heads", {"model.heads": heads} | self._overrides(**settings))

    def yq_lsa(self, runner: Runner, **settings: Any) -> RunRecord:
        """Train one head with its initial guess."""
        return runner.train("xie/yq_lsa", self._overrides(**settings))

    def _overrides(self, minibatch: dict[str, Any] | None = None, **squared: float) -> dict[str, Any]:
        """Return overrides of the experiment; `squared` are those of `_task`."""
        return {
            "seeds": list(self.seeds),
            "checks": [],
            "callbacks.heatmaps.count": 0,  # dozens of runs; a run asked for by itself has its pictures
            **{f"task.{name}": value for name, value in self._task(**squared).items()},
            **(self.training.overrides() if minibatch is None else minibatch),
        }

    def _task(self, prior: float = 0.0, guess: float = 0.0, bias: float = 0.0) -> dict[str, Any]:
        """Return the task's settings: `prior` = |w*|^2, `guess` = |v|^2 and `bias` = b^2 of a fixed guess."""
        norms = {"prior_mean_norm": prior**0.5, "guess_bias": bias**0.5}
        norms |= {"guess_vector_norm": guess**0.5} if guess else {}
        return {"dim": self.dim, "context": self.context, **norms}

    def risk(self, prior: float = 0.0, **squared: float) -> QuadraticRisk:
        """Return the exact risk in the same setting."""
        task = LinearRegression(**self._task(prior, **squared), covariance="identity", read_out=1)
        return QuadraticRisk.linear_regression(**task.law([0]).risk_arguments())

    @property
    def closed_forms(self) -> dict[str, float]:
        """The risk of one-step GD, and the slope of the least risk of any heads in |w* - v|^2 + b^2."""
        slope = 2 / (self.dim * self.context + 2)
        return {"gd": isotropic_risk(self.dim, self.context), "slope": slope}

    def store(
        self, runner: Runner, name: str, science: Mapping[str, Any], compute: Callable[[], Mapping[str, Any]]
    ) -> RunRecord:
        """Return arrays computed on one thread: least squares took 4 s so, and 84 s on two busy cores."""
        return runner.store(f"xie/{name}", {**science, "seeds": list(self.seeds)}, threads(1)(compute))


@dataclass(kw_only=True, eq=False)
class Swept(Sized):
    """A run for each value of a setting, and for some of them one on fresh tasks each step, as the paper
    trained, with fewer steps and a larger rate."""

    minibatch_steps: int
    minibatch_size: int
    id: ClassVar[str]
    run_name: ClassVar[str]  # before a value
    values: ClassVar[str]  # the setting
    array: ClassVar[str]  # of its values
    least: ClassVar[int] = 2  # of them

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in ((self.values, self.least), (f"minibatch_{self.values}", 0)):
            setattr(self, name, self.checked(name, getattr(self, name), least=least))
        whole(f"{KEY}.minibatch_steps", self.minibatch_steps, 1)
        whole(f"{KEY}.minibatch_size", self.minibatch_size, 1)

    def checked(self, name: str, values: Any, least: int) -> list[Any]:
        """Return values of the setting, squares unless a figure has others, in ascending order."""
        return squares(name, values, least=least)

    @abstractmethod
    def train(self, runner: Runner, value: Any, **how: Any) -> RunRecord:
        """Train at a value of the setting."""

    @abstractmethod
    def exact(self) -> Mapping[str, Any]:
        """Return the exact numbers that the trained ones are compared with."""

    def runs(self, runner: Runner) -> dict[str, RunRecord]:
        values, short_values = getattr(self, self.values), getattr(self, f"minibatch_{self.values}")
        short_runs = {
            "train.estimator": "sampled",
            "train.batch": self.minibatch_size,
            "train.steps": self.minibatch_steps,
            "train.steps_per_batch": 1,
            "optimizer.lr": 0.02,  # the paper's is for 5000 steps; halved twice on the way
            "optimizer.schedule.every": -(-self.minibatch_steps // 3),
            "trainer.precision": "32-true",
        }
        runs = {f"{self.run_name}{v:g}": self.train(runner, v) for v in values}
        short = {
            f"minibatch {self.run_name}{v:g}": self.train(runner, v, minibatch=short_runs)
            for v in short_values
        }
        science = {"of": identity(runs.values()), "minibatch": identity(short.values())}

        def compute() -> Mapping[str, Any]:
            found = {self.array: values, f"minibatch_{self.array}": short_values, "dim": self.dim}
            found |= {**self.exact(), **curves(list(runs.values()))}
            return found | {f"minibatch_{k}": v for k, v in curves(list(short.values())).items()}

        return runs | short | {"exact": self.store(runner, f"{self.id}_exact", science, compute)}

    def draw_losses(self, axes: Axes, letter: str, arrays: Arrays) -> None:
        """Draw the exact risk during training at every value, dotted that of the minibatch runs; of many
        values without the seeds' ranges, which would cover one another."""
        values = arrays[self.array].tolist()
        tones = np.linspace(0.88, 0, len(values))  # light to dark, which differ in grey, too
        colors = dict(zip(values, matplotlib.colormaps["viridis"](tones).tolist(), strict=True))
        for value, risk_RS in zip(values, arrays["risk_XRS"], strict=True):
            shown_RS = risk_RS if len(values) <= MOST_RANGES else risk_RS.mean(0, keepdims=True)
            band(axes, arrays["steps_S"], shown_RS, colors[value], f"{letter} = {value:g}")
        short = arrays[f"minibatch_{self.array}"].tolist()
        for value, risk_RS in zip(short, arrays.get("minibatch_risk_XRS", ()), strict=True):
            band(axes, arrays["minibatch_steps_S"], risk_RS, colors.get(value, GREY), "", **DOTTED)
        if short:
            axes.plot([], [], color=GREY, label="minibatch", **DOTTED)
        axes.set(title="(a) training", ylabel="risk")
        step_axis(axes, arrays["steps_S"][-1])
        log_axis(axes)

    def minibatches(
        self, arrays: Arrays, letter: str, least_X: np.ndarray, number: Callable[[Any], ClaimNumbers]
    ) -> list[Claim]:
        """Compare the ends of short minibatch runs with the least risk of their setting, if there are any."""
        least = dict(zip(arrays[self.array].tolist(), least_X.tolist(), strict=True))
        short = zip(
            arrays[f"minibatch_{self.array}"].tolist(), arrays.get("minibatch_risk_XRS", ()), strict=True
        )
        excess = {f"{letter} = {v:g}": risk_RS[:, -1] / least[v] - 1 for v, risk_RS in short if v in least}
        claim = "a few hundred steps on minibatches, as in the paper, approach the same risks"
        return [ends_at(claim, excess, number, SHORT)] if excess else []


def squares(name: str, values: Any, *, least: int = 1) -> list[float]:
    """Return different numbers, none negative, in ascending order."""
    return sorted(different(name, values, 0, least=least, check=real))


def identity(runs: Iterable[RunRecord]) -> list[list[Any]]:
    """Return the settings that determine arrays computed from these runs."""
    return [run.content_id for run in runs]


def risks(run: RunRecord) -> np.ndarray:
    """Return the exact risk of every seed at the stored steps, (R, S), however the run was trained."""
    trained = restored(run)
    risk = trained.law.exact_risk(trained.transformer)
    assert risk is not None, "one layer is exact"
    return torch.stack([risk(model) for _, model in trained.stored_models()], dim=1).numpy()


def final_risks(runs: Iterable[RunRecord]) -> np.ndarray:
    """Return the exact risks at the end of runs, (X, R)."""
    return np.stack([risks(run)[:, -1] for run in runs])


def curves(runs: Sequence[RunRecord]) -> dict[str, np.ndarray]:
    """`steps_S` and `risk_XRS` of runs of one length; nothing of no runs."""
    if not runs:
        return {}
    return {"steps_S": runs[0].weights["history_steps"], "risk_XRS": np.stack([risks(run) for run in runs])}


def best_risk(risk: QuadraticRisk, heads: int) -> float:
    """Return the least risk found with this number of heads."""
    return risk.best_with_heads(heads, generator(0, "search", heads), RESTARTS).value


def ends_at(
    claim: str,
    excess: Mapping[str, np.ndarray],
    number: Callable[[Any], ClaimNumbers],
    near: float = NEAR,
) -> Claim:
    """Claim that training ends at the risks stated, by their relative excess in every seed."""
    return Claim.of(
        claim,
        {name: float(excess_R.max()) for name, excess_R in excess.items()},
        number([excess_R.max() for excess_R in excess.values()]).below(
            near, f"excess below {near:.0%} in every seed (largest shown)"
        ),
    )


def excess_by(
    letter: str, squared_X: np.ndarray, risk_XR: np.ndarray, least_X: np.ndarray | float
) -> dict[str, np.ndarray]:
    """Return the relative excess over the least risks, by setting."""
    excess_XR = risk_XR / np.reshape(least_X, (-1, 1)) - 1
    return {f"{letter} = {s:g}": excess_R for s, excess_R in zip(squared_X, excess_XR, strict=True)}


def linear(what: str, squared_X: np.ndarray, gap_XR: np.ndarray, slope: float) -> Claim:
    """Claim that the trained gaps of all seeds lie on a line of the stated slope."""
    x_N, y_N = np.repeat(squared_X, gap_XR.shape[1]), gap_XR.ravel()
    fitted, intercept = np.polyfit(x_N, y_N, 1)
    left = float(np.square(y_N - fitted * x_N - intercept).sum() / np.square(y_N - y_N.mean()).sum())
    error = abs(float(fitted) / slope - 1)
    return Claim.of(
        f"the final gap to one-step GD is linear in {what}, of slope 2/(dC + 2)",
        {"fitted slope": float(fitted), "2/(dC + 2)": slope, "intercept": float(intercept), "R^2": 1 - left},
        all_of(
            f"slope within {SLOPE:.0%} of 2/(dC + 2), R^2 above {R_SQUARED}",
            exact(error).below(SLOPE),
            exact(1 - left).above(R_SQUARED),
        ),
    )
