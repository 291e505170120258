"""Trackio beside the run store: a local dashboard that needs no account (pip install 'icl-theory[trackio]').

Its files are in `save_dir`; nothing is sent anywhere unless TRACKIO_SPACE_ID or TRACKIO_SERVER_URL says so.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytorch_lightning.loggers.logger import Logger, rank_zero_experiment

from icl.errors import InputError
from icl.loggers.run_log import Pictures
from icl.redact import redact

_FOLDER = "TRACKIO_DIR"  # Trackio reads it once, where it is imported


class TrackioLogger(Logger):
    """A Lightning logger on one of Trackio's runs, named by the experiment and the run's id."""

    def __init__(self, save_dir: str, name: str, version: str, project: str = "icl") -> None:
        super().__init__()
        folder = os.environ.setdefault(_FOLDER, str(Path(save_dir).absolute()))
        try:
            with contextlib.redirect_stdout(sys.stderr):
                import trackio
        except ModuleNotFoundError:
            raise InputError(
                "logger.trackio: Trackio is not installed; pip install 'icl-theory[trackio]'"
            ) from None
        if Path(str(trackio.TRACKIO_DIR)) != Path(folder):
            raise InputError(
                f"logger.trackio: Trackio already writes to {trackio.TRACKIO_DIR} in this process"
            )
        self._trackio, self._project, self._name, self._version = trackio, project, name, version
        self._config: dict[str, Any] = {}
        self._run: Any = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def version(self) -> str:
        return self._version

    @property
    @rank_zero_experiment
    def experiment(self) -> Any:
        """Return Trackio's run, which opens with the settings known by then."""
        if self._run is None:
            with contextlib.redirect_stdout(io.StringIO()):
                self._run = self._trackio.init(
                    self._project, name=f"{self._name} {self._version}", group=self._name,
                    config=self._config, resume="allow", embed=False, auto_log_cpu=False, auto_log_gpu=False,
                )  # fmt: skip
            # Runs of a sweep are open side by side: Trackio would end the one before, and print at the end.
            self._trackio.context_vars.current_run.set(None)
        return self._run

    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        self.experiment.log(dict(metrics), step=step)

    def log_hyperparams(self, params: dict[str, Any] | Namespace, *_: Any, **__: Any) -> None:
        values = vars(params) if isinstance(params, Namespace) else params
        self._config |= redact(dict(values))
        if self._run is not None:
            self._run.config |= self._config

    def finalize(self, status: str) -> None:
        if self._run is not None:
            with contextlib.redirect_stdout(io.StringIO()):
                self._run.finish()
            self._run = None


class TrackioRun:
    """A run in Trackio: curves, settings, pictures, tables of verdicts and of final means."""

    def __init__(self, logger: TrackioLogger) -> None:
        self._logger, self.status, self._step = logger, "success", 0

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        self._step = step
        self._logger.log_metrics(metrics, step)

    def log_hyperparams(self, values: dict[str, Any]) -> None:
        self._logger.log_hyperparams(values)

    def images(self, step: int, name: str, pictures: Pictures) -> None:
        """Log pictures, each under its own name: Trackio shows one for a name and a step."""
        from PIL import Image

        for index, (caption, png) in enumerate(pictures):
            picture = self._logger._trackio.Image(Image.open(io.BytesIO(png)), caption=caption)
            self._logger.log_metrics({f"{name}/{index}": picture}, step)

    def table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        data = [["" if cell is None else cell for cell in redact(list(row))] for row in rows]
        table = self._logger._trackio.Table(columns=list(columns), data=data)
        self._logger.log_metrics({name: table}, self._step)

    def summary(self, values: Mapping[str, object]) -> None:
        """Log the values as a table: Trackio has no summary."""
        self.table("summary", ["metric", "value"], [[name, value] for name, value in values.items()])

    def model(self, path: Path, name: str, alias: str) -> None:
        """Leave the weights where the run store has them; the settings name the run."""

    def fail(self) -> None:
        self.status = "failed"

    def lightning_logger(self) -> Logger:
        return self._logger
