"""Beside the figures of lds: test risk by window, of the trained layer and of what it is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from icl.figures.claims import Claim, exact, sampled
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.items import Curve, Item, Level
from icl.figures.style import BLUE, EXACT, GREEN, ORANGE, PURPLE, log_axis
from icl.verdicts import joint

Z = 3.2905  # of a two-sided 99.9 % interval
ROUNDING = 1e-9  # of a risk
NEAR = 0.02
METHODS = {
    "step": ("one gradient step", GREEN, "^"),
    "pcg": ("two PCG steps", PURPLE, "v"),
    "least_squares": ("least squares AR(s)", ORANGE, "s"),
    "trained": ("trained layer", BLUE, "o"),
}


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


class Extra(Drawing):
    caption = (
        "Half the squared error of predicting y_T, by window s: the trained layer (exact risk, mean over "
        "seeds and range), one step of gradient descent on L_AR(s) with the best step size, "
        "two steps of preconditioned conjugate gradients with preconditioner P^-1 and first direction q of "
        "the best head of pattern (13) (for s = 1, where q = 0, two plain ones: least squares), AR(s) fitted "
        "in context by least squares. Dashed: the exact risk of the best single head. Dotted: the Kalman "
        "filter given the true system, which no predictor is better than. Predictors without an exact "
        "risk are plotted at the best head's plus the mean difference to it over the same sequences."
    )

    def layout_of(self, records: Records) -> Layout:
        return Layout([f"setting ({name})" for name in by_setting(records)], (2.7, 2.2))

    def items(self, records: Records) -> list[Item]:
        items: list[Item] = []
        for name, of in by_setting(records).items():
            panel, test = f"setting ({name})", of.test
            for method, (label, color, marker) in METHODS.items():
                y_RW = of.trained_RW if method == "trained" else of.risk(f"{method}_W")[None]
                style = {"marker": marker, "markersize": 3.5, "linewidth": 0.8}
                items.append(Curve(panel, label, color, test["windows_W"], y_RW, style))
            style = {"linestyle": EXACT["linestyle"], "linewidth": 1.0}
            items += [
                Curve(panel, "best head, exact", "black", test["windows_W"], of.optimum_W[None], style),
                Level(panel, "Kalman filter", float(of.risk("kalman_W")[-1]), ":"),
            ]
        return items

    def decorate(self, panels: Panels, records: Records) -> None:
        windows = next(iter(by_setting(records).values())).windows
        for title, axes in panels.items():
            axes.set(title=title, xlabel="window $s$", xticks=windows)
            log_axis(axes)
        first, *_, last = [*panels.values()] * 2
        first.set_ylabel("test risk")
        last.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))

    def claims(self, records: Records) -> list[Claim]:
        settings = by_setting(records)
        windows = next(iter(settings.values())).windows
        claims = [_falls(settings, windows), _trained_falls(settings, windows), _above_kalman(settings)]
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
    steps = {name: (np.diff(of.optimum_W) / of.optimum_W[:-1]).tolist() for name, of in settings.items()}
    most = [of.optimum_W[1:] / of.any_heads_W[:-1] - 1 for of in settings.values()]
    least = [of.any_heads_W[1:] / of.optimum_W[:-1] - 1 for of in settings.values()]
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
    steps = {name: np.diff(of.trained_RW, axis=1) / of.trained_RW[:, :-1] for name, of in settings.items()}
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


def _above_kalman(settings: Mapping[str, PanelSetting]) -> Claim:
    measured, verdicts = {}, []
    for name, of in settings.items():
        for method in METHODS:
            above_X = of.test[f"{method}_above_W"].ravel()
            error_X = Z * of.test[f"{method}_above_stderr_W"].ravel()
            least = int((above_X - error_X).argmin())
            measured[f"{METHODS[method][0]}, setting {name}"] = (
                f"{above_X[least]:.3g} +- {error_X[least]:.2g}"
            )
            verdicts.append(sampled(above_X, error_X).above(0.0).verdict)
    return Claim(
        "every predictor's risk is above the Kalman filter's",
        measured,
        "99.9 % intervals of the paired differences above 0 (the least shown)",
        joint(verdicts),
        trained=False,
        whose="project",
        kind="sampled",
    )


def _one_step(settings: Mapping[str, PanelSetting]) -> Claim:
    off = {
        name: np.abs(of.trained_RW[:, 0] / of.test["step_exact_W"][0] - 1) for name, of in settings.items()
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
    for name, of in settings.items():
        more_W = of.test[f"{method}_above_W"] - of.test["trained_above_W"].T.max(0)
        errors = of.test[f"{method}_above_stderr_W"], of.test["trained_above_stderr_W"].T.max(0)
        for s, more, error in zip(of.windows, more_W.tolist(), (Z * np.add(*errors)).tolist(), strict=True):
            if s > 1:
                differences[f"s = {s}, setting {name}"] = (more, error)
    return differences


def _with_errors(differences: Mapping[str, tuple[float, float]]) -> dict[str, str]:
    return {name: f"{more:.3g} +- {error:.2g}" for name, (more, error) in differences.items()}
