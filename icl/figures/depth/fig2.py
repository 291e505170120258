"""Figure 2 of depth: fixed covariance at infinite depth, eigenvalues of Gamma and the loss over time.

K eigenvalues, T times.
"""

from dataclasses import dataclass

import numpy as np

from icl.figures.claims import Claim, exact
from icl.figures.depth.computed import Computed, own, reached
from icl.figures.figure import Layout, Panels, Records
from icl.figures.style import BLUE, GREEN, ORANGE, RED, exact_line
from icl.theory.depth.flow import Spectrum
from icl.theory.depth.power_law import PowerLaw, slope

SHOWN = {1: BLUE, 2: ORANGE, 4: GREEN}  # k
FACTORS = {"corrected": 2, "printed": 4}  # of ln(1 + factor omega lambda^3 t) / (2 lambda)
TIMES = np.logspace(0, 10, 201)
CLOSE = 1e-6


@dataclass(eq=False)
class Fig2(Computed):
    layout = Layout(("gamma", "slope"), (3.2, 2.5))

    def compute(self) -> dict[str, np.ndarray]:
        k_K, sums = np.array([*SHOWN], dtype=float), Spectrum.endless(self.nu, self.beta)
        top = self.nu * self.beta + 2 * self.nu + 1  # omega_k lambda_k^3 = k^-top
        lam_K, rate_K = k_K**-self.nu, k_K**-top
        found, law = {}, PowerLaw.at(self.nu, self.beta)
        for name, factor in FACTORS.items():
            grown_KT = 1 + factor * rate_K[:, None] * TIMES
            found[f"{name}_KT"] = np.log(grown_KT) / (2 * lam_K[:, None])
            flow_KT = np.exp(-2 * lam_K[:, None] * found[f"{name}_KT"])  # over omega lambda^2
            found[f"{name}_speed_KT"] = factor / (2 * grown_KT) / flow_KT
        loss_T = 1 / (1 + 2 * TIMES[:, None] * sums.lambda_K ** (top / self.nu)) @ sums.weight_K
        late = slope(lambda t: law.fixed(2 * t))
        exponents = [-self.nu * self.beta / top, -self.beta / (self.nu + self.nu * self.beta + 1)]
        return {
            **found,
            "slope_T": np.diff(np.log(loss_T)) / np.diff(np.log(TIMES)),
            "late": np.array([float(late.mid()), float(late.rad())]),
            "exponents": np.array(exponents),
        }

    def draw(self, panels: Panels, records: Records) -> None:
        arrays, (gamma, slope) = records["computed"].weights, panels.values()
        for i, (k, color) in enumerate(SHOWN.items()):
            gamma.plot(TIMES, arrays["corrected_KT"][i], color=color, label=f"k = {k}")
            gamma.plot(TIMES, arrays["printed_KT"][i], ":", color=RED, label="printed" if k == 4 else "")
        slope.plot(TIMES[1:], arrays["slope_T"], color=BLUE, label="of the sum")
        for name, value, style in zip(FACTORS, arrays["exponents"], ("--", ":"), strict=True):
            exact_line(slope, value, f"{name}, {value:.4f}", linestyle=style)
        gamma.set(ylabel="$\\gamma_k$")
        slope.set(ylabel="slope of log loss in log t")
        for axes in panels.values():
            axes.set(xlabel="time t", xscale="log")
            axes.legend()

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["computed"].weights
        (late, radius), (ours, theirs) = arrays["late"].tolist(), arrays["exponents"].tolist()
        speeds = {name: arrays[f"{name}_speed_KT"] for name in FACTORS}
        decided = {name: exact(abs(x_KT - 1)).at_most(CLOSE, "1 to 1e-6") for name, x_KT in speeds.items()}
        shown = {name: {"its speed over the flow's, at most": float(x.max())} for name, x in speeds.items()}
        return [
            Claim.of(
                "the solution of the flow of Result 4 is ln(1 + 4 omega lambda^3 t) / (2 lambda)",
                shown["printed"],
                decided["printed"],
                expected="fails",
                trained=False,
            ),
            own("it is ln(1 + 2 omega lambda^3 t) / (2 lambda)", shown["corrected"], decided["corrected"]),
            reached(
                "the slope of the loss tends to -nu beta / (nu beta + 2 nu + 1)",
                {"slope between t = 1e400 and 1e600": late, "corrected": ours, "printed": theirs},
                exact(abs(late / ours - 1), radius / abs(ours)),
                CLOSE,
            ),
        ]
