"""Lightning's loggers: any that a config lists, and W&B's for what callbacks log."""

from __future__ import annotations

import inspect
import io
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from pytorch_lightning.loggers import Logger, WandbLogger

from icl.config.objects import instantiate, target_class
from icl.errors import InputError
from icl.loggers.run_log import Pictures
from icl.loggers.trackio_run import TrackioLogger, TrackioRun
from icl.redact import redact


class WandbRunLogger(WandbLogger):
    """Lightning's W&B logger on a run that is open. `log` logs metrics at a step of that run."""

    def __init__(self, run: Any, log: Callable[[Mapping[str, float], int], None]) -> None:
        super().__init__(experiment=run, save_dir=run.settings.sync_dir)
        self._log = log

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:  # type: ignore[override]
        self._log(metrics, int(step or 0))


def build_logger(key: str, node: Mapping[str, Any], name: str, version: str) -> Logger:
    """Build the logger that a config describes; nothing is written. `name` and `version` say where it files
    this run, unless the config does."""
    taken = inspect.signature(target_class(key, node["_target_"])).parameters
    given = {"name": name, "version": version, "run_name": f"{name} {version}"}  # the last is MLflow's
    given = {k: v for k, v in given.items() if k in taken and k not in node}
    try:
        logger = instantiate(key, node, **given)
    except ModuleNotFoundError as error:
        raise InputError(
            f"{key}: {str(error).splitlines()[0]} (icl-theory[tensorboard] has TensorBoard's)"
        ) from None
    if not isinstance(logger, Logger):
        raise InputError(f"{key}._target_={node['_target_']}: must be a logger of Lightning's")
    return logger


class LightningRun:
    """A run in one of Lightning's loggers: curves, settings, and pictures where it takes them."""

    def __init__(self, logger: Logger) -> None:
        self._logger, self.status = logger, "success"

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        self._logger.log_metrics(dict(metrics), step)

    def log_hyperparams(self, values: dict[str, Any]) -> None:
        self._logger.log_hyperparams(values)

    def images(self, step: int, name: str, pictures: Pictures) -> None:
        """Log images to TensorBoard."""
        from PIL import Image

        logger: Any = self._logger
        experiment = logger.experiment
        for index, (_, png) in enumerate(pictures if hasattr(experiment, "add_image") else ()):
            pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))
            experiment.add_image(f"{name}/{index}", pixels, step, dataformats="HWC")

    def fail(self) -> None:
        self.status = "failed"

    def lightning_logger(self) -> Logger:
        return self._logger


@contextmanager
def open_logger(
    key: str, node: Mapping[str, Any], name: str, version: str, config: Mapping[str, Any]
) -> Iterator[LightningRun | TrackioRun]:
    """Open the logger for the body and log `config`; finalize it as failed if the body raises."""
    logger, status = build_logger(key, node, name, version), "failed"
    finalize = logger.finalize
    logger.finalize = lambda status: None  # type: ignore[method-assign]  # a trainer ends before the run does
    try:
        run = TrackioRun(logger) if isinstance(logger, TrackioLogger) else LightningRun(logger)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Experiment logs directory")  # of a run logged again
            run.log_hyperparams(redact(dict(config)))
        yield run
        status = run.status
    finally:
        logger.save()
        finalize(status)
