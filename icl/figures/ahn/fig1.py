"""Figure 1 of ahn: (8) trained with w ~ N(0, Sigma^{-1}) comes to A_l = a_l Sigma^{-1}, and to which risk."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from icl.figures.ahn.almost_zero import ALMOST_ZERO
from icl.figures.claims import Claim, all_of, exact
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.items import Curve, Item, Level, metric
from icl.figures.style import BLUE, GREY, ORANGE, RED, figure_of, log_axis, shared_legend

NEAR = 0.02  # of the red curves' end
TRANSIENT = 0.1  # of the steps


class Fig1(Drawing):
    caption = (
        "Training of three layers of the form (8), d = 5, n = 20; mean over the seeds and the range between "
        "them. (a)-(c): distance of A_l to the multiples of Sigma^-1 (blue) and of I (red); dashed, the "
        "distance of Sigma^-1 itself to the multiples of I, at which red must end. (d): loss of the "
        "training batch and exact risk; dashed, the least risk on the set S of Theorem 3. The risk comes to "
        "this optimum. The optimum is not near 0; the paper's text says of its Figure 1d that it is."
    )

    layout = Layout("abcd", (1.85, 1.9), margin=0.2)

    def decorate(self, panels: Panels, records: Records) -> None:
        for layer, panel in enumerate("abc"):
            panels[panel].set(title=f"({panel}) $A_{layer}$", xlabel="step", ylim=(0, 1.02))
        panels["a"].set_ylabel("Dist")
        panels["d"].set(title="(d) loss", xlabel="step")
        log_axis(panels["d"])
        shared_legend(panels.values(), figure_of(panels["a"]), loc="outside lower center", ncols=6)

    def items(self, records: Records) -> list[Item]:
        run, arrays = records["run"], records["exact"].weights
        items: list[Item] = []
        for layer, panel in enumerate("abc"):
            blue, red = metric(run, f"dist_preconditioned_A{layer}"), metric(run, f"dist_plain_A{layer}")
            items.append(Curve(panel, r"$\Sigma^{1/2}A_\ell\Sigma^{1/2}$", BLUE, *blue))
            items.append(Curve(panel, r"$A_\ell$", RED, *red))
            items.append(Level(panel, r"$\Sigma^{-1}$", float(arrays["dist_inverse_R"].mean())))
        items.append(Curve("d", "batch", GREY, *metric(run, "loss"), {"linewidth": 0.6}))
        items.append(Curve("d", "exact risk", ORANGE, arrays["steps"], arrays["risk_RT"]))
        items.append(
            Level("d", f"optimum {float(arrays['optimal_risk']):.4f}", float(arrays["optimal_risk"]))
        )
        return items

    def claims(self, records: Records) -> list[Claim]:
        run, arrays = records["run"], records["exact"].weights
        layers = range(run.A.shape[1])
        blue_SLT = np.stack([metric(run, f"dist_preconditioned_A{layer}")[1] for layer in layers], axis=1)
        red_SLT = np.stack([metric(run, f"dist_plain_A{layer}")[1] for layer in layers], axis=1)
        return [
            _blue(blue_SLT),
            _red_end(red_SLT[..., -1], arrays["dist_inverse_R"]),
            _red_constant(red_SLT),
            *_risk(arrays),
            _red_after_the_transient(red_SLT, metric(run, "dist_plain_A0")[0]),
        ]


def _blue(blue_SLT: np.ndarray) -> Claim:
    start, end = blue_SLT[..., 0], blue_SLT[..., -1]
    measured = {
        "mean at the start": float(start.mean()),
        "mean at the end": float(end.mean()),
        "largest at the end": float(end.max()),
    }
    return Claim.of(
        "(a)-(c) every blue curve falls and ends below .05: A_l comes to a multiple of Sigma^-1",
        measured,
        all_of(
            "below .05 in every layer and seed, and below where it began",
            exact(end.max()).below(0.05),
            exact((end - start).max()).below(0.0),
        ),
    )


def _red_end(end_SL: np.ndarray, inverse_S: np.ndarray) -> Claim:
    off = float(np.abs(end_SL - inverse_S[:, None]).max())
    return Claim.of(
        "(a)-(c) every red curve ends at the distance of Sigma^-1 itself to the multiples of I",
        {
            "mean at the end": float(end_SL.mean()),
            "Sigma^-1": float(inverse_S.mean()),
            "largest difference": off,
        },
        exact(off).below(NEAR, f"difference below {NEAR}"),
    )


def _red_constant(red_SLT: np.ndarray) -> Claim:
    moved = float((red_SLT.max(-1) - red_SLT.min(-1)).max())
    measured = {"mean at the start": float(red_SLT[..., 0].mean()), "largest range of a curve": moved}
    return Claim.of(
        "(a)-(c) 'the red line remains constant' (section 4.3)",
        measured,
        exact(moved).below(
            0.05, "every red curve stays within a range of .05; it begins at the distance of a random matrix"
        ),
        expected="fails",
    )


def _red_after_the_transient(red_SLT: np.ndarray, steps_T: np.ndarray) -> Claim:
    later_SLT = red_SLT[..., steps_T >= TRANSIENT * steps_T[-1]]
    moved_SL = later_SLT.max(-1) - later_SLT.min(-1)
    return Claim.of(
        f"(a)-(c) the red line remains constant once the first {TRANSIENT:.0%} of the steps are taken",
        {
            "largest range by layer": moved_SL.max(0).tolist(),
            "largest range of a curve": float(moved_SL.max()),
        },
        exact(moved_SL.max()).below(0.05, "every red curve stays within a range of .05 from there on"),
        expected="fails",
        whose="project",
    )


def _risk(arrays: Mapping[str, np.ndarray]) -> list[Claim]:
    risk_S, optimum, null = (
        arrays["risk_RT"][:, -1],
        float(arrays["optimal_risk"]),
        float(arrays["null_risk"]),
    )
    excess = float(risk_S.max() / optimum - 1)
    return [
        Claim.of(
            "(d) the exact risk ends within 2 % of the least risk on S",
            {"optimum": optimum, "exact risk": float(risk_S.mean()), "largest excess": excess},
            exact(excess).below(0.02, "excess below .02 in every seed"),
        ),
        Claim.of(
            "(d) 'training converges to an almost 0 value' (section 4.3)",
            {
                "smallest exact risk": float(risk_S.min()),
                "of the risk at zero weights": float(risk_S.min() / null),
            },
            exact(risk_S.min()).below(
                ALMOST_ZERO * null,
                f"below {ALMOST_ZERO:.0%} of {null:g}, the risk at zero weights; the least on S is "
                f"{optimum:.4f}",
            ),
            expected="fails",
        ),
    ]
