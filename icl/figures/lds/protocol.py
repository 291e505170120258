"""The paper's training protocol, Tables 1 and 2; the runs that figures ask for, and what is computed of them.

s `window`, T `length`, D `dim` states. R seeds, S stored steps, K = s query entries, P = s + 1 token width.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch

from icl.errors import InputError, one_of, whole
from icl.figures.lds.gauge import canonical, jaccard, masks, outside, supports
from icl.figures.lds.local_minimum import descend
from icl.figures.lds.value_search import search_values
from icl.figures.runner import Runner
from icl.figures.training import KEY, TrainingSettings, different
from icl.random import generator
from icl.runs.record import RunRecord
from icl.tasks import DynamicalSystem, DynamicalSystemLaw
from icl.tasks.dynamical_system import MAX_SYSTEMS, SETTINGS
from icl.tasks.quadratic import QuadraticRisk
from icl.training.threads import threads

WARMUP = 0.1  # of the steps: 800 of 8001; nine times as many for the cosine
RESTARTS = 4  # of each search for the best head


@dataclass(frozen=True)
class WindowSettings:
    """Settings that the tables give for one window."""

    betas: tuple[float, float]
    weight_decay: float
    lr: float
    batch: int
    min_lr: float


TABLE_1 = {
    1: WindowSettings((0.98, 0.99), 1e-2, 2e-2, 3000, 1e-4),
    2: WindowSettings((0.92, 0.96), 5e-3, 3e-2, 4000, 1e-4),
    3: WindowSettings((0.10, 0.55), 1e-2, 9e-2, 8000, 1e-4),
    4: WindowSettings((0.76, 0.88), 5e-3, 9e-2, 16_000, 1e-4),
}
TABLE_2 = {
    1: WindowSettings((0.98, 0.99), 1e-2, 3e-3, 3000, 1e-5),
    2: WindowSettings((0.92, 0.96), 5e-3, 5e-3, 4000, 1e-5),
    3: WindowSettings((0.92, 0.96), 1e-2, 7e-3, 8000, 1e-5),
}


@dataclass(kw_only=True, eq=False)
class Sizes:
    """The size of systems, and how long is trained.

    `fresh`: new systems at every step, as the paper trained; else on the population risk, exact in settings
    (a) and (b), of `systems` drawn once in (c) and (d), which is also what weights are judged by there.
    `lr`: null for the tables'.
    """

    dim: int
    length: int
    seeds: Sequence[int]
    steps: int
    systems: int
    fresh: bool = False
    lr: float | None = None

    def __post_init__(self) -> None:
        whole(f"{KEY}.steps", self.steps, 10)
        whole(f"{KEY}.systems", self.systems, 1, MAX_SYSTEMS)
        TrainingSettings(seeds=self.seeds, lr=self.lr)
        if not isinstance(self.fresh, bool):
            raise InputError(f"{KEY}.fresh={self.fresh}: must be true or false")

    def protocol_of(self, setting: str) -> "Protocol":
        return Protocol(setting, **{field.name: getattr(self, field.name) for field in fields(Sizes)})


@dataclass(eq=False)
class Protocol(Sizes):
    """One setting. Runs with the same settings are shared by figures."""

    setting: str

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(f"{KEY}.setting", self.setting, SETTINGS)

    @property
    def table(self) -> dict[int, WindowSettings]:
        return TABLE_2 if self.setting == "c" else TABLE_1

    @property
    def drawn_once(self) -> int | None:
        return self.systems if self.setting in ("c", "d") else None

    @property
    def science(self) -> dict[str, Any]:
        """Settings that an exact risk depends on."""
        return {"setting": self.setting, "dim": self.dim, "length": self.length, "systems": self.drawn_once}

    def windows(self, windows: Sequence[int], least: int = 1) -> list[int]:
        """Windows of the tables, in ascending order."""
        found = sorted(different("windows", windows, 1, max(self.table), least=least))
        self.law(found[-1])  # refuses what no task can be
        return found

    def law(self, window: int) -> DynamicalSystemLaw:
        """Law by which weights are judged."""
        task = DynamicalSystem(
            self.dim, self.length, window, self.setting, systems=self.drawn_once, prefix=KEY
        )
        return task.law([0])

    def risk(self, window: int) -> QuadraticRisk:
        risk = self.law(window).quadratic_risk
        assert risk is not None, "exact in (a) and (b), and of systems drawn once"
        return risk

    def train(self, runner: Runner, window: int) -> RunRecord:
        tuned = self.table[window]
        warmup = max(1, int(WARMUP * self.steps))
        settings: dict[str, Any] = {
            "seeds": list(self.seeds),
            "callbacks.heatmaps.count": 0,  # a run asked for by itself has its pictures
            "task.setting": self.setting,
            "task.dim": self.dim,
            "task.length": self.length,
            "task.window": window,
            "task.systems": None if self.fresh else self.drawn_once,
            "model.init_std": 1e-5 / (window + 1) ** 0.5,  # Xavier normal, gain 1e-5
            "optimizer.lr": tuned.lr if self.lr is None else self.lr,
            "optimizer.betas": list(tuned.betas),
            "optimizer.weight_decay": tuned.weight_decay,
            "optimizer.schedule.warmup": warmup,
            "optimizer.schedule.decay": 9 * warmup,
            "optimizer.schedule.min_lr": tuned.min_lr,
            "train.steps": self.steps,
            "train.log_every": max(1, self.steps // 50),
            "train.estimator": "sampled" if self.fresh else "population",
            "train.batch": tuned.batch if self.fresh else None,
            "train.steps_per_batch": 1 if self.fresh else self.steps,
            "trainer.precision": "32-true" if self.fresh else "64-true",
        }
        return runner.train("lds/ar", settings)

    def runs(self, runner: Runner, window: int) -> dict[str, RunRecord]:
        """Return the run `ARs`, what is measured of its weights, `ARs_exact`, and `ARs_optimum`: of the same
        law the best head, the best one of (13), and the bound for any number of heads."""
        name, run = f"AR{window}", self.train(runner, window)
        science = {**self.science, "window": window, "restarts": RESTARTS}
        # on one thread: the matrices are tiny, and threads wait for one another
        optimum = runner.store(
            "lds/optimum", science, threads(1)(lambda: _optimum(self.risk(window), window))
        )
        science = {"run": run.content_id, "judged": self.science, "window": window, "seeds": list(self.seeds)}
        measure = threads(1)(lambda: measure_weights(run, self.risk(window), window))
        exact = runner.store("lds/weights", science, measure)
        return {name: run, f"{name}_exact": exact, f"{name}_optimum": optimum}


def measure_weights(run: RunRecord, risk: QuadraticRisk, window: int) -> dict[str, np.ndarray]:
    """Return the exact risk and the supports' distances to (13) at every stored step; the final weights."""
    P_RSLPP, Q_RSLPP = run.weights["P_history"], run.weights["Q_history"]
    layers = (torch.from_numpy(np.asarray(M, dtype=np.float64)) for M in (P_RSLPP, Q_RSLPP))
    risk_RS = risk.value_of_layer(*layers).numpy()
    W_V_RSPP, W_QK_RSPP = P_RSLPP[:, :, 0].swapaxes(-1, -2), Q_RSLPP[:, :, 0].swapaxes(-1, -2)
    b_RSP, a_RSKP = canonical(W_V_RSPP[..., -1], W_QK_RSPP[..., :window, :])
    mask_P, mask_KP = masks(window)
    mask_V_PP, mask_QK_PP = (np.zeros((window + 1, window + 1), dtype=bool) for _ in "VQ")
    mask_V_PP[:, -1], mask_QK_PP[:window] = mask_P, mask_KP
    return {
        "steps_S": run.weights["history_steps"],
        "risk_RS": risk_RS,
        "b_RP": b_RSP[:, -1],
        "a_RKP": a_RSKP[:, -1],
        "weight_R": effective_weight(b_RSP[:, -1], a_RSKP[:, -1]) if window == 1 else np.zeros(0),
        # as the paper measures: the weights as they are, entries of .1 and more
        "raw_V_RS": jaccard(supports(W_V_RSPP, relative=False), mask_V_PP),
        "raw_QK_RS": jaccard(supports(W_QK_RSPP, relative=False), mask_QK_PP),
        "V_RS": jaccard(supports(b_RSP[..., None], relative=True), mask_P[:, None]),
        "QK_RS": jaccard(supports(a_RSKP, relative=True), mask_KP),
        **_minima(risk, W_V_RSPP[:, -1, :, -1], W_QK_RSPP[:, -1, :window]),
    }


def _minima(risk: QuadraticRisk, b_RP: np.ndarray, a_RKP: np.ndarray) -> dict[str, np.ndarray]:
    """Return where each seed's weights descend to: supports as they are; what is outside (13), there and
    where training ended, in one gauge and mirror."""
    ends = [descend(risk, b_P, a_KP) for b_P, a_KP in zip(b_RP, a_RKP, strict=True)]
    at_b_RP, at_a_RKP = np.stack([end.b_P for end in ends]), np.stack([end.a_KP for end in ends])
    mask_P, mask_KP = masks(a_RKP.shape[1])
    trained, at = canonical(b_RP, a_RKP), canonical(at_b_RP, at_a_RKP)
    return {
        "minimum_reached_R": np.array([end.reached for end in ends]),
        "minimum_V_R": jaccard(supports(at_b_RP[..., None], relative=False), mask_P[:, None]),
        "minimum_QK_R": jaccard(supports(at_a_RKP, relative=False), mask_KP),
        "minimum_outside_R": np.array([outside(*pair) for pair in zip(*at, strict=True)]),
        "outside_R": np.array([outside(*pair) for pair in zip(*trained, strict=True)]),
    }


def effective_weight(b_XP: np.ndarray, a_XKP: np.ndarray) -> np.ndarray:
    """s = 1: what multiplies y_(T-1) (1/N) sum y_t y_(t+1), the constant of (14)."""
    return b_XP[..., 1] * a_XKP[..., 0, 0] + b_XP[..., 0] * a_XKP[..., 0, 1]


def best_step(risk: QuadraticRisk, window: int) -> tuple[float, float]:
    """Return the step size of least risk for one gradient step on L_AR(s), and that risk: a parabola. At s
    = 1 it is the constant of (14)."""
    b_HP, a_HKP = torch.zeros(1, window + 1), torch.zeros(1, window + 1, window + 1)
    b_HP[0, -1], a_HKP[0, :window, :window] = 1, torch.eye(window)
    low, middle, high = (
        float(risk.value_of_heads(b_HP.double(), eta * a_HKP.double())) for eta in (-1, 0, 1)
    )
    bend, slope = (high + low) / 2 - middle, (high - low) / 2
    return -slope / (2 * bend), middle - slope**2 / (4 * bend)


def _optimum(risk: QuadraticRisk, window: int) -> dict[str, np.ndarray]:
    mask_P, _ = masks(window)
    free, pattern = (
        search_values(risk, generator(0, "search", window), RESTARTS, torch.from_numpy(free_P))
        for free_P in (np.ones_like(mask_P), mask_P)
    )
    best = min(pattern, free, key=lambda optimum: optimum.value)
    b_P, a_KP = canonical(best.b_HP[0].numpy(), best.a_HKP[0, :window].numpy())
    pattern_b_P, pattern_a_KP = canonical(pattern.b_HP[0].numpy(), pattern.a_HKP[0, :window].numpy())
    step, step_value = best_step(risk, window)
    return {
        "value": np.array(best.value),
        "any_heads": np.array(risk.convex_bound().value),
        "step": np.array(step),
        "step_value": np.array(step_value),
        "b_P": b_P,
        "a_KP": a_KP,
        "pattern_b_P": pattern_b_P,
        "pattern_a_KP": pattern_a_KP,
    }
