"""Figure 3 of looped: training of a shared layer leaves the multiples of Sigma^-1."""

from __future__ import annotations

import numpy as np

from icl.figures.claims import Claim, all_of, exact
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.items import Curve, Item, Level, Points, metric
from icl.figures.style import BLUE, GREY, ORANGE, RED, log_axis


class Fig3(Drawing):
    caption = (
        "Training of one layer applied four times, d = 2, n = 20, from small random weights; mean over the "
        "seeds "
        "and the range between them. (a) a and b of the eigenvalues a +- ib of the whitened A; dashed, "
        "those of "
        "the best matrix; dotted, the best multiple of I. (b) Exact risk; dashed, the risks of the scalar "
        "saddle and of the minimum. (c) Descent by the exact gradient from a random matrix and from a "
        "multiple "
        "of I, which it never leaves. (d) The spectrum of A at the end in the complex plane."
    )

    layout = Layout("abcd", (1.95, 2.0))

    def items(self, records: Records) -> list[Item]:
        run, arrays = records["run"], records["exact"].weights
        saddle, best = float(arrays["scalar_risk"]), float(arrays["best_risk"])
        steps_T = np.arange(len(arrays["random_risk_T"]))
        return [
            Curve("a", "a", ORANGE, *metric(run, "spectrum_real")),
            Curve("a", "b", BLUE, *metric(run, "spectrum_imag")),
            Level("a", "best A", float(arrays["best_a"])),
            Level("a", "", float(arrays["best_b"])),
            Level("a", "best multiple", float(arrays["scalar_a"]), ":"),
            Curve("b", "batch", GREY, *metric(run, "loss"), {"linewidth": 0.6}),
            Curve("b", "exact risk", ORANGE, *metric(run, "exact_risk")),
            Level("b", f"saddle {saddle:.4f}", saddle, ":"),
            Level("b", f"minimum {best:.4f}", best),
            Curve("c", "from random", BLUE, steps_T, arrays["random_risk_T"][None]),
            Curve("c", "from $aI$", RED, steps_T, arrays["scalar_risk_T"][None]),
            Level("c", "saddle", saddle, ":"),
            Level("c", "minimum", best),
            *(
                Points("d", label, colour, real_X, imag_X[:, None], marker)
                for label, colour, real_X, imag_X, marker in (
                    ("trained", BLUE, arrays["real_RD"].ravel(), arrays["imag_RD"].ravel(), "o"),
                    (
                        "best",
                        RED,
                        np.array([float(arrays["best_a"])] * 2),
                        np.array([1.0, -1.0]) * float(arrays["best_b"]),
                        "x",
                    ),
                    ("best multiple", GREY, np.array([float(arrays["scalar_a"])]), np.zeros(1), "s"),
                )
            ),
        ]

    def decorate(self, panels: Panels, records: Records) -> None:
        titles = {
            "a": "(a) $a \\pm ib$",
            "b": "(b) loss",
            "c": "(c) exact descent",
            "d": "(d) spectrum of $A$",
        }
        for name, title in titles.items():
            panels[name].set(title=title, xlabel="real part" if name == "d" else "step")
            panels[name].legend(loc="best", fontsize=5.5)
        panels["a"].set_ylim(0, 1)
        panels["d"].set(ylabel="imaginary part", xlim=(0, 1.2), ylim=(-0.6, 0.6))
        log_axis(panels["b"])
        log_axis(panels["c"])

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["exact"].weights
        saddle, best = float(arrays["scalar_risk"]), float(arrays["best_risk"])
        risk_R = arrays["trained_risk_R"]
        b = float(arrays["best_b"])
        imag_R = np.abs(arrays["imag_RD"]).max(1)
        stuck = float(arrays["scalar_risk_T"][-1])
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
                {"from random": float(arrays["random_risk_T"][-1]), "from a multiple": stuck},
                all_of(
                    "within 1 % of the minimum, and not below the saddle",
                    exact(arrays["random_risk_T"][-1] / best - 1).below(0.01),
                    exact(stuck / saddle - 1).above(-1e-9),
                ),
                trained=False,
                whose="project",
            ),
        ]
