"""What of a run goes to W&B: scalars per seed and mean, weight heatmaps, and the same again from a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from icl.runs.record import RunRecord
from icl.tasks.linear_regression import LinearRegressionLaw
from icl.theory.distance import symmetric_root
from icl.training.heatmaps import (
    heatmap_png,
    log_spaced_steps,
    matrix_panels,
    stack_panels,
    weight_panels,
)
from icl.training.wandb_sink import NullSink, Sink
from icl.training.watchers import Row


class HeatmapWatcher:
    """Pictures of the weights at log-spaced steps and at the end."""

    def __init__(
        self, sink: Sink, law: LinearRegressionLaw, seeds: Sequence[int], total: int, count: int, which: str
    ) -> None:
        self.sink, self.seeds, self.which = sink, tuple(seeds), which
        self.root_RDD = symmetric_root(law.Sigma_RDD).numpy()
        wanted = count > 0 and not isinstance(sink, NullSink)
        self.steps = set(log_spaced_steps(total, count)) if wanted else set()

    def wants(self, step: int) -> bool:
        return step in self.steps

    def see(self, step: int, loss_R: Tensor, matrices: Mapping[str, Tensor], rates: Sequence[float]) -> None:
        arrays = {name: tensor.numpy() for name, tensor in matrices.items()}
        _draw(self.sink, step, arrays, self.root_RDD, self.which, self.seeds)


def log_rows(sink: Sink, rows: Sequence[Row]) -> None:
    """One step's rows: each metric by seed and as the mean over seeds."""
    if isinstance(sink, NullSink) or not rows:
        return
    scalars: dict[str, float | None] = {}
    for name in rows[0]:
        if name in ("step", "seed"):
            continue
        values = [row.get(name) for row in rows]
        scalars |= {f"{name}/seed{row['seed']}": value for row, value in zip(rows, values, strict=True)}
        if all(value is not None for value in values):
            scalars[f"{name}/mean"] = float(np.mean([float(v) for v in values if v is not None]))
    sink.log(int(rows[0]["step"]), scalars)


def replay(record: RunRecord, sink: Sink, count: int, which: str) -> None:
    """A finished record, told to a logger as if it had just been trained."""
    if isinstance(sink, NullSink):
        return
    table, weights, seeds = record.metrics, record.weights, record.run["seeds"]
    history = weights["history_steps"].tolist()
    wanted = log_spaced_steps(int(record.run["steps"]), count) if count else []
    pictures = {min(history, key=lambda stored: abs(stored - step)) for step in wanted}
    root_RDD = symmetric_root(torch.from_numpy(weights["Sigma"])).numpy()
    by_step: dict[int, list[dict[str, Any]]] = {}
    for i, step in enumerate(table["step"]):
        by_step.setdefault(step, []).append({name: column[i] for name, column in table.items()})
    for step in sorted(set(by_step) | pictures):
        log_rows(sink, by_step.get(step, []))
        if step in pictures:
            at = history.index(step)
            kept = {k.removesuffix("_history"): v for k, v in weights.items() if k.endswith("_history")}
            _draw(sink, step, {k: v[:, at] for k, v in kept.items()}, root_RDD, which, seeds)
    conclude(record, sink)


def conclude(record: RunRecord, sink: Sink) -> None:
    """What W&B keeps of a finished run beside its curves: means, weights, verdicts."""
    sink.summary({name: entry["mean"] for name, entry in record.run["metrics"].items()})
    sink.file(record.path / "weights.npz")
    if record.verdicts:
        columns = ["check", "claim", "verdict", "expected"]
        sink.table(
            "verdicts", columns, [[verdict.get(name) for name in columns] for verdict in record.verdicts]
        )


def _draw(
    sink: Sink,
    step: int,
    matrices: Mapping[str, np.ndarray],
    root_RDD: np.ndarray,
    which: str,
    seeds: Sequence[int],
) -> None:
    if "A" in matrices:
        panels = weight_panels(matrices["A"], root_RDD, matrices.get("B"), which, seeds)
    else:
        P, Q = (m[:, :, None] if m.ndim == 4 else m for m in (matrices["P"], matrices["Q"]))
        panels = stack_panels(P, Q, which, seeds)
        ends = {name: matrices[name][:, 0] for name in ("v", "W1", "W2") if name in matrices}
        panels |= matrix_panels(ends, which, seeds)
    for name, labelled in panels.items():
        sink.image(step, f"weights/{name}", heatmap_png(labelled, f"step {step}"))
