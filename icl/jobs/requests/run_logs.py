"""The loggers of a training run: W&B and those of Lightning's that the config lists."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from icl.config.logger import under_agent
from icl.config.session import Session
from icl.config.train_config import Node, TrainConfig
from icl.runs.record import RunRecord
from icl.sinks.logged_once import LoggedOnce

if TYPE_CHECKING:
    from icl.callbacks.run_logger import RunLoggerCallback
    from icl.sinks.safe import SafeSink
    from icl.training.plan import TrainingPlan


@dataclass(frozen=True)
class RunLogs:
    """What a request's runs are logged as."""

    experiment: str
    identity: str
    group: str
    scale: str
    config: TrainConfig

    def run_id(self, attempt: int) -> str:
        return f"{self.identity}-{attempt}"

    def marker(self, record: RunRecord, session: Session) -> LoggedOnce:
        """Return the marker that this record, with its verdicts and pictures, is logged."""
        verdicts = sorted(verdict["question"] for verdict in record.verdicts)
        callbacks: Mapping[str, Node | None] = self.config.stored["callbacks"]
        content = {"verdicts": verdicts, "heatmaps": callbacks}
        return LoggedOnce(session.logger, session.outputs, self.run_id(record.run["attempt"]), content)

    @contextlib.contextmanager
    def observers(
        self, plan: TrainingPlan, session: Session, attempt: int
    ) -> Iterator[Sequence[RunLoggerCallback]]:
        """Open the loggers for one attempt; leave the marker if all of them took a whole run."""
        from icl.callbacks import WeightHeatmaps
        from icl.callbacks.run_logger import RunLoggerCallback
        from icl.sinks.sink import NullSink

        heatmaps = [callback for callback in plan.callbacks if isinstance(callback, WeightHeatmaps)]
        arrays, steps = plan.law.arrays(), plan.train.steps
        live, observers = session.logger.mode == "online", []
        guarded = self._sinks(session, attempt)
        with contextlib.ExitStack() as opened:
            for sink in map(opened.enter_context, guarded):
                if not isinstance(sink, NullSink):
                    observers.append(RunLoggerCallback(sink, arrays, plan.seeds, steps, heatmaps, live=live))
            yield observers
        records = [observer.told for observer in observers if observer.told is not None]
        if records and not any(sink.has_failed for sink in guarded):
            self.marker(records[0], session).leave(session.info)

    def _sinks(self, session: Session, attempt: int) -> list[SafeSink]:
        from icl.sinks.safe import SafeSink
        from icl.sinks.wandb_sink import open_sink

        run_id, logger = self.run_id(attempt), session.logger
        wandb = open_sink(
            logger,
            outputs=session.outputs,
            group=session.group or self.group,
            job_type="train",
            run_id=run_id,
            name=f"{self.experiment} {self.identity}",
            config=dict(self.config.stored),
            say=session.info,
            tags=(self.experiment.partition("/")[0], self.scale),
        )
        sinks = [SafeSink(wandb, f"{self.experiment}: W&B", session.info, strict=under_agent())]
        for name, node in logger.lightning.items():
            from icl.sinks.lightning import open_logger

            other = open_logger(f"logger.{name}", node, self.experiment, run_id, self.config.stored)
            sinks.append(SafeSink(other, f"{self.experiment}: logger.{name}", session.info))
        return sinks
