"""Figure 1 of ahn: (8) trained with w ~ N(0, Sigma^{-1}) converges to A_l = a_l Sigma^{-1}; its risk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from string import ascii_lowercase

import numpy as np

from icl.figures.ahn.almost_zero import ALMOST_ZERO
from icl.figures.claims import Claim, all_of, exact
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.items import Curve, Item, Level, metric
from icl.figures.style import BLUE, GREY, ORANGE, RED, figure_of, is_leftmost, log_axis, shared_legend

NEAR = 0.02  # of the red curves' end
TRANSIENT = 0.1  # of the steps
NEAR_OPTIMUM = "(d) the exact risk ends within 2 % of the least risk on S"
ALMOST_ZERO_SAID = "(d) 'training converges to an almost 0 value' (section 4.3)"


class Fig1(Drawing):
    caption = (
        "Training of {layers} layers of the form (8), d = {dim}, n = {context}; mean over the seeds and the "
        "range between them. {matrices}: distance of A_l to the multiples of Sigma^-1 (blue) and of I "
        "(red); dashed, the distance of Sigma^-1 itself to the multiples of I, to which the red curves must "
        "converge. {loss}: loss of the training batch and exact risk; dashed, the least risk on the set S of "
        "Theorem 3. The risk converges to this optimum, which is not near 0; the paper's text calls it "
        "almost 0."
    )

    def caption_of(self, records: Records) -> str:
        arrays, (through, loss) = records["exact"].weights, _named_panels(records)
        layers = records["run"].A.shape[1]
        numbers = {"dim": int(arrays["dim"]), "context": int(arrays["context"]), "layers": layers}
        return self.caption.format(matrices=through, loss=loss, **numbers)

    def layout_of(self, records: Records) -> Layout:
        panels = "".join(_panels(records))
        return Layout(panels, (1.85, 1.9), columns=min(4, len(panels)), margin=0.2)

    def decorate(self, panels: Panels, records: Records) -> None:
        matrices, loss = _panels(records)
        for layer, panel in enumerate(matrices):
            panels[panel].set(title=f"({panel}) $A_{layer}$", xlabel="step", ylim=(0, 1.02))
            if is_leftmost(panels[panel]):
                panels[panel].set_ylabel("Dist")
        panels[loss].set(title=f"({loss}) loss", xlabel="step")
        log_axis(panels[loss])
        shared_legend(panels.values(), figure_of(panels["a"]), loc="outside lower center", ncols=6)

    def items(self, records: Records) -> list[Item]:
        run, arrays = records["run"], records["exact"].weights
        items: list[Item] = []
        matrices, loss = _panels(records)
        for layer, panel in enumerate(matrices):
            blue, red = metric(run, f"dist_preconditioned_A{layer}"), metric(run, f"dist_plain_A{layer}")
            items.append(Curve(panel, r"$\Sigma^{1/2}A_\ell\Sigma^{1/2}$", BLUE, *blue))
            items.append(Curve(panel, r"$A_\ell$", RED, *red))
            items.append(Level(panel, r"$\Sigma^{-1}$", float(arrays["dist_inverse_R"].mean())))
        items.append(Curve(loss, "batch", GREY, *metric(run, "loss"), {"linewidth": 0.6}))
        if "risk_RT" in arrays:
            items.append(Curve(loss, "exact risk", ORANGE, arrays["steps"], arrays["risk_RT"]))
        items.append(
            Level(loss, f"optimum {float(arrays['optimal_risk']):.4f}", float(arrays["optimal_risk"]))
        )
        return items

    def claims(self, records: Records) -> list[Claim]:
        run, arrays = records["run"], records["exact"].weights
        layers = range(run.A.shape[1])
        blue_SLT = np.stack([metric(run, f"dist_preconditioned_A{layer}")[1] for layer in layers], axis=1)
        red_SLT = np.stack([metric(run, f"dist_plain_A{layer}")[1] for layer in layers], axis=1)
        claims = [
            _blue(blue_SLT),
            _red_end(red_SLT[..., -1], arrays["dist_inverse_R"]),
            _red_constant(red_SLT),
            *_risk(arrays),
            _red_after_the_transient(red_SLT, metric(run, "dist_plain_A0")[0]),
        ]
        through, loss = _named_panels(records)
        return [
            replace(claim, claim=claim.claim.replace("(a)-(c)", through).replace("(d)", loss))
            for claim in claims
        ]


def _panels(records: Records) -> tuple[str, str]:
    """Return a letter for each A_l, and one for the loss."""
    layers = records["run"].A.shape[1]
    return ascii_lowercase[:layers], ascii_lowercase[layers]


def _named_panels(records: Records) -> tuple[str, str]:
    """Return `(a)-(c)` and `(d)`, as captions and claims name the panels."""
    matrices, loss = _panels(records)
    return f"({matrices[0]})" + (f"-({matrices[-1]})" if len(matrices) > 1 else ""), f"({loss})"


def _blue(blue_SLT: np.ndarray) -> Claim:
    start, end = blue_SLT[..., 0], blue_SLT[..., -1]
    measured = {
        "mean at the start": float(start.mean()),
        "mean at the end": float(end.mean()),
        "largest at the end": float(end.max()),
    }
    return Claim.of(
        "(a)-(c) every blue curve falls and ends below .05: A_l converges to a multiple of Sigma^-1",
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
            0.05,
            "every red curve stays within a range of .05; at the start it is the distance of a random matrix",
        ),
        expected="fails",
    )


def _red_after_the_transient(red_SLT: np.ndarray, steps_T: np.ndarray) -> Claim:
    later_SLT = red_SLT[..., steps_T >= TRANSIENT * steps_T[-1]]
    moved_SL = later_SLT.max(-1) - later_SLT.min(-1)
    return Claim.of(
        f"(a)-(c) the red line remains constant after the first {TRANSIENT:.0%} of the steps",
        {
            "largest range by layer": moved_SL.max(0).tolist(),
            "largest range of a curve": float(moved_SL.max()),
        },
        exact(moved_SL.max()).below(0.05, "every red curve stays within a range of .05 from there on"),
        expected="fails",
        at_paper="holds",
        whose="project",
    )


def _risk(arrays: Mapping[str, np.ndarray]) -> list[Claim]:
    if "risk_RT" not in arrays:
        reason = "the exact risk of more than three layers is not known"
        return [Claim.undecided(claim, reason) for claim in (NEAR_OPTIMUM, ALMOST_ZERO_SAID)]
    risk_S, optimum, null = (
        arrays["risk_RT"][:, -1],
        float(arrays["optimal_risk"]),
        float(arrays["null_risk"]),
    )
    excess = float(risk_S.max() / optimum - 1)
    return [
        Claim.of(
            NEAR_OPTIMUM,
            {"optimum": optimum, "exact risk": float(risk_S.mean()), "largest excess": excess},
            exact(excess).below(0.02, "excess below .02 in every seed"),
        ),
        Claim.of(
            ALMOST_ZERO_SAID,
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
