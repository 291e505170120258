"""lu: the risk of given weights at finite d in closed form, against the mean loss on prompts drawn as tokens.

B prompts, L examples, K tasks, D covariates, H = D + 1 features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from icl.checks.lu.support.pretraining import LAWS, Array, Pretraining
from icl.checks.numbers import exact, finding, sampled
from icl.checks.settings import fits_in_memory, integer, validate
from icl.checks.verdict import QUANTILE, Control, Finding
from icl.errors import one_of, real
from icl.progress import track
from icl.random import generator
from icl.theory.lu.finite import FiniteRisk, TaskMoments

PIECES = 20
SOURCE = "a 99.9 % interval of the mean loss; the larger of new and old tasks"


@dataclass(eq=False)
class ExactRisk:
    """Dimension, examples l (`context`), k tasks, noise, `law` of the tasks; `samples` prompts drawn."""

    dim: int = integer(5, 1, 200, "the tokens do not fit in memory")
    context: int = integer(10, 1, 10**4, "the tokens do not fit in memory")
    tasks: int = integer(3, 1, 10**6, "they do not fit in memory")
    rho: float = 0.1
    law: str = "sphere"
    samples: int = 200_000
    seed: int = integer(0, 0)

    reference = "lu, Figures 1, 2 and 4: the risk of simulated weights; formula of the published code"
    claim = "The published formula is the risk of any weights of reduced linear attention, at any d."

    def __post_init__(self) -> None:
        validate(self)
        self.rho = real("check.rho", self.rho, 0)
        one_of("check.law", self.law, LAWS)
        each = (self.context + 1) * self.dim
        self.samples = fits_in_memory(self.samples, 1000, max(1, each // PIECES))

    def measure(self) -> Finding:
        rng, d = generator(self.seed, "check"), self.dim
        model = Pretraining(d, self.context, self.tasks, 4 * d * (d + 1), self.rho, law=self.law)
        Gamma_DH, w_KD = model.fit(rng)
        assert w_KD is not None
        Gamma_DH = Gamma_DH + rng.standard_normal(Gamma_DH.shape) / d  # any weights, not the best
        risks = [
            FiniteRisk(moments, self.context).risk(Gamma_DH)
            for moments in (TaskMoments.new(d, self.rho, self.law), TaskMoments.of(w_KD, self.rho))
        ]
        losses_B = [
            np.concatenate(both) for both in zip(*self._losses(rng, model, w_KD, Gamma_DH), strict=True)
        ]
        means = [float(loss_B.mean()) for loss_B in losses_B]
        stderrs = [float(loss_B.std() / len(loss_B) ** 0.5) for loss_B in losses_B]
        off = _worst(means, risks, stderrs)
        longer = FiniteRisk(TaskMoments.new(d, self.rho, self.law), 2 * self.context).risk(Gamma_DH)
        control = abs(means[0] - longer) / stderrs[0]
        return finding(
            [
                sampled(standard_errors_off=off)
                .means("larger deviation of the mean loss on tokens from the formula, in standard errors")
                .at_most(QUANTILE, SOURCE),
                exact(risk_new=risks[0], risk_old=risks[1])
                .means(
                    risk_new="risk on new tasks, by the formula",
                    risk_old="risk on the pretraining tasks, by the formula",
                )
                .compared_by("standard_errors_off", "Monte Carlo on tokens"),
                sampled(
                    loss_new=means[0],
                    loss_new_stderr=stderrs[0],
                    loss_old=means[1],
                    loss_old_stderr=stderrs[1],
                ).means(
                    loss_new="mean loss on tokens of new tasks",
                    loss_old="mean loss on those of the same tasks",
                ),
            ],
            Control("standard errors from the formula at twice the examples", control, control > QUANTILE),
        )

    def _losses(
        self, rng: np.random.Generator, model: Pretraining, w_KD: Array, Gamma_DH: Array
    ) -> list[tuple[Array, Array]]:
        pieces = np.array_split(np.arange(self.samples), min(PIECES, self.samples))
        return [
            (
                token_losses(rng, model.draw_tasks(rng, len(piece)), self.context, self.rho, Gamma_DH),
                token_losses(
                    rng, w_KD[rng.integers(len(w_KD), size=len(piece))], self.context, self.rho, Gamma_DH
                ),
            )
            for piece in track(pieces, "prompts drawn as tokens", len(pieces))
        ]


def token_losses(rng: np.random.Generator, w_BD: Array, context: int, rho: float, Gamma_DH: Array) -> Array:
    """Draw a prompt of each of the tasks, token by token, and return the squared errors."""
    B, D = w_BD.shape
    x_BLD = rng.standard_normal((B, context + 1, D)) / D**0.5
    y_BL = (x_BLD @ w_BD[..., None])[..., 0] + rho**0.5 * rng.standard_normal((B, context + 1))
    sums_BD = (y_BL[:, None, :-1] @ x_BLD[:, :-1])[:, 0]
    h_BH = np.hstack([D * sums_BD, np.square(y_BL[:, :-1]).sum(1, keepdims=True)]) / context
    predicted_B = ((x_BLD[:, -1] @ Gamma_DH) * h_BH).sum(1)
    return np.asarray(np.square(y_BL[:, -1] - predicted_B))


def _worst(means: Sequence[float], risks: Sequence[float], stderrs: Sequence[float]) -> float:
    return max(abs(m - r) / s for m, r, s in zip(means, risks, stderrs, strict=True))
