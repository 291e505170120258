"""The loggers of a training run: W&B and those of Lightning's that the config lists."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from icl.config.logger import under_agent
from icl.config.session import Session
from icl.config.train_config import Node, TrainConfig
from icl.jobs.stored.run_names import grouped, name_of_overrides
from icl.loggers.logged_once import LoggedOnce
from icl.runs.record import RunRecord

if TYPE_CHECKING:
    from icl.callbacks.run_logger import RunLoggerCallback
    from icl.loggers.safe import SafeLogger
    from icl.training.plan import TrainingPlan


@dataclass(frozen=True)
class RunLogs:
    """Loggers of a request's runs, with the names and the group that they log them under."""

    experiment: str
    identity: str
    group: str
    scale: str
    config: TrainConfig
    overrides: Sequence[str] = ()

    def name(self, *, with_seeds: bool = True) -> str:
        """Return the run's name by what was typed; without its seeds it is that of its group."""
        return name_of_overrides(self.experiment, self.overrides, with_seeds=with_seeds)

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

        heatmaps = [callback for callback in plan.callbacks if isinstance(callback, WeightHeatmaps)]
        arrays, steps = plan.law.arrays(), plan.train.steps
        live, observers = session.logger.mode == "online", []
        guarded = self._guarded_loggers(session, attempt)
        with contextlib.ExitStack() as opened:
            for logger in map(opened.enter_context, guarded):
                if logger is not None:
                    observers.append(
                        RunLoggerCallback(logger, arrays, plan.seeds, steps, heatmaps, live=live)
                    )
            yield observers
        records = [observer.logged for observer in observers if observer.logged is not None]
        if records and not any(logger.has_failed for logger in guarded):
            self.marker(records[0], session).leave()

    def _guarded_loggers(self, session: Session, attempt: int) -> list[SafeLogger]:
        from icl.loggers.safe import SafeLogger
        from icl.loggers.wandb_run import open_wandb

        run_id, settings = self.run_id(attempt), session.logger
        wandb = open_wandb(
            settings,
            outputs=session.outputs,
            group=session.group or grouped(self.name(with_seeds=False), self.group),
            job_type="train",
            run_id=run_id,
            name=self.name(),
            config=dict(self.config.stored),
            notify=session.info,
            tags=(self.experiment.partition("/")[0], self.scale),
        )
        guarded = [SafeLogger(wandb, f"{self.experiment}: W&B", session.info, strict=under_agent())]
        for name, node in settings.lightning.items():
            from icl.loggers.lightning import open_logger

            other = open_logger(f"logger.{name}", node, self.experiment, run_id, self.config.stored)
            guarded.append(SafeLogger(other, f"{self.experiment}: logger.{name}", session.info))
        return guarded
