"""Figure 2 of lu: errors by the number of examples in a prompt."""

from __future__ import annotations

import numpy as np

from icl.figures.claims import Claim, exact, sampled
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.items import Item
from icl.figures.lu.simulated import dimensions, items, label_ends, measured, shares_off
from icl.figures.style import log_axis

OLD = "a"  # the panel of the pretraining tasks; the others are of new tasks


class Fig2(Drawing):
    caption = (
        "Error by the number of examples l = alpha d in a prompt, for kappa d pretraining tasks. (a) "
        "Pretraining tasks; other panels: new tasks. Lines: the limit, with kappa at their ends; marks: "
        "simulated, exact risk of the weights, mean and 95 % interval over draws."
    )

    def layout_of(self, records: Records) -> Layout:
        return Layout(tuple(records), (2.9, 2.6))

    def items(self, records: Records) -> list[Item]:
        found: list[Item] = []
        for name, record in records.items():
            kappas = list(dict.fromkeys(record.weights["settings_P5"][:, 1]))
            labels = [f"$\\kappa$ = {kappa:g}" for kappa in kappas]
            found += items(name, record, "old" if name == OLD else "new", labels)
        return found

    def decorate(self, panels: Panels, records: Records) -> None:
        for name, axes in panels.items():
            _, _, tau, rho, _ = records[name].weights["settings_P5"][0]
            error = "$e_{IDG}$" if name == OLD else "$e_{ICL}$"
            axes.set(title=f"({name}) {error}, $\\tau$ = {tau:g}, $\\rho$ = {rho:g}")
            axes.set(xlabel="examples $\\alpha = l / d$")
            axes.set_xscale("log")
            log_axis(axes)
            curves = records[name].weights["old_curve_SX" if name == OLD else "new_curve_SX"]
            kappas = dict.fromkeys(records[name].weights["settings_P5"][:, 1])
            label_ends(axes, records[name].weights["x_X"][-1], curves[:, -1], [f"{k:g}" for k in kappas])
        first = next(iter(panels.values()))
        first.set_ylabel("error")
        first.legend(*dimensions(first))

    def claims(self, records: Records) -> list[Claim]:
        old, new = records[OLD], {name: record for name, record in records.items() if name != OLD}
        kappas = list(dict.fromkeys(old.weights["settings_P5"][:, 1]))
        tau, at_most_S = float(old.weights["settings_P5"][0, 2]), old.weights["old_curve_SX"][:, -1]
        others_S = np.delete(at_most_S, kappas.index(tau)) if tau in kappas else at_most_S
        grows = {name: float(r.weights["new_curve_SX"][0, -1] / r.weights["new_curve_SX"][0].min() - 1)
                 for name, r in new.items()}  # fmt: skip
        last = next(iter(new.values()))
        series = len(last.weights["new_curve_SX"])
        mean_SXC, half_SXC = measured(last, "new", series)
        least_C = mean_SXC[0].argmin(0)
        dims = np.arange(mean_SXC.shape[2])
        rise_C = mean_SXC[0, -1] - mean_SXC[0, least_C, dims]
        half_C = half_SXC[0, -1] + half_SXC[0, least_C, dims]
        off = {
            name: [float(np.median(shares_off(r, "old" if name == OLD else "new", c))) for c in (0, -1)]
            for name, r in records.items()
        }
        return [
            Claim.of(
                "on pretraining tasks the error at the most examples is largest where kappa = tau",
                {"errors by kappa": dict(zip(map(str, kappas), at_most_S.tolist(), strict=True))},
                exact(others_S / at_most_S.max()).below(1.0, "error of every other kappa below that one"),
                trained=False,
                whose="project",
            ),
            Claim.of(
                "on new tasks, with the fewest pretraining tasks, more examples hurt in the limit",
                {f"rise of ({name})": value for name, value in grows.items()},
                exact(list(grows.values())).above(0.0, "error at the most examples above the least"),
                trained=False,
            ),
            Claim.of(
                "the same of simulated pretraining, first panel of new tasks",
                {"rises": rise_C.tolist()},
                sampled(rise_C, half_C).above(0.0, "95 % intervals above 0 at every d"),
                trained=False,
            ),
            Claim.of(
                "simulated errors approach the limit as d grows",
                {f"({name}), least and largest d": values for name, values in off.items()},
                sampled([last / first for first, last in off.values()]).below(
                    1.0, "the median share off falls in every panel"
                ),
                trained=False,
                whose="project",
            ),
        ]
