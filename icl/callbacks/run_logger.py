"""Logging of a training run, live or from its record: curves of the mean, the band and each seed, and
weight heatmaps.

R replicas, L layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from icl.figures.heatmaps import Panels, free_of, heatmap_png, largest, panels_of, root_of
from icl.loggers.run_log import CurveLog, DocumentLog, model_of
from icl.runs.metric_kinds import of_one_matrix
from icl.runs.provenance import provenance
from icl.runs.record import RunRecord

if TYPE_CHECKING:
    from pytorch_lightning.loggers import Logger

Row = Mapping[str, Any]


class HeatmapSettings(Protocol):
    """The settings of icl.callbacks.WeightHeatmaps that are used here."""

    seeds: str

    def chosen(self, total: int) -> set[int]: ...

    def chosen_of(self, matrices: Mapping[str, Any]) -> dict[str, Any]: ...


class RunLoggerCallback:
    """Log a run while it trains, or afterwards from its record (a RunObserver of icl.training.plan).

    `arrays`: the law's; a Sigma among them whitens pictures of A, masks of free entries are outlined.
    `heatmaps`: which pictures are drawn. `live`: each is logged when its step is
    reached; all of them, on one colour scale, come at the end.
    """

    def __init__(
        self,
        logger: CurveLog,
        arrays: Mapping[str, np.ndarray],
        seeds: Sequence[int],
        total: int,
        heatmaps: Sequence[HeatmapSettings],
        *,
        live: bool = False,
    ) -> None:
        self.logger, self.seeds, self.heatmaps, self.live = logger, tuple(seeds), tuple(heatmaps), live
        self.root_RDD, self.free = root_of(arrays), free_of(arrays)
        self.steps = {step for heatmap in heatmaps for step in heatmap.chosen(total)}
        self.logged: RunRecord | None = None  # once it has been logged to its end
        self._moving: set[str] = set()  # metrics that have not been 0 throughout
        self.logger.log_hyperparams(made_by(provenance()))

    def loggers(self) -> Sequence[Logger]:
        logger = self.logger.lightning_logger()
        return [] if logger is None else [logger]  # the guarded one that failed

    def on_weights(self, trainer: Any, pl_module: Any, step: int) -> None:
        if not self.live or step not in self.steps:
            return
        matrices = {name: M.numpy() for name, M in pl_module.snapshot.matrices.items()}
        for name, labelled in self._panels(matrices).items():
            caption = self._caption(name, step)
            png = heatmap_png(labelled, caption, free=self._free(name))
            self.logger.images(step, f"weights/{name}", [(caption, png)])

    def rows(self, rows: Sequence[Row]) -> None:
        """Return one step's rows: means, their band (least and greatest seed), means of what is one matrix's,
        and each seed. What is 0 for all seeds is logged from the first step on where it is not; band and
        seeds only where seeds differ. Viewers sort by name: means come first, then their band."""
        scalars: dict[str, float | None] = {}
        for name in rows[0]:
            values = [row.get(name) for row in rows]
            self._moving |= {name} if any(values) else set()
            if name in ("step", "seed") or name not in self._moving:
                continue
            known = [float(value) for value in values if value is not None]
            one_matrix = of_one_matrix(name)
            if len(known) == len(values):
                scalars[f"{'per_matrix' if one_matrix else 'mean'}/{name}"] = float(np.mean(known))
            if len(set(known)) > 1 and not one_matrix:
                scalars |= {f"mean_band/{name}/low": min(known), f"mean_band/{name}/high": max(known)}
            if len(set(values)) > 1:
                scalars |= {f"seed/{row['seed']}/{name}": v for row, v in zip(rows, values, strict=True)}
        curves = {name: value for name, value in scalars.items() if value is not None}
        if curves:
            self.logger.log_metrics(curves, int(rows[0]["step"]))

    def done(self, record: RunRecord) -> None:
        """Log a finished run beside its curves: weights, pictures, means, verdicts and provenance."""
        self._draw_all(record)
        self.logger.log_hyperparams(made_by(record.run))
        logger: Any = self.logger
        if hasattr(logger, "summary"):
            self._summarize(logger, record)
        if record.run.get("diverged"):
            self.logger.fail()
        self.logged = record

    def _summarize(self, log: DocumentLog, record: RunRecord) -> None:
        """Log to W&B what its tables compare runs by: means, weights and verdicts."""
        means = {name: entry["mean"] for name, entry in record.run["metrics"].items()}
        log.summary({name: mean for name, mean in means.items() if name in self._moving or mean is None})
        log.model(*model_of(record))
        if record.verdicts:
            columns = ["check", "claim", "verdict", "expected"]
            rows = [[verdict.get(name) for name in columns] for verdict in record.verdicts]
            log.table("verdicts", columns, rows)
        if record.run.get("diverged"):
            log.summary({"error": record.run["notes"][-1]})

    def replay(self, record: RunRecord) -> None:
        """Log a finished record as if it had just been trained."""
        table = record.metrics
        by_step: dict[int, list[dict[str, Any]]] = {}
        for i, step in enumerate(table["step"]):
            by_step.setdefault(step, []).append({name: column[i] for name, column in table.items()})
        for step in sorted(by_step):
            self.rows(by_step[step])
        self.done(record)

    def _draw_all(self, record: RunRecord) -> None:
        """Draw the heatmaps at the kept steps nearest to the requested ones; one colour scale for a matrix,
        all its seeds."""
        history = record.weights["history_steps"].tolist()
        if not history:  # an archive keeps none of large runs
            return
        nearest = sorted({min(history, key=lambda kept: abs(kept - step)) for step in self.steps})
        stacks = {k.removesuffix("_history"): v for k, v in record.weights.items() if k.endswith("_history")}
        by_step = {
            step: self._panels({name: stack[:, history.index(step)] for name, stack in stacks.items()})
            for step in nearest
        }
        scale: dict[str, float] = {}
        for panels in by_step.values():
            for name, labelled in panels.items():
                matrix = name.partition("/")[0]
                scale[matrix] = max(scale.get(matrix, 0.0), largest(labelled.values()))
        for name in by_step[nearest[0]] if nearest else ():
            drawn = self._pictures(name, by_step, scale[name.partition("/")[0]])
            self.logger.images(history[-1], f"weights/{name}", drawn)

    def _pictures(self, name: str, by_step: Mapping[int, Panels], vmax: float) -> Iterator[tuple[str, bytes]]:
        for step, panels in by_step.items():
            caption = self._caption(name, step)
            yield caption, heatmap_png(panels[name], caption, vmax=vmax, free=self._free(name))

    def _panels(self, matrices: Mapping[str, np.ndarray]) -> Panels:
        found: Panels = {}
        for heatmap in self.heatmaps:
            chosen = heatmap.chosen_of(matrices)
            found |= panels_of(chosen, self.root_RDD, heatmap.seeds, self.seeds, self.free)
        return found

    def _free(self, name: str) -> np.ndarray | None:
        """Return the entries that pictures of this name outline."""
        return self.free.get(name.partition("/")[0])

    def _caption(self, name: str, step: int) -> str:
        """Return matrix, seeds and step; layers (and heads) are the labels of the panels."""
        matrix, _, seed = name.partition("/seed_")
        whose = f"seed {seed}" if seed else f"mean of {len(self.seeds)} seeds"
        return f"{matrix}, {whose}, step {step}"


def made_by(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the code, versions and machine that made a run, from run.json."""
    git = run.get("git") or {}
    of_code = {"commit": git.get("commit"), "dirty": git.get("dirty"), "versions": run.get("versions")}
    hardware = run.get("hardware") or {}
    device = {"device": run["device"]} if "device" in run else {}
    return {
        **of_code,
        **device,
        "cpu": hardware.get("cpu"),
        "gpu": hardware.get("gpu"),
        "threads": run.get("threads"),
    }
