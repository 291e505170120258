"""`icl check`: a check is composed, measured, stored and shown.

As with training, what a check is called in the store is known without importing it: a stored verdict for
these very settings answers at once.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from icl.cli import weights as given_weights
from icl.cli.hydra_app import (
    chosen_option,
    compose,
    literal,
    one_option,
)
from icl.cli.logger import logger_settings
from icl.cli.many import Group
from icl.cli.outcome import Outcome, verdict_code
from icl.cli.show import show
from icl.cli.verdicts import roots_of, verdict_document
from icl.config import by_content, common_settings, instantiate, keep_caches_in, outputs_folder, plain
from icl.errors import InputError, one_of, whole
from icl.runs.code import code_digest
from icl.runs.documents import to_json
from icl.runs.fingerprint import fingerprint
from icl.sinks.sink import Sink
from icl.sinks.telling import Story
from icl.verdicts import VERDICTS

__all__ = ["GROUP", "check_from_python", "check_job", "plan_of", "run_plan", "show"]

OWN = ("check", "jobs")
COMMON = ("check.seed", "scale", "format", "force", "logger", "jobs", "verbose", "paths.outputs")


@dataclass(frozen=True)
class Plan:
    """A validated check: its settings as given, and what names its record."""

    id: str
    node: Mapping[str, Any]
    expected: str
    weights: str | None
    fingerprint: str
    digest: str
    roots: tuple[str, ...]

    @property
    def settings(self) -> dict[str, Any]:
        return {k: v for k, v in self.node.items() if k != "_target_"} | {"weights": self.weights}

    @functools.cached_property
    def check(self) -> Any:
        """The object; its constructor refuses impossible settings."""
        check = instantiate("check", self.node)
        for name in ("reference", "claim", "measure"):
            if not hasattr(check, name):
                raise InputError(f"check._target_={self.node['_target_']}: is no check, it has no {name}")
        return check

    @functools.cached_property
    def given(self) -> Any:
        """The weights the claim is asked of, or None."""
        if self.weights is None:
            return None
        if not hasattr(self.check, "judge"):
            raise InputError(f"check.weights: {self.id} says nothing about given weights")
        return given_weights.load(self.weights, self.check)


def _composed(name: str, overrides: Sequence[str]) -> DictConfig:
    """`check.seed` counts only where a check has one."""
    seedless = [o for o in overrides if not o.startswith("check.seed=")]
    cfg = compose("check", [f"check={name}", *seedless])
    return (
        cfg
        if len(seedless) == len(overrides) or "seed" not in cfg.check
        else compose("check", [f"check={name}", *overrides])
    )


def check_job(cfg: DictConfig) -> Outcome:
    """One check of a Hydra run."""
    document = run_plan(plan_of(cfg), cfg)
    return Outcome(document, _code_of(document), lambda: show([document], full=True))


def plan_of(cfg: DictConfig, name: str | None = None) -> Plan:
    """Everything validated, nothing measured or written."""
    plan = described(cfg, name)
    if _stored(plan, outputs_folder(cfg), force=cfg.force) is None:
        plan.check, plan.given  # noqa: B018  both validate
    return plan


def described(cfg: DictConfig, name: str | None = None) -> Plan:
    """What can be known of a check without importing it."""
    common_settings(cfg, "check", OWN)
    whole("jobs", cfg.jobs, 1)
    node = plain(cfg.check)
    name = name or chosen_option("check")
    if not name or not isinstance(node, dict):
        raise InputError("check: choose one, such as check=ahn/theorem1")
    expected = one_of("check.expected", node.pop("expected", "holds"), VERDICTS)
    weights = node.pop("weights", None)
    logger_settings(cfg.logger)
    roots = roots_of(node, [] if weights is None else given_weights.roots(weights))
    settings = {k: v for k, v in node.items() if k != "_target_"}
    identity = {"settings": by_content(settings), "target": node["_target_"]}
    identity["weights"] = None if weights is None else given_weights.identity(weights)
    return Plan(name, node, expected, weights, fingerprint(identity), code_digest(roots), roots)


def _stored(plan: Plan, outputs: Path, *, force: bool) -> dict[str, Any] | None:
    """The verdict of this very code for these very settings, which need no validation: they were measured."""
    from icl.runs.json_records import JsonRecords

    found = None if force else JsonRecords(outputs, "checks").find(plan.id, plan.fingerprint, plan.digest)
    if found is None:
        return None
    # Tells 5 from 5.0, which a fingerprint does not and validation may; weights are known by their content.
    told, asked = ({**settings, "weights": None} for settings in (found["settings"], to_json(plan.settings)))
    return found if json.dumps(told, sort_keys=True) == json.dumps(asked, sort_keys=True) else None


def found(plan: Plan, cfg: DictConfig) -> dict[str, Any] | None:
    """The stored verdict, where there is nothing to measure and nobody to tell."""
    stored = _stored(plan, outputs_folder(cfg), force=cfg.force)
    if stored is None:
        return None
    document = _document(plan, stored, cached=True)
    return document if _story(document, plan, cfg).is_told() else None


def run_plan(plan: Plan, cfg: DictConfig) -> dict[str, Any]:
    """The stored verdict, or a fresh one, stored; told to W&B where that is asked for."""
    from icl.runs.json_records import JsonRecords

    outputs, force = outputs_folder(cfg), cfg.force
    stored = _stored(plan, outputs, force=force)
    cached = stored is not None
    if stored is None:
        finding = None
        if plan.given is not None:
            finding = measure(plan)  # outside the lock: weights it cannot speak of must leave nothing behind
        keep_caches_in(outputs)
        records = JsonRecords(outputs, "checks")
        with records.lock(plan.id, plan.fingerprint):
            stored = None if force else records.find(plan.id, plan.fingerprint, plan.digest)
            cached = stored is not None
            if stored is None:
                verdict = finding or measure(plan)
                stored = records.save(plan.id, plan.fingerprint, plan.digest, verdict, plan.roots)
    document = _document(plan, stored, cached=cached)
    _story(document, plan, cfg).tell(document["settings"], lambda sink: _tell(document, sink))
    return document


def _document(plan: Plan, stored: Mapping[str, Any], *, cached: bool) -> dict[str, Any]:
    return {**stored, "expected": plan.expected, "settings": to_json(plan.settings), "cached": cached}


def measure(plan: Plan) -> dict[str, Any]:
    """On one thread."""
    from icl.training.threads import threads

    started = time.monotonic()
    with threads(1):
        finding = plan.check.measure() if plan.given is None else plan.check.judge(plan.given)
    seconds = time.monotonic() - started
    return verdict_document(plan.id, plan.check, plan.settings, finding, plan.expected, seconds)


def _story(document: Mapping[str, Any], plan: Plan, cfg: DictConfig) -> Story:
    run_id = f"check-{plan.id.replace('/', '-')}-{plan.fingerprint}"
    outputs, logger = outputs_folder(cfg), logger_settings(cfg.logger)
    return Story(logger, outputs, "check", plan.id, str(cfg.scale), run_id, document)


def _tell(document: Mapping[str, Any], sink: Sink) -> None:
    measured = {k: v for k, v in document["measured"].items() if isinstance(v, int | float)}
    control = document["control"]
    row = {
        "reference": document["reference"],
        "claim": document["claim"],
        "verdict": document["verdict"],
        "expected": document["expected"],
        "bound": document["bound"]["value"],
        "control": f"{control['description']}: {control['measured']}",
    }
    sink.summary({"verdict": document["verdict"], "expected": document["expected"], **measured})
    sink.table("verdicts", list(row), [list(row.values())])


def _code_of(document: Mapping[str, Any]) -> int:
    return verdict_code(document["verdict"], document["expected"])


GROUP = Group(
    "check", "ahn/theorem1", COMMON, _composed, described, plan_of, found, run_plan, _code_of, show, check_job
)


def check_from_python(name: str, settings: Mapping[str, Any], outputs: Any) -> dict[str, Any]:
    """`icl.check(...)`: the same document; kept only where `outputs` names a folder."""
    common = {"scale", "force"}
    overrides = [f"check={one_option('check', name)}", "logger=none"]
    for key, value in settings.items():
        overrides.append(f"{key if key in common else f'check.{key}'}={literal(value)}")
    if outputs is not None:
        overrides.append(f"paths.outputs={literal(str(outputs))}")
    cfg = compose("check", overrides)
    plan = plan_of(cfg, name)
    return run_plan(plan, cfg) if outputs is not None else measure(plan)
