"""`icl figure`: an experiment makes or finds its records, the figure draws them and measures its claims."""

from __future__ import annotations

import csv
import io
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig

from icl.cli.hydra_app import compose, options, parse_flags, run_hydra, use_config_dir
from icl.cli.outcome import FAILED, OK, Outcome, emit, stdout_kept_for_results, verdict_code, worst
from icl.config import SCALES, instantiate, outputs_folder, plain
from icl.errors import InputError, nearest, one_of
from icl.runs.fingerprint import code_digest, fingerprint
from icl.runs.json_records import JsonRecords
from icl.runs.record import RunRecord

if TYPE_CHECKING:
    import numpy as np

COMMON = ("scale", "format", "force", "logger", "jobs", "verbose", "paths.outputs")


@dataclass(frozen=True)
class Plan:
    """A validated figure: the experiment that makes its records and the class that draws them."""

    id: str
    experiment: Any
    figure: Any
    settings: dict[str, Any]


def figure_command(args: Sequence[str]) -> int:
    """`icl figure ...`: one figure through Hydra, or many."""
    flags = parse_flags("figure", args)
    use_config_dir(flags.config_dir)
    chosen = [o.partition("=")[2] for o in flags.overrides if o.partition("=")[0] in ("figure", "+figure")]
    which = chosen[-1] if chosen else None
    if which is None or not (which == "all" or which.endswith("/all")):
        return run_hydra("figure", args, figure_job, plan_of)
    if flags.multirun:
        raise InputError(f"figure={which}: draws many already; -m is for one figure's settings")
    overrides = [o for o in flags.overrides if o.partition("=")[0] != "figure"]
    for override in overrides:
        if override.partition("=")[0].lstrip("+") not in COMMON:
            raise InputError(f"{override}: with figure={which} only {', '.join(COMMON)} may be set")
    return _many(which, overrides)


def _many(which: str, overrides: list[str]) -> int:
    prefix = "" if which == "all" else which.removesuffix("all")
    known = sorted(set(options("figure")))
    ids = [name for name in known if name.startswith(prefix)]
    if not ids:
        groups = {f"{name.partition('/')[0]}/all" for name in known}
        raise InputError(f"figure={which}: no such figures{nearest(which, groups)}")
    cfgs = [compose("figure", [f"figure={name}", *overrides]) for name in ids]
    plans = [plan_of(cfg, name) for cfg, name in zip(cfgs, ids, strict=True)]
    started = time.monotonic()
    documents, codes = [], []
    with stdout_kept_for_results():
        for plan, cfg in zip(plans, cfgs, strict=True):
            print(f"figure {plan.id}", file=sys.stderr, flush=True)
            try:
                documents.append(make(plan, cfg))
                codes.append(code_of(documents[-1]))
            except Exception as error:
                codes.append(FAILED)
                print(f"icl: {plan.id} failed: {type(error).__name__}: {error}", file=sys.stderr)
    document = {"figures": documents, "seconds": time.monotonic() - started}
    emit(Outcome(document, show=lambda: [show(d) for d in documents][:0]), cfgs[0].format)
    return worst([OK, *codes])


def figure_job(cfg: DictConfig) -> Outcome:
    """One figure of a Hydra run."""
    document = make(plan_of(cfg), cfg)
    return Outcome(document, code_of(document), lambda: show(document))


def plan_of(cfg: DictConfig, name: str | None = None) -> Plan:
    """Everything validated, nothing trained, drawn or written."""
    one_of("scale", cfg.scale, SCALES)
    one_of("format", cfg.format, ("text", "json"))
    outputs_folder(cfg)
    if name is None:
        from hydra.core.hydra_config import HydraConfig

        name = HydraConfig.get().runtime.choices.get("figure")
    if not name:
        raise InputError("figure: choose one: figure=ahn/fig1, figure=ahn/all, figure=all")
    node = plain(cfg.figure)
    for part in ("experiment", "draw"):
        if part not in node:
            raise InputError(f"figure.{part}: missing in conf/figure/{name}.yaml")
    experiment = instantiate("figure.experiment", node["experiment"])
    return Plan(name, experiment, instantiate("figure.draw", node["draw"]), node)


def code_of(document: Mapping[str, Any]) -> int:
    return worst([OK, *(verdict_code(c["verdict"], c["expected"]) for c in document["claims"])])


def make(plan: Plan, cfg: DictConfig) -> dict[str, Any]:
    """The stored document with its files, or a fresh one."""
    started = time.monotonic()
    outputs = outputs_folder(cfg)
    records = plan.experiment.records(_Runner(cfg))
    key = f"{plan.id}/{cfg.scale}"
    science = {"settings": plan.settings, "runs": {name: _identity(record) for name, record in records.items()}}
    mark, digest = fingerprint(science), digest_of(plan)
    store = JsonRecords(outputs, "figures")
    with store.lock(key, mark):
        found = None if cfg.force else store.find(key, mark, digest)
        if found is not None and all(Path(path).is_file() for path in found["files"].values()):
            return {**found, "cached": True}
        folder = store.path(key, mark).parent
        claims = [_settled(claim, cfg.scale) for claim in plan.figure.claims(records)]
        files = _write(plan, records, claims, folder, cfg.scale)
        document = {
            "figure": plan.id,
            "scale": cfg.scale,
            "files": files,
            "claims": claims,
            "runs": sorted({record.path for record in records.values()}),
            "seconds": time.monotonic() - started,
            "cached": False,
        }
        document = store.save(key, mark, digest, document)
    _tell(document, plan, cfg, outputs)
    return document


def _settled(claim: Any, scale: str) -> dict[str, Any]:
    """At smoke a claim about trained weights is not decided, whatever the drawing shows."""
    document = asdict(claim)
    trained = document.pop("trained")
    return document | ({"verdict": "undecided", "expected": "undecided"} if trained and scale == "smoke" else {})


def _write(
    plan: Plan, records: Mapping[str, RunRecord], claims: Sequence[Mapping[str, Any]], folder: Path, scale: str
) -> dict[str, Path]:
    from matplotlib import rc_context

    from icl.figures.style import RC
    from icl.runs.atomic import write_bytes

    folder.mkdir(parents=True, exist_ok=True)
    name = plan.id.rpartition("/")[2]
    files = {extension: folder / f"{name}.{extension}" for extension in ("png", "pdf", "csv", "md")}
    with rc_context(RC):
        drawing = plan.figure.draw(records)
        for extension, metadata in (("png", {}), ("pdf", {"CreationDate": None})):
            content = io.BytesIO()
            drawing.savefig(content, format=extension, metadata=metadata)
            write_bytes(files[extension], content.getvalue())
    write_bytes(files["csv"], _csv(plan.figure.table(records)).encode())
    write_bytes(files["md"], caption(plan, claims, records, scale).encode())
    return files


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Everything drawn, one value a line: panel, series, x, y and what else a figure names."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, restval="")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def caption(plan: Plan, claims: Sequence[Mapping[str, Any]], records: Mapping[str, RunRecord], scale: str) -> str:
    lines = [f"# {plan.id}", "", plan.figure.caption, "", f"Command: `icl figure figure={plan.id} scale={scale}`", ""]
    lines += ["| claim | verdict | measured | bound |", "|---|---|---|---|"]
    for claim in claims:
        expected = "" if claim["verdict"] == claim["expected"] else f" (expected {claim['expected']})"
        lines.append(f"| {claim['claim']} | {claim['verdict']}{expected} | {short(claim['measured'])} | {claim['bound']} |")
    lines += ["", "Settings:", ""]
    for name, record in records.items():
        config = record.config
        what = ", ".join(f"{key}: {value}" for key, value in _flat(config) if key.split(".")[0] in ("task", "model", "train", "optimizer", "seeds", "settings"))
        lines.append(f"- `{name}` ({record.run['experiment']} {record.run['fingerprint']}): {what}")
    return "\n".join(lines) + "\n"


def _flat(node: Any, prefix: str = "") -> list[tuple[str, Any]]:
    if not isinstance(node, Mapping):
        return [(prefix.removesuffix("."), node)]
    return [entry for key, value in node.items() for entry in _flat(value, f"{prefix}{key}.")]


def short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {short(entry)}" for key, entry in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(short, value))
    return "-" if value is None else str(value)


def show(document: Mapping[str, Any]) -> None:
    from rich.console import Console

    console = Console()
    how = "found" if document["cached"] else f"{document['seconds']:.1f} s"
    console.print(f"[bold]{document['figure']}[/] at {document['scale']} ({how})")
    for claim in document["claims"]:
        colour = "green" if claim["verdict"] == claim["expected"] else "red"
        console.print(f"  [{colour}]{claim['verdict']:<9}[/] {claim['claim']}: {short(claim['measured'])} (bound: {claim['bound']})", soft_wrap=True)
    console.print(f"  {document['files']['png']}", soft_wrap=True)


def digest_of(plan: Plan) -> str:
    """Digest of the code that draws and measures: the shared style, the experiment's and the figure's own files."""
    import inspect

    from icl.figures import claims, style

    own = [inspect.getfile(type(plan.experiment)), inspect.getfile(type(plan.figure))]
    return code_digest([], [*own, claims.__file__, style.__file__])


def _identity(record: RunRecord) -> list[Any]:
    return [record.run["fingerprint"], record.run["digest"], record.run["attempt"]]


def _tell(document: Mapping[str, Any], plan: Plan, cfg: DictConfig, outputs: Path) -> None:
    from icl.training.wandb_sink import LoggerSettings, open_sink

    settings = LoggerSettings(**plain(cfg.logger))
    if settings.mode == "none":
        return
    run_id = f"figure-{plan.id.replace('/', '-')}-{document['scale']}"
    identity = {"group": plan.id, "job_type": "figure", "run_id": run_id, "name": f"{plan.id} {document['scale']}"}
    with open_sink(settings, outputs=outputs, config={"figure": plan.settings, "scale": cfg.scale}, **identity) as sink:
        sink.image(0, plan.id, Path(document["files"]["png"]).read_bytes())
        columns = ["claim", "verdict", "expected", "measured", "bound"]
        sink.table("claims", columns, [[short(claim[column]) for column in columns] for claim in document["claims"]])


class _Runner:
    """icl.experiments.runner.Runner over this process's configs and store."""

    def __init__(self, cfg: DictConfig) -> None:
        self.cfg, self.scale = cfg, str(cfg.scale)

    def train(self, experiment: str, overrides: Mapping[str, Any] | None = None) -> RunRecord:
        from icl.cli.train import obtain, request

        chosen = [f"experiment={experiment}", *passed_on(self.cfg)]
        cfg = compose("train", [*chosen, *(f"{key}={_literal(value)}" for key, value in (overrides or {}).items())])
        return obtain(request(cfg)).record

    def store(
        self, name: str, science: Mapping[str, Any], compute: Callable[[], Mapping[str, np.ndarray]]
    ) -> RunRecord:
        from icl.runs.store import RunStore

        store = RunStore(outputs_folder(self.cfg))
        digest = code_digest(("tasks", "models", "theory", "algorithms", "experiments"))
        with store.begin(name, fingerprint(science), {"settings": dict(science)}, digest) as run:
            if run.cached is not None:
                return run.cached
            return run.finish(metrics=[], weights=dict(compute()), summary={}, steps=0, seeds=list(science["seeds"]))


def passed_on(cfg: DictConfig) -> list[str]:
    """The settings every verb understands, as overrides for a part. `force` stays with what was asked."""
    mode = {"none": "none", "offline": "wandb_offline", "online": "wandb_online"}[cfg.logger.mode]
    return [f"scale={cfg.scale}", f"logger={mode}", f"paths.outputs={_literal(str(outputs_folder(cfg)))}"]


def _literal(value: Any) -> str:
    from icl.cli.check import _literal as literal

    return literal(value)
