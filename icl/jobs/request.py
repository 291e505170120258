"""What a training run, a check and a figure have in common: the one answer to whether it is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from icl.config.session import Session
from icl.jobs.memory import give_back

Document = dict[str, Any]


@dataclass(frozen=True)
class Found:
    """What is stored for a request. It is the answer unless it is `stale`, or something is `left` to do with
    it; both say why."""

    document: Document
    path: Path
    record: Mapping[str, Any] = field(repr=False)  # fingerprint, provenance and when it was written
    stale: str = ""
    left: str = ""

    @property
    def is_answer(self) -> bool:
        return not self.stale and not self.left


class Request(Protocol):
    """Something asked for, of which only the settings are known so far: nothing is imported or built."""

    kind: ClassVar[str]  # train | check | figure

    @property
    def id(self) -> str: ...

    @property
    def identity(self) -> str:
        """The fingerprint its record is filed under."""

    def found(self, session: Session) -> Found | None:
        """What is stored for these very settings, made by whatever code."""

    def validate(self) -> None:
        """Builds its parts, which refuse what is impossible. Nothing is written."""

    def make(self, session: Session) -> Document:
        """Finds what became done meanwhile, or does what is left."""


def prepare(request: Request, session: Session) -> Document | None:
    """The stored document, where nothing at all is left to do; else the request is validated, unless it is
    finished: then these very settings have run. Nothing is written."""
    found = None if session.force else request.found(session)
    if found is not None and found.is_answer:
        return found.document
    if found is None or found.stale:
        request.validate()
    return None


def obtain(request: Request, session: Session) -> Document:
    """The stored document, or a fresh one; nothing where another process says it."""
    shared = getattr(request, "is_shared", False)  # of training runs alone
    return request.share(session) if shared else obtain_alone(request, session)  # type: ignore[attr-defined]


def obtain_alone(request: Request, session: Session) -> Document:
    stored = prepare(request, session)
    say_what_is_left_out(request, session)
    if stored is not None:
        return stored
    try:
        return request.make(session)
    finally:
        give_back()


def say_what_is_left_out(request: Request, session: Session) -> None:
    """Of the experiment of a training run: after its validation, and once for all jobs of a sweep."""
    note = getattr(request, "note", "")
    if note and (say_what_is_left_out, request.id, note) not in session.known:
        session.known[say_what_is_left_out, request.id, note] = True
        session.say(f"icl: {request.id}: {note}")
