"""A check: parsed, looked up and run; and checks evaluated on the weights of a training run.

Its place in the store is known without importing the check, so that a stored verdict for the same settings is
returned at once.
"""

from __future__ import annotations

import contextlib
import functools
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from icl.catalog import CatalogEntry, entry_of, entry_of_statement
from icl.config.compose import Composed, compose
from icl.config.objects import instantiate, target_of
from icl.config.session import Session
from icl.config.values import by_content, is_array_file, literal, shape_of_file
from icl.digests import sha256_of
from icl.errors import InputError, one_of, whole
from icl.jobs.requests import given_weights
from icl.jobs.requests.request import Document, StoredResult
from icl.loggers.documents import log_document, verdict_row
from icl.loggers.names import JUDGED
from icl.progress import WorkItem, listening
from icl.runs.code import code_digest, targets
from icl.runs.documents import same, to_json
from icl.runs.fingerprint import fingerprint
from icl.runs.json_records import JsonRecords, invalid_reason, read
from icl.verdict_sentences import control_sentence, verdict_sentence
from icl.verdicts import VERDICTS

if TYPE_CHECKING:
    from icl.checks.given import Weights
    from icl.checks.statement import Statement

MOST_TRIES = 10**6
OWN = ("check", "jobs", "tries", "seed")  # the keys of conf/check.yaml beside those every verb has
OF_ALL = ("seed", "samples")  # settings that every check is given, and an exact one ignores


@dataclass(frozen=True)
class CheckRequest:
    """A check with its settings, and the identity and code digest that name its record."""

    kind: ClassVar[str] = "check"
    id: str
    scale: str
    node: Mapping[str, Any]
    asked: str | None  # check.expected, where the command or the config has it
    weights: str | None
    tries: int | None  # random settings in addition; None: the statement's own number
    seed: int
    identity: str
    digest: str
    roots: tuple[str, ...]
    entry: CatalogEntry
    typed: tuple[str, ...]  # what was, KEY=VALUE
    statement: Any = None  # of a user's file or package, built already
    place: str = ""  # which was typed: the file, or PACKAGE/NAME

    @property
    def settings(self) -> dict[str, Any]:
        return {k: v for k, v in self.node.items() if k != "_target_"} | {"weights": self.weights}

    @functools.cached_property
    def check(self) -> Any:
        """Construct the check, which validates its settings."""
        if self.statement is not None:
            return self.statement
        check = instantiate("check", self.node)
        if not hasattr(check, "decide"):
            raise InputError(f"check._target_={self.node['_target_']}: is no icl.checks.Statement")
        return check

    @functools.cached_property
    def of_weights(self) -> Document | None:
        """Judge the given weights, if any: that takes no time, and refuses those that will not do."""
        if self.weights is None:
            return None
        given = given_weights.load(self.weights, self.judging)
        return self.judge(given, self.settings)

    @property
    def judging(self) -> Any:
        """The check, if it judges weights."""
        if not hasattr(self.check, "compare"):
            raise InputError(f"check={self.id}: cannot be evaluated on given weights")
        return self.check

    def judge(self, weights: Weights, settings: Mapping[str, Any]) -> Document:
        """Compare weights with the point that the statement names."""
        from icl.checks.given import judge

        started = time.monotonic()
        found = judge(self.judging, weights).document() | {"expected": "holds", "tries": None}
        found["claim"] = getattr(self.check, "claim_of_weights", self.check.claim)
        found["law"] = {"dim": weights.law.dim, "context": list(weights.law.context_R)}
        return _document(self.id, self.check, settings, found, started)

    @property
    def check_id(self) -> str:
        """The name of its verdict among those of a run."""
        of = {"check": self.identity, "expected": self.asked, "scale": self.scale, "digest": self.digest}
        return fingerprint(of)

    def evaluate(self, weights: Weights) -> dict[str, Any]:
        """Judge the weights of a run."""
        expected = self.asked or "holds"
        settings = {"dim": weights.law.dim, "context": list(weights.law.context_R), "weights": "this run"}
        document = {**self.judge(weights, settings), "expected": expected}
        if self.scale == "smoke" and document["verdict"] != expected:
            note = "undecided: at smoke scale training is too short to decide; scale=laptop trains longer."
            document |= {"verdict": "undecided", "expected": "undecided"}
            document["notes"] = [*document["notes"], note]
        return presented(document, self.entry) | {"check_id": self.check_id}

    @functools.cached_property
    def inputs(self) -> list[dict[str, Any]]:
        """Return the files given: key, path, SHA-256 and the shape of an array, [] of weights."""
        files = {f"check.{key}": Path(path) for key, path in self.node.items() if is_array_file(path)}
        if self.weights is not None:
            place = Path(self.weights).expanduser()
            files["check.weights"] = place / "weights.npz" if place.is_dir() else place
        about = [
            (key, str(path.absolute()), sha256_of(path), [*shape_of_file(path)])
            for key, path in files.items()
        ]
        return [dict(zip(("key", "path", "sha256", "shape"), one, strict=True)) for one in about]

    def validate(self) -> None:
        self.check, self.of_weights, self.inputs  # noqa: B018  the first two validate

    def lookup(self, session: Session) -> StoredResult | None:
        path = JsonRecords(session.outputs, "checks").path(self.id, self.identity)
        record = read(path)
        if record is None:
            return None
        stored = record["document"]
        before, now = ({**settings, "weights": None} for settings in (stored["settings"], self.settings))
        if not same(before, now):  # weights are compared by content
            return None
        stale = "" if session.uses_stale else invalid_reason(record, self.digest) or ""
        return StoredResult(self._document(stored, session, cached=True), path, record, stale)

    def execute(self, session: Session) -> Document:
        records = JsonRecords(session.outputs, "checks")
        with records.lock(self.id, self.identity, session.info):
            found = None if session.force else self.lookup(session)
            if found is not None and found.is_answer:  # by another process
                return found.document
            made = self.measure(session)
            stored = records.save(self.id, self.identity, self.digest, made, self.roots)
        document = self._document(stored, session, cached=False)
        numbers = {k: v for k, v in document["measured"].items() if isinstance(v, int | float)}
        log_document(
            self,
            session,
            config=document["settings"],
            summary={"verdict": document["verdict"], "expected": document["expected"], **numbers},
            table=("verdicts", JUDGED, [verdict_row(document)]),
        )
        return document

    def measure(self, session: Session) -> Document:
        """Measure, without storing the result."""
        try:
            with contextlib.ExitStack() as meanwhile:
                if (torch := sys.modules.get("torch")) is not None:  # one thread: matrices are small
                    meanwhile.callback(torch.set_num_threads, torch.get_num_threads())
                    torch.set_num_threads(1)
                meanwhile.enter_context(listening(WorkItem("check", self.id), session.on_event))
                found = self.of_weights or self._decided()
        except Exception as error:
            if self.statement is None or isinstance(error, InputError):
                raise
            from icl.checks.files import line_of  # of a user's statement: one line that names its own

            where = f"{self.place}{line_of(error, Path(self.place))}, {type(self.statement).__name__}"
            raise InputError(f"{where}: {type(error).__name__}: {error}") from error
        return self._presented({**found, "typed": [self.place or f"check={self.id}", *self.typed]}, None)

    def _decided(self) -> Document:
        from icl.checks.tries import decided

        started = time.monotonic()
        found = decided(self.check, self.tries, self.seed, self.place or self.id)
        return _document(self.id, self.check, self.settings, found, started)

    def _document(self, stored: Mapping[str, Any], session: Session, *, cached: bool) -> Document:
        expected = self.asked or stored["expected"]
        if self.weights is not None and self.scale == "smoke" and stored["verdict"] == "undecided":
            expected = "undecided"  # training is too short
        about = {"expected": expected, "settings": to_json(self.settings), "cached": cached}
        record = JsonRecords(session.outputs, "checks").path(self.id, self.identity)
        return self._presented({**stored, **about}, record)

    def _presented(self, document: Mapping[str, Any], record: Path | None) -> Document:
        keys = [one.partition("=")[0].removeprefix("check.") for one in self.typed]
        changed = [key for key in self.settings if key in keys or self.place]  # a file's are few
        return presented({**document, "inputs": self.inputs}, self.entry, changed, record)


def of_place(place: str, typed: Mapping[str, Any], config: Mapping[str, Any]) -> list[CheckRequest]:
    """Return a request for each statement of a user's file, or for one of a package, PACKAGE/NAME."""
    from icl.checks.files import meant, settings_of, with_settings

    classes, root, content = meant(place)
    tries, seed = _tries(config)
    roots, found = ("icl.checks.tries", root), []
    for id, one in zip(classes, with_settings([*classes.values()], typed, place), strict=True):
        settings = settings_of(one)
        identity = {"settings": by_content(settings), "of": [root, content], "tries": [tries, seed]}
        about = str(config["scale"]), settings, None, None, tries, seed, fingerprint(identity)
        entry, digest = entry_of_statement(id, type(one)), code_digest(roots)
        told = {**typed, **({} if tries is None else {"tries": tries}), **({"seed": seed} if seed else {})}
        words = tuple(f"{key}={literal(value)}" for key, value in told.items())
        found.append(CheckRequest(id, *about, digest, roots, entry, words, one, place))
    return found


def parse(composed: Composed, session: Session) -> CheckRequest:
    """Parse a check's config into a request, without importing the check."""
    node, name = composed.settings["check"], composed.choices.get("check")
    if not name or not isinstance(node, dict):
        raise InputError("check: choose one, such as check=ahn/theorem1")
    node = dict(node)
    node |= {key: value for key in OF_ALL if (value := node.pop(key, None)) is not None}
    expected = node.pop("expected", None)
    if expected is not None:
        one_of("check.expected", expected, VERDICTS)
    tries, seed = _tries(composed.settings)
    weights = node.pop("weights", None)
    given, of_run = (None, []) if weights is None else given_weights.identity(weights)
    target_of("check", node)
    roots = tuple(dict.fromkeys([*targets(node), "icl.checks.tries", *of_run]))
    identity = {
        "settings": by_content({k: v for k, v in node.items() if k != "_target_"}),
        "target": node["_target_"],
        "weights": given,
        **({} if (tries, seed) == (None, 0) else {"tries": [tries, seed]}),
    }
    scale = str(composed.settings["scale"])
    overrides = [override.lstrip("+~") for override in composed.overrides]
    typed = [one for one in overrides if re.match(r"check\.(?!expected)|(tries|seed)=", one)]
    typed += [one for one in overrides if typed and one.startswith("scale=")]
    about = scale, node, expected, weights, tries, seed, fingerprint(identity), code_digest(roots), roots
    return CheckRequest(name, *about, entry_of("check", name, session.configs), tuple(typed))


def _tries(config: Mapping[str, Any]) -> tuple[int | None, int]:
    if config["tries"] is not None:
        whole("tries", config["tries"], 0, MOST_TRIES)
    return config["tries"], whole("seed", config["seed"], 0)


def weight_checks_of(
    names: Any, scale: str, about: Sequence[str], session: Session
) -> tuple[CheckRequest, ...]:
    """Return the checks a training config names, for weights whose task and model are classes `about`."""
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InputError(f"checks={names}: must be a list of checks, such as [ahn/theorem3]")
    keys = [("checks", name, scale, tuple(about)) for name in dict.fromkeys(names)]
    for key in keys:  # once per session: it costs more than all else that shows that a job is done
        if key not in session.cache:
            option = f"check={session.configs.one_option('check', key[1])}"
            asked = parse(compose(session.configs, "check", [option, f"scale={scale}"]), session)
            session.cache[key] = replace(asked, digest=code_digest((*asked.roots, *about)))
    return tuple(session.cache[key] for key in keys)


def validate_weight_checks(checks: Sequence[CheckRequest], model: Any, law: Any) -> None:
    """Evaluate the checks on weights of zero, one seed's, so that one that cannot judge their shapes is
    refused. At zero the risk of four layers is immediate; at other weights it takes seconds."""
    if checks:
        weights = given_weights.of_model(model, law)
        first = {name: 0 * matrix[:1] for name, matrix in weights.matrices.items()}
        for check in checks:
            check.evaluate(replace(weights, matrices=first, law=law.replica(0)))


def _document(
    name: str, statement: Statement, settings: Mapping[str, Any], found: Mapping[str, Any], started: float
) -> Document:
    about = {"check": name, "paper": name.partition("/")[0], "reference": statement.where}
    made = {"settings": dict(settings), "seconds": time.monotonic() - started, "cached": False}
    return dict(to_json({**about, "claim": statement.claim, **found, **made}))


def presented(
    document: Mapping[str, Any], entry: CatalogEntry, changed: Sequence[str] = (), record: Path | None = None
) -> dict[str, Any]:
    """Return a verdict's document with its title and, in a sentence each, the verdict and the control.
    `changed` names the settings that were typed."""
    shown = {"inputs": [], **document, "title": entry.title, "origin": entry.origin}
    shown |= {"record": None if record is None else str(record)}
    return shown | {"sentence": verdict_sentence(shown, changed), "control_sentence": control_sentence(shown)}
