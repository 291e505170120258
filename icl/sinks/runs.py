"""What of a training run goes to a sink: scalars per seed and mean, weight heatmaps, and the same again from
its record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from icl.runs.record import RunRecord
from icl.runs.steps import log_spaced_steps
from icl.sinks.heatmaps import Panels, heatmap_png, matrix_panels, stack_panels, weight_panels
from icl.sinks.sink import Sink
from icl.theory.distance import symmetric_root

Row = Mapping[str, Any]


class ToSink:
    """Follows a run (`icl.training.job.Follower`) and tells `sink` of it, as it is made or from its record.

    `heatmaps`: at how many log-spaced steps pictures of the weights are drawn; `which`: of their mean over
    seeds, or of each. `Sigma_RDD`, if the law has one, whitens those of A.
    """

    def __init__(
        self,
        sink: Sink,
        Sigma_RDD: np.ndarray | None,
        seeds: Sequence[int],
        total: int,
        heatmaps: int,
        which: str,
    ) -> None:
        self.sink, self.seeds, self.total, self.which = sink, tuple(seeds), total, which
        given = Sigma_RDD is not None
        self.root_RDD = symmetric_root(torch.from_numpy(Sigma_RDD)).numpy() if given else None
        self.steps = set(log_spaced_steps(total, heatmaps)) if heatmaps else set()
        self.told: RunRecord | None = None  # once it has been told to its end

    def reach(self, step: int) -> None:
        return

    def wants(self, step: int) -> bool:
        return step in self.steps

    def see(self, step: int, matrices: Mapping[str, Tensor]) -> None:
        self._draw(step, {name: tensor.numpy() for name, tensor in matrices.items()})

    def rows(self, rows: Sequence[Row]) -> None:
        """One step's rows: each metric by seed and as the mean over seeds."""
        scalars: dict[str, float | None] = {}
        for name in rows[0]:
            if name in ("step", "seed"):
                continue
            values = [row.get(name) for row in rows]
            scalars |= {f"{name}/seed{row['seed']}": value for row, value in zip(rows, values, strict=True)}
            if all(value is not None for value in values):
                scalars[f"{name}/mean"] = float(np.mean([float(v) for v in values if v is not None]))
        self.sink.log(int(rows[0]["step"]), scalars)

    def done(self, record: RunRecord) -> None:
        """What is kept of a finished run beside its curves: means, weights, verdicts."""
        self.sink.summary({name: entry["mean"] for name, entry in record.run["metrics"].items()})
        self.sink.file(record.path / "weights.npz")
        if record.verdicts:
            columns = ["check", "claim", "verdict", "expected"]
            rows = [[verdict.get(name) for name in columns] for verdict in record.verdicts]
            self.sink.table("verdicts", columns, rows)
        self.told = record

    def found(self, record: RunRecord) -> None:
        """A finished record, told as if it had just been trained."""
        table, weights = record.metrics, record.weights
        history = weights["history_steps"].tolist()
        pictures = {min(history, key=lambda stored: abs(stored - step)) for step in self.steps}
        by_step: dict[int, list[dict[str, Any]]] = {}
        for i, step in enumerate(table["step"]):
            by_step.setdefault(step, []).append({name: column[i] for name, column in table.items()})
        for step in sorted(set(by_step) | pictures):
            if step in by_step:
                self.rows(by_step[step])
            if step in pictures:
                at = history.index(step)
                kept = {k.removesuffix("_history"): v for k, v in weights.items() if k.endswith("_history")}
                self._draw(step, {k: v[:, at] for k, v in kept.items()})
        self.done(record)

    def _draw(self, step: int, matrices: Mapping[str, np.ndarray]) -> None:
        which, seeds, rest = self.which, self.seeds, dict(matrices)
        panels: Panels = {}
        if "A" in rest and self.root_RDD is not None:
            panels |= weight_panels(rest.pop("A"), self.root_RDD, rest.pop("B", None), which, seeds)
        if {"P", "Q"} <= set(rest):
            P, Q = (m[:, :, None] if m.ndim == 4 else m for m in (rest.pop("P"), rest.pop("Q")))
            panels |= stack_panels(P, Q, which, seeds)
        stacks = {name: m.reshape(len(m), -1, *m.shape[-2:]) for name, m in rest.items()}
        panels |= matrix_panels(stacks, which, seeds)
        for name, labelled in panels.items():
            self.sink.image(step, f"weights/{name}", heatmap_png(labelled, f"step {step}"))
