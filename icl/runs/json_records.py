"""Results that are one JSON document: verdicts of checks, claims of figures."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from icl.errors import one_of
from icl.redact import redact
from icl.runs import atomic, documents, layout
from icl.runs.lock import HEARTBEAT, STALE_AFTER, Lock, notify
from icl.runs.provenance import provenance

DAMAGED = "it is damaged, of an older version, or the record of another place"


class JsonRecords:
    """Records of one kind, "checks" or "figures": OUTPUTS/KIND/ID/FINGERPRINT.json.

    with records.lock(id, fingerprint):
        document = records.find(id, fingerprint, digest)
        if document is None:
            document = records.save(id, fingerprint, digest, compute())
    """

    def __init__(
        self,
        outputs: str | Path,
        kind: str,
        *,
        heartbeat: float = HEARTBEAT,
        stale_after: float = STALE_AFTER,
    ) -> None:
        self.outputs = Path(outputs).absolute()
        self.kind = one_of("kind", kind, layout.JSON_KINDS)
        self.heartbeat = heartbeat
        self.stale_after = stale_after

    def path(self, id: str, fingerprint: str) -> Path:
        return layout.record_path(self.outputs, self.kind, id, fingerprint)

    def find(self, id: str, fingerprint: str, digest: str) -> Any | None:
        """Return the stored document if the current code made it."""
        record = read(self.path(id, fingerprint))
        if record is None or complaint(record, digest) is not None:
            return None
        return record["document"]

    def stale(self, id: str, fingerprint: str, digest: str) -> str | None:
        """Reason why `find` refuses an existing file; None where no file is or `find` finds it."""
        path = self.path(id, fingerprint)
        return complaint(read(path), digest) if path.exists() else None

    def save(
        self,
        id: str,
        fingerprint: str,
        digest: str,
        document: Mapping[str, Any],
        roots: Sequence[str] = (),
        made: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Store `document` and return it as `find` will: NaN is None, arrays are lists.

        `roots` and the runs it was `made` from are what `digest` is of, as icl.runs.code has it.
        """
        record = {
            "schema": layout.SCHEMA, "kind": self.kind, "id": id, "fingerprint": fingerprint,
            "digest": digest, "code": list(roots), "written": time.time(), "provenance": provenance(),
            "document": document, **({} if made is None else {"made": made}),
        }  # fmt: skip
        clean = redact(documents.to_json(record))
        with atomic.writing(self.outputs):
            path = self.path(id, fingerprint)
            path.parent.mkdir(parents=True, exist_ok=True)
            documents.write_record(path, clean)
        return clean["document"]

    @contextlib.contextmanager
    def lock(self, id: str, fingerprint: str, notify: Callable[[str], None] = notify) -> Iterator[None]:
        """Hold the lock on a record; other processes wait. `notify` receives lines about both."""
        lock = Lock(self.path(id, fingerprint).with_suffix(".lock"), self.heartbeat, self.stale_after)
        with atomic.writing(self.outputs):
            lock.acquire(notify)
        try:
            path = self.path(id, fingerprint)
            if path.exists() and complaint(read(path), None) == DAMAGED:
                notify(f"{path}: {DAMAGED}; it is made again")
            yield
        finally:
            lock.release()


def read(path: Path) -> dict[str, Any] | None:
    """Return the record in `path`; None where it is damaged, or was moved here from another place."""
    record = documents.read_record(path)
    if record is None:
        return None
    place = f"/{record.get('kind')}/{record.get('id')}/{record.get('fingerprint')}.json"
    return record if path.as_posix().endswith(place) else None


def complaint(record: Mapping[str, Any] | None, digest: str | None) -> str | None:
    """Reason why `record` does not count (for code `digest`, if given), or None if it does."""
    if record is None or not isinstance(record.get("document"), dict):
        return DAMAGED
    if record.get("schema") != layout.SCHEMA:
        return f"it has schema version {record.get('schema')}, this is version {layout.SCHEMA}"
    if digest is not None and record.get("digest") != digest:
        return f"it was made with other code ({record.get('digest')}, now {digest})"
    return None
