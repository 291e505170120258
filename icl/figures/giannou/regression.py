"""Parts that Figures 2, 8 and 9 of giannou share: losses by layers beside Newton's by steps, and which is
smaller.

R seeds, L depths, T steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from icl import quantiles
from icl.errors import InputError
from icl.figures.claims import Claim
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.items import Curve, Line, Points
from icl.figures.style import BLUE, GREEN, ORANGE, PURPLE, RED, log_axis, shared_legend

Arrays = Mapping[str, np.ndarray]

LEVEL = 0.999  # of every interval
HALF = quantiles.normal((1 - LEVEL) / 2)
MOST = 0.5  # of a mean that the hundred largest of its terms may carry where it is to be believed
NEAR = 0.05  # of the loss that training is to reach
ORDERS = {2: ORANGE, 3: GREEN}
START_SAID = {"transpose": "X_0 = A^T / (s_1^2 + s_d^2)", "identity": "X_0 = 2 I / (s_1 + s_d)"}


def flag(name: str, value: Any) -> bool:
    """Return a setting, which must be true or false."""
    if not isinstance(value, bool):
        raise InputError(f"figure.draw.{name}={value}: must be true or false")
    return value


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


def family(known: Arrays, mask: str, depth: int) -> Value:
    at = known["depths_L"].tolist().index(depth)
    return Value(float(known[f"family_{mask}_risk_L"][at]), float(known[f"family_{mask}_error_L"][at]))


def of_seeds(arrays: Arrays, name: str) -> list[Value]:
    """Losses of a run by seed; where a few prompts carry the mean its error is not known."""
    rows = zip(arrays[f"{name}_mean"], arrays[f"{name}_error"], arrays[f"{name}_tail"], strict=True)
    return [Value(float(m), float(e) if tail < MOST and np.isfinite(m) else np.inf) for m, e, tail in rows]


def place(values: Sequence[Value], known: Arrays, start: str, step: int) -> str:
    """Say where all of these lie among as many steps of orders 2 and 3."""
    second, third = newton(known, start, 2, step), newton(known, start, 3, step)
    if all(value.below(third) for value in values):
        return "below order 3"
    if all(second.below(value) for value in values):
        return "above order 2"
    if all(third.below(value) and value.below(second) for value in values):
        return "between"
    return "not told apart"


def places_by_depth(places: Mapping[int, str]) -> dict[str, str]:
    return {f"{depth} layer{'s' if depth > 1 else ''}": where for depth, where in places.items()}


def newton_lines(
    panel: str, known: Arrays, most: int, starts: Sequence[str] = tuple(START_SAID)
) -> list[Line]:
    steps_T = np.arange(1, most + 1)
    lines = []
    for start in starts:
        for order, color in ORDERS.items():
            label = f"Newton, order {order}" + ("" if start == "transpose" else ", $X_0 = 2I/(s_1+s_d)$")
            style = {"color": color, "linestyle": "-" if start == "transpose" else ":", "linewidth": 1.2}
            lines.append(
                Line(panel, label, steps_T, known[f"newton_{start}_{order}_mean"][1 : most + 1], style)
            )
    return lines


def family_line(panel: str, known: Arrays, mask: str) -> Line:
    return Line(panel, "scalar family, best found", known["depths_L"], known[f"family_{mask}_risk_L"])


def training_curve(
    panel: str, arrays: Arrays, names: Mapping[int, str], label: str = "LSA, trained"
) -> Curve:
    depths_L = np.array(list(names))
    y_RL = np.stack([arrays[f"{name}_mean"] for name in names.values()], 1)
    return Curve(panel, label, BLUE, depths_L, y_RL, {"marker": "o", "markersize": 3})


def layernorm_curve(panel: str, records: Records, law: str = "kappa1") -> Curve:
    arrays = records[f"losses_{law}_layernorm"].weights
    y_RL = np.stack([arrays[f"{law}_layernorm_L{layers}_mean"] for layers in arrays["depths_L"]], 1)
    style = {"marker": "^", "markersize": 3}
    return Curve(panel, "LSA + LayerNorm, trained", RED, arrays["depths_L"], y_RL, style)


def start_points(panel: str, arrays: Arrays, names: Mapping[int, str]) -> Points:
    y_LR = np.stack([arrays[f"{name}_mean"] for name in names.values()])
    return Points(panel, "LSA, started at that point", PURPLE, np.array(list(names)), y_LR, "s")


def label(axes: Axes, title: str, depths: Sequence[int]) -> None:
    axes.set(title=title, xlabel="layers, steps", ylabel="loss / $d$", xticks=list(depths))
    log_axis(axes)


class LossByLaw(Drawing):
    """A panel for each law, named after it, and one legend beside the first row."""

    def __init__(self, decisive: bool = False) -> None:
        self.decisive = flag("decisive", decisive)

    def layout_of(self, records: Records) -> Layout:
        laws = laws_of(records)
        return Layout(laws, (2.5, 2.1), columns=2 if len(laws) == 4 else min(3, len(laws)))

    def decorate(self, panels: Panels, records: Records) -> None:
        for law, axes in panels.items():
            label(axes, law_title(law), records[f"baselines_{law}"].weights["depths_L"].tolist())
        layout = self.layout_of(records)
        last = panels[layout.panels[layout.columns - 1]]
        shared_legend(panels.values(), last, loc="upper left", bbox_to_anchor=(1.0, 1.02))


def laws_of(records: Records) -> list[str]:
    return [name.removeprefix("baselines_") for name in records if name.startswith("baselines_")]


def law_title(law: str) -> str:
    kappa, _, noise = law.removeprefix("kappa").partition("_noise")
    return f"kappa = {kappa}" + (f", noise {noise}" if noise else "")


def between(
    claim: str, values: Mapping[int, list[Value]], known: Arrays, start: str, *, decisive: bool, **kwargs: Any
) -> Claim:
    """Below order 3 at some depth refutes it; above order 2, longer training may mend; and only training
    that is long enough can be found between."""
    places = {depth: place(of, known, start, depth) for depth, of in values.items()}
    if "below order 3" in places.values():
        verdict = "fails"
    elif set(places.values()) == {"between"} and decisive:
        verdict = "holds"
    else:
        verdict = "fails" if decisive and "above order 2" in places.values() else "undecided"
    return Claim(
        claim,
        {
            name: f"{of[0].mean:.3g}, {where}"
            for (name, where), of in zip(places_by_depth(places).items(), values.values(), strict=True)
        },
        f"in every seed, as many layers as steps, {LEVEL:.1%} intervals over prompts",
        verdict,
        **kwargs,
        kind="sampled",
    )
