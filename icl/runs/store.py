"""Runs on disk, from the first byte to the finished record.

    OUTPUTS/runs/EXPERIMENT/FINGERPRINT/
        config.yaml  metrics.csv  weights.npz  checkpoints/  run.json
        traceback.txt   of a failed run
        lock            while a process works on it

run.json alone says what the folder is worth: "running" from the start, and "done" once it is renamed into
place after everything else. A "running" run whose lock is free was killed: it is resumed like an interrupted
one. A failed one starts afresh, since what broke it may be in its checkpoint. A new attempt starts
where the code has changed, after a failure, and where `force` asks for it; the record that was there is gone
then.
"""

from __future__ import annotations

import contextlib
import datetime
import io
import shutil
import time
import traceback
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl.digests import digest as digest_of
from icl.errors import Interrupted, one_line
from icl.metrics import Row, metrics_csv
from icl.redact import redact
from icl.runs import atomic, documents, layout
from icl.runs.lock import locked, notify
from icl.runs.provenance import provenance
from icl.runs.record import RunRecord, find_done, invalid_reason

if TYPE_CHECKING:
    import numpy as np

KEPT = 2  # checkpoints
_STOPS = (Interrupted, KeyboardInterrupt, atomic.Unwritable)  # after which the last checkpoint is still valid


class RunStore:
    """The runs below `outputs`. Asking creates nothing; only `begin` does."""

    def __init__(self, outputs: str | Path) -> None:
        self.outputs = Path(outputs).absolute()

    def path(self, experiment: str, fingerprint: str) -> Path:
        """Return the run's folder, which need not exist."""
        return layout.record_path(self.outputs, layout.RUNS, experiment, fingerprint).parent

    def checkpoints(self, experiment: str, fingerprint: str, digest: str) -> dict[int, Path]:
        """Return what an unfinished run would continue from, by step, as `begin` finds it."""
        folder = self.path(experiment, fingerprint)
        unfinished = _is_unfinished(documents.read_record(folder / "run.json") or {}, digest)
        return intact_checkpoints(folder) if unfinished else {}

    @contextlib.contextmanager
    def begin(
        self,
        experiment: str,
        fingerprint: str,
        config: Mapping[str, Any],
        digest: str,
        roots: Sequence[str] = (),
        *,
        origin: Mapping[str, Any] | None = None,
        force: bool = False,
        notify: Callable[[str], None] = notify,
    ) -> Iterator[ActiveRun]:
        """Begin a run, one process at a time: `with store.begin(...) as run`.

        `digest` is that of the code it depends on, which `roots` reach (icl.runs.code). `origin` are keys of
        run.json about who asked for it. Waits while another process has it; `notify` receives lines about
        that and about damage. If it is done, now or when the wait is over, `run.cached` is its record.
        Otherwise `run.checkpoints` are where to continue, and the block must end with `run.finish`. An
        exception that leaves the block marks the run interrupted (Interrupted, KeyboardInterrupt, a full
        disk) or failed, and is raised again.
        """
        folder = self.path(experiment, fingerprint)
        about = {"schema": layout.SCHEMA, "experiment": experiment, "fingerprint": fingerprint}
        about |= {"digest": digest, "code": list(roots)}
        run = ActiveRun(self.outputs, folder, about, origin or {})
        run.cached = None if force else find_done(folder, digest)
        if run.cached is not None:
            yield run
            return
        with contextlib.ExitStack() as stack:
            with atomic.writing(self.outputs):
                stack.enter_context(locked(folder / "lock", notify))
                run.cached = None if force else find_done(folder, digest)
                if run.cached is None:
                    run._open(config, force, notify)
            if run.cached is None:
                stack.enter_context(atomic.with_room(self.outputs))
                stack.enter_context(run._recording_what_goes_wrong())
            yield run


@dataclass
class ActiveRun:
    """A run being made, by the holder of its lock. Obtained from `RunStore.begin`.

    `path`; `cached`: the record, if there is nothing to do; `checkpoints`: the files to continue from, by
    step; `attempt`: 1, and one more for each start from nothing; `resumed`: how often this one was continued;
    `seconds_before`: time spent on it in earlier sessions.
    """

    outputs: Path
    path: Path
    about: Mapping[str, Any]  # what is known of it from the start
    origin: Mapping[str, Any]
    cached: RunRecord | None = None
    checkpoints: dict[int, Path] = field(default_factory=dict)
    attempt: int = 1
    resumed: int = 0
    seconds_before: float = 0.0
    started: str = field(default_factory=lambda: _now())
    _clock: float = field(default_factory=lambda: time.monotonic())

    @property
    def seconds(self) -> float:
        """Time spent on this attempt so far, over all its sessions."""
        return self.seconds_before + time.monotonic() - self._clock

    def save_checkpoint(self, write: Callable[[Path], None], step: int) -> None:
        """Keep the file that `write` makes at a path: a later start continues from it after `step` steps."""
        with atomic.writing(self.outputs):
            folder = self.path / "checkpoints"
            folder.mkdir(exist_ok=True)
            with atomic.replacing(folder / f"{step:09d}.ckpt") as part:
                write(part)
            for old in _newest_first(folder)[KEPT:]:
                with contextlib.suppress(OSError):
                    old.unlink()

    def finish(
        self,
        *,
        metrics: Iterable[Row],
        weights: Mapping[str, np.ndarray],
        summary: Mapping[str, Any],
        steps: int,
        seeds: Sequence[int],
        columns: Sequence[str] | None = None,
        verdicts: Sequence[Any] | None = None,
        extras: Mapping[str, Any] | None = None,
    ) -> RunRecord:
        """Write all files, then mark the run as finished. `extras` are further keys of run.json."""
        with atomic.writing(self.outputs):
            text = metrics_csv(metrics, columns).encode()
            contents = {"metrics.csv": text, "weights.npz": _packed(weights)}
            for name, content in contents.items():
                atomic.write_bytes(self.path / name, content)
            contents["config.yaml"] = (self.path / "config.yaml").read_bytes()
            files = {name: {"bytes": len(one), "digest": digest_of(one)} for name, one in contents.items()}
            result = {"steps": steps, "seeds": list(seeds), "metrics": summary, "files": files}
            result["verdicts"] = list(verdicts or ())
            written = self._write_run("done", {**(extras or {}), **result, **provenance()})
        return RunRecord(self.path, written)

    def _open(self, config: Mapping[str, Any], force: bool, notify: Callable[[str], None]) -> None:
        """Continue what is unfinished, or start from nothing; finish what an earlier session, killed at any
        moment, left undone."""
        import yaml

        self._clock = time.monotonic()
        root = documents.read_record(self.path / "run.json")
        damage = invalid_reason(self.path, root) if root is None or root.get("status") == "done" else None
        if damage and (self.path / "run.json").exists():
            notify(f"{self.path}: {damage}; it is made again")
        root = root or {}
        if not force and _is_unfinished(root, self.about["digest"]):
            self.attempt, self.resumed, self.started = root["attempt"], root["resumed"], root["started"]
            self.origin = {key: root.get(key, value) for key, value in self.origin.items()}
            self.seconds_before = root["seconds"]
            self.checkpoints = intact_checkpoints(self.path)
            self.resumed += bool(self.checkpoints)
        else:
            self.attempt = root.get("attempt", 0) + 1
            shutil.rmtree(self.path / "checkpoints", ignore_errors=True)
        self._write_run("running")
        for name in ("traceback.txt", "weights.npz", "metrics.csv"):
            (self.path / name).unlink(missing_ok=True)
        text = yaml.safe_dump(redact(config), sort_keys=False, allow_unicode=True)
        atomic.write_bytes(self.path / "config.yaml", text.encode())

    @contextlib.contextmanager
    def _recording_what_goes_wrong(self) -> Iterator[None]:
        try:
            yield
            if not self._is_done():
                raise RuntimeError(f"{self.path}: the run ended without finish()")
        except BaseException as error:
            if not self._is_done():
                with contextlib.suppress(OSError):  # the error itself matters more
                    can_continue = isinstance(error, _STOPS) or getattr(error, "errno", 0) in atomic.NO_ROOM
                    if can_continue:
                        self._write_run("interrupted", provenance())
                    else:
                        trace = redact(traceback.format_exc()).encode()
                        atomic.write_bytes(self.path / "traceback.txt", trace)
                        said = f"{type(error).__name__}: {one_line(error)}"
                        self._write_run("failed", {"error": said, **provenance()})
            raise

    def _write_run(self, status: str, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
        session = {"attempt": self.attempt, "resumed": self.resumed, "started": self.started}
        session |= {"ended": None if status == "running" else _now(), "seconds": self.seconds}
        own = {**self.about, "status": status, **session, **self.origin}
        # Named first for the reader's order, last because extras must not change them.
        document: dict[str, Any] = redact(documents.to_json({**own, **(more or {}), **own}))
        documents.write_record(self.path / "run.json", document)
        return document

    def _is_done(self) -> bool:
        """Return whether run.json is there, since an interruption may fall right after its rename."""
        return (documents.read_record(self.path / "run.json") or {}).get("status") == "done"


def _is_unfinished(root: Mapping[str, Any], digest: str) -> bool:
    """Return whether run.json is that of a run which this code can continue."""
    return root.get("digest") == digest and root.get("status") in ("running", "interrupted")


def intact_checkpoints(run: Path) -> dict[int, Path]:
    """Return the checkpoints of a run by step, newest first; one cut short or altered is none."""
    return {int(path.stem): path for path in _newest_first(run / "checkpoints") if _is_intact(path)}


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("[0-9]*.ckpt"), key=lambda path: int(path.stem), reverse=True)


def _is_intact(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:  # torch's format, with a checksum for each entry
            return archive.testzip() is None
    except (OSError, zipfile.BadZipFile):
        return False


def _packed(weights: Mapping[str, np.ndarray]) -> bytes:
    import numpy as np

    arrays: dict[str, Any] = {name: np.asarray(array) for name, array in weights.items()}
    for name, array in arrays.items():
        if array.dtype == object or not name.isidentifier() or name == "file":
            raise ValueError(f"weights[{name!r}]: must be a named array of numbers, not {array.dtype}")
    content = io.BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
