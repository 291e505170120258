"""Weights & Biases beside the run store: one run per sink, always closed, with nothing secret in it.

Everything it writes is under OUTPUTS/wandb. W&B is imported only when a run is opened.
"""

from __future__ import annotations

import io
import math
import os
import shlex
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from icl.config.logger import LoggerSettings
from icl.runs.redact import redact
from icl.sinks.sink import NullSink, Sink

Say = Callable[[str], None]  # a line for the user

FINISH_TIMEOUT = 60.0  # seconds an upload may take at the end; what is left stays on disk for `wandb sync`


class WandbSink:
    """An open W&B run."""

    def __init__(self, run: Any, home: Path) -> None:
        self._run = run
        self._home = home
        self._step = 0

    def log(self, step: int, scalars: Mapping[str, float | None]) -> None:
        kept = {name: float(value) for name, value in scalars.items() if value is not None}
        self._put(step, {name: value for name, value in kept.items() if not math.isnan(value)})

    def image(self, step: int, name: str, png: bytes, caption: str = "") -> None:
        import wandb
        from PIL import Image

        with Image.open(io.BytesIO(png)) as picture:
            self._put(step, {name: wandb.Image(picture, caption=caption or None)})

    def table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        import wandb

        data = [list(redact(row)) for row in rows]
        with _kept_under(self._home):
            # A column of numbers may hold None or a word for "undefined", which a typed column refuses.
            self._put(
                self._step, {name: wandb.Table(columns=list(columns), data=data, allow_mixed_types=True)}
            )

    def file(self, path: Path) -> None:
        self._run.save(str(path), base_path=str(path.parent), policy="now", glob=False)

    def summary(self, values: Mapping[str, object]) -> None:
        self._run.summary.update(redact(dict(values)))

    def _put(self, step: int, values: dict[str, Any]) -> None:
        assert step >= self._step, f"step {step} after step {self._step}: W&B would drop it"
        self._step = step
        if values:
            self._run.log(values, step=step)


class UnfailingSink:
    """`with UnfailingSink(open_sink(...), name, say) as sink:` is the sink, whose first failure is said and
    is its last: what is told to it, a run of hours, does not depend on it."""

    def __init__(self, opened: AbstractContextManager[Sink], name: str, say: Say) -> None:
        self._opened, self._name, self._say = opened, name, say
        self._sink: Sink = NullSink()
        self.has_failed = False

    def __enter__(self) -> Sink:
        try:
            self._sink = self._opened.__enter__()
        except Exception as error:
            self._give_up(error)
        return self._sink if isinstance(self._sink, NullSink) else self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._opened.__exit__(kind, error, trace)
        except Exception as closing:
            self._give_up(closing)

    def log(self, step: int, scalars: Mapping[str, float | None]) -> None:
        self._try(lambda: self._sink.log(step, scalars))

    def image(self, step: int, name: str, png: bytes, caption: str = "") -> None:
        self._try(lambda: self._sink.image(step, name, png, caption))

    def table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        self._try(lambda: self._sink.table(name, columns, rows))

    def file(self, path: Path) -> None:
        self._try(lambda: self._sink.file(path))

    def summary(self, values: Mapping[str, object]) -> None:
        self._try(lambda: self._sink.summary(values))

    def _try(self, tell: Callable[[], None]) -> None:
        try:
            tell()
        except Exception as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        reason = f"{type(error).__name__}: {' '.join(str(redact(str(error))).split())}"
        self._say(f"icl: {self._name}: W&B has failed ({reason}); the record does not depend on it")
        self._sink, self.has_failed = NullSink(), True


@contextmanager
def open_sink(
    settings: LoggerSettings,
    *,
    outputs: Path,
    group: str,
    job_type: str,
    run_id: str,
    name: str,
    config: dict[str, Any],
    say: Say,
    tags: Sequence[str] = (),
) -> Iterator[Sink]:
    """One W&B run for the body, closed as failed when the body raises.

    An online run without a key or a reachable server is an offline one, and says so once.
    """
    if settings.mode == "none":
        yield NullSink()
        return
    home = outputs.absolute() / "wandb"
    identity: dict[str, Any] = {
        "project": settings.project,
        "run_group": group,
        "run_job_type": job_type,
        "run_id": run_id,
        "run_name": name,
        "run_tags": tuple(redact(list(tags))),
    }
    identity |= {} if settings.entity is None else {"entity": settings.entity}
    run = _open(settings, home, identity, redact(config), say)
    exit_code = 1
    try:
        yield WandbSink(run, home)
        exit_code = 0
    finally:
        _close(run, exit_code, say)


_lock = threading.RLock()
_gone_offline: set[LoggerSettings] = set()


@contextmanager
def _kept_under(home: Path, timeout: float = 10) -> Iterator[None]:
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
    settings: LoggerSettings, home: Path, identity: dict[str, Any], config: dict[str, Any], say: Say
) -> Any:
    home.mkdir(parents=True, exist_ok=True)
    with _kept_under(home, settings.init_timeout):
        import wandb

        wandb.setup(wandb.Settings(silent=True, quiet=True))

        def opened(mode: str, run_id: str) -> Any:
            private = _private_settings(settings, home) | identity | {"run_id": run_id, "mode": mode}
            return wandb.init(settings=wandb.Settings(**private), config=config)

        run_id = identity["run_id"]
        if settings.mode == "offline" or settings in _gone_offline:
            return opened("offline", run_id)
        if reason := _unusable():
            # Later jobs of this process do not wait for the server again.
            _gone_offline.add(settings)
            return _say_offline(say, reason, opened("offline", run_id))
        before = set(home.glob(f"run-*-{run_id}"))
        try:
            return opened("online", run_id)
        except wandb.Error as error:
            for abandoned in set(home.glob(f"run-*-{run_id}")) - before:
                shutil.rmtree(abandoned, ignore_errors=True)
            _gone_offline.add(settings)
            # W&B's service keeps the id of a run that did not open for as long as the process lives.
            run = opened("offline", f"{run_id}-offline")
            return _say_offline(say, _first_line(error), run, f"--id {shlex.quote(run_id)} ")


def _unusable() -> str | None:
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


def _say_offline(say: Say, reason: str, run: Any, options: str = "") -> Any:
    folder = Path(run.settings.sync_dir)
    say(
        f"icl: {reason}: going on offline; upload with: wandb sync {options}{shlex.quote(str(folder))}"
        f" (later runs: cd {shlex.quote(str(folder.parent.parent))} && wandb sync)"
    )
    return run


def _private_settings(settings: LoggerSettings, home: Path) -> dict[str, Any]:
    """One run per call, quiet, and without command line, environment, code, git or machine."""
    return {
        "root_dir": str(home.parent),
        "use_dot_wandb": False,
        "reinit": "create_new",
        "resume": "allow",
        "init_timeout": settings.init_timeout,
        "finish_timeout": FINISH_TIMEOUT,
        "finish_timeout_raises": True,
        "console": "off",
        "silent": True,
        "quiet": True,
        "symlink": False,
        "label_disable": True,
        "disable_code": True,
        "disable_git": True,
        "save_code": False,
        "x_disable_meta": True,
        "x_disable_machine_info": True,
        "x_disable_stats": True,
        "x_save_requirements": False,
    }


def _close(run: Any, exit_code: int, say: Say) -> None:
    try:
        run.finish(exit_code=exit_code)
    except TimeoutError:
        # `wandb sync` leaves runs that were opened online alone unless told otherwise.
        _say_offline(say, f"W&B did not take all data within {FINISH_TIMEOUT:g} s", run, "--include-online ")
