"""The interface that requests for training runs, checks and figures share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from icl.config.session import Session
from icl.jobs.execution.memory import release_memory

Document = dict[str, Any]


@dataclass(frozen=True)
class Found:
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


class Request(Protocol):
    """A request, parsed: its settings are known, and nothing is imported or built."""

    kind: ClassVar[str]  # train | check | figure

    @property
    def id(self) -> str: ...

    @property
    def scale(self) -> str: ...

    @property
    def identity(self) -> str:
        """The fingerprint its record is filed under."""

    def lookup(self, session: Session) -> Found | None:
        """Look up the stored result for these very settings, made by whatever code."""

    def validate(self) -> None:
        """Build its parts, which refuse what is impossible. Nothing is written."""

    def execute(self, session: Session) -> Document:
        """Do the pending work; reuse a record that another process finished in the meantime."""


def lookup_or_validate(request: Request, session: Session) -> Document | None:
    """Return the stored document if nothing is left to do for it.

    Else validate the request, unless it is finished: then these very settings have run. Nothing is written.
    """
    found = None if session.force else request.lookup(session)
    if found is not None and found.is_answer:
        return found.document
    if found is None or found.stale:
        request.validate()
    return None


def run_request(request: Request, session: Session, *, in_group: bool = False) -> Document:
    """Return the stored document or make it; {} on ranks other than 0. `in_group`: on rank 0 of a group."""
    if not in_group and getattr(request, "is_one_of_several_ranks", False):  # a training run
        document: Document = request.run_on_ranks(session)  # type: ignore[attr-defined]
        return document
    stored = lookup_or_validate(request, session)
    say_what_is_left_out(request, session)
    if stored is not None:
        return stored
    try:
        return request.execute(session)
    finally:
        release_memory()


SMOKE = (
    "scale=smoke: seconds for a run or a check, up to a minute for a figure (typical of two cores); "
    "too short to decide claims about training, which stay undecided"
)


def state_smoke(scale: str, session: Session) -> None:
    """State once in a session what scale=smoke takes and cannot decide."""
    if scale == "smoke" and SMOKE not in session.cache:
        session.cache[SMOKE] = True
        session.info(f"icl: {SMOKE}")


def say_what_is_left_out(request: Request, session: Session) -> None:
    """Report what a run leaves out of its experiment: after validation, once for all jobs of a sweep."""
    note = getattr(request, "note", "")
    if note and (say_what_is_left_out, request.id, note) not in session.cache:
        session.cache[say_what_is_left_out, request.id, note] = True
        session.info(f"icl: {request.id}: {note}")
