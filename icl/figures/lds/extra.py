"""Beside the figures of lds: test risk by window, of the trained layer and of what it is compared with.

On the same drawn sequences for every window: the trained layers, the best head, one gradient step on L_AR(s)
of the best size, two steps of preconditioned conjugate gradients (Section 5's reading, from the best head of
(13)), least squares AR(s) fitted in context, and the Kalman filter of the true system, which no predictor is
better than. R seeds, B sequences, W windows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from icl.algorithms import ConjugateGradient, GradientDescent, KalmanFilter, LeastSquares
from icl.errors import one_of, whole
from icl.figures import style
from icl.figures.claims import Claim, exact, sampled
from icl.figures.figure import Figure, Layout, Panels, Records
from icl.figures.lds.protocol import Protocol, Sizes
from icl.figures.runner import Runner
from icl.figures.training import KEY, different
from icl.random import generator
from icl.runs.record import RunRecord
from icl.tasks.dynamical_system import SETTINGS, gram_prompts
from icl.tasks.prompts import GramPrompt
from icl.training.threads import threads

Z = 3.2905  # of a two-sided 99.9 % interval
ROUNDING = 1e-9  # of a risk
NEAR = 0.02
METHODS = {
    "step": ("one gradient step", style.GREEN, "^"),
    "pcg": ("two PCG steps", style.PURPLE, "v"),
    "least_squares": ("least squares AR(s)", style.ORANGE, "s"),
    "trained": ("trained layer", style.BLUE, "o"),
}


@dataclass(eq=False)
class Extra(Sizes, Figure):
    """Records, by setting: `a_ARs`, `a_ARs_exact`, `a_ARs_optimum` for every window and `a_test`."""

    settings: Sequence[str]
    windows: Sequence[int]
    sequences: int

    def __post_init__(self) -> None:
        super().__post_init__()
        settings = different("settings", self.settings, SETTINGS, check=one_of)
        self.protocols = [self.protocol_of(setting) for setting in settings]
        for protocol in self.protocols:  # each has a table of its own
            self.windows = protocol.windows(self.windows, least=2)
        self.sequences = whole(f"{KEY}.sequences", self.sequences, 2)

    def runs(self, runner: Runner) -> Records:
        found: dict[str, RunRecord] = {}
        for protocol in self.protocols:
            parts = [protocol.runs(runner, window) for window in self.windows]
            for part in parts:
                found |= {f"{protocol.setting}_{name}": record for name, record in part.items()}
            found[f"{protocol.setting}_test"] = self._test(runner, protocol, parts)
        return found

    def _test(
        self, runner: Runner, protocol: Protocol, parts: Sequence[Mapping[str, RunRecord]]
    ) -> RunRecord:
        science = {
            "of": [part[name].content_id for part in parts for name in sorted(part)],
            "judged": protocol.science,
            "windows": self.windows,
            "sequences": self.sequences,
            "seeds": list(protocol.seeds),
        }
        return runner.store("lds/extra", science, threads(1)(lambda: self._compare(protocol, parts)))

    def _compare(self, protocol: Protocol, parts: Sequence[Mapping[str, RunRecord]]) -> dict[str, np.ndarray]:
        law, streams = protocol.law(1), [generator(0, "eval")]
        systems = law.systems(streams, self.sequences)
        y_RBT = law.observations(systems, streams)
        noises = law.observation_noise, law.initial_variance
        kalman = KalmanFilter(systems.A_RBDD, systems.c_RBD, law.Sigma_w_RDD, *noises)
        best_B = _half_squares(kalman.predict_last(y_RBT)[0], y_RBT)
        optima = [part[f"AR{s}_optimum"].weights for s, part in zip(self.windows, parts, strict=True)]
        losses_W: dict[str, list[Tensor]] = {}
        for window, part in zip(self.windows, parts, strict=True):
            prompt, context = gram_prompts(y_RBT, window), protocol.length - window - 1
            for name, prediction in _predictions(window, part, prompt, context).items():
                losses_W.setdefault(name, []).append(_half_squares(prediction, y_RBT))
        found: dict[str, np.ndarray] = {
            "windows_W": np.array(self.windows),
            "step_exact_W": np.array([optimum["step_value"] for optimum in optima]),
        }
        for name, losses in {**losses_W, "kalman": [best_B]}.items():
            above = torch.stack(losses) - best_B
            found[f"{name}_W"] = torch.stack(losses).mean(-1).numpy()
            found[f"{name}_above_W"] = above.mean(-1).numpy()
            found[f"{name}_above_stderr_W"] = (above.std(-1) / self.sequences**0.5).numpy()
        return found

    def layout_of(self, records: Records) -> Layout:
        return Layout([f"setting ({name})" for name in by_setting(records)], (2.7, 2.2))

    def draw(self, panels: Panels, records: Records) -> None:
        for name, panel in by_setting(records).items():
            axes = panels[f"setting ({name})"]
            for method, (label, color, marker) in METHODS.items():
                y_RW = panel.trained_RW if method == "trained" else panel.risk(f"{method}_W")[None]
                style.band(axes, panel.windows, y_RW, color, label, marker=marker)
            style.exact_curve(axes, panel.windows, panel.optimum_W, "best head, exact")
            style.exact_line(axes, float(panel.risk("kalman_W")[-1]), "Kalman filter", linestyle=":")
            axes.set(title=f"setting ({name})", xlabel="window $s$", xticks=panel.windows)
            style.log_axis(axes)
        next(iter(panels.values())).set_ylabel("test risk")
        style.shared_legend(panels.values())

    def claims(self, records: Records) -> list[Claim]:
        settings = by_setting(records)
        windows = next(iter(settings.values())).windows
        claims = [_falls(settings, windows), _trained_falls(settings, windows)]
        claims += [_one_step(settings)] if windows[0] == 1 else []
        return [*claims, _beats_a_step(settings), _is_not_pcg(settings)]


def by_setting(records: Records) -> dict[str, PanelSetting]:
    settings = {}
    for name in [key.removesuffix("_test") for key in records if key.endswith("_test")]:
        test = records[f"{name}_test"].weights
        windows = test["windows_W"].tolist()
        optima = [records[f"{name}_AR{s}_optimum"].weights["value"] for s in windows]
        any_heads = [records[f"{name}_AR{s}_optimum"].weights["any_heads"] for s in windows]
        trained = [records[f"{name}_AR{s}_exact"].weights["risk_RS"][:, -1] for s in windows]
        settings[name] = PanelSetting(test, np.array(optima), np.array(any_heads), np.stack(trained, 1))
    return settings


def _falls(settings: Mapping[str, PanelSetting], windows: Sequence[int]) -> Claim:
    """Claim that the risk falls: a head found by search is no better than the best, any number no worse."""
    steps = {name: changes(panel.optimum_W).tolist() for name, panel in settings.items()}
    most = [panel.optimum_W[1:] / panel.any_heads_W[:-1] - 1 for panel in settings.values()]
    least = [panel.any_heads_W[1:] / panel.optimum_W[:-1] - 1 for panel in settings.values()]
    falls, rises = float(np.max(most)) < -ROUNDING, float(np.max(least)) > ROUNDING
    return Claim(
        "the best single head's risk falls with the window",
        {f"relative change, setting {name}, s = {windows}": change for name, change in steps.items()},
        "a head is found below the least risk of any number of heads at the window before, by more than "
        f"rounding, {ROUNDING:g} of the risk",
        "fails" if rises else "holds" if falls else "undecided",
        trained=False,
        whose="project",
        kind="searched",
    )


def _trained_falls(settings: Mapping[str, PanelSetting], windows: Sequence[int]) -> Claim:
    steps = {name: changes(panel.trained_RW) for name, panel in settings.items()}
    return Claim.of(
        "so does the trained layer's, seed by seed (exact risk of the weights)",
        {
            f"largest change, setting {name}, s = {windows}": step.max(0).tolist()
            for name, step in steps.items()
        },
        exact([step.max() for step in steps.values()]).below(
            -ROUNDING, f"every change below minus rounding, {ROUNDING:g} of the risk"
        ),
        whose="project",
    )


def changes(risk_XW: np.ndarray) -> np.ndarray:
    """Return relative changes from window to window."""
    change_XW: np.ndarray = np.diff(risk_XW) / risk_XW[..., :-1]
    return change_XW


def _one_step(settings: Mapping[str, PanelSetting]) -> Claim:
    off = {
        name: np.abs(panel.trained_RW[:, 0] / panel.test["step_exact_W"][0] - 1)
        for name, panel in settings.items()
    }
    return Claim.of(
        "s = 1: the trained layer is one step of gradient descent on L_AR(1): their exact risks",
        {f"largest relative difference, setting {name}": float(off_R.max()) for name, off_R in off.items()},
        exact(np.max(list(off.values()))).below(NEAR, f"below {NEAR:.0%} in every seed"),
    )


def _beats_a_step(settings: Mapping[str, PanelSetting]) -> Claim:
    more = _differences(settings, "step")
    return Claim.of(
        "s >= 2: the trained layer's test risk is below that of one gradient step",
        _with_errors(more),
        sampled([value for value, _ in more.values()], [half for _, half in more.values()]).above(
            0.0, "99.9 % intervals of the differences above 0, the worst seed"
        ),
        whose="project",
    )


def _is_not_pcg(settings: Mapping[str, PanelSetting]) -> Claim:
    more = _differences(settings, "pcg")
    verdicts = [sampled(*pair).below(0.0).verdict for pair in more.values()]
    return Claim(
        "two PCG steps with the best head's P and q, which Section 5 likens it to, predict better than the "
        "trained layer at some window s >= 2",
        _with_errors(more),
        "99.9 % interval of the difference to the worst seed below 0 at some window",
        "holds" if "holds" in verdicts else "fails" if set(verdicts) == {"fails"} else "undecided",
        whose="project",
        kind="sampled",
    )


def _differences(settings: Mapping[str, PanelSetting], method: str) -> dict[str, tuple[float, float]]:
    """(difference of the test risks, half its interval) for s >= 2 on the same sequences.

    Both risks are taken above the Kalman filter's, and their errors add up: the interval is conservative.
    """
    differences = {}
    for name, panel in settings.items():
        more_W = panel.test[f"{method}_above_W"] - panel.test["trained_above_W"].T.max(0)
        error_W = panel.test[f"{method}_above_stderr_W"] + panel.test["trained_above_stderr_W"].T.max(0)
        for s, more, half in zip(panel.windows, more_W.tolist(), (Z * error_W).tolist(), strict=True):
            if s > 1:
                differences[f"s = {s}, setting {name}"] = (more, half)
    return differences


def _with_errors(differences: Mapping[str, tuple[float, float]]) -> dict[str, str]:
    return {name: f"{more:.3g} +- {error:.2g}" for name, (more, error) in differences.items()}


@dataclass(frozen=True, eq=False)
class PanelSetting:
    """Losses on drawn sequences; exact risks of the best head and of the trained layers."""

    test: Mapping[str, np.ndarray]
    optimum_W: np.ndarray
    any_heads_W: np.ndarray  # the least risk of any number of heads: no head is below
    trained_RW: np.ndarray

    def risk(self, name: str) -> np.ndarray:
        """Return the best head's exact risk and the mean difference to it on the same sequences: the
        sample's own deviation, shared by all predictors, drops out."""
        return self.optimum_W + self.test[name] - self.test["optimum_W"]

    @property
    def windows(self) -> list[int]:
        return self.test["windows_W"].tolist()


def _predictions(
    window: int, part: Mapping[str, RunRecord], prompt: GramPrompt, context: int
) -> dict[str, Tensor]:
    """Return what every predictor predicts, (B,), and the trained layers, (R, B)."""
    exact, optimum = part[f"AR{window}_exact"].weights, part[f"AR{window}_optimum"].weights
    gram_BPP, x_BK = prompt.gram_RBPP[0], prompt.query_RBP[0, :, :window]
    q_K, P_KK = (torch.from_numpy(optimum[name]) for name in ("pattern_b_P", "pattern_a_KP"))
    two = ConjugateGradient(2, P_KK[:, :window], q_K[:window]) if window > 1 else ConjugateGradient(2)
    return {
        "trained": torch.stack(
            [head(b_P, a_KP, gram_BPP, x_BK) for b_P, a_KP in zip(exact["b_RP"], exact["a_RKP"], strict=True)]
        ),
        "optimum": head(optimum["b_P"], optimum["a_KP"], gram_BPP, x_BK),
        "step": GradientDescent(float(optimum["step"]), 1).predict(prompt)[0],
        "least_squares": LeastSquares(context).predict(prompt)[0],
        "pcg": two.predict(prompt)[0],
    }


def head(b_P: np.ndarray, a_KP: np.ndarray, gram_BPP: Tensor, x_BK: Tensor) -> Tensor:
    """sum_k q_k b^T G a_k, (B,)."""
    b, a = torch.from_numpy(np.asarray(b_P)).double(), torch.from_numpy(np.asarray(a_KP)).double()
    return torch.einsum("p,bpr,kr,bk->b", b, gram_BPP, a, x_BK)


def _half_squares(prediction_XB: Tensor, y_RBT: Tensor) -> Tensor:
    return (prediction_XB - y_RBT[0, :, -1]).square() / 2
