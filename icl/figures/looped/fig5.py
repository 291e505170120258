"""Figure 5 of looped: long prompts. The gain comes to its limit, and a turn makes a segment a disc.

N context lengths, L loops, K sizes of the turn, D covariates.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from matplotlib import colormaps

from icl.errors import reals, rising, whole
from icl.figures.claims import Claim, exact, sampled
from icl.figures.figure import Figure, Layout, Panels, Records
from icl.figures.looped.loops import gains, project_claim
from icl.figures.runner import Runner
from icl.figures.style import GREY, exact_line, shared_legend
from icl.random import generator
from icl.theory.looped.equal_steps import EqualSteps
from icl.theory.looped.limit import best_turn

LONG = 10_000  # context length over dimension in the panels of eigenvalues
NEAR = 0.1  # of a radius: what one draw at finite d may differ by


@dataclass(eq=False)
class Fig5(Figure):
    """Record: `limits`, gains at d = 2, and eigenvalues of (I - A^T G) sqrt(n / d) on one prompt."""

    contexts: Sequence[int]
    loops: Sequence[int]
    dim: int
    sizes: Sequence[float]
    seed: int

    def __post_init__(self) -> None:
        self.contexts = rising("figure.contexts", self.contexts, 1, 10**9)
        self.loops = rising("figure.loops", self.loops, 2, 8)
        self.dim = whole("figure.dim", self.dim, 2)
        self.sizes = reals("figure.sizes", self.sizes, None, 0)
        self.seed = whole("figure.seed", self.seed, 0)

    def runs(self, runner: Runner) -> Records:
        return {"limits": runner.store("looped/limits", asdict(self), self._limits)}

    def _limits(self) -> dict[str, np.ndarray]:
        d, n = self.dim, LONG * self.dim
        rng = generator(self.seed, "eval")
        Z_DD, T_DD = rng.standard_normal((d, d)), np.tril(rng.standard_normal((d, d)), -1)
        T_DD += np.diag(rng.chisquare(n - np.arange(d)) ** 0.5)  # Bartlett: T T^T is that of n examples
        G_DD, turn_DD = T_DD @ T_DD.T / n, (Z_DD - Z_DD.T) / np.sqrt(2 * n)
        spectra = [np.linalg.eigvals(np.eye(d) - (np.eye(d) + k * turn_DD).T @ G_DD) for k in self.sizes]
        cells = [EqualSteps(2, n, L) for n in self.contexts for L in self.loops]
        return {
            "contexts_N": np.array(self.contexts),
            "loops_L": np.array(self.loops),
            "gain_NL": np.reshape(gains(cells), (len(self.contexts), len(self.loops))),
            "limit_L": np.array([1 - float(best_turn(L)[1]) for L in self.loops]),
            "sizes_K": np.array(self.sizes),
            "eigenvalues_KD": np.array(spectra) * np.sqrt(n / d),
        }

    def layout_of(self, records: Records) -> Layout:
        sizes = records["limits"].weights["sizes_K"]
        spectra = [rf"({chr(ord('b') + i)}) $\kappa$ = {k:g}" for i, k in enumerate(sizes)]
        return Layout(["(a) gain, d = 2", *spectra], (1.9, 2.1))

    def draw(self, panels: Panels, records: Records) -> None:
        arrays = records["limits"].weights
        (title, gain), *spectra = panels.items()
        for L, gain_N, limit in zip(arrays["loops_L"], arrays["gain_NL"].T, arrays["limit_L"], strict=True):
            color = colormaps["viridis"](0.9 - 0.9 * (L - 2) / 6)
            gain.plot(arrays["contexts_N"], gain_N, "o-", color=color, label=f"L = {L}")
            exact_line(gain, limit, "limit" if arrays["loops_L"][-1] == L else "")
        gain.set(title=title, xlabel="context length n", xscale="log", ylim=(-0.02, 1))
        circle = np.exp(1j * np.linspace(0, 2 * np.pi, 200))
        for (name, axes), k, values_D in zip(
            spectra, arrays["sizes_K"], arrays["eigenvalues_KD"], strict=True
        ):
            wide, high = half_axes(k)
            axes.plot(values_D.real, values_D.imag, ".", color=GREY, markersize=2)
            axes.plot(wide * circle.real, high * circle.imag, "k--", label="limit")
            axes.set(title=name, xlabel="real part", xlim=(-2.4, 2.4), ylim=(-2.4, 2.4), aspect="equal")
        spectra[0][1].set_ylabel("imaginary part")
        shared_legend([gain])

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["limits"].weights
        short = 1 - arrays["gain_NL"][-1] / arrays["limit_L"]
        largest_K = np.abs(arrays["eigenvalues_KD"]).max(1)
        limit_K = np.array([max(half_axes(k)) for k in arrays["sizes_K"]])
        return [
            project_claim(
                "the gain comes to its limit at every number of loops",
                {f"L = {L}": float(x) for L, x in zip(arrays["loops_L"], short, strict=True)},
                exact(np.abs(short)).below(0.1, "within a tenth of the limit at the longest context"),
            ),
            project_claim(
                "a Gaussian antisymmetric part turns the segment of eigenvalues into an ellipse and a disc",
                {"largest": largest_K.tolist(), "limits": limit_K.tolist()},
                sampled(np.abs(largest_K / limit_K - 1)).below(NEAR, "largest within a tenth of the limit's"),
            ),
        ]


def half_axes(size: float) -> tuple[float, float]:
    """Return those of the ellipse on which the eigenvalues of X + size K over sqrt(d) lie in the limit."""
    return 2 / (1 + size**2) ** 0.5, 2 * size**2 / (1 + size**2) ** 0.5
