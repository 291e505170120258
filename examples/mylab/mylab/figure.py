"""Trained risk over the number of examples."""

from collections.abc import Sequence

import numpy as np

from icl.errors import InputError
from icl.figures.arrays import metric
from icl.figures.claims import Claim, exact
from icl.figures.figure import Figure, Layout, Panels, Records
from icl.figures.runner import Runner
from icl.figures.style import BLUE, exact_curve, points
from icl.theory.closed_forms import isotropic_risk
from mylab.task import least_risk


class RiskByContext(Figure):
    """A run of mylab/signs for each number of examples."""

    caption = (
        "Exact risk of one trained layer of eq. (8) on inputs that are signs (mean over seeds and range), "
        "the least risk there is (dashed), and that of Gaussian inputs (dotted)."
    )

    layout = Layout(size=(3.2, 2.4))

    def __init__(self, contexts: Sequence[int]) -> None:
        if list(contexts) != sorted(set(contexts)) or len(contexts) < 2:
            raise InputError(f"figure.contexts={contexts}: must be two or more, growing")
        self.contexts = list(contexts)

    def runs(self, runner: Runner) -> Records:
        return {f"n{n}": runner.train("mylab/signs", {"task.context": n}) for n in self.contexts}

    def draw(self, panels: Panels, records: Records) -> None:
        n_T, risk_ST, dim = self._found(records)
        signs, gauss = ([risk(dim, n) for n in n_T] for risk in (least_risk, isotropic_risk))
        axes = panels[""]
        points(axes, n_T, risk_ST.T, BLUE, "trained")
        exact_curve(axes, n_T, signs, "least risk, signs")
        exact_curve(axes, n_T, gauss, "least risk, Gaussian", linestyle=":")
        axes.set(xlabel="examples $n$", ylabel="risk")
        axes.legend()

    def claims(self, records: Records) -> list[Claim]:
        context_T, risk_ST, dim = self._found(records)
        least_T = np.array([least_risk(dim, n) for n in context_T])
        excess = float((risk_ST / least_T - 1).max())
        ends = "the trained layer ends within 2 % of the least risk"
        small = exact(excess).below(0.02, "below .02")
        return [Claim.of(ends, {"worst excess": excess}, small, whose="project")]

    def _found(self, records: Records) -> tuple[np.ndarray, np.ndarray, int]:
        """(n_T, risk_ST, D): the last stored exact risk of every seed."""
        runs = list(records.values())
        last = [metric(run, "exact_risk")[1][:, -1] for run in runs]
        tasks = [run.config["task"] for run in runs]
        return np.array([task["context"] for task in tasks]), np.stack(last, axis=1), tasks[0]["dim"]
