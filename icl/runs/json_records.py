"""Results that are one JSON document: verdicts of checks, claims of figures."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from icl.redact import redact
from icl.runs import atomic, documents, layout
from icl.runs.lock import locked, notify
from icl.runs.provenance import provenance

DAMAGED = "it is damaged, of an older version, or the record of another place"


class JsonRecords:
    """Records of one kind, "checks" or "figures", at the places that icl.runs.layout has. `as_shipped`: of a
    figure's own settings, in its folder."""

    def __init__(self, outputs: str | Path, kind: str, *, as_shipped: bool = False) -> None:
        self.outputs, self.kind, self.as_shipped = Path(outputs).absolute(), kind, as_shipped

    def path(self, id: str, fingerprint: str) -> Path:
        path = layout.record_path(self.outputs, self.kind, id, fingerprint)
        return path.parent.with_name(path.name) if self.as_shipped else path

    def find(self, id: str, fingerprint: str, digest: str | None) -> Any | None:
        """Return the stored document, if the code of this digest made it."""
        record = read(self.path(id, fingerprint))
        return None if record is None or invalid_reason(record, digest) is not None else record["document"]

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
        clean, path = redact(documents.to_json(record)), self.path(id, fingerprint)
        with atomic.writing(self.outputs):
            path.parent.mkdir(parents=True, exist_ok=True)
            documents.write_record(path, clean)
        stored: dict[str, Any] = clean["document"]
        return stored

    @contextlib.contextmanager
    def lock(self, id: str, fingerprint: str, notify: Callable[[str], None] = notify) -> Iterator[None]:
        """Hold the lock on a record; other processes wait. `notify` receives lines about both."""
        path = self.path(id, fingerprint)
        with contextlib.ExitStack() as stack:
            with atomic.writing(self.outputs):
                stack.enter_context(locked(path.with_suffix(".lock"), notify))
            if path.exists() and read(path) is None:
                notify(f"{path}: {DAMAGED}; it is made again")
            yield


def read(path: Path) -> dict[str, Any] | None:
    """Return the record in `path`; None where it is damaged, or was moved here from another place."""
    record = documents.read_record(path)
    if record is None or not isinstance(record.get("document"), dict):
        return None
    folder, name = f"/{record.get('kind')}/{record.get('id')}/", record.get("fingerprint")
    places = (f"{name}.json",) if path.name != layout.FIGURE else (path.name, f"{name}/{path.name}")
    return record if any(path.as_posix().endswith(folder + place) for place in places) else None


def invalid_reason(record: Mapping[str, Any] | None, digest: str | None) -> str | None:
    """Reason why `record` does not count (for code `digest`, if given), or None if it does."""
    if record is None:
        return DAMAGED
    if digest is not None and record.get("digest") != digest:
        return f"it was made with other code ({record.get('digest')}, now {digest})"
    return None
