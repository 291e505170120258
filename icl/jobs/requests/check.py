"""Parse, look up and run one check. Its place in the store is known without importing the check, so that a
stored verdict for the same settings is returned at once."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from icl.config.compose import Composed
from icl.config.objects import instantiate
from icl.config.session import Session
from icl.config.values import by_content, is_array_file
from icl.errors import InputError, one_of
from icl.events import ItemProgress, WorkItem, quiet
from icl.jobs.requests import given_weights
from icl.jobs.requests.request import Document, Found
from icl.jobs.requests.weight_checks import presented, roots_of, verdict_document
from icl.jobs.stored.catalog import CatalogEntry, entry_of
from icl.jobs.stored.run_names import name_of_overrides
from icl.loggers.logged_once import DocumentLogger
from icl.loggers.run_log import DocumentLog
from icl.progress import listening
from icl.runs.code import code_digest
from icl.runs.documents import same, to_json
from icl.runs.fingerprint import fingerprint
from icl.runs.json_records import JsonRecords, complaint, read
from icl.text import measurement
from icl.verdicts import VERDICTS

if TYPE_CHECKING:
    from icl.checks.verdict import Check, Weights

OWN = ("check", "jobs", "cluster")  # the keys of conf/check.yaml beside those every verb has


@dataclass(frozen=True)
class CheckRequest:
    """A check with its settings, and the identity and code digest that name its record."""

    kind: ClassVar[str] = "check"
    id: str
    scale: str
    node: Mapping[str, Any]
    expected: str
    weights: str | None
    identity: str
    digest: str
    roots: tuple[str, ...]
    entry: CatalogEntry
    changed: tuple[str, ...]  # the settings that are not the config's own

    @property
    def settings(self) -> dict[str, Any]:
        return {k: v for k, v in self.node.items() if k != "_target_"} | {"weights": self.weights}

    @functools.cached_property
    def check(self) -> Check:
        """Construct the check, which validates its settings."""
        check = instantiate("check", self.node)
        for name in ("reference", "claim", "measure"):
            if not hasattr(check, name):
                raise InputError(f"check._target_={self.node['_target_']}: is no check, it has no {name}")
        return check

    @functools.cached_property
    def given(self) -> Weights | None:
        """Load the weights to judge, if any."""
        if self.weights is None:
            return None
        if not hasattr(self.check, "judge"):
            raise InputError(f"check.weights: {self.id} cannot be evaluated on given weights")
        return given_weights.load(self.weights, self.check)

    @functools.cached_property
    def inputs(self) -> list[dict[str, Any]]:
        """Return the files given: key, path, SHA-256 and shape."""
        paths = {f"check.{key}": value for key, value in self.node.items()}
        files = [(key, path) for key, path in paths.items() if is_array_file(path)]
        described = [given_weights.described(key, Path(path)) for key, path in files]
        return [*described, *([given_weights.described_weights(self.weights)] if self.weights else [])]

    def validate(self) -> None:
        self.check, self.given, self.inputs  # noqa: B018  the first two validate

    def lookup(self, session: Session) -> Found | None:
        path = JsonRecords(session.outputs, "checks").path(self.id, self.identity)
        record = read(path)
        if record is None or complaint(record, None) is not None:
            return None
        stored = record["document"]
        before, now = ({**settings, "weights": None} for settings in (stored["settings"], self.settings))
        if not same(before, now):  # weights are compared by content
            return None
        document = self._document(stored, session, cached=True)
        left = "" if self._logger(document, session).marker.is_there else "not yet logged to W&B"
        return Found(document, path, record, complaint(record, self.digest) or "", left)

    def execute(self, session: Session) -> Document:
        records = JsonRecords(session.outputs, "checks")

        def done() -> Document | None:
            return None if session.force else records.find(self.id, self.identity, self.digest)

        finding = None
        if self.weights is not None and done() is None:
            finding = self.measure(session)  # before the lock: invalid weights leave no file
        with records.lock(self.id, self.identity, session.info):
            stored = done()
            cached = stored is not None
            if stored is None:
                finding = finding or self.measure(session)
                stored = records.save(self.id, self.identity, self.digest, finding, self.roots)
        document = self._document(stored, session, cached=cached)
        self._logger(document, session).log(
            document["settings"], lambda log: _write(document, log), session.info
        )
        return document

    def measure(self, session: Session) -> Document:
        """Measure on one thread, without storing the result."""
        from icl.training.threads import threads

        def report(what: str, share: float, seconds: float) -> None:
            if session.on_event is not quiet:
                session.on_event(ItemProgress(WorkItem("check", self.id), share, what))

        started = time.monotonic()
        with threads(1), listening(report):
            finding = self.check.measure() if self.given is None else self.check.judge(self.given)  # type: ignore[attr-defined]
        seconds = time.monotonic() - started
        document = verdict_document(self.id, self.check, self.settings, finding, self.expected, seconds)
        if self.given is not None:
            document["law"] = {"dim": self.given.law.dim, "context": list(self.given.law.context_R)}
        return self._presented(document, None)

    def _document(self, stored: Mapping[str, Any], session: Session, *, cached: bool) -> Document:
        expected = self.expected
        if self.weights is not None and self.scale == "smoke" and stored["verdict"] == "undecided":
            expected = "undecided"  # training is too short
        about = {"expected": expected, "settings": to_json(self.settings), "cached": cached}
        record = JsonRecords(session.outputs, "checks").path(self.id, self.identity)
        return self._presented({**stored, **about}, record)

    def _presented(self, document: Mapping[str, Any], record: Path | None) -> Document:
        return presented(document, self.entry, changed=self.changed, inputs=self.inputs, record=record)

    def _logger(self, document: Document, session: Session) -> DocumentLogger:
        name = name_of_overrides(self.id, session.overrides)
        about = (self.id, name, self.scale, self.identity, document, session.group)
        return DocumentLogger(session.logger, session.outputs, "check", *about)


def parse(composed: Composed, session: Session) -> CheckRequest:
    """Parse a check's config into a request, without importing the check."""
    node, name = composed.settings["check"], composed.choices.get("check")
    if not name or not isinstance(node, dict):
        raise InputError("check: choose one, such as check=ahn/theorem1")
    node = dict(node)
    expected = one_of("check.expected", node.pop("expected", "holds"), VERDICTS)
    weights = node.pop("weights", None)
    roots = roots_of(node, [] if weights is None else given_weights.roots(weights))
    identity = {
        "settings": by_content({k: v for k, v in node.items() if k != "_target_"}),
        "target": node["_target_"],
        "weights": None if weights is None else given_weights.identity(weights),
    }
    scale = str(composed.settings["scale"])
    set_here = any(override.lstrip("+~").startswith("check.") for override in composed.overrides)
    alone = [f"check={name}", f"scale={scale}"]
    own = session.compose("check", alone).settings["check"] if set_here else node
    return CheckRequest(
        name,
        scale,
        node,
        expected,
        weights,
        fingerprint(identity),
        code_digest(roots),
        roots,
        entry_of("check", name, session.configs),
        tuple(key for key, value in node.items() if value != own.get(key)),
    )


def _write(document: Document, log: DocumentLog) -> None:
    measured = {k: v for k, v in document["measured"].items() if isinstance(v, int | float)}
    control = document["control"]
    row = {
        "reference": document["reference"],
        "claim": document["claim"],
        "verdict": document["verdict"],
        "expected": document["expected"],
        "measured": measurement(document),
        "bound": document["bound"]["value"],
        "control": f"{control['description']}: {control['measured']}",
    }
    log.summary({"verdict": document["verdict"], "expected": document["expected"], **measured})
    log.table("verdicts", list(row), [list(row.values())])
