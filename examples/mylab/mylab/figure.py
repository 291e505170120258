"""Trained risk over the number of examples: the runs, and the figure drawn from what they stored."""

from collections.abc import Sequence

import numpy as np

from icl.errors import InputError
from icl.experiments.runner import Runner
from icl.figures.claims import Claim, exact
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.items import Curve, metric
from icl.figures.style import BLUE, EXACT
from icl.theory.closed_forms import isotropic_risk
from mylab.task import least_risk


class ByContext:
    """records: a run of mylab/signs for each number of examples."""

    def __init__(self, contexts: Sequence[int]) -> None:
        if list(contexts) != sorted(set(contexts)) or len(contexts) < 2:
            raise InputError(f"figure.experiment.contexts={contexts}: must be two or more, growing")
        self.contexts = list(contexts)

    def records(self, runner: Runner) -> Records:
        return {f"n{n}": runner.train("mylab/signs", {"task.context": n}) for n in self.contexts}


class RiskByContext(Drawing):
    caption = (
        "Exact risk of one trained layer of eq. (8) on inputs that are signs (mean over seeds and range), "
        "the least risk there is (dashed), and that of Gaussian inputs (dotted)."
    )

    layout = Layout(size=(3.2, 2.4))

    def decorate(self, panels: Panels, records: Records) -> None:
        panels[""].set(xlabel="examples $n$", ylabel="risk")
        panels[""].legend()

    def claims(self, records: Records) -> list[Claim]:
        context_T, risk_ST, dim = self._found(records)
        least_T = np.array([least_risk(dim, n) for n in context_T])
        excess = float((risk_ST / least_T - 1).max())
        ends = "the trained layer ends within 2 % of the least risk"
        small = exact(excess).below(0.02, "below .02")
        return [Claim.of(ends, {"worst excess": excess}, small, whose="project")]

    def items(self, records: Records) -> list[Curve]:
        n_T, risk_ST, dim = self._found(records)
        signs, gauss = (np.array([[risk(dim, n) for n in n_T]]) for risk in (least_risk, isotropic_risk))
        dots = {"marker": "o", "markersize": 3.5, "linewidth": 0.0}
        return [
            Curve("", "trained", BLUE, n_T, risk_ST, dots),
            Curve(
                "", "least risk, signs", "black", n_T, signs, {k: v for k, v in EXACT.items() if k != "color"}
            ),
            Curve("", "least risk, Gaussian", "black", n_T, gauss, {"linestyle": ":"}),
        ]

    def _found(self, records: Records) -> tuple[np.ndarray, np.ndarray, int]:
        """(n_T, risk_ST, D): the last stored exact risk of every seed."""
        runs = list(records.values())
        last = [metric(run, "exact_risk")[1][:, -1] for run in runs]
        tasks = [run.config["task"] for run in runs]
        return np.array([task["context"] for task in tasks]), np.stack(last, axis=1), tasks[0]["dim"]
