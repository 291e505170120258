"""The loggers of Lightning's that a config lists: W&B's, which no failure of W&B stops, and any other."""

import inspect
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.loggers import Logger
from pytorch_lightning.loggers.logger import DummyExperiment, rank_zero_experiment

from icl.config.objects import instantiate, target_class
from icl.errors import InputError, one_line, one_of, real
from icl.loggers.names import STEP
from icl.loggers.wandb_run import Notify, close_run, open_run, under_agent, upload_of
from icl.redact import redact


class WandbLogger(pl.loggers.WandbLogger):
    """Lightning's W&B logger. Its first failure is said in a line and is its last call: what it logs goes on.

    What W&B collects by itself is off, but for what `settings` (of wandb.Settings) say; secrets are hidden.
    Under a W&B agent it is online, and the run is the agent's.
    """

    def __init__(
        self,
        save_dir: str = ".",
        project: str = "icl",
        mode: str = "online",
        entity: str | None = None,
        name: str | None = None,
        version: str | None = None,
        group: str | None = None,
        job_type: str | None = None,
        notes: str | None = None,
        tags: Sequence[str] = (),
        init_timeout: float = 15.0,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(name=name, save_dir=save_dir, version=version, project=project)
        one_of("logger.wandb.mode", mode, ("online", "offline", "disabled"))
        real("logger.wandb.init_timeout", init_timeout, 0, open_low=True)
        if not isinstance(tags, Sequence) or isinstance(tags, str):
            raise InputError(f"logger.wandb.tags={tags}: must be a list")
        if under_agent():
            mode, version = "online", os.environ.get("WANDB_RUN_ID", version)
        self.notify: Notify = partial(print, file=sys.stderr, flush=True)
        self.has_failed = False
        self._run: Any = None
        self._logged_to = -1  # the step that a resumed run has at its server
        self._how: dict[str, Any] = {"save_dir": save_dir, "mode": mode, "init_timeout": init_timeout}
        self._how |= {"project": project, "entity": entity, "name": name, "id": version, "group": group}
        self._how |= {"job_type": job_type, "notes": notes, "tags": tags, "settings": settings}

    @property
    @rank_zero_experiment
    def experiment(self) -> Any:
        """Return the run, which is opened when it is needed."""
        if self._run is None:
            self._run = DummyExperiment()  # where no run can be opened
            self._attempt(self._open)
        return self._run

    def _open(self) -> None:
        self._run = open_run(notify=self.notify, **self._how)
        if getattr(self._run, "resumed", False):
            self._logged_to = int(self._run.summary.get(STEP, -1))
        self._run.define_metric(STEP, hidden=True)
        self._run.define_metric("*", step_metric=STEP, step_sync=True)

    def log_hyperparams(self, params: dict[str, Any] | Namespace) -> None:
        params = vars(params) if isinstance(params, Namespace) else params
        self._attempt(super().log_hyperparams, redact(dict(params)))

    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        self.experiment  # noqa: B018  opens the run, which knows what it has
        if step is None or step > self._logged_to:
            self._attempt(super().log_metrics, metrics, step)

    def log_image(self, key: str, images: list[Any], step: int | None = None, **kwargs: Any) -> None:
        self._attempt(super().log_image, key, images, step, **kwargs)

    def log_table(
        self,
        key: str,
        columns: list[str] | None = None,
        data: list[list[Any]] | None = None,
        *rest: Any,
        **more: Any,
    ) -> None:
        self._attempt(super().log_table, key, columns, redact(data), *rest, **more)

    def log_summary(self, values: Mapping[str, object]) -> None:
        self._attempt(lambda: self.experiment.summary.update(redact(dict(values))))

    def log_weights(self, path: Path, name: str, alias: str) -> None:
        """Keep a finished file of weights as a model, under a name that all runs of its kind share."""

        def log() -> None:
            import wandb

            artifact = wandb.Artifact(name, type="model")
            artifact.add_file(str(path))
            self.experiment.log_artifact(artifact, aliases=[alias, "latest"])

        self._attempt(log)

    def finish(self, exit_code: int = 0) -> None:
        """Close the run, if one was opened."""
        run, self._run = self._run, None
        if run is None or isinstance(run, DummyExperiment):
            return
        try:
            close_run(run, exit_code, (lambda _: None) if self.has_failed else self.notify)
        except Exception as error:
            self._fail(error, run)

    def _attempt(self, call: Callable[..., Any], *args: Any, **more: Any) -> None:
        if self.has_failed:
            return
        try:
            call(*args, **more)
        except Exception as error:
            self._fail(error, self._run)

    def _fail(self, error: Exception, run: Any) -> None:
        if self.has_failed:
            return
        self.has_failed = True
        there = "" if isinstance(run, DummyExperiment) else f"; {upload_of(run)}"
        reason = f"{type(error).__name__}: {redact(one_line(error))}"
        self.notify(f"icl: W&B has failed ({reason}); the record does not depend on it{there}")


def build_loggers(nodes: Mapping[str, Mapping[str, Any]], **given: Any) -> list[Logger]:
    """Build the loggers that a config lists; nothing is written. `given` are names of this run, for those
    that take them and have none of their own; tags are added."""
    return [_built(f"logger.{key}", node, given) for key, node in nodes.items()]


def _built(key: str, node: Mapping[str, Any], given: Mapping[str, Any]) -> Logger:
    kind = target_class(key, node["_target_"])
    if issubclass(kind, pl.loggers.WandbLogger):
        given = {**given, "name": given["display_name"]}
    taken = inspect.signature(kind).parameters
    names = {
        name: value
        for name, value in given.items()
        if name in taken and name != "tags" and node.get(name) is None
    }
    own = {name: value for name, value in node.items() if name not in names}
    if issubclass(kind, WandbLogger) and isinstance(own.get("tags"), list):
        own["tags"] = [*given.get("tags", ()), *own["tags"]]
    try:
        logger = instantiate(key, own, **names)
    except ModuleNotFoundError as error:
        raise InputError(
            f"{key}: {str(error).splitlines()[0]} (icl-theory[tensorboard] has TensorBoard's)"
        ) from None
    if not isinstance(logger, Logger):
        raise InputError(f"{key}._target_={node['_target_']}: must be a logger of Lightning's")
    return logger
