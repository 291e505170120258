"""Figure 2 of depth: fixed covariance at infinite depth, eigenvalues of Gamma and the loss over time.

K eigenvalues, T times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

from icl.errors import rising, whole
from icl.figures.claims import Claim, exact
from icl.figures.depth.computed import Computed, own
from icl.figures.figure import Layout, Panels, Records
from icl.figures.style import BLUE, GREEN, ORANGE, RED, exact_curve, exact_line
from icl.theory.depth.flow import Spectrum

COLORS = BLUE, ORANGE, GREEN


@dataclass(eq=False)
class Fig2(Computed):
    shown: Sequence[int]
    decades: int
    layout = Layout(("gamma", "slope"), (3.2, 2.5))

    def __post_init__(self) -> None:
        super().__post_init__()
        self.shown = rising("figure.shown", self.shown, 1, 1000)[: len(COLORS)]
        self.decades = whole("figure.decades", self.decades, 4, 12)

    @property
    def _top(self) -> float:
        return self.nu * self.beta + 2 * self.nu + 1  # omega_k lambda_k^3 = k^-top

    @property
    def _slopes(self) -> tuple[float, float]:
        """Return the corrected exponent and the printed one."""
        nu, beta = self.nu, self.beta
        return -nu * beta / self._top, -beta / (nu + nu * beta + 1)

    def compute(self) -> dict[str, np.ndarray]:
        times_T = np.logspace(0, self.decades, 20 * self.decades + 1)
        k_K1, law = np.array(self.shown, dtype=float)[:, None], Spectrum.endless(self.nu, self.beta)
        lam_K1, rate_K1 = k_K1**-self.nu, k_K1**-self._top
        path = solve_ivp(
            lambda _, g_K: (rate_K1 / lam_K1)[:, 0] * np.exp(-2 * lam_K1[:, 0] * g_K),
            (0, times_T[-1]),
            np.zeros(len(k_K1)),
            "LSODA",
            t_eval=times_T,
            rtol=1e-10,
            atol=1e-12,
        )
        grown_TK = 2 * times_T[:, None] * law.lambda_K ** (self._top / self.nu)
        return {
            "times_T": times_T,
            "flow_KT": path.y,
            "corrected_KT": np.log1p(2 * rate_K1 * times_T) / (2 * lam_K1),
            "printed_KT": np.log1p(4 * rate_K1 * times_T) / (2 * lam_K1),
            "loss_T": (1 / (1 + grown_TK)) @ law.weight_K,
        }

    def draw(self, panels: Panels, records: Records) -> None:
        arrays, (gamma, slope) = records["computed"].weights, panels.values()
        times_T, loss_T = arrays["times_T"], arrays["loss_T"]
        for i, k in enumerate(self.shown):
            gamma.plot(times_T, arrays["flow_KT"][i], color=COLORS[i], label=f"k = {k}, flow")
            label = "printed solution" if i == 0 else ""
            gamma.plot(times_T, arrays["printed_KT"][i], ":", color=RED, label=label)
            label = "corrected solution" if i == 0 else ""
            exact_curve(gamma, times_T, arrays["corrected_KT"][i], label)
        middle_T, step = np.sqrt(times_T[1:] * times_T[:-1]), times_T[1] / times_T[0]
        slope.plot(middle_T, np.diff(np.log(loss_T)) / np.log(step), color=BLUE, label="of the sum")
        exact_line(slope, self._slopes[0], f"corrected, {self._slopes[0]:.4f}")
        exact_line(slope, self._slopes[1], f"printed, {self._slopes[1]:.4f}", color=RED, linestyle=":")
        gamma.set(ylabel="$\\gamma_k$", xscale="log")
        slope.set(ylabel="slope of log loss in log t")
        for axes in panels.values():
            axes.set(xlabel="time t", xscale="log")
            axes.legend()

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["computed"].weights
        flow_KT, loss_T = arrays["flow_KT"], arrays["loss_T"]
        off, printed = (
            float(np.abs(arrays[name] / flow_KT - 1).max()) for name in ("corrected_KT", "printed_KT")
        )
        slope = float(np.log10(loss_T[-1] / loss_T[-21]))
        ours, theirs = self._slopes
        return [
            Claim.of(
                "the solution of the flow of Result 4 is ln(1 + 4 omega lambda^3 t) / (2 lambda)",
                {"largest share off the flow": printed, "of the one with 2": off},
                exact(printed).at_most(1e-6, "share off at most 1e-6"),
                expected="fails",
                trained=False,
            ),
            own(
                "it is ln(1 + 2 omega lambda^3 t) / (2 lambda)",
                {"largest share off the flow": off},
                exact(off).at_most(1e-6, "share off at most 1e-6"),
            ),
            own(
                "the slope of the loss over the last decade is the corrected exponent, not the printed one",
                {"slope": slope, "corrected": ours, "printed": theirs},
                exact(abs(slope - ours)).below(
                    abs(theirs - ours) / 10, "distance from the corrected one below a tenth of theirs"
                ),
            ),
        ]
