"""`icl check`: a check is composed, measured, stored and shown."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from icl.cli.hydra_app import compose, config_folders, is_multirun, options, parse_flags, run_hydra
from icl.cli.outcome import FAILED, OK, Outcome, emit, stdout_kept_for_results, verdict_code, worst
from icl.config import SCALES, instantiate, outputs_folder, plain, target_class
from icl.errors import InputError, nearest, one_of, whole

COMMON = ("check.seed", "scale", "format", "force", "logger", "jobs", "verbose", "paths.outputs")
SHARED_CODE = ("tasks", "models", "theory")  # what any check's verdict depends on, beside its own file


@dataclass(frozen=True)
class Plan:
    """A validated check: its object, its settings as given, and what names its record."""

    id: str
    check: Any
    settings: dict[str, Any]
    expected: str
    weights: str | None
    fingerprint: str
    digest: str


def check_command(args: Sequence[str]) -> int:
    """`icl check ...`: one check through Hydra, or many."""
    flags = parse_flags("check", args)
    chosen = [o.partition("=")[2] for o in flags.overrides if o.partition("=")[0] in ("check", "+check")]
    if any(flag in args for flag in ("--help", "--hydra-help", "--info", "--cfg", "-c")) or flags.shell_completion:
        return run_hydra("check", args, check_job, plan_of)
    if not chosen:
        raise InputError(f"check: choose one: check=ahn/theorem1, check=ahn/all, check=all (icl list names {_count(args)})")
    many = chosen[-1] == "all" or chosen[-1].endswith("/all")
    if not many:
        return run_hydra("check", args, check_job, plan_of)
    if flags.multirun:
        raise InputError(f"check={chosen[-1]}: runs many already; -m is for one check's settings")
    overrides = [o for o in flags.overrides if o.partition("=")[0] != "check"]
    for override in overrides:
        if override.partition("=")[0].lstrip("+") not in COMMON:
            raise InputError(f"{override}: with check={chosen[-1]} only {', '.join(COMMON)} may be set")
    return _many(chosen[-1], overrides, args)


def _count(args: Sequence[str]) -> int:
    return len(set(options("check", args)))


def _many(which: str, overrides: list[str], args: Sequence[str]) -> int:
    prefix = "" if which == "all" else which.removesuffix("all")
    ids = sorted(name for name in set(options("check", args)) if name.startswith(prefix))
    if not ids:
        groups = {f"{name.partition('/')[0]}/all" for name in options("check", args)}
        raise InputError(f"check={which}: no such checks{nearest(which, groups)}")
    folders = [str(folder) for folder in config_folders(args)[1:]]
    common = compose("check", [o for o in overrides if not o.startswith("check.")], folders[-1] if folders else None)
    jobs = whole("jobs", common.jobs, 1)
    cfgs = [compose("check", [f"check={name}", *overrides], folders[-1] if folders else None) for name in ids]
    plans = [plan_of(cfg, name) for cfg, name in zip(cfgs, ids, strict=True)]
    started = time.monotonic()
    with stdout_kept_for_results():
        documents, failures = _run_all(plans, cfgs, jobs)
    codes = [verdict_code(d["verdict"], d["expected"]) for d in documents] + [FAILED] * failures
    document = {"checks": documents, "seconds": time.monotonic() - started}
    emit(Outcome(document, show=lambda: show(documents)), common.format)
    return worst([OK, *codes])


def _run_all(plans: Sequence[Plan], cfgs: Sequence[DictConfig], jobs: int) -> tuple[list[dict[str, Any]], int]:
    """Every check, cheap to interrupt: each record is stored as soon as it is there."""
    import sys

    from rich.console import Console
    from rich.progress import Progress

    found: list[dict[str, Any]] = []
    failures = 0
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("checks", total=len(plans))
        for name, result in _results(plans, cfgs, jobs):
            if isinstance(result, Exception):
                failures += 1
                print(f"icl: {name} failed: {type(result).__name__}: {result}", file=sys.stderr)
            else:
                found.append(result)
            bar.update(task, advance=1, description=name)
    return sorted(found, key=lambda document: document["check"]), failures


def _results(plans: Sequence[Plan], cfgs: Sequence[DictConfig], jobs: int) -> Any:
    if jobs == 1:
        for plan, cfg in zip(plans, cfgs, strict=True):
            try:
                yield plan.id, run_plan(plan, cfg)
            except Exception as error:
                yield plan.id, error
        return
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    with ProcessPoolExecutor(min(jobs, len(plans)), mp_context=get_context("spawn")) as pool:
        running = {pool.submit(_in_worker, OmegaConf.to_yaml(cfg), plan.id): plan.id for plan, cfg in zip(plans, cfgs, strict=True)}
        for future in as_completed(running):
            error = future.exception()
            yield running[future], future.result() if error is None else error


def _in_worker(text: str, name: str) -> dict[str, Any]:
    import torch

    from icl.config import register_resolvers

    register_resolvers()
    torch.set_num_threads(1)
    cfg = OmegaConf.create(text)
    assert isinstance(cfg, DictConfig)
    return run_plan(plan_of(cfg, name), cfg)


def check_job(cfg: DictConfig) -> Outcome:
    """One check of a Hydra run."""
    plan = plan_of(cfg)
    document = run_plan(plan, cfg)
    code = verdict_code(document["verdict"], document["expected"])
    return Outcome(document | ({"status": "done"} if is_multirun() else {}), code, lambda: show([document], full=True))


def plan_of(cfg: DictConfig, name: str | None = None) -> Plan:
    """Everything validated, nothing measured or written."""
    from icl.checks.verdict import VERDICTS
    from icl.runs.fingerprint import fingerprint

    one_of("scale", cfg.scale, SCALES)
    one_of("format", cfg.format, ("text", "json"))
    outputs_folder(cfg)
    name = name or _chosen_id(cfg)
    node = plain(cfg.check)
    expected, weights = one_of("check.expected", node.pop("expected"), VERDICTS), node.pop("weights")
    check = instantiate("check", node)
    if weights is not None and not hasattr(check, "judge"):
        raise InputError(f"check.weights: {name} says nothing about given weights")
    settings = {k: v for k, v in node.items() if k != "_target_"}
    science = {"settings": _by_content(settings), "target": node["_target_"], "weights": _weights_fingerprint(weights)}
    digest = digest_of(type(check), judged=weights is not None)
    return Plan(name, check, settings, expected, weights, fingerprint(science), digest)


def _chosen_id(cfg: DictConfig) -> str:
    from hydra.core.hydra_config import HydraConfig

    name = HydraConfig.get().runtime.choices.get("check")
    if not name:
        raise InputError("check: choose one, such as check=ahn/theorem1")
    return str(name)


def run_plan(plan: Plan, cfg: DictConfig) -> dict[str, Any]:
    """The stored verdict, or a fresh one, stored; told to W&B where that is asked for."""
    from icl.runs.json_records import JsonRecords

    outputs, force = outputs_folder(cfg), bool(cfg.force)
    records = JsonRecords(outputs, "checks")
    found = None if force else records.find(plan.id, plan.fingerprint, plan.digest)
    if found is None:
        with records.lock(plan.id, plan.fingerprint):
            found = None if force else records.find(plan.id, plan.fingerprint, plan.digest)
            fresh = found is None
            if fresh:
                found = records.save(plan.id, plan.fingerprint, plan.digest, measure(plan))
    else:
        fresh = False
    assert found is not None
    document = {**found, "expected": plan.expected, "cached": not fresh}
    _tell(document, plan, cfg, outputs)
    return document


def measure(plan: Plan) -> dict[str, Any]:
    started = time.monotonic()
    finding = plan.check.measure() if plan.weights is None else plan.check.judge(load_weights(plan.weights, plan.check))
    return verdict_document(plan.id, plan.check, plan.settings | {"weights": plan.weights}, finding, plan.expected, time.monotonic() - started)


def verdict_document(
    name: str, check: Any, settings: Mapping[str, Any], finding: Any, expected: str, seconds: float
) -> dict[str, Any]:
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
            "bound": {"value": finding.bound.value, "source": finding.bound.source},
            "control": {
                "description": finding.control.description,
                "measured": finding.control.measured,
                "rejected": finding.control.rejected,
            },
            "notes": list(finding.notes),
            "seconds": seconds,
            "cached": False,
        }
    )


def _tell(document: Mapping[str, Any], plan: Plan, cfg: DictConfig, outputs: Path) -> None:
    from icl.training.wandb_sink import LoggerSettings, open_sink

    settings = LoggerSettings(**plain(cfg.logger))
    if settings.mode == "none":
        return
    identity = {"group": plan.id, "job_type": "check", "run_id": f"check-{plan.id.replace('/', '-')}-{plan.fingerprint}"}
    with open_sink(settings, outputs=outputs, name=plan.id, config=dict(document["settings"]), **identity) as sink:
        sink.summary({"verdict": document["verdict"], "expected": document["expected"], **_numbers(document["measured"])})
        columns = ["claim", "verdict", "expected", "bound", "control"]
        control = document["control"]
        row = [document["claim"], document["verdict"], document["expected"], document["bound"]["value"], f"{control['description']}: {control['measured']}"]
        sink.table("verdicts", columns, [row])


def _numbers(measured: Mapping[str, Any]) -> dict[str, float]:
    return {name: value for name, value in measured.items() if isinstance(value, int | float)}


def digest_of(check: type, *, judged: bool) -> str:
    """Digest of the code behind a verdict: the shared packages, the verdict type and the check's own file."""
    import inspect

    from icl.checks import verdict
    from icl.runs.fingerprint import code_digest

    packages = [*SHARED_CODE, *(["training"] if judged else [])]
    return code_digest(packages, [inspect.getfile(check), verdict.__file__])


def check_digest(record_id: str) -> str | None:
    """What a record of this check would carry today; None where the check is not there."""
    try:
        cfg = compose("check", [f"check={record_id}"])
        return digest_of(target_class("check", cfg.check._target_), judged=False)
    except InputError:
        return None


def _by_content(settings: Mapping[str, Any]) -> dict[str, Any]:
    from icl.cli.train import _with_file_contents

    return _with_file_contents(settings)


def _weights_fingerprint(weights: Any) -> Any:
    """What identifies given weights: a run's attempt, or a file's content."""
    if weights is None:
        return None
    path = Path(str(weights)).expanduser()
    if path.suffix == ".npz" and path.is_file():
        import hashlib

        return hashlib.sha256(path.read_bytes()).hexdigest()
    if not path.is_dir():
        raise InputError(f"check.weights={weights}: no such run folder or .npz file")
    from icl.runs.record import load_run

    run = load_run(path).run
    return [run["fingerprint"], run["digest"], run["attempt"]]


def load_weights(weights: str, check: Any) -> Any:
    """Weights of a finished run with the law they were trained on, or of a .npz with the check's own law."""
    path = Path(weights).expanduser()
    return _from_file(path, check) if path.suffix == ".npz" else _from_run(path)


def _from_run(path: Path) -> Any:
    import torch

    from icl.checks.verdict import Weights
    from icl.runs.record import load_run

    record = load_run(path)
    task_node, model_node = record.config["task"], record.config["model"]
    law = instantiate("task", task_node).law(record.run["seeds"])
    family = target_class("model", model_node["_target_"])
    names = [name.removesuffix("_history") for name in record.weights if name.endswith("_history")]
    matrices = {name: torch.from_numpy(record.weights[name]) for name in names}
    return Weights(family_name(family), matrices, law, model_node.get("activation", "identity"))


def _from_file(path: Path, check: Any) -> Any:
    import numpy as np
    import torch

    from icl.checks.verdict import Weights

    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (OSError, ValueError) as error:
        raise InputError(f"check.weights={path}: not a readable .npz file ({error})") from None
    activation = str(arrays.pop("activation", "identity"))
    names = set(arrays)
    families = {frozenset("A"): "sparse_a", frozenset("AB"): "sparse_ab", frozenset("PQ"): "full"}
    if frozenset(names) not in families:
        raise InputError(f"check.weights={path}: must hold A, A and B, or P and Q, and no other arrays; has {sorted(names)}")
    matrices = {}
    for name, array in arrays.items():
        if array.dtype.kind not in "iuf" or array.ndim not in (3, 4) or not np.isfinite(array).all():
            raise InputError(f"check.weights={path}: {name} must be finite, of shape (layers, rows, columns) or (1, layers, rows, columns)")
        matrices[name] = torch.from_numpy(array.astype(np.float64)).reshape(1, *array.shape[-3:])
    if any(len(array) != 1 for array in arrays.values() if array.ndim == 4):
        raise InputError(f"check.weights={path}: one set of weights at a time")
    return Weights(families[frozenset(names)], matrices, check.law, activation)


def family_name(cls: type) -> str:
    from icl.models import Full, MultiHead, SparseA, SparseAB

    known = {SparseA: "sparse_a", SparseAB: "sparse_ab", Full: "full", MultiHead: "multihead"}
    return known.get(cls, cls.__name__)


def judge_of(names: Sequence[str], cfg: DictConfig) -> Callable[..., list[dict[str, Any]]] | None:
    """Asks each named check of trained weights; None where there is nothing to ask."""
    if not names:
        return None
    known = set(options("check"))
    checks = {}
    for name in names:
        if name not in known:
            raise InputError(f"check={name}: no such check{nearest(name, known)}")
        node = plain(compose("check", [f"check={name}", f"scale={cfg.scale}"]).check)
        expected = node["expected"]
        check = instantiate("check", {k: v for k, v in node.items() if k not in ("expected", "weights")})
        if not hasattr(check, "judge"):
            raise InputError(f"check={name}: says nothing about trained weights")
        checks[name] = (check, expected)
    smoke = cfg.scale == "smoke"

    def judge(model: Any, law: Any) -> list[dict[str, Any]]:
        from icl.checks.verdict import Weights

        weights = Weights(family_name(type(model.parametrization)), model.parametrization.matrices(), law, model.activation)
        return [_judged(name, check, expected, weights, smoke) for name, (check, expected) in checks.items()]

    return judge


def _judged(name: str, check: Any, expected: str, weights: Any, smoke: bool) -> dict[str, Any]:
    started = time.monotonic()
    finding = check.judge(weights)
    settings = {"dim": weights.law.dim, "context": list(weights.law.context_R), "weights": "this run"}
    document = verdict_document(name, check, settings, finding, expected, time.monotonic() - started)
    if smoke and getattr(check, "needs_training", True):
        note = f"smoke trains too little to decide; at these weights: {document['verdict']}"
        document |= {"verdict": "undecided", "expected": "undecided", "notes": [*document["notes"], note]}
    return document


def show(documents: Sequence[Mapping[str, Any]], *, full: bool = False) -> None:
    """One line a check; for a single one, everything measured."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table("check", "claim", "verdict", "measured", "bound", "control", "s")
    for d in documents:
        name, value = headline(d)
        mark = "" if d["verdict"] == d["expected"] else f" (expected {d['expected']})"
        colour = "green" if not mark else "red"
        control = f"{_short(d['control']['measured'])} {'rejected' if d['control']['rejected'] else 'NOT rejected'}"
        seconds = "cached" if d["cached"] else f"{d['seconds']:.1f}"
        table.add_row(d["check"], d["claim"], f"[{colour}]{d['verdict']}{mark}[/]", f"{name} {value}", _short(d["bound"]["value"]), control, seconds)
    console.print(table)
    if full:
        d = documents[0]
        for name, value in d["measured"].items():
            console.print(f"  {name}: {_short(value)}", soft_wrap=True, markup=False)
        console.print(f"  bound: {d['bound']['source']}", soft_wrap=True, markup=False)
        console.print(f"  control: {d['control']['description']}", soft_wrap=True, markup=False)
        for note in d["notes"]:
            console.print(f"  note: {note}", soft_wrap=True, markup=False)


def headline(document: Mapping[str, Any]) -> tuple[str, str]:
    """The measurement a table has room for: the one held against the bound where it can be told, else the first."""
    measured = document["measured"]
    for name in ("gradient_norm", "max_error", "off_direction", "distance"):
        if name in measured:
            return name, _short(measured[name])
    name = next(iter(measured))
    return name, _short(measured[name])


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_short, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_short(v)}" for k, v in value.items()) + "}"
    return "-" if value is None else str(value)


def check_from_python(name: str, settings: Mapping[str, Any], outputs: Any) -> dict[str, Any]:
    """`icl.check(...)`: the same document; kept only where `outputs` names a folder."""
    common = {"scale", "force", "seed"} & set(settings) - {"seed"}
    overrides = [f"check={name}", "logger=none"]
    for key, value in settings.items():
        target = key if key in common else f"check.{key}"
        overrides.append(f"{target}={_literal(value)}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(outputs) if outputs is not None else Path(scratch)
        cfg = compose("check", [*overrides, f"paths.outputs={_literal(str(folder))}"])
        return run_plan(plan_of(cfg, name), cfg)


def _literal(value: Any) -> str:
    """A Python value in Hydra's override grammar."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_literal, value)) + "]"
    return repr(value)

