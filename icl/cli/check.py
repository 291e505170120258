"""`icl check`: a check is composed, measured, stored and shown.

As with training, what a check is called in the store is known without importing it: a stored verdict for
these very settings answers at once.
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from icl.cli import weights as given_weights
from icl.cli.app import say_failure
from icl.cli.hydra_app import (
    chosen_option,
    compose,
    one_option,
    options,
    parse_flags,
    run_hydra,
    use_config_dir,
)
from icl.cli.outcome import FAILED, OK, Outcome, emit, stdout_kept_for_results, verdict_code, worst
from icl.cli.show import show
from icl.cli.verdicts import digest_of, verdict_document
from icl.config import by_content, common_settings, instantiate, keep_caches_in, plain
from icl.errors import InputError, nearest, one_of, whole
from icl.runs.documents import to_json
from icl.runs.fingerprint import fingerprint

__all__ = ["check_command", "check_from_python", "check_job", "plan_of", "run_plan", "show"]

VERDICTS = ("holds", "fails", "undecided")
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


def check_command(args: Sequence[str]) -> int:
    """`icl check ...`: one check through Hydra, or many."""
    flags = parse_flags("check", args)
    use_config_dir(flags.config_dir)
    chosen = [
        value for key, _, value in (o.partition("=") for o in flags.overrides) if key.lstrip("+") == "check"
    ]
    if flags.cfg or flags.info or flags.shell_completion or flags.hydra_help:
        return run_hydra("check", args, check_job, plan_of)
    if not chosen:
        count = len(set(options("check")))
        raise InputError(
            f"check: choose one: check=ahn/theorem1, check=ahn/all, check=all (icl list names {count})"
        )
    which = chosen[-1].strip("'\"")
    if which != "all" and not which.endswith("/all"):
        return run_hydra("check", args, check_job, plan_of)
    if flags.multirun:
        raise InputError(f"check={which}: runs many already; -m is for one check's settings")
    overrides = [o for o in flags.overrides if o.partition("=")[0].lstrip("+") != "check"]
    for override in overrides:
        if override.partition("=")[0] not in COMMON:
            raise InputError(f"{override}: with check={which} only {', '.join(COMMON)} may be set")
    return _many(which, overrides, flags.config_dir)


def _many(which: str, overrides: Sequence[str], config_dir: str | None) -> int:
    prefix = which.removesuffix("all")
    ids = sorted({name for name in options("check") if name.startswith(prefix)})
    if not ids:
        groups = sorted({f"{name.partition('/')[0]}/all" for name in options("check")})
        raise InputError(
            f"check={which}: no such checks{nearest(which, groups)} (one of: all, {', '.join(groups)})"
        )
    cfgs = [_composed(name, overrides) for name in ids]
    jobs = whole("jobs", cfgs[0].jobs, 1)
    plans = [plan_of(cfg, name) for cfg, name in zip(cfgs, ids, strict=True)]
    started = time.monotonic()
    with stdout_kept_for_results():
        results = list(_watched(_results(plans, cfgs, jobs, config_dir), len(plans)))
    documents = sorted((r for r in results if isinstance(r, dict)), key=lambda document: document["check"])
    codes = [verdict_code(d["verdict"], d["expected"]) for d in documents]
    document = {"checks": documents, "seconds": time.monotonic() - started}
    emit(Outcome(document, show=lambda: show(documents)), cfgs[0].format)
    return worst([OK, *codes, *([FAILED] if len(documents) < len(results) else [])])


def _composed(name: str, overrides: Sequence[str]) -> DictConfig:
    """`check.seed` counts only where a check has one."""
    seedless = [o for o in overrides if not o.startswith("check.seed=")]
    cfg = compose("check", [f"check={name}", *seedless])
    return (
        cfg
        if len(seedless) == len(overrides) or "seed" not in cfg.check
        else compose("check", [f"check={name}", *overrides])
    )


def _watched(results: Iterator[tuple[str, dict[str, Any] | Exception]], total: int) -> Iterator[Any]:
    """The results as they come, with a bar on a terminal and a line for each failure."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("checks", total=total)
        for name, result in results:
            if isinstance(result, Exception):
                say_failure(f"{name} failed: ", result, tell_all=False)
            bar.update(task, advance=1, description=name)
            yield result


def _results(
    plans: Sequence[Plan], cfgs: Sequence[DictConfig], jobs: int, config_dir: str | None
) -> Iterator[tuple[str, dict[str, Any] | Exception]]:
    """Each is stored as soon as it is there; a failure does not stop the others."""
    if jobs == 1:
        for plan, cfg in zip(plans, cfgs, strict=True):
            try:
                yield plan.id, run_plan(plan, cfg)
            except Exception as error:
                yield plan.id, error
        return
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import active_children, get_context

    pool = ProcessPoolExecutor(min(jobs, len(plans)), mp_context=get_context("spawn"))
    try:
        texts = [OmegaConf.to_yaml(cfg, resolve=True) for cfg in cfgs]
        tasks = [(plan.id, text, config_dir) for plan, text in zip(plans, texts, strict=True)]
        running = {pool.submit(_in_worker, *task): task[0] for task in tasks}
        for future in as_completed(running):
            try:
                yield running[future], future.result()
            except Exception as error:
                yield running[future], error
    except BaseException:
        for child in active_children():
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _in_worker(name: str, text: str, config_dir: str | None) -> dict[str, Any]:
    import torch

    torch.set_num_threads(1)
    use_config_dir(config_dir)
    cfg = OmegaConf.create(text)
    assert isinstance(cfg, DictConfig)
    return run_plan(plan_of(cfg, name), cfg)


def check_job(cfg: DictConfig) -> Outcome:
    """One check of a Hydra run."""
    document = run_plan(plan_of(cfg), cfg)
    code = verdict_code(document["verdict"], document["expected"])
    return Outcome(document, code, lambda: show([document], full=True))


def plan_of(cfg: DictConfig, name: str | None = None) -> Plan:
    """Everything validated, nothing measured or written."""
    outputs = common_settings(cfg, "check", OWN)
    whole("jobs", cfg.jobs, 1)
    node = plain(cfg.check)
    name = name or chosen_option("check")
    if not name or not isinstance(node, dict):
        raise InputError("check: choose one, such as check=ahn/theorem1")
    expected, weights = (
        one_of("check.expected", node.pop("expected", "holds"), VERDICTS),
        node.pop("weights", None),
    )
    _logger(cfg)
    digest = digest_of(node.get("_target_"), ["training"] if weights is not None else [])
    settings = {k: v for k, v in node.items() if k != "_target_"}
    identity = {"settings": by_content(settings), "target": node["_target_"]}
    identity["weights"] = None if weights is None else given_weights.identity(weights)
    plan = Plan(name, node, expected, weights, fingerprint(identity), digest)
    if _stored(plan, outputs, force=cfg.force) is None:
        plan.check, plan.given  # noqa: B018  both validate
    return plan


def _stored(plan: Plan, outputs: Path, *, force: bool) -> dict[str, Any] | None:
    """The verdict of this very code for these very settings, which need no validation: they were measured."""
    from icl.runs.json_records import JsonRecords

    found = None if force else JsonRecords(outputs, "checks").find(plan.id, plan.fingerprint, plan.digest)
    if found is None:
        return None
    # Tells 5 from 5.0, which a fingerprint does not and validation may; weights are known by their content.
    told, asked = ({**settings, "weights": None} for settings in (found["settings"], to_json(plan.settings)))
    return found if json.dumps(told, sort_keys=True) == json.dumps(asked, sort_keys=True) else None


def run_plan(plan: Plan, cfg: DictConfig) -> dict[str, Any]:
    """The stored verdict, or a fresh one, stored; told to W&B where that is asked for."""
    from icl.runs.json_records import JsonRecords

    outputs, force = common_settings(cfg, "check", OWN), cfg.force
    found = _stored(plan, outputs, force=force)
    cached = found is not None
    if found is None:
        finding = None
        if plan.given is not None:
            finding = measure(plan)  # outside the lock: weights it cannot speak of must leave nothing behind
        keep_caches_in(outputs)
        records = JsonRecords(outputs, "checks")
        with records.lock(plan.id, plan.fingerprint):
            found = None if force else records.find(plan.id, plan.fingerprint, plan.digest)
            cached = found is not None
            if found is None:
                document = finding or measure(plan)
                found = records.save(plan.id, plan.fingerprint, plan.digest, document)
    document = {**found, "expected": plan.expected, "settings": to_json(plan.settings), "cached": cached}
    _tell(document, plan, cfg, outputs, fresh=not cached)
    return document


def measure(plan: Plan) -> dict[str, Any]:
    """On one thread: over tiny matrices, threads that wait for one another cost ten times as much on a busy
    machine."""
    import torch

    started, threads = time.monotonic(), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        finding = plan.check.measure() if plan.given is None else plan.check.judge(plan.given)
    finally:
        torch.set_num_threads(threads)
    seconds = time.monotonic() - started
    return verdict_document(plan.id, plan.check, plan.settings, finding, plan.expected, seconds)


def _logger(cfg: DictConfig) -> Any:
    from icl.training.wandb_sink import LoggerSettings

    node = plain(cfg.logger)
    try:
        return LoggerSettings(**node)
    except TypeError:
        raise InputError(f"logger={node}: must be one of none, wandb_offline, wandb_online") from None


def _tell(document: Mapping[str, Any], plan: Plan, cfg: DictConfig, outputs: Path, *, fresh: bool) -> None:
    """W&B gets what is fresh, and what it does not have yet."""
    settings = _logger(cfg)
    run_id = f"check-{plan.id.replace('/', '-')}-{plan.fingerprint}"
    there = any((outputs / "wandb").glob(f"offline-run-*-{run_id}"))
    if settings.mode == "none" or (settings.mode == "offline" and there and not fresh):
        return
    from icl.training.wandb_sink import open_sink

    identity = {"group": plan.id, "job_type": "check", "run_id": run_id, "name": plan.id}
    measured = {k: v for k, v in document["measured"].items() if isinstance(v, int | float)}
    control = document["control"]
    row = {
        "claim": document["claim"],
        "verdict": document["verdict"],
        "expected": document["expected"],
        "bound": document["bound"]["value"],
        "control": f"{control['description']}: {control['measured']}",
    }
    with open_sink(settings, outputs=outputs, config=dict(document["settings"]), **identity) as sink:
        sink.summary({"verdict": document["verdict"], "expected": document["expected"], **measured})
        sink.table("verdicts", list(row), [list(row.values())])


def check_digest(record_id: str) -> str | None:
    """What a record of this check would carry today; None where the check is not there."""
    try:
        return digest_of(compose("check", [f"check={record_id}"]).check.get("_target_"))
    except InputError:
        return None


def check_from_python(name: str, settings: Mapping[str, Any], outputs: Any) -> dict[str, Any]:
    """`icl.check(...)`: the same document; kept only where `outputs` names a folder."""
    common = {"scale", "force"}
    overrides = [f"check={one_option('check', name)}", "logger=none"]
    for key, value in settings.items():
        overrides.append(f"{key if key in common else f'check.{key}'}={_literal(value)}")
    if outputs is not None:
        overrides.append(f"paths.outputs={_literal(str(outputs))}")
    cfg = compose("check", overrides)
    plan = plan_of(cfg, name)
    return run_plan(plan, cfg) if outputs is not None else measure(plan)


def _literal(value: Any) -> str:
    """A Python value in Hydra's override grammar."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_literal, value)) + "]"
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
