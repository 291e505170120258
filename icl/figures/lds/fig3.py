"""Figure 3 of lds: the supports of W_QK and W_V against the masks of (13) during training, setting (a)."""

from __future__ import annotations

from icl.figures.claims import Claim
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.items import Curve
from icl.figures.lds.weights import supports_claims, windows_of
from icl.figures.style import BLUE, RED


class Fig3(Drawing):
    caption = (
        "Jaccard distance (20) between the supports of the weights and the masks of pattern (13) during "
        "training in setting (a), by window; mean over the seeds and the range between them. Solid: as the "
        "paper measures, entries of the weights as they are below .1 are zero. Dotted: the weights in one "
        "gauge (|b| = |a|; for AR(1) also one of the two mirror solutions), entries below a tenth of the "
        "largest are zero. With W_V's corner and W_QK free in scale and, for AR(1), mirror, the first "
        "depends on where training happens to end."
    )

    def layout_of(self, records: Records) -> Layout:
        return Layout([window.name for window in windows_of(records)], (2.0, 1.8))

    def items(self, records: Records) -> list[Curve]:
        return [
            Curve(
                window.name,
                name + gauge,
                color,
                window.exact["steps_S"],
                window.exact[f"{prefix}{part}_RS"],
                {"linestyle": style},
            )
            for window in windows_of(records)
            for name, part, color in (("$W_{QK}$", "QK", BLUE), ("$W_V$", "V", RED))
            for gauge, prefix, style in (("", "raw_", "-"), (", one gauge", "", ":"))
        ]

    def decorate(self, panels: Panels, records: Records) -> None:
        for name, axes in panels.items():
            axes.set(title=name, xlabel="step", ylim=(-0.05, 1.05))
        first, *_, last = [*panels.values()] * 2
        first.set_ylabel("Jaccard distance")
        last.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))

    def claims(self, records: Records) -> list[Claim]:
        return supports_claims(windows_of(records))
