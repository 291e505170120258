"""A request is parsed: its settings are known, and nothing is imported or built.

Requests for training runs, checks and figures have `kind`, `id`, `scale` and `identity`, the fingerprint that
their record is filed under. `lookup` finds what is stored for these very settings, made by whatever code;
`validate` builds the parts, which refuse what is impossible; `execute` does what is left to do.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from icl.config.session import Session

Document = dict[str, Any]


@dataclass(frozen=True)
class StoredResult:
    """A stored result. It is the answer unless it is `stale` or something is `left` to do for it; both are
    the reason."""

    document: Document
    path: Path
    record: Mapping[str, Any] = field(repr=False)  # fingerprint, provenance and when it was written
    stale: str = ""
    left: str = ""

    @property
    def is_answer(self) -> bool:
        return not self.stale and not self.left


Request = Any  # a CheckRequest, a FigureRequest or a TrainRequest


def lookup_or_validate(request: Request, session: Session, *, validates: bool = True) -> Document | None:
    """Return the stored document if nothing is left to do for it.

    Else validate the request, unless it is finished: then these very settings have run. Nothing is written.
    """
    found = None if session.force else request.lookup(session)
    if found is not None and found.is_answer:
        return found.document
    if validates and (found is None or found.stale):
        request.validate()
    return None


def run_request(request: Request, session: Session) -> Document:
    """Return the stored document or make it; {} in a process that only helps to train."""
    if getattr(request, "rank", 0):
        return request.work(session)  # type: ignore[no-any-return]
    stored = lookup_or_validate(request, session)
    return request.execute(session) if stored is None else stored
