"""What is written down while a run trains. State is plain data, so that a checkpoint can hold it.

R replicas, L layers, D covariates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor

from icl.models import LinearTransformer
from icl.runs.steps import log_spaced_steps
from icl.tasks.law import Law
from icl.training.critical_point import CriticalPoint
from icl.training.module import EnsembleModule

Row = dict[str, Any]
SIGMAS = 4.0  # of a Student variable with CHUNKS - 1 degrees of freedom each: about 99.9 %
ALWAYS = ("loss", "exact_risk", "dist_preconditioned", "dist_plain")  # of every run, null where undefined


class Recorder(pl.Callback):
    """Metrics per (step, seed), weights at log-spaced steps, and the gradient norm of the expected risk."""

    def __init__(
        self,
        model: LinearTransformer,
        law: Law,
        seeds: Sequence[int],
        total_steps: int,
        log_every: int,
        critical: CriticalPoint,
        critical_count: int,
        history_count: int = 40,
        on_rows: Callable[[list[Row]], None] = lambda rows: None,
        reliability_names: Sequence[str] = (),
    ) -> None:
        self.seeds, self.critical, self.on_rows = tuple(seeds), critical, on_rows
        self.total_steps, self.reliability_names = total_steps, tuple(reliability_names)
        self.float64_model = model_in_float64(model)
        self.observables = law.observe(model)
        self.stride = set(range(0, total_steps, log_every)) | {total_steps}
        log_spaced = log_spaced_steps(total_steps, critical_count) if critical_count else []
        self.critical_steps = {0, *log_spaced} if critical_count else set()
        self.history_steps = {0, *log_spaced_steps(total_steps, history_count)}
        self.rows: list[Row] = []
        self.history: dict[str, list[Any]] = {"steps": []}

    def on_weights(self, trainer: pl.Trainer, pl_module: EnsembleModule, step: int) -> None:
        look = pl_module.look
        if step in self.history_steps:
            self.history["steps"].append(step)
            for name, tensor in look.matrices.items():
                self.history.setdefault(name, []).append(tensor.clone())
        if step in self.stride or step in self.critical_steps:
            columns = {"loss": look.loss_R, "lr": look.rates_R, **look.reliability}
            columns |= self._measured(step, look.matrices)
            rows: list[Row] = [{"step": step, "seed": seed} for seed in self.seeds]
            for name, value_R in columns.items():
                for row, value in zip(rows, value_R.tolist(), strict=True):
                    row[name] = value if math.isfinite(value) else None
            self.rows += rows
            self.on_rows(rows)

    def _measured(self, step: int, matrices: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """What the law observes; at chosen steps risk and gradient; the exact risk at the end always."""
        model = self.float64_model
        model.parametrization.load(dict(matrices))
        with torch.no_grad():
            found = dict(self.observables.at(model))
            at_end = step == self.total_steps and step not in self.critical_steps
            if at_end and self.critical.exact is not None:
                found["exact_risk"] = self.critical.exact(model)
        if step not in self.critical_steps:
            return found
        norms = self.critical.measure(model, step)
        if norms.exact:
            found["exact_risk"] = norms.risk_R
        else:
            found |= {"risk_estimate": norms.risk_R, "risk_estimate_stderr": norms.risk_stderr_R}
            if norms.plain is not None:
                found |= {"risk_plain_batch": norms.plain[0], "risk_plain_batch_stderr": norms.plain[1]}
        found |= {"gradient_norm": norms.total_R, "gradient_norm_stderr": norms.total_stderr_R}
        for label in norms.norms:
            found[f"gradient_norm_{label}"] = norms.norms[label]
            found[f"gradient_norm_{label}_stderr"] = norms.stderrs[label]
        return found

    def columns(self) -> list[str]:
        """Every column of metrics.csv, known before the first row."""
        family = self.float64_model.parametrization
        names = ["step", "seed", "loss", "lr", *self.reliability_names, *self.observables.names()]
        names += ["exact_risk"] if self.critical.exact is not None else []
        if not self.critical_steps:
            return names
        if self.critical.exact is None:
            names += ["risk_estimate", "risk_estimate_stderr"]
            plain = self.critical.estimator.plain is not None
            names += ["risk_plain_batch", "risk_plain_batch_stderr"] if plain else []
        labels = [
            f"{name}{i}" for name, shape in family.shapes().items() for i in range(math.prod(shape[:-2]))
        ]
        for label in ("", *(f"_{label}" for label in labels)):
            names += [f"gradient_norm{label}", f"gradient_norm{label}_stderr"]
        return names

    def unseen_tail(self) -> list[str]:
        """Where at the end a plain batch and one that shows the tail differ by more than their errors."""
        found = []
        for row in self.rows[-len(self.seeds) :]:
            plain, risk = row.get("risk_plain_batch"), row.get("risk_estimate")
            if plain is None or risk is None:
                continue
            error = math.hypot(row["risk_plain_batch_stderr"], row["risk_estimate_stderr"])
            if abs(plain - risk) > SIGMAS * error:
                found.append(
                    f"seed {row['seed']}: a batch does not see the risk's tail: {plain:.3g} from "
                    f"{self.critical.samples} plain prompts, {risk:.3g} from as many that show it"
                )
        return found

    def state(self) -> dict[str, Any]:
        return {"rows": self.rows, "history": self.history}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.rows, self.history = list(state["rows"]), {k: list(v) for k, v in state["history"].items()}

    def summary(self) -> dict[str, dict[str, float | None]]:
        """The last value of each metric, by seed; None where undefined."""
        columns = [name for name in self.columns() if name not in ("step", "seed", "lr")]
        names = dict.fromkeys([*ALWAYS, *columns])
        last = {row["seed"]: row for row in self.rows[-len(self.seeds) :]}
        return {name: {str(s): last[s].get(name) for s in self.seeds} for name in names}


def model_in_float64(model: LinearTransformer) -> LinearTransformer:
    """A model of the same kind whose weights are loaded for evaluation, on the CPU."""
    family = model.parametrization
    zeros = {k: torch.zeros_like(v, device="cpu", dtype=torch.float64) for k, v in family.matrices().items()}
    copy = family.sharing([torch.nn.Parameter(zero) for zero in zeros.values()])
    return model.on(copy)
