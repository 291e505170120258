"""giannou, Theorem 5.2: linear attention with ReLU layers takes damped Newton steps on the logistic loss.

Appendix C's construction, piecewise linear where the proof has step functions, against exact steps.
D covariates, N context, T steps.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from icl.algorithms.logistic import LogisticLoss, damped_newton
from icl.checks.giannou.mutants import mutants, or_infinite
from icl.checks.giannou.problems import classified, regularisation, sizes
from icl.checks.giannou.step_error import (
    MAX_INVERSION,
    Setting,
    Trajectory,
    inversion_steps,
    rounding,
    step_error_bound,
)
from icl.checks.settings import limited
from icl.checks.verdict import Bound, Control, Finding, decide, deciding
from icl.constructions.giannou.describe import describe
from icl.constructions.giannou.logistic import prompt_of_theorem
from icl.errors import whole
from icl.models.columns import ColumnStack, forward
from icl.random import generator

MAX_NUMBERS = 20_000_000  # of the widest ReLU layer's weights and activations
PRINTED_EXPONENT = -0.25  # width ~ eps^-4
REMARKS = [
    "(C.2) is declared (7d+5) x n; the rows listed there are 6d+4, as Remark 5.3 says. The block of zeros is "
    "what Lemma 4.1's two layers need. One layer would do for each step of inversion: X <- 2 X - X B^T X, "
    "from X = alpha B as layer 3 leaves it, goes to the inverse's transpose, which step 8 can read "
    "transposed. Depth would be 10 + k in place of 11 + 2k.",
    "Depth is 11 + 2k for k steps of inversion; section 6 says 13 per Newton step, which is k = 1, and "
    "counts no more.",
    "The width of the main text, O(d (1+mu)^8 / (eps^4 mu^10)), differs from Theorem 5.1's, O(d (1+mu)^6 / "
    "(eps^4 mu^8)). Piecewise linear ReLU layers need eps^{-1/2} neurons: the error falls as N^{-2}. The "
    "proof's step functions need eps^{-1}, and lose a square root in the step size that is not there, as "
    "lambda multiplies it.",
    "Steps 3 and 7 need three heads. H_{2k+4} shows the identity in block 2, but nothing puts it there: "
    "the last head of the inversion can. Step 6's ReLU layer is not needed: y p = sigma(-z) + (y - 1)/2 "
    "is linear in y.",
    "Step 7 writes u_4 for the u_3 of step 5.",
]


class Theorem5_2:
    """Settings: sizes, mu, neurons for each function (`width`), inversion steps k, Newton steps, seed."""

    reference = "Theorem 5.2; Appendix C"
    claim = (
        "11 + 2k layers of linear attention and ReLU take one damped Newton step on the regularised "
        "logistic loss, any number in a row, with an error that any width N ~ eps^{-4} makes as small as "
        "eps."
    )

    def __init__(
        self,
        dim: int = 5,
        context: int = 26,
        mu: float = 0.1,
        width: int = 2000,
        inversion: int | None = None,
        steps: int = 12,
        seed: int = 0,
    ) -> None:
        self.dim, self.context = sizes(dim, context)
        self.mu = regularisation(mu)
        self.width = affordable(width, dim, context)
        k = inversion_steps(self.mu) if inversion is None else inversion
        self.inversion = whole("check.inversion", k, 1, MAX_INVERSION)
        self.steps = whole("check.steps", steps, 1, 200)
        self.seed = whole("check.seed", seed, 0)

    def measure(self) -> Finding:
        rng = generator(self.seed, "check")
        A_BND, y_BN = classified(rng, 1, self.context, self.dim)
        x_BD = torch.from_numpy(rng.standard_normal((1, self.dim)))
        x_BD = x_BD / x_BD.norm()
        loss, setting = LogisticLoss(A_BND, y_BN, self.mu), self._setting(self.inversion)
        widths = sorted({max(32, self.width // 2**i) for i in range(5)})
        errors = [_error(setting, width, loss, x_BD) for width in widths]
        step = setting.step(self.width)
        trajectory = Trajectory.of(step, A_BND, y_BN, x_BD, self.steps)
        by_step = trajectory.step_errors(loss)[:, 0]
        restored = _restored(step, trajectory.H_BPM, loss, x_BD)
        start_off = self._start_off(step, loss, x_BD)
        optimum_BD = damped_newton(loss, torch.zeros_like(x_BD)).x_BD
        slope = fitted_slope(setting, widths, errors)
        allowed = [
            float(step_error_bound(setting, self.width, loss, before_BD))
            for before_BD in trajectory.x_TBD[:-1]
        ]
        ratio = or_infinite(float(np.max(by_step / np.array(allowed))))
        source = "the ReLU layers' and the inversion's errors carried through each step, and rounding"
        bound = Bound(1.0, source, "error_over_bound")
        depth = Bound(0.5, "the claim: 11 + 2k", "layers_off")
        rate = Bound(PRINTED_EXPONENT, "the claim: width ~ eps^-4", "slope")
        kept = Bound(rounding(setting, self.width), "rounding: as for a step", "rows_off")
        begun = Bound(rounding(setting, self.width), "rounding: as for a step", "inversion_start_off")
        verdict, shown = deciding(
            [
                (decide(ratio, bound.value), bound),
                (decide(abs(len(step.layers) - 11 - 2 * self.inversion), depth.value), depth),
                (decide(restored, kept.value), kept),
                (decide(start_off, begun.value), begun),
                (self._rate(slope), rate),
            ]
        )
        name, wrong = self._least_wrong(step, loss, x_BD)
        by = setting.approximations(self.width)
        return Finding(
            verdict,
            {
                "error_over_bound": ratio,
                "step_error": or_infinite(float(by_step.max())),
                "error_by_step": by_step.tolist(),
                "bound_by_step": allowed,
                "error_by_width": {"widths": widths, "errors": errors},
                "bound_by_width": {
                    "widths": widths,
                    "bounds": [float(step_error_bound(setting, width, loss, x_BD)) for width in widths],
                },
                "slope": slope,
                "error_by_inversion": self._by_inversion(loss, x_BD),
                "layers": len(step.layers),
                "layers_off": abs(len(step.layers) - 11 - 2 * self.inversion),
                "inversion": self.inversion,
                "heads": step.heads,
                "width": step.width,
                "neurons": step.neurons,
                "rows_off": restored,
                "inversion_start_off": start_off,
                "final_distance_to_optimum": float((trajectory.x_TBD[-1] - optimum_BD).norm()),
                "relu_errors": {
                    "p(1-p)": by.variance.error,
                    "d_i a_ij / n": by.product_error(self.context),
                    "p": by.probability.error,
                    "step size": by.step_size.error,
                },
                "neurons_of_step_functions": {
                    "p(1-p)": 4 / by.variance.error,
                    "p": 2 / by.probability.error,
                    "step size": 2 / by.step_size.error,
                },
            },
            shown,
            Control(
                f"the first step's error over its bound, of the least wrong stack: {name}",
                wrong / allowed[0],
                wrong > allowed[0],
            ),
            remarks=REMARKS,
            details=describe(step),
        )

    def _start_off(self, step: ColumnStack, loss: LogisticLoss, x_BD: Tensor) -> float:
        """|X - alpha B^T| / |alpha B| after layer 4: what the inversion starts from."""
        alpha, D = self._setting(self.inversion).approximations(64).alpha, self.dim
        H_BPM = prompt_of_theorem(step, loss.A_BND, loss.y_BN, x_BD)
        for layer in step.layers[:4]:
            H_BPM = forward(layer, H_BPM)
        X_BDD, B_BDD = (step.block(H_BPM, name)[..., :D] for name in "XR")
        return or_infinite(float((X_BDD - alpha * B_BDD.mT).norm() / (alpha * B_BDD).norm()))

    def _rate(self, slope: float) -> str:
        """With fewer inversion steps than width asks for, their error hides that of the width."""
        verdict = decide(slope, PRINTED_EXPONENT)
        return "undecided" if verdict == "fails" and self.inversion < inversion_steps(self.mu) else verdict

    def _setting(self, inversion: int) -> Setting:
        return Setting(self.dim, self.context, self.mu, 1.0, inversion)

    def _by_inversion(self, loss: LogisticLoss, x_BD: Tensor) -> dict[str, list[float]]:
        ks = list(range(1, self.inversion + 1))
        width = min(self.width, 500)
        return {
            "steps": [float(k) for k in ks],
            "errors": [_error(self._setting(k), width, loss, x_BD) for k in ks],
        }

    def _least_wrong(self, step: ColumnStack, loss: LogisticLoss, x_BD: Tensor) -> tuple[str, float]:
        """Of the last inversion step's layers and all after it.

        Earlier ones may be wrong at no cost: a sign of s where p (1 - p) is even, an early step of an
        iteration that corrects itself, a transposition of what is symmetric.
        """
        states = step.every_layer(prompt_of_theorem(step, loss.A_BND, loss.y_BN, x_BD))
        expected_BD = loss.damped_step(x_BD)
        last = len(step.layers)
        wrong = {}
        for number, name, layer in mutants(step, range(last - 9, last)):
            H_BPM = forward(layer, states[number])
            for later in step.layers[number + 1 :]:
                H_BPM = forward(later, H_BPM)
            off = float((step.block(H_BPM, "x")[..., 0] - expected_BD).norm())
            wrong[name] = max(or_infinite(off), _restored(step, H_BPM, loss, x_BD))
        nearest = min(wrong, key=lambda name: wrong[name])
        return nearest, wrong[nearest]


def affordable(width: int, dim: int, context: int) -> int:
    """Neurons for each function; the layer of products has dim times as many."""
    whole("check.width", width, 64)
    most = MAX_NUMBERS // (dim * (2 * (6 * dim + 4) + context))
    reason = "the layer of products takes more than a gigabyte"
    return limited("check.width", width, 64, max(most, 64), reason)


def fitted_slope(setting: Setting, widths: list[int], errors: list[float]) -> float:
    """Of log error against log width, where errors are above rounding; nan for fewer than two."""
    kept = [
        (w, e)
        for w, e in zip(widths, errors, strict=True)
        if e > rounding(setting, w) / 10 and np.isfinite(e)
    ]
    if len(kept) < 2:
        return float("nan")
    return float(np.polyfit(np.log([w for w, _ in kept]), np.log([e for _, e in kept]), 1)[0])


def _error(setting: Setting, width: int, loss: LogisticLoss, x_BD: Tensor) -> float:
    """Of one step from x."""
    its = Trajectory.of(setting.step(width), loss.A_BND, loss.y_BN, x_BD, 1)
    return or_infinite(float(its.step_errors(loss).max()))


def _restored(step: ColumnStack, H_BPM: Tensor, loss: LogisticLoss, x_BD: Tensor) -> float:
    """How far the rows other than x are from the prompt's."""
    off_BPM = (H_BPM - prompt_of_theorem(step, loss.A_BND, loss.y_BN, x_BD)).abs()
    off_BPM[:, step.rows["x"]] = 0
    x_BDM = step.block(H_BPM, "x")
    return or_infinite(max(float(off_BPM.max()), float((x_BDM - x_BDM[..., :1]).abs().max())))
