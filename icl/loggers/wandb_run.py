"""Weights & Biases beside the run store: runs that are always closed, with nothing secret in them.

Everything it writes is under OUTPUTS/wandb. W&B is imported only when a run is opened.
"""

from __future__ import annotations

import atexit
import math
import os
import shlex
import shutil
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar

from icl.config.logger import LoggerSettings, under_agent
from icl.config.session import process_tree
from icl.loggers.run_log import Pictures
from icl.loggers.safe import Notify
from icl.redact import redact
from icl.runs.fingerprint import fingerprint

if TYPE_CHECKING:
    from pytorch_lightning.loggers import Logger

FINISH_TIMEOUT = 15.0  # seconds an upload may take at the end; what is left stays on disk for `wandb sync`
AGENTS_FINISH_TIMEOUT = 120.0  # under an agent what is left is an error
QUIET_SECONDS = 16.0  # W&B's process empties its buffer every 15
WRITTEN_WITHIN = 60.0  # seconds at most
_SUMMARIES = {"mean": "min,last", "mean_band": "none", "per_matrix": "none", "seed": "none"}


class WandbRun:
    """An open W&B run. Its axis is `step`; of curves the summary keeps the means' least and last values."""

    def __init__(self, run: Any, home: Path) -> None:
        self.run = run
        self._home = home
        self.step = 0
        self.exit_code = 0
        self._defined = set(_SUMMARIES)
        run.define_metric("step", hidden=True)
        for group, summary in _SUMMARIES.items():
            run.define_metric(f"{group}/*", step_metric="step", summary=summary)

    def log_metrics(self, metrics: Mapping[str, float | None], step: int) -> None:
        """Log curves at a step, which never decreases; None and NaN leave a gap."""
        kept = {name: float(value) for name, value in metrics.items() if value is not None}
        self._put(step, {name: value for name, value in kept.items() if not math.isnan(value)})

    def images(self, step: int, name: str, pictures: Pictures) -> None:
        import wandb

        # From files: of a picture in memory W&B writes a PNG anew.
        with TemporaryDirectory(dir=self._home) as folder:
            drawn = []
            for i, (caption, png) in enumerate(pictures):
                path = Path(folder, f"{i}.png")
                path.write_bytes(png)
                drawn.append(wandb.Image(str(path), caption=caption))
            self._put(step, {name: drawn if len(drawn) > 1 else drawn[0]})

    def table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        import wandb

        data = [list(redact(row)) for row in rows]
        with kept_under(self._home):
            # A column of numbers may hold None or a word for "undefined", which a typed column refuses.
            self._put(
                self.step, {name: wandb.Table(columns=list(columns), data=data, allow_mixed_types=True)}
            )

    def model(self, path: Path, name: str, alias: str) -> None:
        """Keep a finished file of weights under a name that all runs of its kind share."""
        self._publish(path, name, [alias, "latest"], made_here=True)

    def uses(self, path: Path, name: str, alias: str) -> None:
        """Declare an input as `run.use_artifact` does, also offline. The same file under the same name is one
        version."""
        self._publish(path, name, [alias], made_here=False)

    def _publish(self, path: Path, name: str, aliases: list[str], *, made_here: bool) -> None:
        import wandb

        with kept_under(self._home):
            artifact = wandb.Artifact(name, type="model")
            artifact.add_file(str(path))  # copied: the record may be cleaned away before it is uploaded
            artifact.finalize()
            # As `run.log_artifact` does offline. Online it would not write to disk what it sends, and `wandb
            # sync` could not upload it after the server has died.
            self.run._interface.publish_artifact(
                self.run, artifact, aliases, None,
                finalize=True, is_user_created=not made_here, use_after_commit=not made_here,
            )  # fmt: skip

    def log_hyperparams(self, values: Mapping[str, object]) -> None:
        self.run.config.update(redact(dict(values)), allow_val_change=True)

    def summary(self, values: Mapping[str, object]) -> None:
        self.run.summary.update(redact(dict(values)))

    def fail(self) -> None:
        """End the run as failed."""
        self.exit_code = 1

    def lightning_logger(self) -> Logger:
        """Return Lightning's logger to this run, for what callbacks log."""
        from icl.loggers.lightning import WandbRunLogger

        return WandbRunLogger(self.run, lambda metrics, step: self.log_metrics(metrics, max(step, self.step)))

    def _put(self, step: int, values: dict[str, Any]) -> None:
        assert step >= self.step, f"step {step} after step {self.step}: W&B would drop it"
        self.step = step
        for name in values:
            if (
                not {name, name.partition("/")[0]} & self._defined
            ):  # a pattern for all would win over the others
                self.run.define_metric(name, step_metric="step")
                self._defined.add(name)
        if values:
            self.run.log({"step": step, **values}, step=step)


@contextmanager
def open_wandb(
    settings: LoggerSettings,
    *,
    outputs: Path,
    group: str,
    job_type: str,
    run_id: str,
    name: str,
    config: dict[str, Any],
    notify: Notify,
    tags: Sequence[str] = (),
) -> Iterator[WandbRun | None]:
    """Open one W&B run for the body, or none where the mode is none; close it as failed if the body raises.

    An online run without a key or a reachable server is an offline one, and says so once; under a W&B agent,
    whose id it takes, that is an error.
    """
    if settings.mode == "none":
        yield None
        return
    home = outputs.absolute() / "wandb"
    identity: dict[str, Any] = {
        "project": settings.project,
        "run_group": redact(settings.group or group),
        "run_job_type": redact(settings.job_type or job_type),
        "run_id": run_id,
        "run_name": redact(settings.name or name),
        "run_tags": tuple(dict.fromkeys(redact([*tags, *(settings.tags or ())]))),
    }
    identity |= {} if settings.entity is None else {"entity": settings.entity}
    identity |= {} if settings.notes is None else {"run_notes": redact(settings.notes)}
    run = _open(settings, home, identity, redact(config), notify)
    exit_code = 1
    try:
        opened = WandbRun(run, home)
        yield opened
        exit_code = opened.exit_code
    finally:
        _close(settings, home, run, exit_code, notify)


_lock = threading.RLock()


@contextmanager
def kept_under(home: Path, timeout: float = 10) -> Iterator[None]:
    """W&B reads the places of its caches and staged tables, and whether to report its own errors over the
    network, from the environment alone: set while a call needs them, then restored. The user's own win."""
    wanted = {
        "WANDB_CACHE_DIR": str(home / "cache"),
        "WANDB_DATA_DIR": str(home / "staging"),
        "WANDB_ERROR_REPORTING": "false",
        "WANDB_HTTP_TIMEOUT": str(math.ceil(timeout)),  # whole seconds
    }
    with _lock:
        added = {key: value for key, value in wanted.items() if key not in os.environ}
        os.environ.update(added)
        try:
            yield
        finally:
            for key in added:
                os.environ.pop(key, None)


def _open(
    settings: LoggerSettings, home: Path, identity: dict[str, Any], config: dict[str, Any], notify: Notify
) -> Any:
    home.mkdir(parents=True, exist_ok=True)
    with kept_under(home, settings.init_timeout):
        import wandb

        wandb.setup(wandb.Settings(silent=True, quiet=True))

        def opened(mode: str, run_id: str) -> Any:
            private = _private_settings(settings, home) | identity | {"run_id": run_id, "mode": mode}
            # A copy on disk begins at the run's start; `wandb sync` would put a resumed one's steps behind an
            # earlier copy's.
            private["resume"] = "allow" if mode == "online" else None
            run: Any = wandb.init(settings=wandb.Settings(**private), config=config)
            run._cached_public_api = _OfflineApiStub()
            return run

        run_id = identity["run_id"]
        if settings.mode == "offline" or _offline_marker(settings, home).exists():
            return opened("offline", run_id)
        if under_agent():
            return opened("online", os.environ.get("WANDB_RUN_ID", run_id))
        if reason := _offline_reason():
            _give_up(settings, home)
            return _notify_offline(notify, reason, opened("offline", run_id))
        before = set(home.glob(f"run-*-{run_id}"))
        try:
            return opened("online", run_id)
        except wandb.Error as error:
            for abandoned in set(home.glob(f"run-*-{run_id}")) - before:
                shutil.rmtree(abandoned, ignore_errors=True)
            _give_up(settings, home)
            # W&B's service keeps the id of a run that did not open for as long as the process lives.
            run = opened("offline", f"{run_id}-offline")
            return _notify_offline(notify, _first_line(error), run, f"--id {shlex.quote(run_id)} ")


def _offline_marker(settings: LoggerSettings, home: Path) -> Path:
    """Return the marker that exists once the server failed this process tree, so that none waits again."""
    return home / "given_up" / f"{process_tree()}-{fingerprint(asdict(settings))}"


def _give_up(settings: LoggerSettings, home: Path) -> None:
    path = _offline_marker(settings, home)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


class _OfflineApiStub:
    """Replaces the queries W&B sends before it logs a table or an artifact: a server that has died would
    not answer, and the copy on disk would lack them."""

    settings: ClassVar[dict[str, str]] = {"entity": "", "project": ""}

    def _expected_artifact_type(self, **_: str) -> None: ...

    def _set_artifact_save_handle(self, *_: object) -> None: ...


def _offline_reason() -> str | None:
    """Why this process cannot log online, asked before `wandb.init`: that would prompt for a key in a
    terminal, and keep the id of a run whose server does not answer."""
    import wandb

    try:
        if wandb.login(prompt=False, verify=True):
            return None
        return "no W&B key (`wandb login` or WANDB_API_KEY gives one)"
    except wandb.Error as error:
        return _first_line(error)


def _first_line(error: Exception) -> str:
    text = str(redact(str(error))).partition("\n")[0]
    return f"W&B cannot be reached or refuses ({text.rstrip('.')})"


def _notify_offline(notify: Notify, reason: str, run: Any, options: str = "") -> Any:
    folder = Path(run.settings.sync_dir)
    notify(
        f"icl: {reason}: continuing offline; upload with: wandb sync {options}{shlex.quote(str(folder))}"
        f" (later runs: cd {shlex.quote(str(folder.parent.parent))} && wandb sync)"
    )
    return run


def _private_settings(settings: LoggerSettings, home: Path) -> dict[str, Any]:
    """Return settings of one quiet run: W&B collects nothing that `logger.settings` does not turn on."""
    return {
        **settings.settings,
        "root_dir": str(home.parent),
        "use_dot_wandb": False,
        "reinit": "create_new",
        "init_timeout": settings.init_timeout,
        "program": "icl",
        "silent": True,
        "quiet": True,
        "symlink": False,
    }


def _close(settings: LoggerSettings, home: Path, run: Any, exit_code: int, notify: Notify) -> None:
    seconds = AGENTS_FINISH_TIMEOUT if under_agent() else FINISH_TIMEOUT
    if _finish(run, exit_code, seconds):
        return
    reason = f"W&B did not take all data within {seconds:g} s"
    if under_agent():
        raise TimeoutError(reason)
    _give_up(settings, home)
    # `wandb sync` skips runs that were opened online unless a flag includes them.
    _notify_offline(notify, reason, run, "--include-online ")


def _finish(run: Any, exit_code: int, seconds: float) -> bool:
    """Return whether all was uploaded in time. W&B's own limit does not hold for artifacts; the rest it tries
    to upload for as long as this process lives."""
    raised: list[Exception] = []

    def finish() -> None:
        try:
            run.finish(exit_code=exit_code)
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=finish, daemon=True)
    thread.start()
    thread.join(None if run.offline else seconds)
    if thread.is_alive():
        atexit.register(_end_service, Path(run.settings.sync_file))
        return False
    if raised:
        raise raised[0]
    return True


def _end_service(log: Path) -> None:
    """End W&B's own process, which would keep this one from ending, once it has written all it was given."""
    import wandb

    _await_quiet(log)
    connection: Any = wandb.setup().ensure_service()
    with suppress(AttributeError):
        connection._cleanup()
        connection._proc._process.kill()


def _await_quiet(log: Path) -> None:
    """Wait until a file that another process writes has stopped growing."""
    began = changed = time.monotonic()
    size = -1
    while time.monotonic() - changed < QUIET_SECONDS and time.monotonic() - began < WRITTEN_WITHIN:
        now = log.stat().st_size if log.exists() else 0
        size, changed = (size, changed) if now == size else (now, time.monotonic())
        time.sleep(0.1)
