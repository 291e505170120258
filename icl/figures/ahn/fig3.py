"""Figure 3 of ahn: (11) trained with w ~ N(0, Sigma^{-1}) comes towards S, and what its loss is worth."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from icl.figures.ahn.almost_zero import ALMOST_ZERO
from icl.figures.ahn.fig4 import ON_S
from icl.figures.claims import Claim, all_of, exact, sampled, searched
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.items import Curve, Item, Level, metric
from icl.figures.style import BLUE, GREY, ORANGE, RED, SKY, log_axis, shared_legend

QUANTILE = 3.2905  # 99.9 %, two-sided
PLAIN_LOSS = "plain training prompts"
PANELS_OF_B, PANELS_OF_A = ("a", "b"), ("d", "e", "f")


class Fig3(Drawing):
    caption = (
        "Training of three layers of the form (11), d = 5; mean over the seeds and the range between them. "
        "(a), (b): distance of B_0 and B_1 to the multiples of I. (c): risk at the weights, from weighted "
        "prompts that show its tail; the exact risk of the weights projected on the set S of Theorem 4; "
        "what a fresh batch of the paper's 20,000 plain prompts shows at the same weights. Dashed, the best "
        "point of S found from many starts; dotted, the least risk any polynomial of that degree could have. "
        "(d)-(f): distance of A_l to the multiples of Sigma^-1 (blue) and of I (red); dashed, Sigma^-1 "
        "itself. (g): the same training on plain prompts, its own loss and the exact risk of its weights "
        "projected on S. The risk is a moment of degree 26 of the prompt's spectrum: rare prompts carry it. "
        "At smoke and laptop scale L-BFGS is run in whitened coordinates on one fixed set of weighted "
        "prompts; the same on plain prompts ends at a risk that no batch shows (see the claims). Adam on "
        "fresh plain prompts as in the paper is scale=paper."
    )

    layout = Layout((*"abcgdef", "legend"), (1.9, 1.9), columns=4)

    def decorate(self, panels: Panels, records: Records) -> None:
        for layer, panel in enumerate(PANELS_OF_B):
            panels[panel].set(title=f"({panel}) $B_{layer}$", xlabel="step", ylim=(0, 1.02))
        for layer, panel in enumerate(PANELS_OF_A):
            panels[panel].set(title=f"({panel}) $A_{layer}$", xlabel="step", ylim=(0, 1.02))
        for panel in ("a", "d"):
            panels[panel].set_ylabel("Dist")
        for panel, title in (("c", "loss"), ("g", "loss, plain prompts")):
            panels[panel].set(title=f"({panel}) {title}", xlabel="step")
            log_axis(panels[panel])
        panels["legend"].axis("off")
        parts = [panels[panel] for panel in ("c", "g", "f")]
        shared_legend(parts, panels["legend"], loc="upper left", bbox_to_anchor=(-0.15, 1.05))

    def items(self, records: Records) -> list[Item]:
        run, arrays = records["run"], records["exact"].weights
        items: list[Item] = [
            Curve(panel, rf"$B_{layer}$", BLUE, *metric(run, f"dist_B{layer}"))
            for layer, panel in enumerate(PANELS_OF_B)
        ]
        best, bound = float(arrays["best_risk"]), float(arrays["lower_bound"])
        items += [
            Curve("c", "risk at the weights", BLUE, arrays["steps"], arrays["risk_RT"]),
            Curve("c", "risk, projected on S", ORANGE, *metric(run, "risk_on_s")),
            Curve("c", "batch of 20,000", GREY, arrays["steps"], arrays["batch_RT"], {"linewidth": 0.7}),
            Level("c", f"best on S found {best:.3g}", best),
            Level("c", f"lower bound {bound:.3g}", bound, "dotted"),
        ]
        plain = records["plain"]
        items += [
            Curve("g", "risk, projected on S", ORANGE, *metric(plain, "risk_on_s")),
            Curve("g", PLAIN_LOSS, SKY, *metric(plain, "loss")),
            Level("g", f"best on S found {best:.3g}", best),
        ]
        for layer, panel in enumerate(PANELS_OF_A):
            blue, red = metric(run, f"dist_preconditioned_A{layer}"), metric(run, f"dist_plain_A{layer}")
            items.append(Curve(panel, r"$\Sigma^{1/2}A_\ell\Sigma^{1/2}$", BLUE, *blue))
            items.append(Curve(panel, r"$A_\ell$", RED, *red))
            items.append(Level(panel, r"$\Sigma^{-1}$", float(arrays["dist_inverse_R"].mean())))
        return items

    def claims(self, records: Records) -> list[Claim]:
        run, arrays = records["run"], records["exact"].weights
        names = {f"B_{layer}": f"dist_B{layer}" for layer in range(run.B.shape[1])}
        names |= {f"A_{layer}": f"dist_preconditioned_A{layer}" for layer in range(run.A.shape[1])}
        curves = {name: metric(run, column)[1] for name, column in names.items()}
        red_SL = np.stack([metric(run, f"dist_plain_A{i}")[1][:, -1] for i in range(run.A.shape[1])], axis=1)
        blue_SL = np.stack([curves[f"A_{i}"][:, -1] for i in range(run.A.shape[1])], axis=1)
        return [
            *(_falls(name, y_ST, run.run["seeds"]) for name, y_ST in curves.items()),
            Claim.of(
                "(d)-(f) every A_l ends nearer to the multiples of Sigma^-1 than to those of I",
                {"blue": blue_SL.mean(0).tolist(), "red": red_SL.mean(0).tolist()},
                exact((blue_SL - red_SL).max()).below(0.0, "blue below red in every layer and seed"),
            ),
            _beyond_descent(arrays, run.run["seeds"]),
            _understated(arrays, metric(records["plain"], "loss")[1][:, -1], run.run["seeds"]),
            _almost_zero(arrays),
            _to_zero(arrays),
        ]


def _falls(name: str, y_ST: np.ndarray, seeds: list[int]) -> Claim:
    start_S, end_S = y_ST[:, 0], y_ST[:, -1]
    what = f"Dist({name}, I)" if name.startswith("B") else f"Dist(Sigma^1/2 {name} Sigma^1/2, I)"
    return Claim.of(
        f"{what} falls ('appears to be decreasing to 0', section 5.1)",
        {
            "mean from": float(start_S.mean()),
            "to": float(end_S.mean()),
            "by seed": {
                str(seed): [float(a), float(b)] for seed, a, b in zip(seeds, start_S, end_S, strict=True)
            },
        },
        all_of(
            f"the end below {ON_S} in every seed, and below the start",
            exact(end_S.max()).below(ON_S),
            exact((end_S - start_S).max()).below(0.0),
        ),
    )


def _beyond_descent(arrays: Mapping[str, np.ndarray], seeds: list[int]) -> Claim:
    """Compare the risk by weighted prompts, not what a batch shows, with that of descent."""
    risk_R, stderr_R, best = arrays["risk_R"], arrays["risk_stderr_R"], float(arrays["without_b"])
    minima_M = arrays["minima_M"]
    nearest_R = np.abs(np.log(arrays["risk_on_s_R"][:, None] / minima_M)).argmin(1)
    return Claim.of(
        "(c) the risk at the weights, its tail included, ends below that of any three steps of "
        "preconditioned descent, which is all that S allows without B",
        {
            "without B": best,
            "by seed": {
                str(seed): {
                    "at the weights": float(risk_R[r]),
                    "standard error": float(stderr_R[r]),
                    "projected on S": float(arrays["risk_on_s_R"][r]),
                    "nearest minimum on S": float(minima_M[nearest_R[r]]),
                    "its rank": int(nearest_R[r]) + 1,
                }
                for r, seed in enumerate(seeds)
            },
            "minima found on S": len(minima_M),
        },
        sampled(
            [x for x, e in zip(risk_R, stderr_R, strict=True)],
            [QUANTILE * float(e) for x, e in zip(risk_R, stderr_R, strict=True)],
        ).below(best, "below in every seed, 99.9 % interval"),
        whose="project",
    )


def _understated(arrays: Mapping[str, np.ndarray], loss_S: np.ndarray, seeds: list[int]) -> Claim:
    ratio_S = arrays["plain_risk_on_s_R"] / np.median(arrays["plain_projected_batch_RK"], axis=1)
    return Claim.of(
        "(c) a batch of 20,000 plain prompts need not show the risk: after training on plain prompts, exact "
        "risk of the weights projected on S over the median loss of fresh batches at the same point",
        {
            "ratio by seed": dict(zip(map(str, seeds), ratio_S.tolist(), strict=True)),
            "loss of the training prompts": float(loss_S.mean()),
            "at the weights themselves the median fresh batch": float(np.median(arrays["plain_batch_RK"])),
            "least and largest": [
                float(arrays["plain_batch_RK"].min()),
                float(arrays["plain_batch_RK"].max()),
            ],
        },
        sampled(ratio_S.max()).above(2.0, "ratio above 2 in at least one seed"),
        remarks=[
            "The curve of (c) is a loss over 20,000 prompts. On the set of Theorem 4 rare prompts carry the "
            f"risk; weights trained on such prompts had a risk up to {ratio_S.max():.2g} times what a batch "
            "shows. Trained on weighted prompts that show the tail they come to the set."
        ],
        whose="project",
    )


def _almost_zero(arrays: Mapping[str, np.ndarray]) -> Claim:
    best, null = float(arrays["best_risk"]), float(arrays["null_risk"])
    return Claim.of(
        "(c) our reading of 'almost 0', by the threshold of Figure 1: S has points whose risk is that small; "
        "where training ends is shown beside it and not asked",
        {
            "best found": best,
            "of the risk at zero weights": best / null,
            "the same where training ended, mean over seeds": float(arrays["risk_R"].mean()) / null,
        },
        searched(best).below(
            ALMOST_ZERO * null, f"below {ALMOST_ZERO:.0%} of {null:g}, the risk at zero weights"
        ),
        trained=False,
        whose="project",
    )


def _to_zero(arrays: Mapping[str, np.ndarray]) -> Claim:
    bound, best = float(arrays["lower_bound"]), float(arrays["best_risk"])
    return Claim.of(
        "(c) 'the loss appears to be converging to 0' (section 5.1): S has points of risk 0 or close to it",
        {
            "lower bound": bound,
            "best found": best,
            "of the risk at zero weights": best / float(arrays["null_risk"]),
        },
        exact(bound).below(
            0.0,
            "the lower bound would have to be 0; it is the least of E tr q(S)^2 over all polynomials q of "
            "degree 13 with q(0) = 1, exact in rationals",
        ),
        expected="fails",
        trained=False,
    )
