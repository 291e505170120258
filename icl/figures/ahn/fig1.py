"""Figure 1 of ahn: (8) trained with w ~ N(0, Sigma^{-1}) converges to A_l = a_l Sigma^{-1}; its risk.

R seeds, L layers, D covariates, T stored steps.
"""

from collections.abc import Mapping
from string import ascii_lowercase

import numpy as np
import torch

from icl.figures.ahn import trained
from icl.figures.arrays import metric
from icl.figures.claims import Claim, all_of, exact
from icl.figures.figure import Figure, Layout, Panels, Records
from icl.figures.runner import Runner
from icl.figures.style import BLUE, GREY, ORANGE, RED, band, exact_line, log_axis, shared_legend, step_axis
from icl.figures.training import TrainingSettings
from icl.runs.record import RunRecord
from icl.tasks.linear_regression import linear_regression
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.training.load import restored

NEAR = 0.02  # of the red curves' end
TRANSIENT = 0.1  # of the steps
ALMOST_ZERO = 0.01  # of the risk at zero weights: 'almost 0' (section 4.3)


class Fig1(TrainingSettings, Figure):
    """Records: `run`, the trained seeds, and `exact`, what they are compared with."""

    def runs(self, runner: Runner) -> Records:
        run = runner.train("ahn/theorem3", self.overrides())
        science = {"of": run.content_id, "seeds": run.run["seeds"]}
        return {"run": run, "exact": runner.store("ahn/theorem3_exact", science, lambda: _exact(run))}

    def layout_of(self, records: Records) -> Layout:
        letters = ascii_lowercase[: records["run"].A.shape[1] + 1]
        return Layout(letters, (1.85, 1.9), columns=min(4, len(letters)))

    def caption_of(self, records: Records) -> str:
        arrays, (matrices, loss) = records["exact"].weights, _named_panels(records)
        sizes = {"dim": int(arrays["dim"]), "context": int(arrays["context"])}
        return self.caption.format(matrices=matrices, loss=loss, layers=records["run"].A.shape[1], **sizes)

    def draw(self, panels: Panels, records: Records) -> None:
        run, arrays = records["run"], records["exact"].weights
        *matrices, loss = panels.items()
        for layer, (name, axes) in enumerate(matrices):
            whitened, plain = (metric(run, f"dist_{kind}_A{layer}") for kind in ("preconditioned", "plain"))
            band(axes, *whitened, BLUE, r"$\Sigma^{1/2}A_\ell\Sigma^{1/2}$")
            band(axes, *plain, RED, r"$A_\ell$")
            exact_line(axes, float(arrays["dist_inverse_R"].mean()), r"$\Sigma^{-1}$")
            axes.set(title=f"({name}) $A_{layer}$", ylim=(0, 1.02))
        matrices[0][1].set_ylabel("distance to multiples of $I$")
        name, axes = loss
        band(axes, *metric(run, "loss"), GREY, "batch")
        if "risk_RT" in arrays:  # above the batch, which follows it
            band(axes, arrays["steps"], arrays["risk_RT"], ORANGE, "exact risk")
        optimum = float(arrays["optimal_risk"])
        exact_line(axes, optimum, f"optimum {optimum:.4f}", linestyle=":")
        axes.set_title(f"({name}) loss")
        log_axis(axes)
        for axes in panels.values():
            step_axis(axes, metric(run, "loss")[0][-1])
        shared_legend(panels.values())

    def claims(self, records: Records) -> list[Claim]:
        run, arrays, (matrices, loss) = records["run"], records["exact"].weights, _named_panels(records)
        blue_RLT, red_RLT = (
            np.stack([metric(run, f"dist_{kind}_A{i}")[1] for i in range(run.A.shape[1])], axis=1)
            for kind in ("preconditioned", "plain")
        )
        start_RL, end_RL, red_end_RL = blue_RLT[..., 0], blue_RLT[..., -1], red_RLT[..., -1]
        off = float(np.abs(red_end_RL - arrays["dist_inverse_R"][:, None]).max())
        steps_T = metric(run, "dist_plain_A0")[0]
        moved = float(np.ptp(red_RLT, axis=-1).max())
        later_RL = np.ptp(red_RLT[..., steps_T >= TRANSIENT * steps_T[-1]], axis=-1)
        return [
            Claim.of(
                f"{matrices} every blue curve falls and ends below .05: A_l converges to a multiple of "
                "Sigma^-1",
                {
                    "mean at the start": float(start_RL.mean()),
                    "mean at the end": float(end_RL.mean()),
                    "largest at the end": float(end_RL.max()),
                },
                all_of(
                    "below .05 in every layer and seed, and below where it began",
                    exact(end_RL).below(0.05),
                    exact(end_RL - start_RL).below(0.0),
                ),
            ),
            Claim.of(
                f"{matrices} every red curve ends at the distance of Sigma^-1 itself to the multiples of I",
                {
                    "mean at the end": float(red_end_RL.mean()),
                    "Sigma^-1": float(arrays["dist_inverse_R"].mean()),
                    "largest difference": off,
                },
                exact(off).below(NEAR, f"difference below {NEAR}"),
            ),
            Claim.of(
                f"{matrices} 'the red line remains constant' (section 4.3)",
                {"mean at the start": float(red_RLT[..., 0].mean()), "largest range of a curve": moved},
                exact(moved).below(
                    0.05,
                    "every red curve stays within a range of .05; at the start it is the distance of a "
                    "random matrix",
                ),
                expected="fails",
            ),
            *_of_the_risk(arrays, loss),
            Claim.of(
                f"{matrices} the red line remains constant after the first {TRANSIENT:.0%} of the steps",
                {
                    "largest range by layer": later_RL.max(0).tolist(),
                    "largest range of a curve": float(later_RL.max()),
                },
                exact(later_RL).below(0.05, "every red curve stays within a range of .05 from there on"),
                expected="fails",
                at_paper="holds",
                whose="project",
            ),
        ]


def _exact(run: RunRecord) -> dict[str, np.ndarray]:
    """Return risks without sampling error, and the final weights beside the optimum on S."""
    trained_run = restored(run)
    law = linear_regression(trained_run.law, "ahn/theorem3_exact")
    risk = law.exact_risk(trained_run.transformer)
    stored = list(trained_run.stored_models())
    risk_TR = [] if risk is None else [risk(model) for _, model in stored]  # exact up to three layers
    optimum = InvariantRisk(law.dim, law.context_R[0], run.A.shape[1]).optimum()
    return {
        "dim": np.array(law.dim),
        "context": np.array(law.context_R[0]),
        "steps": np.array([step for step, _ in stored]),
        **({"risk_RT": torch.stack(risk_TR, dim=1).numpy()} if risk_TR else {}),
        "null_risk": np.array(float(law.dim)),  # E (w.x)^2 = tr(Sigma_w Sigma)
        "optimal_risk": np.array(optimum.risk),
        "optimal_a_L": optimum.a_L,
        "a_RL": trained.projection_scalars(run)[0],
        "white_RLDD": trained.whiten(run),
        "dist_inverse_R": trained.distances_of_inverse(run),
    }


def _named_panels(records: Records) -> tuple[str, str]:
    """Return `(a)-(c)`, the panels of the matrices, and `(d)`, that of the loss."""
    layers = records["run"].A.shape[1]
    last = f"-({ascii_lowercase[layers - 1]})" if layers > 1 else ""
    return f"(a){last}", f"({ascii_lowercase[layers]})"


def _of_the_risk(arrays: Mapping[str, np.ndarray], panel: str) -> list[Claim]:
    near = f"{panel} the exact risk ends within 2 % of the least risk on S"
    almost_zero = f"{panel} 'training converges to an almost 0 value' (section 4.3)"
    if "risk_RT" not in arrays:
        reason = "the exact risk of more than three layers is not known"
        return [Claim.undecided(claim, reason) for claim in (near, almost_zero)]
    optimum, null = float(arrays["optimal_risk"]), float(arrays["null_risk"])
    risk_R = arrays["risk_RT"][:, -1]
    excess, least = float(risk_R.max() / optimum - 1), float(risk_R.min())
    return [
        Claim.of(
            near,
            {"optimum": optimum, "exact risk": float(risk_R.mean()), "largest excess": excess},
            exact(excess).below(0.02, "excess below .02 in every seed"),
        ),
        Claim.of(
            almost_zero,
            {"smallest exact risk": least, "of the risk at zero weights": least / null},
            exact(least).below(
                ALMOST_ZERO * null,
                f"below {ALMOST_ZERO:.0%} of {null:g}, the risk at zero weights; the least on S is "
                f"{optimum:.4f}",
            ),
            expected="fails",
        ),
    ]
