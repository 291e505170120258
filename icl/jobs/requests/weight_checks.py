"""Checks evaluated on weights, and the JSON document of a verdict."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl.config.objects import instantiate, target_of
from icl.config.session import Session
from icl.errors import InputError
from icl.jobs.requests.given_weights import of_model
from icl.jobs.stored.catalog import CatalogEntry, entry_of
from icl.runs.code import code_digest, targets
from icl.runs.fingerprint import fingerprint
from icl.text import control_sentence, verdict_sentence
from icl.verdicts import kinds_of

if TYPE_CHECKING:
    from icl.checks.verdict import Check, Finding, Weights


@dataclass(frozen=True)
class WeightCheck:
    """A check to evaluate on trained weights, parsed without importing it."""

    check: str
    node: Mapping[str, Any]
    expected: str
    scale: str
    fingerprint: str
    entry: CatalogEntry


def weight_checks_of(
    names: Any, scale: str, about: Sequence[str], session: Session
) -> tuple[WeightCheck, ...]:
    """Return the checks a training config names, for weights whose task and model are classes `about`."""
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InputError(f"checks={names}: must be a list of checks, such as [ahn/theorem3]")
    return tuple(_weight_check(name, scale, tuple(about), session) for name in dict.fromkeys(names))


def _weight_check(name: str, scale: str, about: tuple[str, ...], session: Session) -> WeightCheck:
    """Compose a check once per session: it costs more than all else that shows that a job is done."""
    key = (WeightCheck, name, scale, about)
    if key not in session.cache:
        option = f"check={session.configs.one_option('check', name)}"
        node = session.compose("check", [option, f"scale={scale}"]).settings["check"]
        expected = node.pop("expected")
        node.pop("weights")
        identity = {"check": name, "node": node, "expected": expected, "smoke": scale == "smoke"}
        identity["digest"] = code_digest(roots_of(node, about))
        entry = entry_of("check", name, session.configs)
        session.cache[key] = WeightCheck(name, node, expected, scale, fingerprint(identity), entry)
    found: WeightCheck = session.cache[key]
    return found


def evaluate(checks: Sequence[WeightCheck], weights: Weights) -> list[dict[str, Any]]:
    return [_evaluate(question, weights) for question in checks]


def validate_weight_checks(checks: Sequence[WeightCheck], model: Any, law: Any) -> None:
    """Evaluate the checks on untrained weights of one seed, so that one that cannot judge them is refused."""
    if checks:
        weights = of_model(model, law)
        first = {name: matrix[:1] for name, matrix in weights.matrices.items()}
        evaluate(checks, replace(weights, matrices=first, law=law.replica(0)))


def _evaluate(question: WeightCheck, weights: Weights) -> dict[str, Any]:
    started = time.monotonic()
    check = instantiate("check", question.node)
    if not hasattr(check, "judge"):
        raise InputError(f"checks={question.check}: cannot be evaluated on trained weights")
    finding = check.judge(weights)
    settings = {"dim": weights.law.dim, "context": list(weights.law.context_R), "weights": "this run"}
    seconds = time.monotonic() - started
    document = verdict_document(question.check, check, settings, finding, question.expected, seconds)
    missed = question.scale == "smoke" and finding.verdict != question.expected
    if missed and getattr(check, "needs_training", True):
        note = "undecided: at smoke scale training is too short to decide; scale=laptop trains longer."
        document |= {"verdict": "undecided", "expected": "undecided", "notes": [*document["notes"], note]}
    return presented(document, question.entry) | {"question": question.fingerprint}


def verdict_document(
    name: str, check: Check, settings: Mapping[str, Any], finding: Finding, expected: str, seconds: float
) -> dict[str, Any]:
    """Return the JSON document of a verdict."""
    from icl.checks.verdict import Route
    from icl.runs.documents import to_json

    kinds = kinds_of(finding.measured, finding.kinds, finding.bound.of)
    routes = {name: Route("none") for name, kind in kinds.items() if kind == "exact"} | dict(finding.routes)
    of_weights = settings.get("weights") is not None
    return to_json(
        {
            "check": name,
            "paper": name.partition("/")[0],
            "reference": check.reference,
            "claim": getattr(check, "claim_of_weights", check.claim) if of_weights else check.claim,
            "verdict": finding.verdict,
            "expected": expected,
            "settings": dict(settings),
            "measured": dict(finding.measured),
            "kinds": kinds,
            "meanings": dict(finding.meanings),
            "routes": {name: asdict(route) for name, route in routes.items()},
            "bound": asdict(finding.bound),
            "bounds": {
                name: {"value": bound.value, "direction": bound.direction}
                for name, bound in finding.bounds.items()
            },
            "control": asdict(finding.control),
            "remarks": list(finding.remarks),
            "notes": [*finding.remarks, *finding.notes],
            "details": finding.details.lines() if finding.details else [],
            "construction": asdict(finding.details) if finding.details else None,
            "seconds": seconds,
            "cached": False,
        }
    )


def presented(
    document: Mapping[str, Any],
    entry: CatalogEntry,
    *,
    changed: Sequence[str] = (),
    inputs: Sequence[Mapping[str, Any]] = (),
    record: Path | None = None,
) -> dict[str, Any]:
    """Return a verdict's document with its title and, in a sentence each, the verdict and the control.
    `changed` names the settings that are not the config's own; `inputs` are the files that were given."""
    shown = {**document, "title": entry.title, "origin": entry.origin, "inputs": [*inputs]}
    shown |= {"record": None if record is None else str(record)}
    return shown | {"sentence": verdict_sentence(shown, changed), "control_sentence": control_sentence(shown)}


def roots_of(node: Mapping[str, Any], about: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the roots of a verdict's code digest: the check's class, and those of the judged weights."""
    target_of("check", node)
    return tuple(dict.fromkeys([*targets(node), *about]))
