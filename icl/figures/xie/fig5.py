"""Figure 5 of xie: y_q-LSA against one step of gradient descent, by risk and by predictions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from icl import quantiles
from icl.figures.claims import Claim, sampled
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.items import Item, Level, Quantiles
from icl.figures.style import BLUE, GREEN, RED, log_axis
from icl.figures.xie import series
from icl.figures.xie.claims import ends_at, minibatches, not_below

SMALL = 0.05  # of GD's prediction or gradient, root mean square
COSINE = 0.99
LEVEL = 0.999
DIGITS = 1e-6  # of GD's risk: a smaller excess is not compared


class Fig5(Drawing):
    caption = (
        "y_q-LSA, one head with a trained guess y_q = <v, x_q>. (a) Exact risk during training, by the "
        "squared norm of the prior mean; mean over the seeds and the range between them; dashed, one step of "
        "gradient descent from w* at the best step size. (b) The metrics of C.2 at the stored weights, "
        "against that step on the same prompts, which training never saw: the size of the difference of the "
        "predictions, the norm of the difference of their gradients in x_q (which is at least the difference "
        "of the norms), and the cosine between the gradients; medians with 10 % and 90 % quantiles over the "
        "prompts of all seeds. At laptop scale training is on the population risk, and the dotted curves of "
        "(a) are short runs on fresh tasks each step, as the paper trained, with fewer steps and a larger "
        "rate. The paper's rate and batch size are not in our copy of its text; those at paper scale are a "
        "guess."
    )

    layout = Layout(("a", "b", "b, cosine"), (2.6, 2.2))

    def items(self, records: Records) -> list[Item]:
        arrays, aligned = records["exact"].weights, records["alignment"].weights
        steps_S = aligned["steps_S"]
        dashed = {"linestyle": "--"}
        return [
            *series.losses("a", r"$\|w^*\|^2$", "squared_X", arrays),
            Level("a", "one-step GD", float(arrays["gd"])),
            Quantiles("b", "predictions", BLUE, steps_S, aligned["prediction_SQ"]),
            Quantiles("b", "gradients", RED, steps_S, aligned["gradient_SQ"], dashed),
            Quantiles("b, cosine", "cosine", GREEN, steps_S, aligned["cosine_SQ"]),
        ]

    def decorate(self, panels: Panels, records: Records) -> None:
        arrays, aligned = records["exact"].weights, records["alignment"].weights
        for axes in panels.values():
            series.step_axis(axes, arrays["steps_S"][-1])
        panels["a"].set(title="(a) training", ylabel="risk")
        log_axis(panels["a"])
        series.legend(panels["a"], loc="upper right", labelspacing=0.2)
        squared = rf"$\|w^*\|^2 = {float(aligned['squared']):g}$"
        panels["b"].set(title=f"(b) differences, {squared}", yscale="log", ylabel="difference to GD")
        panels["b"].legend(loc="lower left")
        panels["b, cosine"].set(title="(b) cosine of the gradients", ylim=(None, 1.02))

    def claims(self, records: Records) -> list[Claim]:
        arrays, aligned = records["exact"].weights, records["alignment"].weights
        final_XR, gd = arrays["risk_XRS"][..., -1], float(arrays["gd"])
        gd_X = np.full(len(final_XR), gd)
        return [
            ends_at(
                "the trained risk is that of one-step GD for every prior mean",
                final_XR,
                gd_X,
                [f"|w*|^2 = {s:g}" for s in arrays["squared_X"]],
            ),
            not_below("one-step GD is a lower bound for y_q-LSA (section 4.2)", final_XR, gd),
            _to_zero("prediction", aligned),
            _to_zero("gradient", aligned),
            _cosine(aligned["cosine_mean_RS"]),
            _same(aligned, gd),
            *minibatches(arrays, "squared_X", "|w*|^2", gd_X),
        ]


def _to_zero(what: str, aligned: Mapping[str, np.ndarray]) -> Claim:
    ratio_RS = np.sqrt(aligned[f"{what}_square_RS"] / aligned[f"descent_{what}_R"][:, None])
    return Claim.of(
        f"the difference of the {what}s converges to 0",
        {"at the start": float(ratio_RS[:, 0].mean()), "largest at the end": float(ratio_RS[:, -1].max())},
        sampled(ratio_RS[:, -1].max()).below(
            SMALL,
            f"root mean square over the prompts below {SMALL:.0%} of that of GD's {what}s in every seed",
        ),
    )


def _cosine(cosine_RS: np.ndarray) -> Claim:
    return Claim.of(
        "the gradients align: their cosine ends at 1",
        {"at the start": float(cosine_RS[:, 0].mean()), "least at the end": float(cosine_RS[:, -1].min())},
        sampled(cosine_RS[:, -1].min()).above(COSINE, f"mean over the prompts above {COSINE} in every seed"),
    )


def _same(aligned: Mapping[str, np.ndarray], gd: float) -> Claim:
    """GD is the least risk of a class that is linear in its predictions, so the rest is orthogonal to it."""
    excess_S, square_S = aligned["risk_RS"].mean(0) - gd, aligned["gradient_square_RS"].mean(0)
    stderr_RS = aligned["gradient_stderr_RS"]
    stderr_S = np.sqrt(np.square(stderr_RS).sum(0)) / len(stderr_RS)
    seen_S = excess_S > DIGITS * gd
    off_S, width_S = (part_S[seen_S] / excess_S[seen_S] for part_S in (square_S - excess_S, stderr_S))
    limit = quantiles.normal((1 - LEVEL) / 2 / max(int(seen_S.sum()), 1))
    return Claim.of(
        "(a) and (b) agree: the mean square of the gradients' difference is the risk above GD's",
        {
            "steps compared": int(seen_S.sum()),
            "largest relative difference": float(np.abs(off_S).max()),
            "in standard errors": float((np.abs(off_S) / width_S).max()),
        },
        sampled((np.abs(off_S) / width_S).max()).below(
            limit,
            f"within a {LEVEL:.1%} interval at all stored steps with an excess above {DIGITS:g} of GD's risk",
        ),
        trained=False,
    )
