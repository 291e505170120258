"""The session: settings that every verb understands, such as outputs, logger and config folders."""

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from icl.config.compose import Composed
from icl.config.objects import target_of
from icl.config.search_path import ConfigDirs
from icl.errors import InputError, nearest_key, one_of
from icl.progress import Listener, Message, quiet
from icl.resolver import SCALES

Loggers = Mapping[str, Mapping[str, Any]]  # Lightning's, by name, each with its _target_
COMMON = ("scale", "format", "force", "stale", "paths", "logger")  # conf/base.yaml
_new: list[Path] = []  # the folder of caches and those above it that were not there; the process's


@dataclass(frozen=True)
class Session:
    """Outputs, logger, configs and listener of a job. No number depends on it."""

    outputs: Path
    logger: Loggers = field(default_factory=dict)
    force: bool = False
    configs: ConfigDirs = field(default_factory=ConfigDirs)
    on_event: Listener = quiet
    group: str = ""  # of W&B's, of all jobs of a sweep; else each has its own
    figure: str = ""  # that trains its own runs
    uses_stale: bool = False  # records that other code made count
    overrides: tuple[str, ...] = field(default=(), compare=False)  # as they were typed
    cache: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)  # looked up once for many

    def info(self, line: str) -> None:
        self.on_event(Message(line))


def parse_session(verb: str, own: Sequence[str], composed: Composed, configs: ConfigDirs) -> Session:
    """Validate the settings that every verb has, and refuse keys that are neither these nor `own`."""
    settings = composed.settings
    known = [*COMMON, *own]
    for key in settings:
        if key not in known:
            raise InputError(f"{key}: no such key in icl {verb}{nearest_key(key, known)}")
    for key in known:
        if key not in settings and key != "logger":
            raise InputError(f"{key}: missing")
    one_of("scale", settings["scale"], SCALES)
    one_of("format", settings["format"], ("text", "json"))
    one_of("stale", settings["stale"], ("redo", "use"))
    if not isinstance(settings["force"], bool):
        raise InputError(f"force={settings['force']}: must be true or false")
    if not isinstance(loggers := settings.get("logger") or {}, Mapping):
        raise InputError(f"logger={loggers}: must be a group of loggers")
    for name, entry in loggers.items():
        target_of(f"logger.{name}", entry)
    return Session(
        _outputs(settings["paths"]), loggers, settings["force"], configs,
        uses_stale=settings["stale"] == "use", overrides=composed.overrides,
    )  # fmt: skip


def _outputs(paths: Any) -> Path:
    """Return the outputs folder as an absolute path, which need not exist."""
    if not isinstance(paths, Mapping) or list(paths) != ["outputs"]:
        raise InputError("paths: must have the key outputs and no other")
    value = paths["outputs"]
    if not isinstance(value, str) or not value:
        raise InputError(f"paths.outputs={value}: must be a folder")
    path = Path(value).expanduser().absolute()
    try:
        existing = next(folder for folder in (path, *path.parents) if folder.exists())
    except OSError as error:
        raise InputError(f"paths.outputs={value[:80]}: cannot be a folder ({error.strerror})") from None
    if not existing.is_dir():
        raise InputError(f"paths.outputs={value}: {existing} is not a folder")
    return path


def keep_cache_in(outputs: Path) -> None:
    """Keep the caches of matplotlib and torch below `outputs`, unless the user chose a place. To be called
    before validation, which imports them: they make folders then."""
    folder = outputs / "cache"
    os.environ.setdefault("MPLCONFIGDIR", str(folder / "matplotlib"))
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(folder / "inductor"))  # torch makes it, used or not
    if not folder.exists():
        _new[:] = [path for path in (folder, *folder.parents) if not path.exists()]


@contextlib.contextmanager
def cache_dropped_on_refusal() -> Iterator[None]:
    """Remove new cache folders again if the input is refused."""
    _new.clear()
    try:
        yield
    except InputError:
        for path in _new[:1]:  # matplotlib has listed fonts there, and knows them by now
            shutil.rmtree(path, ignore_errors=True)
        for path in _new[1:]:  # that are empty
            with contextlib.suppress(OSError):
                path.rmdir()
        raise
