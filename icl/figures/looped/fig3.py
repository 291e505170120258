"""Figure 3 of looped: training of a shared layer leaves the multiples of Sigma^-1.

T steps, D = 2 covariates, R seeds.
"""

from dataclasses import dataclass

import numpy as np

from icl.errors import InputError, whole
from icl.figures.arrays import metric
from icl.figures.claims import Claim, all_of, exact
from icl.figures.figure import Figure, Layout, Panels, Records
from icl.figures.runner import Runner
from icl.figures.style import BLUE, GREY, ORANGE, RED, band, exact_line, log_axis, points, step_axis
from icl.figures.training import TrainingSettings
from icl.random import generator
from icl.runs.record import RunRecord
from icl.tasks.linear_regression import linear_regression
from icl.theory.looped.descent import descend, plane_risk
from icl.theory.looped.equal_steps import EqualSteps
from icl.theory.looped.search import best_rotation
from icl.training.load import restored


@dataclass(eq=False, kw_only=True)
class Fig3(TrainingSettings, Figure):
    """Records: `run`, the trained seeds, and `exact`, what they are compared with."""

    dim: int | None = 2
    descent_steps: int
    layout = Layout("abcd", (1.95, 2.0))

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("figure.descent_steps", self.descent_steps, 1)

    def runs(self, runner: Runner) -> Records:
        run = runner.train("looped/shared", self.overrides())
        science = {"of": run.content_id, "steps": self.descent_steps, "seeds": run.run["seeds"]}
        return {"run": run, "exact": runner.store("looped/training", science, lambda: self._exact(run))}

    def _exact(self, run: RunRecord) -> dict[str, np.ndarray]:
        trained = restored(run)
        law = linear_regression(trained.law, "looped/training")
        if law.dim != 2:
            raise InputError(f"task.dim={law.dim}: the figure is of two covariates")
        steps = EqualSteps(2, law.context_R[0], trained.transformer.parametrization.layers)
        best, rule = best_rotation(steps), plane_risk(steps.context, steps.layers)
        root_RDD = law.root_RDD.numpy()
        white_RDD = root_RDD.swapaxes(1, 2) @ run.A[:, 0] @ root_RDD
        eigenvalues_RD = np.linalg.eigvals(white_RDD)
        random_DD = 0.01 * generator(0, "init").standard_normal((2, 2))
        return {
            "scalar_a": np.array(steps.best),
            "scalar_risk": np.array(steps.least_risk),
            "best_a": np.array(float(best.a)),
            "best_b": np.array(float(best.b)),
            "best_risk": np.array(float(best.risk)),
            "trained_risk_R": np.array([rule.with_gradient(A_DD)[0] for A_DD in white_RDD]),
            "real_RD": eigenvalues_RD.real,
            "imag_RD": eigenvalues_RD.imag,
            "random_risk_T": descend(rule, random_DD, self.descent_steps)[1],
            "scalar_risk_T": descend(rule, 0.01 * np.eye(2), self.descent_steps)[1],
        }

    def draw(self, panels: Panels, records: Records) -> None:
        run, arrays = records["run"], records["exact"].weights
        a, b, c, d = panels.values()
        scalar_a, best_a, best_b = (float(arrays[name]) for name in ("scalar_a", "best_a", "best_b"))
        band(a, *metric(run, "spectrum_real"), ORANGE, "a")
        band(a, *metric(run, "spectrum_imag"), BLUE, "b")
        exact_line(a, best_a, "best A")
        exact_line(a, best_b, "")
        exact_line(a, scalar_a, "best multiple", linestyle=":")
        band(b, *metric(run, "loss"), GREY, "batch")
        band(b, *metric(run, "exact_risk"), ORANGE, "exact risk")
        for name, color, label in (("random", BLUE, "from random"), ("scalar", RED, "from $aI$")):
            risk_T = arrays[f"{name}_risk_T"]
            c.plot(np.arange(len(risk_T)), risk_T, color=color, label=label)
        for axes, labels in ((b, ("", "")), (c, ("saddle", "minimum"))):
            exact_line(axes, float(arrays["scalar_risk"]), labels[0], linestyle=":")
            exact_line(axes, float(arrays["best_risk"]), labels[1])
            axes.set_ylim(0.5 * float(arrays["best_risk"]), 50)  # room for the legend, as in (a) and (d)
            log_axis(axes)
        points(d, arrays["real_RD"].ravel(), arrays["imag_RD"].ravel()[:, None], BLUE, "trained")
        d.plot([best_a, best_a], [best_b, -best_b], "x", color=RED, label="best")
        points(d, [scalar_a], np.zeros((1, 1)), GREY, "best multiple", marker="s")
        titles = ("$a \\pm ib$", "loss", "exact descent", "spectrum of $A$")
        for (name, axes), title in zip(panels.items(), titles, strict=True):
            axes.set_title(f"({name}) {title}")
            axes.legend(loc="upper right" if axes in (b, c) else "upper left")
        step_axis(a, metric(run, "loss")[0][-1])
        step_axis(b, metric(run, "loss")[0][-1])
        step_axis(c, len(arrays["random_risk_T"]) - 1)
        a.set_ylim(0, 1.6)
        d.set(xlabel="real part", ylabel="imaginary part", xlim=(0, 1.2), ylim=(-0.5, 1))

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["exact"].weights
        saddle, best, b = (float(arrays[name]) for name in ("scalar_risk", "best_risk", "best_b"))
        risk_R, imag_R = arrays["trained_risk_R"], np.abs(arrays["imag_RD"]).max(1)
        free, stuck = (float(arrays[f"{name}_risk_T"][-1]) for name in ("random", "scalar"))
        return [
            Claim.of(
                "training from small random weights ends below the scalar saddle, in every seed",
                {"largest risk": float(risk_R.max()), "saddle": saddle, "minimum": best},
                exact(risk_R).below(saddle, "the exact risk of the best multiple of Sigma^-1"),
                whose="project",
            ),
            Claim.of(
                "the trained matrix is the rotation: b ends within a tenth of the best",
                {"best": b, "trained": imag_R.tolist()},
                exact(np.abs(imag_R / b - 1)).below(0.1, "relative difference below .1 in every seed"),
                whose="project",
            ),
            Claim.of(
                "exact descent converges to the minimum from a random matrix, and not from a multiple of I",
                {"from random": free, "from a multiple": stuck},
                all_of(
                    "within 1 % of the minimum, and not below the saddle",
                    exact(free / best - 1).below(0.01),
                    exact(stuck / saddle - 1).above(-1e-9),
                ),
                trained=False,
                whose="project",
            ),
        ]
