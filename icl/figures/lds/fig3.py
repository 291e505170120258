"""Figure 3 of lds: the supports of W_QK and W_V against the masks of (13) during training, setting (a)."""

from __future__ import annotations

from matplotlib.figure import Figure

from icl.figures.claims import Claim
from icl.figures.curves import Curve, Rows, draw_panels, table
from icl.figures.lds.weights import Records, Window, supports_claims, windows
from icl.figures.style import BLUE, RED, panels


class Fig3:
    caption = (
        "Jaccard distance (20) between the supports of the weights and the masks of pattern (13) during "
        "training in setting (a), by window; mean over the seeds and the range between them. Solid: as the "
        "paper measures, entries of the weights as they are below .1 are zero. Dotted: the weights in one "
        "gauge (|b| = |a|; for AR(1) also one of the two mirror solutions), entries below a tenth of the "
        "largest are zero. With W_V's corner and W_QK free in scale and, for AR(1), mirror, the first "
        "depends on where training happens to end."
    )

    def draw(self, records: Records) -> Figure:
        found = windows(records)
        figure, axes = panels(1, len(found), (2.0, 1.8))
        by_panel = {window.name: place for window, place in zip(found, axes[0], strict=True)}
        draw_panels(by_panel, [curve for window in found for curve in _curves(window)])
        for name, place in by_panel.items():
            place.set(title=name, xlabel="step", ylim=(-0.05, 1.05))
        axes[0, 0].set_ylabel("Jaccard distance")
        axes[0, -1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        return figure

    def table(self, records: Records) -> Rows:
        return table([curve for window in windows(records) for curve in _curves(window)])

    def claims(self, records: Records) -> list[Claim]:
        return supports_claims(windows(records))


def _curves(window: Window) -> list[Curve]:
    steps_S = window.exact["steps_S"]
    return [
        Curve(
            window.name,
            f"{name}{how}",
            color,
            steps_S,
            window.exact[f"{prefix}{part}_RS"],
            {"linestyle": style},
        )
        for name, part, color in (("$W_{QK}$", "QK", BLUE), ("$W_V$", "V", RED))
        for how, prefix, style in (("", "raw_", "-"), (", one gauge", "", ":"))
    ]
