"""Figure 4 of lu: errors on new tasks less those on pretraining tasks, of attention and of dMMSE.

A values of alpha, K of kappa, R replicas.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.ticker import NullFormatter

from icl import stats
from icl.algorithms import DiscreteMMSE
from icl.errors import real, whole
from icl.figures.claims import Claim, exact, sampled
from icl.figures.figure import Layout, Panels, Records
from icl.figures.lu import simulated as lu
from icl.figures.runner import Runner
from icl.progress import track
from icl.random import generator
from icl.tasks import LinearRegression
from icl.tasks.linear_regression import TaskDiversityLaw

BESIDE = 1.15  # dMMSE's points of neighbouring alphas, which would cover one another


@dataclass(eq=False)
class Fig4(lu.Simulated):
    """Records: `attention`, for each alpha and kappa with tau = `tau_by_alpha` alpha, and `dmmse`, the
    posterior mean over the same number of tasks at the largest of the dims."""

    kappas: Sequence[float]
    dmmse_kappas: Sequence[float]
    tau_by_alpha: float
    rho: float
    draws: int
    prompts: int
    layout = Layout(("attention", "dMMSE"), (2.8, 2.4))

    def __post_init__(self) -> None:
        super().__post_init__()
        self.kappas = lu.positive("kappas", self.kappas)
        self.dmmse_kappas = lu.positive("dmmse_kappas", self.dmmse_kappas)
        self.tau_by_alpha = real("figure.tau_by_alpha", self.tau_by_alpha, 0, open_low=True)
        self.rho = real("figure.rho", self.rho, 0, open_low=True)
        self.draws = whole("figure.draws", self.draws, 2, lu.MAX_DRAWS)
        self.prompts = whole("figure.prompts", self.prompts, 10, lu.MAX_DRAWS)

    def runs(self, runner: Runner) -> Records:
        settings = [
            lu.Setting(alpha, kappa, self.tau_by_alpha * alpha, self.rho)
            for alpha in self.alphas
            for kappa in self.kappas
        ]
        science = {name: getattr(self, name) for name in ("alphas", "rho", "draws", "prompts", "seed")}
        science |= {"kappas": self.dmmse_kappas, "dim": self.dims[-1]}
        return {
            "attention": self.simulated(runner, "fig4", settings, "kappa", self.draws),
            "dmmse": runner.store("lu/dmmse", science, self._dmmse),
        }

    def _dmmse(self) -> dict[str, np.ndarray]:
        cells = [(alpha, kappa) for alpha in self.alphas for kappa in self.dmmse_kappas]
        gaps = [self._gap(alpha, kappa) for alpha, kappa in track(cells, "dMMSE", len(cells))]
        table = np.array(gaps).reshape(len(self.alphas), len(self.dmmse_kappas), 2)
        return {
            "alphas_A": np.array(self.alphas),
            "kappas_K": np.array(self.dmmse_kappas),
            "gap_AK": table[..., 0],
            "gap_stderr_AK": table[..., 1],
        }

    def _gap(self, alpha: float, kappa: float) -> tuple[float, float]:
        """Return the mean loss on new tasks less that on old ones, over replicas with tasks of their own."""
        d, tasks = self.dims[-1], max(1, round(kappa * self.dims[-1]))
        context = max(1, round(alpha * d))
        law = LinearRegression(
            d, context, covariance=(np.eye(d) / d).tolist(), label_noise=self.rho, tasks=tasks,
            task_law="sphere",
        ).law([self.seed + r for r in range(self.draws)])  # fmt: skip
        assert isinstance(law, TaskDiversityLaw) and law.tasks_RKD is not None and law.new_tasks is not None
        model = DiscreteMMSE(law.tasks_RKD, self.rho, context)
        loss_R = []
        for which, source in enumerate((law.new_tasks, law)):
            rngs = [generator(self.seed + r, "eval", which) for r in range(self.draws)]
            prompt = source.gram_prompts(rngs, self.prompts)
            loss_R.append((model.predict(prompt) - prompt.target_RB).square().mean(1).numpy())
        gap_R = loss_R[0] - loss_R[1]
        return float(gap_R.mean()), float(gap_R.std(ddof=1) / len(gap_R) ** 0.5)

    def draw(self, panels: Panels, records: Records) -> None:
        arrays, half_AK = records["dmmse"].weights, _half_widths(records)
        labels = [f"$\\alpha$ = {alpha:g}" for alpha in arrays["alphas_A"]]
        lu.draw(panels["attention"], records["attention"], "gap", labels)
        for a, (gap_K, half_K) in enumerate(zip(arrays["gap_AK"], half_AK, strict=True)):
            beside_K = arrays["kappas_K"] * BESIDE**a
            lu.intervals(panels["dMMSE"], beside_K, gap_K, half_K, lu.COLORS[a % len(lu.COLORS)])
        ends = np.array([axes.get_ylim() for axes in panels.values()])
        for name, axes in panels.items():
            axes.set(title=name, xlabel="tasks $\\kappa = k / d$", xscale="log", yscale="log")
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.set_ylim(max(ends.min(), 1e-9), ends.max())
        panels["attention"].set_ylabel("$e_{ICL} - e_{IDG}$")
        panels["attention"].legend()

    def claims(self, records: Records) -> list[Claim]:
        errors, arrays = lu.Errors.of(records["attention"], "gap"), records["dmmse"].weights
        few, many = (
            np.array([np.interp(kappa, errors.x_X, y_X) for y_X in errors.curve_SX]) for kappa in (0.5, 5.0)
        )
        fall_SC, fall_half_SC = errors.change(0, -1)
        at = int(np.abs(np.log(arrays["kappas_K"] / 5)).argmin())
        ratio_A = (arrays["gap_AK"] - _half_widths(records))[:, at] / many
        return [
            lu.paper_claim(
                "above kappa = 1 the gap of linear attention vanishes as examples and prompts grow",
                {"at kappa = 1/2": few.tolist(), "at kappa = 5": many.tolist()},
                exact(np.diff(many / few)).below(0.0, "gap at 5 over that at 1/2 falls with alpha"),
            ),
            lu.paper_claim(
                "simulated, the gap of linear attention falls with the number of tasks",
                {"falls": fall_SC.tolist()},
                sampled(fall_SC, fall_half_SC).above(0.0, "95 % intervals above 0 at every alpha and d"),
            ),
            lu.paper_claim(
                "dMMSE has no such transition: with several tasks a dimension its gap is many times larger",
                {"kappa": float(arrays["kappas_K"][at]), "ratio": ratio_A.tolist()},
                sampled(ratio_A).above(
                    3.0, "lower end of the 95 % interval above 3 times the limit at kappa = 5"
                ),
            ),
        ]


def _half_widths(records: Records) -> np.ndarray:
    """Return half of the 95 % interval of each of dMMSE's gaps."""
    draws = int(records["attention"].weights["draws_C"][-1])
    half_AK: np.ndarray = stats.student(lu.TAIL, draws - 1) * records["dmmse"].weights["gap_stderr_AK"]
    return half_AK
