"""Figure 2 of lu: errors by the number of examples in a prompt."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from icl.errors import reals, whole
from icl.figures.claims import Claim, exact, sampled
from icl.figures.figure import Layout, Panels, Records
from icl.figures.lu import simulated as lu
from icl.figures.runner import Runner

OLD = "a"  # the panel of the pretraining tasks; the others are of new tasks


@dataclass(eq=False)
class Fig2(lu.Simulated):
    """Records: `a`, `b`, ... a panel each: its tau and rho, for each kappa and alpha."""

    taus: Sequence[float]
    rhos: Sequence[float]
    kappas: Sequence[Sequence[float]]
    draws: Sequence[int]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.taus = lu.positive("taus", self.taus)
        panels = len(self.taus)
        self.rhos = reals("figure.rhos", self.rhos, panels, 0)
        self.kappas = [lu.positive("kappas", some) for some in lu.of_panels("kappas", self.kappas, panels)]
        draws = lu.of_panels("draws", self.draws, panels)
        self.draws = [whole("figure.draws", count, 2, lu.MAX_DRAWS) for count in draws]

    def runs(self, runner: Runner) -> Records:
        found = {}
        for name, tau, rho, kappas, draws in zip(
            "abcdefgh", self.taus, self.rhos, self.kappas, self.draws, strict=False
        ):
            settings = [lu.Setting(alpha, kappa, tau, rho) for kappa in kappas for alpha in self.alphas]
            found[name] = self.simulated(runner, f"fig2{name}", settings, "alpha", draws)
        return found

    def layout_of(self, records: Records) -> Layout:
        return Layout(tuple(records), (2.6, 2.6))

    def draw(self, panels: Panels, records: Records) -> None:
        for name, axes in panels.items():
            record, is_old = records[name], name == OLD
            (tau,), (rho,) = lu.levels(record, "tau"), lu.levels(record, "rho")
            error = "IDG" if is_old else "ICL"
            labels = [f"$\\kappa$ = {kappa:g}" for kappa in lu.levels(record, "kappa")]
            lines = lu.draw(axes, record, "old" if is_old else "new", labels)
            axes.set(xscale="log", xlabel="examples $\\alpha = l / d$")
            axes.set_title(f"({name}) $e_{{{error}}}$, $\\tau$ = {tau:g}, $\\rho$ = {rho:g}")
            axes.legend(ncols=2, handles=None if is_old else lines)
        next(iter(panels.values())).set_ylabel("error")

    def claims(self, records: Records) -> list[Claim]:
        new = {name: lu.Errors.of(record, "new") for name, record in records.items() if name != OLD}
        kappas, (tau,) = lu.levels(records[OLD], "kappa"), lu.levels(records[OLD], "tau")
        old_S = lu.Errors.of(records[OLD], "old").curve_SX[:, -1]
        others_S = np.delete(old_S, kappas.index(tau)) if tau in kappas else old_S
        fewest = {name: errors.curve_SX[0] for name, errors in new.items()}
        grows = {f"rise of ({name})": float(y_X[-1] / y_X.min() - 1) for name, y_X in fewest.items()}
        first = next(iter(new.values()))
        least_C = first.mean_SNC[0].argmin(0)
        rises = [first.change(-1, least) for least in least_C]
        rise_C, half_C = (np.array([part[i][0, c] for c, part in enumerate(rises)]) for i in (0, 1))
        return [
            lu.project_claim(
                "on pretraining tasks the error at the most examples is largest where kappa = tau",
                {"errors by kappa": dict(zip(map(str, kappas), old_S.tolist(), strict=True))},
                exact(others_S / old_S.max()).below(1.0, "error of every other kappa below that one"),
            ),
            lu.paper_claim(
                "on new tasks, with the fewest pretraining tasks, more examples hurt in the limit",
                grows,
                exact(list(grows.values())).above(0.0, "error at the most examples above the least"),
            ),
            lu.paper_claim(
                "the same of simulated pretraining, first panel of new tasks",
                {"rises": rise_C.tolist()},
                sampled(rise_C, half_C).above(0.0, "95 % intervals above 0 at every d"),
            ),
        ]
