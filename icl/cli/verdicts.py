"""A check asked of weights, and the document that every verdict becomes."""

from __future__ import annotations

import ast
import importlib.util
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import icl
from icl.cli.hydra_app import compose, one_option
from icl.config import allowed_target, instantiate, plain
from icl.errors import InputError
from icl.runs.fingerprint import code_digest, fingerprint

if TYPE_CHECKING:
    from icl.checks.verdict import Finding, Weights

# What any check's verdict depends on, beside its own files.
SHARED_CODE = ("random", "verdicts", "tasks", "models", "theory")


@dataclass(frozen=True)
class Question:
    """A check that trained weights are to be asked; known without importing it."""

    check: str
    node: Mapping[str, Any]
    expected: str
    scale: str
    fingerprint: str


def questions(names: Any, scale: str) -> tuple[Question, ...]:
    """The checks a training config names."""
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InputError(f"checks={names}: must be a list of checks, such as [ahn/theorem3]")
    found = []
    for name in dict.fromkeys(names):
        node = plain(compose("check", [f"check={one_option('check', name)}", f"scale={scale}"]).check)
        expected = node.pop("expected")
        node.pop("weights")
        identity = {"check": name, "node": node, "expected": expected, "smoke": scale == "smoke"}
        digest = digest_of(node.get("_target_"), ["training"])
        found.append(Question(name, node, expected, scale, fingerprint(identity | {"digest": digest})))
    return tuple(found)


def ask(asked: Sequence[Question], *about: Any) -> list[dict[str, Any]]:
    """Verdicts on weights, given as `Weights` or as the model and the law they were trained with."""
    if not asked:
        return []
    weights = about[0] if len(about) == 1 else _weights(*about)
    return [_answer(question, weights) for question in asked]


def refuse_unanswerable(asked: Sequence[Question], model: Any, law: Any) -> None:
    """A check that cannot speak of such weights says so before they are trained. One seed is enough."""
    if asked:
        weights = _weights(model, law)
        first = {name: matrix[:1] for name, matrix in weights.matrices.items()}
        ask(asked, replace(weights, matrices=first, law=law.replica(0)))


def _weights(model: Any, law: Any) -> Weights:
    from icl.checks.verdict import Weights
    from icl.cli.weights import family_name

    parametrization = model.parametrization
    return Weights(family_name(type(parametrization)), parametrization.matrices(), law, model.activation)


def _answer(question: Question, weights: Weights) -> dict[str, Any]:
    started = time.monotonic()
    check = instantiate("check", question.node)
    if not hasattr(check, "judge"):
        raise InputError(f"checks={question.check}: says nothing about trained weights")
    finding = check.judge(weights)
    settings = {"dim": weights.law.dim, "context": list(weights.law.context_R), "weights": "this run"}
    seconds = time.monotonic() - started
    document = verdict_document(question.check, check, settings, finding, question.expected, seconds)
    missed = question.scale == "smoke" and finding.verdict != question.expected
    if missed and getattr(check, "needs_training", True):
        note = f"at smoke scale training is too short to decide; at these weights: {finding.verdict}"
        document |= {"verdict": "undecided", "expected": "undecided", "notes": [*document["notes"], note]}
    return document | {"question": question.fingerprint}


def verdict_document(
    name: str, check: Any, settings: Mapping[str, Any], finding: Finding, expected: str, seconds: float
) -> dict[str, Any]:
    """The contract's check document."""
    from icl.runs.documents import to_json

    return to_json(
        {
            "check": name,
            "paper": name.partition("/")[0],
            "reference": check.reference,
            "claim": check.claim,
            "verdict": finding.verdict,
            "expected": expected,
            "settings": dict(settings),
            "measured": dict(finding.measured),
            "bound": asdict(finding.bound),
            "control": {
                "description": finding.control.description,
                "measured": finding.control.measured,
                "rejected": finding.control.rejected,
            },
            "remarks": list(finding.remarks),
            "notes": [*finding.remarks, *finding.notes],
            "seconds": seconds,
            "cached": False,
        }
    )


def digest_of(target: Any, more: Sequence[str] = ()) -> str:
    """Digest of the code behind a verdict: the shared packages, the verdict type, the check's own file and
    the check files it imports; of a user's package every file. No check is imported for it."""
    module = allowed_target("check", target).rpartition(".")[0]
    own = source_files(module)
    return code_digest([*SHARED_CODE, *more, "checks/verdict"], sorted(own))


def source_files(module: str) -> set[Path]:
    """The files a class of `module` depends on: of icl those it imports, of a user's package all."""
    top = module.partition(".")[0]
    return _with_imports(module) if top == "icl" else set(_whole_package(top))


def _with_imports(module: str) -> set[Path]:
    """The file of `module` of icl and of every module of its sub-package it imports, directly or not."""
    package = ".".join(module.split(".")[:2])
    found: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = _file_of(name)
        if name not in found and path is not None:
            found[name] = path
            waiting += [n for n in _imported(path) if n.startswith(f"{package}.")]
    if module not in found:
        raise InputError(f"_target_: no module {module}")
    return set(found.values())


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def _file_of(module: str) -> Path | None:
    """Of a module of icl, without the import of its package that importlib.util.find_spec makes."""
    place = Path(icl.__file__).parent.joinpath(*module.split(".")[1:])
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


def _whole_package(top: str) -> set[Path]:
    spec = importlib.util.find_spec(top)
    if spec is None or spec.origin is None:
        raise InputError(f"check._target_={top}...: no such package; is its folder in PYTHONPATH?")
    path = Path(spec.origin)
    return set(path.parent.rglob("*.py")) if path.name == "__init__.py" else {path}
