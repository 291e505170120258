"""Runs on disk, from the first byte to the finished record.

    OUTPUTS/runs/EXPERIMENT/FINGERPRINT/
        config.yaml  metrics.csv  weights.npz  verdicts.json  checkpoints/  run.json
        traceback.txt   of a failed run
        lock            while a process works on it
        superseded/     the finished record of an earlier attempt, while a new attempt is under way

run.json alone says what the folder is worth: "running" from the start, and "done" once it is renamed into
place after everything else. A "running" run whose lock is free was killed: it is resumed like an interrupted
one. A failed one starts afresh, since what broke it may be in its checkpoint. A new attempt starts
where the code has changed, after a failure, and where `force` asks for it; it leaves the finished record
readable until its own is there.
"""

from __future__ import annotations

import contextlib
import datetime
import shutil
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from icl.errors import Interrupted
from icl.redact import redact
from icl.runs import atomic, checkpoint, documents, layout
from icl.runs.lock import HEARTBEAT, STALE_AFTER, Lock, notify
from icl.runs.metrics import MetricsWriter, Row, write_metrics
from icl.runs.provenance import provenance
from icl.runs.record import DATA_FILES, VERDICTS, RunRecord, complaint, find_done, write_verdicts

if TYPE_CHECKING:
    import numpy as np


class RunStore:
    """The runs below `outputs`. Asking creates nothing; only `begin` does."""

    def __init__(
        self, outputs: str | Path, *, heartbeat: float = HEARTBEAT, stale_after: float = STALE_AFTER
    ) -> None:
        self.outputs = Path(outputs).absolute()
        self.heartbeat = heartbeat
        self.stale_after = stale_after

    def path(self, experiment: str, fingerprint: str) -> Path:
        """Return the run's folder, which need not exist."""
        return layout.record_path(self.outputs, layout.RUNS, experiment, fingerprint).parent

    def find(self, experiment: str, fingerprint: str, digest: str) -> RunRecord | None:
        """Return the finished run if the current code made it."""
        return find_done(self.path(experiment, fingerprint), digest)

    def stale(self, experiment: str, fingerprint: str, digest: str) -> str | None:
        """Reason why `find` refuses an existing run; None where no run is or `find` finds it."""
        folder = self.path(experiment, fingerprint)
        if not folder.is_dir() or find_done(folder, digest) is not None:
            return None
        return complaint(folder, documents.read_record(folder / "run.json"), digest)

    @contextlib.contextmanager
    def begin(
        self,
        experiment: str,
        fingerprint: str,
        config: Mapping[str, Any],
        digest: str,
        roots: Sequence[str] = (),
        *,
        origin: Mapping[str, Any] = MappingProxyType({}),
        force: bool = False,
        notify: Callable[[str], None] = notify,
    ) -> Iterator[ActiveRun]:
        """Begin a run, one process at a time: `with store.begin(...) as run`.

        `digest` is that of the code it depends on, which `roots` reach (icl.runs.code). `origin` are keys of
        run.json about who asked for it, as long as it is not done.
        Waits while another process has it; `notify` receives lines about that and about damage. If the run is
        done, now or when the wait is over, `run.cached` is its record and there is nothing to do. Otherwise
        `run.checkpoint` is where to continue, or None, and the block must end with `run.finish`. An exception
        that leaves the block marks the run interrupted (Interrupted, KeyboardInterrupt, a full disk) or
        failed, and is raised again.
        """
        folder = self.path(experiment, fingerprint)
        run = ActiveRun(self.outputs, folder, experiment, fingerprint, digest, roots, origin)
        done = None if force else find_done(folder, digest)
        if done is not None and done.path == folder:
            run.cached = done
            yield run
            return
        lock = Lock(folder / "lock", self.heartbeat, self.stale_after)
        with atomic.writing(self.outputs):
            lock.acquire(notify)
        try:
            if damage := _damage(folder):
                notify(f"{folder}: {damage}; it is made again")
            with atomic.writing(self.outputs):
                run._open(lock, config, force)
            if run.cached is None:
                with atomic.with_room(self.outputs), run._recording_what_goes_wrong():
                    yield run
                return
        finally:
            lock.release()
        yield run


class ActiveRun:
    """A run being made, by the holder of its lock. Obtained from `RunStore.begin`.

    `path`; `cached`: the record, if there is nothing to do; `checkpoint`: the state to continue from, or
    None; `attempt`: 1, and one more for each start from nothing; `resumed`: how often this one was continued.
    """

    def __init__(
        self,
        outputs: Path,
        path: Path,
        experiment: str,
        fingerprint: str,
        digest: str,
        roots: Sequence[str] = (),
        origin: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.path = path
        self.experiment = experiment
        self.fingerprint = fingerprint
        self.digest = digest
        self.roots = list(roots)
        self.origin = dict(origin)
        self.cached: RunRecord | None = None
        self.checkpoint: dict[str, Any] | None = None
        self.earlier: list[dict[str, Any]] = []  # those before it that are kept
        self.attempt = 1
        self.resumed = 0
        self._outputs = outputs
        self._lock: Lock
        self._started = _now()
        self._seconds_before = 0.0
        self._clock = time.monotonic()

    @property
    def seconds(self) -> float:
        """Time spent on this attempt so far, over all its sessions."""
        return self._seconds_before + time.monotonic() - self._clock

    def live_metrics(self, columns: Sequence[str] | None = None, rows: Iterable[Row] = ()) -> MetricsWriter:
        """Open metrics.csv, to be written during training; it starts from `rows`, those of the checkpoint."""
        return MetricsWriter(self.path / "metrics.csv", rows, columns)

    def save_checkpoint(self, state: dict[str, Any]) -> None:
        """Save `state` (tensors and plain data), from which a later start continues."""
        self._insist()
        wrapped = {
            "schema": layout.SCHEMA, "digest": self.digest, "attempt": self.attempt,
            "seconds": self.seconds, "state": state,
        }  # fmt: skip
        with atomic.writing(self._outputs):
            checkpoint.save(self.path / "checkpoints", wrapped)

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
        self._insist()
        with atomic.writing(self._outputs):
            write_metrics(self.path / "metrics.csv", metrics, columns)
            _write_weights(self.path / "weights.npz", weights)
            files = {name: _written(self.path / name) for name in DATA_FILES}
            if verdicts is not None:
                write_verdicts(self.path, {"files": files}, verdicts)
            result = {"steps": steps, "seeds": list(seeds), "metrics": summary, "files": files}
            self._write_run("done", {**(extras or {}), **result, **provenance()})
        with contextlib.suppress(OSError):  # only in the way by now, and `icl clean` finds it
            _discard(self.path / layout.SUPERSEDED)
        return self._record()

    def _open(self, lock: Lock, config: Mapping[str, Any], force: bool) -> None:
        """Decide between the finished record, resuming and starting from nothing."""
        self._lock = lock
        self._clock = time.monotonic()
        root = documents.read_record(self.path / "run.json") or {}
        ours = root.get("digest") == self.digest and root.get("schema") == layout.SCHEMA
        done = find_done(self.path, self.digest)
        if not force and done is not None and done.path == self.path:
            self.cached = done
        elif not force and done is not None and not ours:
            self.cached = self._restore()
        elif not force and ours and root.get("status") in ("running", "interrupted"):
            self._resume(root)
            self._prepare(config)
        else:
            self._start_afresh(root)
            self._prepare(config)

    def _resume(self, root: Mapping[str, Any]) -> None:
        self.attempt = root["attempt"]
        self.resumed = root["resumed"]
        self.origin = {key: root.get(key, value) for key, value in self.origin.items()}
        self._started = root["started"]
        self._seconds_before = root["seconds"]
        for path in checkpoint.candidates(self.path / "checkpoints"):
            saved = checkpoint.load(path)
            made_by = (saved["schema"], saved["digest"], saved["attempt"])
            if made_by != (layout.SCHEMA, self.digest, self.attempt):
                continue
            if self.checkpoint is not None:
                self.earlier.append(saved["state"])
                continue
            self.checkpoint = saved["state"]
            self.resumed += 1
            self._seconds_before = max(self._seconds_before, saved["seconds"])
        self._write_run("running")

    def _start_afresh(self, root: Mapping[str, Any]) -> None:
        set_aside = documents.read_record(self.path / layout.SUPERSEDED / "run.json") or {}
        self.attempt = max(root.get("attempt", 0), set_aside.get("attempt", 0)) + 1
        if complaint(self.path, root) is None:
            self._supersede()
        # From here on checkpoints of earlier attempts no longer fit, whenever we are killed.
        self._write_run("running")
        for name in ("checkpoints", "metrics.csv"):
            _discard(self.path / name)

    def _prepare(self, config: Mapping[str, Any]) -> None:
        """Prepare the folder, and finish what an earlier session, killed at any moment, left undone."""
        for name in ("traceback.txt", VERDICTS, "weights.npz"):
            _discard(self.path / name)
        _write_yaml(self.path / "config.yaml", redact(config))

    def _supersede(self) -> None:
        """Set the finished record aside. It counts in its old place until run.json there is replaced."""
        aside = self.path / layout.SUPERSEDED
        _discard(aside)
        part = atomic.temporary(aside)
        part.mkdir()
        _copy_record(self.path, part)
        part.rename(aside)
        atomic.sync_folder(self.path)

    def _restore(self) -> RunRecord:
        """Restore the record set aside: the attempt that was to replace it was made with other code."""
        for name in (VERDICTS, "traceback.txt"):
            _discard(self.path / name)
        _copy_record(self.path / layout.SUPERSEDED, self.path)
        for name in (layout.SUPERSEDED, "checkpoints"):
            _discard(self.path / name)
        return self._record()

    def _record(self) -> RunRecord:
        run = documents.read_record(self.path / "run.json")
        assert run is not None
        return RunRecord(self.path, run)

    @contextlib.contextmanager
    def _recording_what_goes_wrong(self) -> Iterator[None]:
        try:
            yield
            if not self._is_done():
                raise RuntimeError(f"{self.path}: the run ended without finish()")
        except BaseException as error:
            if not self._is_done() and self._lock.is_held():
                with contextlib.suppress(OSError):  # the error itself matters more
                    self._record_end("interrupted" if _can_continue(error) else "failed")
            raise

    def _record_end(self, status: str) -> None:
        if status == "failed":
            atomic.write_bytes(self.path / "traceback.txt", redact(traceback.format_exc()).encode())
        self._write_run(status, provenance())

    def _write_run(self, status: str, more: Mapping[str, Any] | None = None) -> None:
        own = {
            "schema": layout.SCHEMA, "status": status, "experiment": self.experiment,
            "fingerprint": self.fingerprint, "digest": self.digest, "code": self.roots,
            "attempt": self.attempt, "resumed": self.resumed, "started": self._started,
            "ended": None if status == "running" else _now(), "seconds": self.seconds, **self.origin,
        }  # fmt: skip
        # Named first for the reader's order, last because extras must not change them.
        document = {**own, **(more or {}), **own}
        documents.write_record(self.path / "run.json", redact(documents.to_json(document)))

    def _is_done(self) -> bool:
        """Return whether run.json is there, since an interruption may fall right after its rename."""
        return (documents.read_record(self.path / "run.json") or {}).get("status") == "done"

    def _insist(self) -> None:
        if self._is_done():
            raise RuntimeError(f"{self.path}: the run is finished")
        if not self._lock.is_held():
            raise RuntimeError(f"{self.path}: another process has taken this run over")


def _damage(folder: Path) -> str | None:
    """Return what is damaged in a finished record."""
    root = documents.read_record(folder / "run.json")
    if root is None:
        return complaint(folder, root) if (folder / "run.json").exists() else None
    return complaint(folder, root) if root.get("status") == "done" else None


def _can_continue(error: BaseException) -> bool:
    """Return whether the last checkpoint is still valid: the run was stopped, or the disk filled up."""
    full = isinstance(error, OSError) and error.errno in atomic.NO_ROOM
    return full or isinstance(error, Interrupted | KeyboardInterrupt | atomic.Unwritable)


def _copy_record(source: Path, target: Path) -> None:
    """Copy a finished record file by file, run.json last."""
    for name in (*DATA_FILES, VERDICTS, "run.json"):
        if (source / name).exists():
            atomic.write_bytes(target / name, (source / name).read_bytes())


def _write_weights(path: Path, weights: Mapping[str, np.ndarray]) -> None:
    import numpy as np

    arrays: dict[str, Any] = {name: np.asarray(array) for name, array in weights.items()}
    for name, array in arrays.items():
        if array.dtype == object or not name.isidentifier() or name == "file":
            raise ValueError(f"weights[{name!r}]: must be a named array of numbers, not {array.dtype}")
    with atomic.replacing(path) as file:
        np.savez(file, **arrays)


def _written(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    return {"bytes": len(content), "digest": documents.digest(content)}


def _write_yaml(path: Path, document: Any) -> None:
    import yaml

    atomic.write_bytes(path, yaml.safe_dump(document, sort_keys=False, allow_unicode=True).encode())


def _discard(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
