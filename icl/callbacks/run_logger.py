"""Logging of a training run while it trains: curves of its seeds, and heatmaps of its weights."""

import re
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np
import torch
from pytorch_lightning.loggers import Logger
from torch import Tensor

from icl.callbacks.metrics import WeightsCallback
from icl.loggers.documents import verdict_row
from icl.loggers.lightning import WandbLogger
from icl.loggers.names import CURVES, JUDGED, LAYERS
from icl.metrics import of_one_matrix
from icl.runs.record import RunRecord
from icl.training.module import model_in_float64
from icl.training.plan import TrainingPlan

Row = Mapping[str, Any]


class RunLogger:
    """Log the run of a plan to Lightning's loggers."""

    def __init__(self, loggers: Sequence[Logger], plan: TrainingPlan) -> None:
        self.loggers, self._plan, total = list(loggers), plan, plan.train.steps
        own = [callback for callback in plan.callbacks if isinstance(callback, WeightsCallback)]
        self._shown = [(one, one.steps_for(total) | ({total} if one.at_end else set())) for one in own]
        self.weight_steps: Set[int] = set[int]().union(*(steps for _, steps in self._shown))
        self._moving: set[str] = set()  # metrics that have not been 0 throughout
        self.has_diverged = False

    def weights(self, step: int, matrices: Mapping[str, Tensor]) -> None:
        model = model_in_float64(self._plan.model, dict(matrices))
        for callback, steps in self._shown:
            if step in steps:
                callback.show(self.loggers, step, model, self._plan.law, self._plan.seeds)

    def rows(self, rows: Sequence[Row]) -> None:
        """Log one step's rows: means, their band (least and greatest seed), means of what is one matrix's,
        and each seed. What is 0 for all seeds is logged from the first step on where it is not; band and
        seeds only where seeds differ."""
        curves: dict[str, float] = {}
        for name in rows[0]:
            values = [row.get(name) for row in rows]
            known = {row["seed"]: float(row[name]) for row in rows if row.get(name) is not None}
            self._moving |= {name} if any(known.values()) else set()
            if name in ("step", "seed") or name not in self._moving:
                continue
            one_matrix = of_one_matrix(name)
            if len(known) == len(values):
                curves[f"{'per_matrix' if one_matrix else 'mean'}/{name}"] = float(np.mean([*known.values()]))
            if len({*known.values()}) > 1 and not one_matrix:
                curves[f"mean_band/{name}/low"] = min(known.values())
                curves[f"mean_band/{name}/high"] = max(known.values())
            if len(set(values)) > 1:
                curves |= {f"seed/{seed}/{name}": value for seed, value in known.items()}
        for logger in self.loggers if curves else ():
            logger.log_metrics(curves, int(rows[0]["step"]))

    def done(self, record: RunRecord) -> None:
        """Log to W&B what its tables compare runs by: means, weights and verdicts."""
        run, self.has_diverged = record.run, bool(record.run.get("diverged"))
        about = {key: run.get(key) for key in ("versions", "device", "threads")}
        about |= (run.get("hardware") or {}) | (run.get("git") or {})
        summary = {name: entry["mean"] for name, entry in run["metrics"].items()}
        summary |= {"error": run["notes"][-1]} if self.has_diverged else {}
        tables = self._curves_and_layers(record)
        tables["verdicts"] = (JUDGED, [verdict_row(verdict) for verdict in record.verdicts])
        kind = re.sub(r"[^\w.-]", "-", run["experiment"])
        for logger in self.loggers:
            logger.log_hyperparams(about)
            if isinstance(logger, WandbLogger):
                logger.log_summary(summary)
                logger.log_weights(record.path / "weights.npz", kind, run["fingerprint"])
                for name, (columns, rows) in tables.items():
                    if rows:
                        logger.log_table(name, [*columns], rows)

    def _curves_and_layers(self, record: RunRecord) -> dict[str, tuple[Sequence[str], list[list[Any]]]]:
        """Return the tables of both, from the metrics and weights that the record keeps of each step."""
        plan, rows, found = self._plan, list[list[Any]](), dict[tuple[int, str], list[float]]()
        for name in {"exact_risk", "gradient_norm"} & set(record.metrics):
            for step, value in zip(record.metrics["step"], record.metrics[name], strict=True):
                if value is not None:
                    found.setdefault((step, name), []).append(value)
        names = plan.model.parametrization.shapes()
        for t, step in enumerate(record.weights["history_steps"].tolist()):
            stacks = {name: torch.from_numpy(record.weights[f"{name}_history"][:, t]) for name in names}
            model = model_in_float64(plan.model, stacks)
            for exact in filter(None, (callback.exact(model, plan.law) for callback, _ in self._shown)):
                levels = exact.at(model, found.get((step, "exact_risk"), ()))
                found |= {(step, name): [value] for name, value in levels.items()}
                rows += [
                    [step, seed, layer, *scalars]
                    for seed, by_layer in zip(plan.seeds, exact.layers(model), strict=False)
                    for layer, scalars in enumerate(by_layer)
                ]
        curves = [
            [step, name, float(np.mean(values)), min(values), max(values)]
            for (step, name), values in sorted(found.items())
        ]
        return {"curves": (CURVES, curves), "layers": (LAYERS, rows)}
