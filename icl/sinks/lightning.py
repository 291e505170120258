"""Lightning's own loggers: any of them beside W&B, and W&B's own for what a callback logs."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pytorch_lightning.loggers import Logger, WandbLogger

from icl.config.objects import instantiate
from icl.errors import InputError
from icl.runs.redact import redact
from icl.sinks.sink import Pictures

if TYPE_CHECKING:
    from icl.sinks.wandb_sink import WandbSink


class RunLogger(WandbLogger):
    """W&B's logger of Lightning's on a run that is open, with this run's axis for what a callback logs."""

    def __init__(self, sink: WandbSink) -> None:
        super().__init__(experiment=sink.run, save_dir=sink.run.settings.sync_dir)
        self._sink = sink

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:  # type: ignore[override]
        self._sink.log(max(int(step or 0), self._sink.step), metrics)


class LightningSink:
    """A logger of Lightning's: curves, settings, and pictures where it takes them."""

    def __init__(self, logger: Logger) -> None:
        self.logger = logger
        self.status = "success"

    def log(self, step: int, scalars: Mapping[str, float | None]) -> None:
        known = {name: value for name, value in scalars.items() if value is not None}
        if known:
            self.logger.log_metrics(known, step)

    def images(self, step: int, name: str, pictures: Pictures) -> None:
        """Log images to TensorBoard."""
        from PIL import Image

        logger: Any = self.logger
        if not hasattr(logger.experiment, "add_image"):
            return
        for index, (_, png) in enumerate(pictures):
            pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))
            logger.experiment.add_image(f"{name}/{index}", pixels, step, dataformats="HWC")

    def table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Verdicts are in the record."""

    def model(self, path: Path, name: str, alias: str) -> None:
        """Weights are in the record."""

    def uses(self, path: Path, name: str, alias: str) -> None:
        """Do nothing: a figure's record names its runs."""

    def config(self, values: Mapping[str, object]) -> None:
        self.logger.log_hyperparams(redact(dict(values)))

    def summary(self, values: Mapping[str, object]) -> None:
        """The last row says it."""

    def fail(self) -> None:
        self.status = "failed"

    def loggers(self) -> Sequence[Logger]:
        return [self.logger]


def built(key: str, node: Mapping[str, Any], name: str, version: str) -> Logger:
    """The logger that a config describes; nothing has been written. `name` and `version` say where it files
    this run, unless it says so itself."""
    given = {k: v for k, v in {"name": name, "version": version}.items() if k not in node}
    try:
        logger = instantiate(key, node, **given)
    except ModuleNotFoundError as error:
        raise InputError(
            f"{key}: {str(error).splitlines()[0]} (icl[tensorboard] has TensorBoard's)"
        ) from None
    if not isinstance(logger, Logger):
        raise InputError(f"{key}._target_={node['_target_']}: must be a logger of Lightning's")
    return logger


@contextmanager
def open_logger(
    key: str, node: Mapping[str, Any], name: str, version: str, config: Mapping[str, Any]
) -> Iterator[LightningSink]:
    """The logger for the body, told of `config`; finished as failed when the body raises."""
    logger, status = built(key, node, name, version), "failed"
    finalize = logger.finalize
    logger.finalize = lambda status: None  # type: ignore[method-assign]  # where the Trainer ends we do not
    try:
        sink = LightningSink(logger)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Experiment logs directory")  # of a run told again
            sink.config(config)
        yield sink
        status = sink.status
    finally:
        logger.save()
        finalize(status)
