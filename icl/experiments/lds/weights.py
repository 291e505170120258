"""Figures 1 to 6 of lds: training of one layer on AR(s) tokens in one setting, and the exact optimum.

R seeds, S stored steps, K = s query entries, P = s + 1 token width.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from icl.experiments.lds.gauge import canonical, jaccard, masks, matching_scales, outside, supports
from icl.experiments.lds.protocol import ProtocolSize
from icl.experiments.runner import Runner
from icl.random import generator
from icl.runs.record import RunRecord
from icl.theory.lds.local_minimum import descend
from icl.theory.lds.value_search import search_values
from icl.theory.quadratic import QuadraticRisk
from icl.training.threads import threads

RESTARTS = 4  # of each search for the best head


class Weights:
    """records, for every window s: the run `ARs`, `ARs_exact` and `ARs_optimum`."""

    def __init__(
        self,
        setting: str,
        windows: Sequence[int],
        dim: int,
        length: int,
        seeds: Sequence[int],
        steps: int,
        systems: int,
        fresh: bool = False,
        lr: float | None = None,
    ) -> None:
        self.size = ProtocolSize(setting, dim, length, seeds, steps, systems, fresh, lr)
        self.windows = self.size.windows(windows)
        for window in self.windows:
            self.size.law(window)  # refuses what no task can be

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        found: dict[str, RunRecord] = {}
        for window in self.windows:
            found |= of_window(runner, self.size, window)
        return found


def of_window(runner: Runner, size: ProtocolSize, window: int) -> dict[str, RunRecord]:
    name, run, optimum = f"AR{window}", size.train(runner, window), best_heads(runner, size, window)
    science = {"run": run.mark, "judged": size.science, "window": window, "seeds": list(size.seeds)}
    exact = store(runner, "lds/weights", science, lambda: measure_weights(run, size, window))
    return {name: run, f"{name}_exact": exact, f"{name}_optimum": optimum}


def best_heads(runner: Runner, size: ProtocolSize, window: int) -> RunRecord:
    """Return the optimum of the same law: of one head, of one head of (13), and the bound for any number."""
    science = {**size.science, "window": window, "restarts": RESTARTS}
    return store(runner, "lds/optimum", science, lambda: _optimum(exact_risk(size, window), window))


def store(
    runner: Runner, name: str, science: Mapping[str, Any], compute: Callable[[], Mapping[str, np.ndarray]]
) -> RunRecord:
    """`runner.store` on one thread: the matrices are tiny, and threads wait for one another."""

    @functools.wraps(compute)
    def alone() -> Mapping[str, np.ndarray]:
        with threads(1):
            return compute()

    return runner.store(name, science, alone)


def exact_risk(size: ProtocolSize, window: int) -> QuadraticRisk:
    risk = size.law(window).quadratic_risk
    assert risk is not None, "exact in (a) and (b), and of systems drawn once"
    return risk


def measure_weights(run: RunRecord, size: ProtocolSize, window: int) -> dict[str, np.ndarray]:
    """Return the exact risk and the supports' distances to (13) at every stored step; the final weights."""
    P_RSLPP, Q_RSLPP = run.weights["P_history"], run.weights["Q_history"]
    layers = (torch.from_numpy(np.asarray(M, dtype=np.float64)) for M in (P_RSLPP, Q_RSLPP))
    risk = exact_risk(size, window)
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
    """Return where each seed's weights descend to: supports as they are and the scales that would make them
    the masks; what is outside (13), there and where training ended, in one gauge and mirror."""
    ends = [descend(risk, b_P, a_KP) for b_P, a_KP in zip(b_RP, a_RKP, strict=True)]
    at_b_RP, at_a_RKP = np.stack([end.b_P for end in ends]), np.stack([end.a_KP for end in ends])
    mask_P, mask_KP = masks(a_RKP.shape[1])
    pairs = list(zip(at_b_RP, at_a_RKP, strict=True))
    trained, at = canonical(b_RP, a_RKP), canonical(at_b_RP, at_a_RKP)
    return {
        "minimum_reached_R": np.array([end.reached for end in ends]),
        "minimum_risk_R": np.array([end.value for end in ends]),
        "minimum_curvature_R": np.array([end.curvature for end in ends]),
        "minimum_V_R": jaccard(supports(at_b_RP[..., None], relative=False), mask_P[:, None]),
        "minimum_QK_R": jaccard(supports(at_a_RKP, relative=False), mask_KP),
        "minimum_scales_R2": np.array([matching_scales(*pair) for pair in pairs]),
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
    mask_P, mask_KP = masks(window)
    free, pattern = (
        search_values(risk, 1, generator(0, "search", window), RESTARTS, free)
        for free in (None, torch.from_numpy(mask_P))
    )
    best = min(pattern, free, key=lambda optimum: optimum.value)
    b_P, a_KP = canonical(best.b_HP[0].numpy(), best.a_HKP[0, :window].numpy())
    pattern_b_P, pattern_a_KP = canonical(pattern.b_HP[0].numpy(), pattern.a_HKP[0, :window].numpy())
    bound, (step, step_value) = risk.convex_bound(), best_step(risk, window)
    return {
        "value": np.array(best.value),
        "pattern_value": np.array(pattern.value),
        "any_heads": np.array(bound.value),
        "rounding": np.array(bound.rounding),
        "zero": np.array(risk.constant),
        "step": np.array(step),
        "step_value": np.array(step_value),
        "b_P": b_P,
        "a_KP": a_KP,
        "pattern_b_P": pattern_b_P,
        "pattern_a_KP": pattern_a_KP,
        "mask_P": mask_P,
        "mask_KP": mask_KP,
        "V": jaccard(supports(b_P[:, None], relative=True), mask_P[:, None]),
        "QK": jaccard(supports(a_KP, relative=True), mask_KP),
    }
