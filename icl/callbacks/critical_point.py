"""The risk and its gradient at a run's weights: exact, or sampled with their standard errors.

R replicas, C chunks of prompts, K numbers of a matrix.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pytorch_lightning as pl
import torch
from torch import Tensor

from icl.callbacks.metrics import MetricCallback
from icl.errors import whole
from icl.models import Transformer
from icl.random import generator
from icl.tasks.estimators import norm_and_stderr
from icl.tasks.law import Law
from icl.text import brief
from icl.training.hooks import Row
from icl.training.module import EnsembleModule

CHUNKS = 16
SIGMAS = 4.0  # of a Student variable with CHUNKS - 1 degrees of freedom each: about 99.9 %


class CriticalPoint:
    """Distance to a critical point of the population risk: the norm of its gradient, by matrix."""

    def __init__(self, model: Transformer, law: Law, seeds: Sequence[int], samples: int) -> None:
        self.seeds, self.samples = tuple(seeds), samples
        self.exact = law.exact_risk(model)
        self.estimator = next(iter(law.estimators(model).values()))()  # that of least variance

    def measure(self, model: Transformer, step: int, exact_R: Tensor | None = None) -> dict[str, Tensor]:
        """Return `gradient_norm` and that of each matrix, with their standard errors (zero where exact), and
        the risk where it is sampled.

        `model` is in float64 on the CPU; `step` names the prompts, which training never sees; `exact_R` is
        the exact risk of this very model where it is known already.
        """
        risks: Iterable[Tensor] = self._estimates(model, step)
        if self.exact is not None:
            risks = [self.exact(model) if exact_R is None else exact_R]
        parameters = list(model.parametrization.parameters())
        values, grads = [], []
        for risk_R in risks:
            grads.append(torch.autograd.grad(risk_R.sum(), parameters))
            values.append(risk_R.detach())
        found: dict[str, Tensor] = {}
        if self.exact is None:
            found["risk_estimate"], found["risk_estimate_stderr"] = _mean_and_stderr(values)
            found |= self._plain(model, step)
        flat: dict[str, Tensor] = {}
        for name, parts in zip(model.parametrization.shapes(), zip(*grads, strict=True), strict=True):
            by_matrix = torch.stack(parts).flatten(2, -3)  # (C, R, matrices, rows, columns)
            flat |= {f"_{name}{i}": grad.flatten(2) for i, grad in enumerate(by_matrix.unbind(2))}
        for label, grad_CRK in {"": torch.cat([*flat.values()], dim=-1), **flat}.items():
            norm_R, stderr_R = norm_and_stderr(grad_CRK)
            found |= {f"gradient_norm{label}": norm_R, f"gradient_norm{label}_stderr": stderr_R}
        return found

    def risk(self, model: Transformer, step: int) -> tuple[Tensor, Tensor]:
        """Return the risk and its standard error, zero where it is exact."""
        with torch.no_grad():
            if self.exact is not None:
                risk_R = self.exact(model)
                return risk_R, torch.zeros_like(risk_R)
            return _mean_and_stderr(self._estimates(model, step))

    def _plain(self, model: Transformer, step: int) -> dict[str, Tensor]:
        """Return the risk on a batch of the law's own prompts, where those of the estimator are others."""
        plain = self.estimator.plain
        if plain is None:
            return {}
        streams = [generator(seed, "check", step) for seed in self.seeds]
        size = max(self.samples // CHUNKS, 1)
        with torch.no_grad():
            risks = (plain.risk(model, plain.draw(streams, size)) for _ in range(CHUNKS))
            risk_R, stderr_R = _mean_and_stderr(risks)
        return {"risk_plain_batch": risk_R, "risk_plain_batch_stderr": stderr_R}

    def _estimates(self, model: Transformer, step: int) -> Iterator[Tensor]:
        streams = [generator(seed, "eval", step) for seed in self.seeds]
        for _ in range(CHUNKS):
            yield self.estimator.risk(model, self.estimator.draw(streams, max(self.samples // CHUNKS, 1)))


def _mean_and_stderr(risks: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
    risk_CR = torch.stack(list(risks))
    return risk_CR.mean(0), risk_CR.std(0) / math.sqrt(len(risk_CR))


class CriticalPointGradient(MetricCallback):
    """Norm of the population risk's gradient in each matrix, with its standard error where it is sampled,
    from `samples` prompts."""

    def __init__(self, count: int = 8, steps: Sequence[int] | None = None, samples: int = 20_000) -> None:
        super().__init__(count, steps)
        self.samples = whole("CriticalPointGradient.samples", samples, 64, 10**7)
        self._advice = ""

    def on_train_start(self, trainer: pl.Trainer, pl_module: EnsembleModule) -> None:  # type: ignore[override]
        super().on_train_start(trainer, pl_module)
        self._of = CriticalPoint(pl_module.model, pl_module.law, pl_module.seeds, self.samples)
        self._advice = "" if pl_module.settings.estimator == "tilted" else ": train.estimator=tilted"

    def measure(self, pl_module: EnsembleModule, step: int) -> Mapping[str, Tensor]:
        exact_R = None if pl_module.exact_risk is None else pl_module.snapshot.exact_risk_R
        return self._of.measure(pl_module.snapshot.model, step, exact_R)

    def remarks(self, last_rows: Sequence[Row]) -> Sequence[str]:
        """Return a remark for each seed whose plain batch and weighted prompts differ by more than their
        errors."""
        found = []
        for row in last_rows:
            plain, risk = row.get("risk_plain_batch"), row.get("risk_estimate")
            if plain is None or risk is None:
                continue
            error = math.hypot(row["risk_plain_batch_stderr"], row["risk_estimate_stderr"])
            if abs(plain - risk) > SIGMAS * error:
                role = "dominate" if risk > 2 * plain else "make the difference"
                found.append(
                    f"seed {row['seed']}: the population risk is about {brief(risk, 2)} although a batch of "
                    f"{self.samples:,} prompts shows {brief(plain, 2)}; rare prompts {role}{self._advice}"
                )
        return found


class TaskRisks(MetricCallback):
    """Risks of finitely many tasks: on the tasks themselves, `risk_old`, and on those they were drawn from,
    `risk_new`, each with its standard error: zero where it is exact, else from `samples` prompts, with the
    same contexts for both. At the end always.
    """

    at_end = True

    def __init__(self, count: int = 8, steps: Sequence[int] | None = None, samples: int = 20_000) -> None:
        super().__init__(count, steps)
        self.samples = whole("TaskRisks.samples", samples, 64, 10**8)
        self._risks: dict[str, CriticalPoint] = {}

    def on_train_start(self, trainer: pl.Trainer, pl_module: EnsembleModule) -> None:  # type: ignore[override]
        super().on_train_start(trainer, pl_module)
        new = getattr(pl_module.law, "new_tasks", None)
        laws = {} if new is None else {"risk_old": pl_module.law, "risk_new": new}
        self._risks = {
            name: CriticalPoint(pl_module.model, law, pl_module.seeds, self.samples)
            for name, law in laws.items()
        }

    def measure(self, pl_module: EnsembleModule, step: int) -> Mapping[str, Tensor]:
        found: dict[str, Tensor] = {}
        for name, of in self._risks.items():
            found[name], found[f"{name}_stderr"] = of.risk(pl_module.snapshot.model, step)
        return found
