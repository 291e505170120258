"""How far one constructed step of Theorem 5.2 may be from an exact damped Newton step: proved, then measured.

x - x* = eta^ X^ b^ - eta H^{-1} g with the construction's step size, inverse and gradient under the hats. B
problems with |a_i| <= 1, N context, D dim.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from icl.checks.giannou.support.mutants import or_infinite
from icl.checks.giannou.support.problems import LogisticProblems
from icl.checks.settings import in_range, integer
from icl.constructions.giannou.logistic import (
    Approximations,
    approximations,
    newton_step,
    prompt_of_theorem,
    radius_of_iterates,
)
from icl.errors import whole
from icl.models.giannou.columns import ColumnStack
from icl.theory.logistic import LogisticLoss
from icl.theory.quadratic import EPSILON

MAX_INVERSION = 64
MAX_STEPS = 200
MAX_NUMBERS = 20_000_000  # of the widest ReLU layer's weights and activations


@dataclass(eq=False)
class NewtonSteps(LogisticProblems):
    """And neurons for each function (`width`), inversion steps k (null: what mu takes), Newton steps."""

    width: int = integer(2000, 64)
    inversion: int | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        k = inversion_steps(self.mu) if self.inversion is None else self.inversion
        self.k = whole("check.inversion", k, 1, MAX_INVERSION)
        if self.steps is not None:
            whole("check.steps", self.steps, 1, MAX_STEPS)

    def fits_in_memory(self, prompts: int) -> None:
        """Refuse too many neurons for each function: the layer of products has dim times as many."""
        most = MAX_NUMBERS // (self.dim * (2 * (6 * self.dim + 4) + self.context * prompts))
        reason = "the layer of products takes more than a gigabyte"
        in_range("check.width", self.width, 64, max(most, 64), reason)

    def setting(self, start: float, inversion: int | None = None) -> StepSetting:
        """Return what a step is built for, |x_0| at most `start`."""
        return StepSetting(self.dim, self.context, self.mu, start, self.k if inversion is None else inversion)


@dataclass(frozen=True)
class StepSetting:
    """Sizes that a step is built for; `start` bounds |x_0|."""

    dim: int
    context: int
    mu: float
    start: float
    inversion: int

    def approximations(self, width: int) -> Approximations:
        """Return the piecewise linear functions of the ReLU layers."""
        return approximations(self.mu, width, radius_of_iterates(self.mu, self.start))

    def step(self, width: int) -> ColumnStack:
        """Build the stack of one step."""
        by = self.approximations(width)
        return newton_step(self.dim, self.context, self.mu, self.inversion, by)


def inversion_steps(mu: float) -> int:
    """Return the least k whose residual (1 - mu^2 alpha)^{2^k}, alpha = 2/(mu^2 + (mu + 1/4)^2), is below
    2^-52 mu."""
    ratio = ((mu + 0.25) / mu) ** 2
    residual = (ratio - 1) / (ratio + 1)
    return next(k for k in range(1, MAX_INVERSION) if residual ** (2.0**k) <= EPSILON * min(mu, 1.0))


def step_error_bound(setting: StepSetting, width: int, loss: LogisticLoss, x_BD: Tensor) -> Tensor:
    """Return (B,) bounds of |x - x*| for a step from x; infinite where the Hessian's error could make it
    singular.

    E1, the Hessian's error, is at most |u| |A^T A / n| + |A| |U| with the ReLU layers' u in p (1 - p) and U
    in d_i a_ij / n. k steps of inversion leave E2 = rho^{2^k} / low. db is the gradient's error, so that of
    the direction is ds = (db + E1 |H^{-1} g|) / low + E2 |b^|, and of lambda^2 dl = |b^| ds + db |H^{-1}
    g|. Then |lambda^ - lambda| <= min(sqrt(dl), dl / lambda), and eta = c / (c + lambda), c = 2 sqrt(mu),
    moves by at most that over c + lambda: where |H^{-1} g| ~ lambda multiplies it, no square root is lost.
    """
    by, N, D = setting.approximations(width), setting.context, setting.dim
    spectrum_BD = torch.linalg.eigvalsh(loss.hessian(x_BD))
    direction_BD, lambda_B = loss.newton_direction(x_BD)
    gradient_B, direction_B = loss.gradient(x_BD).norm(dim=-1), direction_BD.norm(dim=-1)
    second_B = torch.linalg.matrix_norm(loss.A_BND, 2) ** 2 / N  # |A^T A / n|
    E1_B = by.variance.error * second_B + N * (second_B * D) ** 0.5 * by.product_error(N)
    low_B, high_B = (spectrum_BD[:, 0] - E1_B).clamp_min(0), spectrum_BD[:, -1] + E1_B
    rho_B = torch.maximum((1 - by.alpha * low_B**2).abs(), (1 - by.alpha * high_B**2).abs())
    E2_B = rho_B ** (2.0**setting.inversion) / low_B
    db_B = by.probability.error * loss.A_BND.norm(dim=-1).mean(-1)
    ds_B = (db_B + E1_B * direction_B) / low_B + E2_B * (gradient_B + db_B)
    dl_B = (gradient_B + db_B) * ds_B + db_B * direction_B
    c = 2 * setting.mu**0.5
    moved_B = torch.minimum(dl_B.sqrt(), dl_B / lambda_B) / (c + lambda_B)
    damping_B = (by.step_size.error + moved_B) * (direction_B + ds_B)
    total_B = damping_B + c / (c + lambda_B) * ds_B + rounding(setting, width)
    return torch.where(low_B > 0, total_B, torch.inf)


def rounding(setting: StepSetting, width: int) -> float:
    """Return 2^-52 times the additions along one entry's path, through an inverse and its use: 1/mu twice."""
    operations = 4 * width + 8 * (6 * setting.dim + 4 + setting.context) * (setting.inversion + 6)
    return EPSILON * operations * (1 + 1 / setting.mu) ** 2


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Steps of the stack in a row from one prompt, or a batch: x before each and after, and H at the end."""

    x_TBD: Tensor
    H_BPM: Tensor

    @classmethod
    def of(cls, step: ColumnStack, A_BND: Tensor, y_BN: Tensor, x_BD: Tensor, steps: int) -> Trajectory:
        """Take so many steps from x."""
        H_BPM = prompt_of_theorem(step, A_BND, y_BN, x_BD)
        x_TBD = [x_BD]
        for _ in range(steps):
            H_BPM = step(H_BPM)
            x_TBD.append(step.block(H_BPM, "x")[..., 0])
        return cls(torch.stack(x_TBD), H_BPM)

    def step_errors(self, loss: LogisticLoss) -> np.ndarray:
        """Return |x_{t+1} - exact step from x_t| for every step and problem."""
        errors = [
            (x - loss.damped_step(before)).norm(dim=-1)
            for before, x in zip(self.x_TBD, self.x_TBD[1:], strict=False)
        ]
        return torch.stack(errors).numpy()


def error_of_step(setting: StepSetting, width: int, loss: LogisticLoss, x_BD: Tensor) -> float:
    """Return the error of one step from x, infinity where it is no number."""
    its = Trajectory.of(setting.step(width), loss.A_BND, loss.y_BN, x_BD, 1)
    return or_infinite(float(its.step_errors(loss).max()))


def fitted_slope(setting: StepSetting, widths: list[int], errors: list[float]) -> float:
    """Return the slope of log error against log width, where errors are above rounding; nan for fewer than
    two."""
    kept = [
        (w, e)
        for w, e in zip(widths, errors, strict=True)
        if e > rounding(setting, w) / 10 and np.isfinite(e)
    ]
    if len(kept) < 2:
        return float("nan")
    return float(np.polyfit(np.log([w for w, _ in kept]), np.log([e for _, e in kept]), 1)[0])


def rows_off(step: ColumnStack, H_BPM: Tensor, loss: LogisticLoss, x_BD: Tensor) -> float:
    """Return how far the rows other than x are from the prompt's, and x's columns from each other."""
    off_BPM = (H_BPM - prompt_of_theorem(step, loss.A_BND, loss.y_BN, x_BD)).abs()
    off_BPM[:, step.rows["x"]] = 0
    x_BDM = step.block(H_BPM, "x")
    return or_infinite(max(float(off_BPM.max()), float((x_BDM - x_BDM[..., :1]).abs().max())))
