"""Beside the figures of lds: test risk by window, of the trained layer and of what it is compared with.

On the same drawn sequences for every window: the trained layers, the best head, one gradient step on L_AR(s)
of the best size, two steps of preconditioned conjugate gradients (Section 5's reading, from the best head of
(13)), least squares AR(s) fitted in context, and the Kalman filter of the true system, which no predictor is
better than. R seeds, B sequences, W windows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from icl.algorithms import ConjugateGradient, GradientDescent, KalmanFilter, LeastSquares
from icl.errors import InputError, one_of, whole
from icl.experiments.lds.protocol import KEY, ProtocolSize
from icl.experiments.lds.weights import of_window, store
from icl.experiments.runner import Runner
from icl.random import generator
from icl.runs.record import RunRecord
from icl.tasks.dynamical_system import SETTINGS, gram_prompts
from icl.tasks.prompts import GramPrompt


class Extra:
    """records, by setting: `a_ARs`, `a_ARs_exact`, `a_ARs_optimum` for every window and `a_test`."""

    def __init__(
        self,
        settings: Sequence[str],
        windows: Sequence[int],
        dim: int,
        length: int,
        seeds: Sequence[int],
        steps: int,
        systems: int,
        sequences: int,
        fresh: bool = False,
        lr: float | None = None,
    ) -> None:
        if not isinstance(settings, list | tuple):
            raise InputError(f"{KEY}.settings={settings}: must be a list of settings")
        named = [one_of(f"{KEY}.settings", setting, SETTINGS) for setting in settings]
        self.sizes = [
            ProtocolSize(setting, dim, length, seeds, steps, systems, fresh, lr) for setting in named
        ]
        allowed = [size.windows(windows) for size in self.sizes]  # by the tables of every setting
        if not allowed or len(windows) < 2:
            raise InputError(
                f"{KEY}.settings={list(settings)}, windows={list(windows)}: must be a setting and two windows"
            )
        self.windows = allowed[0]
        for size in self.sizes:
            size.law(self.windows[-1])  # refuses what no task can be
        self.sequences = whole(f"{KEY}.sequences", sequences, 2)

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        found: dict[str, RunRecord] = {}
        for size in self.sizes:
            parts = [of_window(runner, size, window) for window in self.windows]
            test = self._test(runner, size, parts)
            for part in parts:
                found |= {f"{size.setting}_{name}": record for name, record in part.items()}
            found[f"{size.setting}_test"] = test
        return found

    def _test(
        self, runner: Runner, size: ProtocolSize, parts: Sequence[Mapping[str, RunRecord]]
    ) -> RunRecord:
        science = {
            "of": [part[name].mark for part in parts for name in sorted(part)],
            "judged": size.science,
            "windows": self.windows,
            "sequences": self.sequences,
            "seeds": list(size.seeds),
        }
        return store(runner, "lds/extra", science, lambda: self._compare(size, parts))

    def _compare(self, size: ProtocolSize, parts: Sequence[Mapping[str, RunRecord]]) -> dict[str, np.ndarray]:
        law, streams = size.law(1), [generator(0, "eval")]
        systems = law.systems(streams, self.sequences)
        y_RBT = law.observations(systems, streams)
        noises = law.observation_noise, law.initial_variance
        kalman = KalmanFilter(systems.A_RBDD, systems.c_RBD, law.Sigma_w_RDD, *noises)
        best_B = _half_squares(kalman.predict_last(y_RBT)[0], y_RBT)
        losses_W: dict[str, list[Tensor]] = {}
        for window, part in zip(self.windows, parts, strict=True):
            prompt, context = gram_prompts(y_RBT, window), size.length - window - 1
            for name, prediction in _predictions(window, part, prompt, context).items():
                losses_W.setdefault(name, []).append(_half_squares(prediction, y_RBT))
        found: dict[str, np.ndarray] = {
            "windows_W": np.array(self.windows),
            "step_exact_W": np.array(
                [
                    part[f"AR{s}_optimum"].weights["step_value"]
                    for s, part in zip(self.windows, parts, strict=True)
                ]
            ),
        }
        for name, losses in {**losses_W, "kalman": [best_B]}.items():
            stacked = torch.stack(losses)
            found[f"{name}_W"], found[f"{name}_stderr_W"] = _mean(stacked)
            found[f"{name}_above_W"], found[f"{name}_above_stderr_W"] = _mean(stacked - best_B)
        return found


def _predictions(
    window: int, part: Mapping[str, RunRecord], prompt: GramPrompt, context: int
) -> dict[str, Tensor]:
    """(B,), and (R, B) of the trained layers."""
    exact, optimum = part[f"AR{window}_exact"].weights, part[f"AR{window}_optimum"].weights
    gram_BPP, x_BK = prompt.gram_RBPP[0], prompt.query_RBP[0, :, :window]
    found = {
        "trained": torch.stack(
            [head(b_P, a_KP, gram_BPP, x_BK) for b_P, a_KP in zip(exact["b_RP"], exact["a_RKP"], strict=True)]
        ),
        "optimum": head(optimum["b_P"], optimum["a_KP"], gram_BPP, x_BK),
        "step": GradientDescent(float(optimum["step"]), 1).predict(prompt)[0],
        "least_squares": LeastSquares(context).predict(prompt)[0],
    }
    q_K, P_KK = (torch.from_numpy(optimum[name]) for name in ("pattern_b_P", "pattern_a_KP"))
    two = ConjugateGradient(2, P_KK[:, :window], q_K[:window]) if window > 1 else ConjugateGradient(2)
    return found | {"pcg": two.predict(prompt)[0]}


def head(b_P: np.ndarray, a_KP: np.ndarray, gram_BPP: Tensor, x_BK: Tensor) -> Tensor:
    """sum_k q_k b^T G a_k, (B,)."""
    b, a = torch.from_numpy(np.asarray(b_P)).double(), torch.from_numpy(np.asarray(a_KP)).double()
    return torch.einsum("p,bpr,kr,bk->b", b, gram_BPP, a, x_BK)


def _half_squares(prediction_XB: Tensor, y_RBT: Tensor) -> Tensor:
    return (prediction_XB - y_RBT[0, :, -1]).square() / 2


def _mean(values_XB: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Over sequences, with its standard error."""
    return values_XB.mean(-1).numpy(), (values_XB.std(-1) / values_XB.shape[-1] ** 0.5).numpy()
