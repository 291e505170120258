"""Figure 3 of lds: the supports of W_QK and W_V against the masks of (13) during training, setting (a)."""

from icl.figures.claims import Claim
from icl.figures.figure import Layout, Panels, Records
from icl.figures.lds.weights import Weights, supports_claims, windows_of
from icl.figures.style import BLUE, RED, shared_legend, step_axis


class Fig3(Weights):
    """Jaccard distances by window, of every seed."""

    def layout_of(self, records: Records) -> Layout:
        return Layout([window.name for window in windows_of(records)], (2.0, 1.8))

    def draw(self, panels: Panels, records: Records) -> None:
        for window in windows_of(records):
            axes, steps_S = panels[window.name], window.exact["steps_S"]
            for name, part, color in (("$W_{QK}$", "QK", BLUE), ("$W_V$", "V", RED)):
                for gauge, prefix, style in (("", "raw_", "-"), (", one gauge", "", ":")):
                    distance_SR = window.exact[f"{prefix}{part}_RS"].T
                    labels = [name + gauge, *[""] * (distance_SR.shape[1] - 1)]
                    axes.plot(steps_S, distance_SR, color=color, linestyle=style, alpha=0.7, label=labels)
            step_axis(axes, steps_S[-1])
            axes.set(title=window.name, ylim=(-0.05, 1.05))
        next(iter(panels.values())).set_ylabel("Jaccard distance")
        shared_legend(panels.values())

    def claims(self, records: Records) -> list[Claim]:
        return supports_claims(windows_of(records))
