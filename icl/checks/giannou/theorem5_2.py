"""giannou, Theorem 5.2: linear attention with ReLU layers takes damped Newton steps on the logistic loss.

Appendix C's construction, piecewise linear where the proof has step functions, against exact steps.
D covariates, N context, T steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from icl.checks.giannou.support.mutants import least_wrong, or_infinite
from icl.checks.giannou.support.step_error import (
    MAX_STEPS,
    NewtonSteps,
    Trajectory,
    error_of_step,
    fitted_slope,
    inversion_steps,
    rounding,
    rows_off,
    step_error_bound,
)
from icl.checks.giannou.support.step_layers import LayerByLayer, compare_functions
from icl.checks.numbers import Numbers, exact, finding, tried
from icl.checks.settings import integer
from icl.checks.verdict import Finding
from icl.constructions.giannou.describe import describe
from icl.constructions.giannou.logistic import prompt_of_theorem
from icl.models.giannou.columns import ColumnStack
from icl.random import generator
from icl.theory.logistic import LogisticLoss, damped_newton

REMARKS = [
    "(C.2) is declared as (7d+5) x n, but lists 6d+4 rows, as in Remark 5.3. The two layers of Lemma 4.1 "
    "need the block of zeros. One layer per inversion step would suffice: X <- 2 X - X B^T X, started at "
    "X = alpha B as layer 3 leaves it, converges to the transpose of the inverse, which step 8 can read "
    "transposed. The depth would be 10 + k instead of 11 + 2k.",
    "The depth is 11 + 2k for k inversion steps. Section 6 counts 13 layers per Newton step, which is k = 1.",
    "The width of the main text, O(d (1+mu)^8 / (eps^4 mu^10)), differs from Theorem 5.1's, O(d (1+mu)^6 "
    "/ (eps^4 mu^8)). Piecewise linear ReLU layers need eps^{-1/2} neurons, because the error decreases "
    "as N^{-2}. The step functions of the proof need eps^{-1}, and the proof loses a square root in the "
    "step size, which is not necessary because lambda multiplies it.",
    "Steps 3 and 7 need three heads. H_{2k+4} has the identity in block 2, but no layer writes it there; "
    "the last head of the inversion can. The ReLU layer of step 6 is not needed, because y p = sigma(-z) "
    "+ (y - 1)/2 is linear in y.",
    "Step 7 writes u_4 for the u_3 of step 5.",
]


@dataclass(eq=False)
class Theorem5_2(NewtonSteps):
    """Settings: sizes, mu, neurons for each function (`width`), inversion steps k, Newton steps, seed."""

    reference = "Theorem 5.2; Appendix C"
    claim = (
        "11 + 2k layers of linear attention and ReLU take one step of damped Newton on the regularised "
        "logistic loss, and any number of steps in a row, with an error of eps if the width is of order "
        "eps^{-4}."
    )

    steps: int = integer(12, 1, MAX_STEPS)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.fits_in_memory(1)

    def measure(self) -> Finding:
        rng = generator(self.seed, "check")
        loss, setting = self.losses(rng, 1), self.setting(1.0)
        x_BD = torch.from_numpy(rng.standard_normal((1, self.dim)))
        x_BD = x_BD / x_BD.norm()
        step, by = setting.step(self.width), setting.approximations(self.width)
        prompt_PM = prompt_of_theorem(step, loss.A_BND, loss.y_BN, x_BD)[0]
        layers = LayerByLayer.of(step, setting, by, prompt_PM)
        rate = self._rate(loss, x_BD)
        return finding(
            [
                *self._steps(step, loss, x_BD),
                tried(layer_over_rounding=layers.over_rounding())
                .means(
                    "largest difference of a layer from the operation stated for it, over its rounding error"
                )
                .at_most(1.0, "rounding of the layer's terms"),
                *compare_functions(by, setting),
                rate,
            ],
            least_wrong(
                "the error of a wrong head in its own layer, over rounding", dict(layers.wrong()), 1.0
            ),
            notes=[
                "Every layer is compared with the operation that is stated for it, on its own input. The "
                "functions of the ReLU layers are compared between their knots with their error bounds "
                "(relu_errors).",
                *([] if rate.verdict == "holds" or not self._few_inversions else [self._what_decides()]),
            ],
            remarks=REMARKS,
            details=describe(step),
        )

    def _steps(self, step: ColumnStack, loss: LogisticLoss, x_BD: Tensor) -> list[Numbers]:
        """Compare steps in a row with exact ones, and the stack's sizes with those stated."""
        its, setting = Trajectory.of(step, loss.A_BND, loss.y_BN, x_BD, self.steps), self.setting(1.0)
        errors_T = its.step_errors(loss)[:, 0]
        allowed = [float(step_error_bound(setting, self.width, loss, at_BD)) for at_BD in its.x_TBD[:-1]]
        half = 2 * (self.width // 2)  # a square twice for each of the D entries, p once for each label
        stated_neurons = [self.width, self.dim * half + 2, half, 6, self.width, 2]
        neurons = [layer.relu.width for layer in step.layers if layer.relu is not None]
        stated = (11 + 2 * self.k, 3, 6 * self.dim + 4, stated_neurons)
        optimum_BD = damped_newton(loss, torch.zeros_like(x_BD)).x_BD
        return [
            tried(error_over_bound=or_infinite(float(np.max(errors_T / np.array(allowed)))))
            .means("largest error of a constructed Newton step over its bound")
            .at_most(
                1.0,
                "errors of the ReLU layers and of the inversion, propagated through each step, plus rounding",
            ),
            exact(sizes_off=int((len(step.layers), step.heads, step.width, neurons) != stated))
            .means("number, 0 or 1, that is 1 if layers, heads, rows or neurons differ from those stated")
            .by_definition()
            .at_most(0.5, "the claim"),
            exact(rows_off=rows_off(step, its.H_BPM, loss, x_BD))
            .means("largest change of the rows that must not change")
            .compared_by("layer_over_rounding", "each layer and the operation stated for it")
            .at_most(rounding(setting, self.width), "rounding: as for a step"),
            tried(
                step_error=or_infinite(float(errors_T.max())),
                error_by_step=errors_T.tolist(),
                bound_by_step=allowed,
                final_distance_to_optimum=float((its.x_TBD[-1] - optimum_BD).norm()),
            ).means(
                step_error="largest error of a constructed Newton step",
                error_by_step="error of a constructed Newton step, by step",
                bound_by_step="bound of that error, by step",
                final_distance_to_optimum="distance of the last step from the minimum",
            ),
            exact(layers=len(step.layers), inversion=self.k, heads=step.heads, width=step.width).means(
                layers="number of layers of a step",
                inversion="number of inversion steps k",
                heads="number of heads",
                width="number of rows",
            ),
            exact(neurons=step.neurons).means("number of neurons of a step"),
        ]

    def _rate(self, loss: LogisticLoss, x_BD: Tensor) -> Numbers:
        """Return the exponent of the error by width, and errors by width and by steps of inversion."""
        widths, ks = sorted({max(32, self.width // 2**i) for i in range(5)}), range(1, self.k + 1)
        setting, narrow = self.setting(1.0), min(self.width, 500)
        errors = [error_of_step(setting, width, loss, x_BD) for width in widths]
        bounds = [float(step_error_bound(setting, width, loss, x_BD)) for width in widths]
        by_inversion = [error_of_step(self.setting(1.0, k), narrow, loss, x_BD) for k in ks]
        # With fewer inversion steps than width asks for, their error hides that of the width.
        slope = (
            tried(slope=fitted_slope(setting, widths, errors))
            .means("slope of the log error of a step in the log width")
            .at_most(
                -0.25,
                "the claim, a width of order eps^-4",
                otherwise="undecided" if self._few_inversions else "fails",
            )
        )
        described = tried(
            error_by_width={"widths": widths, "errors": errors},
            bound_by_width={"widths": widths, "bounds": bounds},
            error_by_inversion={"steps": [float(k) for k in ks], "errors": by_inversion},
        ).means(
            error_by_width="error of a step, by width",
            bound_by_width="bound of that error, by width",
            error_by_inversion="error of a step, by number of inversion steps",
        )
        return Numbers([*slope, *described])

    @property
    def _few_inversions(self) -> bool:
        return self.k < inversion_steps(self.mu)

    def _what_decides(self) -> str:
        return (
            f"undecided: the error of {self.k} inversion steps hides the error that depends on the width; "
            "check.inversion=null takes as many inversion steps as mu needs."
        )
