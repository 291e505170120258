"""`icl figure`: an experiment makes or finds its records, the figure draws them and measures its claims.

`force` draws and measures anew; what a figure is drawn from is repeated by `icl train ... force=true`.
"""

from __future__ import annotations

import csv
import functools
import io
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig

from icl.cli.drawn_from import Note
from icl.cli.hydra_app import chosen_option, compose, literal
from icl.cli.logger import logger_settings
from icl.cli.many import Group
from icl.cli.outcome import OK, Outcome, verdict_code, worst
from icl.cli.show import short, show_figures, verdict_text
from icl.config import common_settings, file_digest, instantiate, keep_caches_in, outputs_folder, plain
from icl.errors import InputError, nearest, whole
from icl.runs.code import DRAWING, code_digest, made_from, noted, targets
from icl.runs.fingerprint import fingerprint
from icl.runs.json_records import JsonRecords
from icl.runs.record import RunRecord
from icl.sinks.sink import LoggerSettings, Sink
from icl.sinks.telling import Story
from icl.verdicts import VERDICTS

if TYPE_CHECKING:
    import numpy as np

OWN = ("figure", "jobs")
COMMON = ("scale", "format", "force", "logger", "jobs", "verbose", "paths.outputs")
_TOLD = ("task", "model", "optimizer", "train", "seeds", "settings")  # of a run's config, in the caption


@dataclass(frozen=True)
class Plan:
    """A figure as asked for: the experiment that makes its records and the class that draws them, unbuilt."""

    id: str
    scale: str
    settings: dict[str, Any]
    logger: LoggerSettings

    @functools.cached_property
    def experiment(self) -> Any:
        return instantiate("figure.experiment", self.settings["experiment"])

    @functools.cached_property
    def figure(self) -> Any:
        return instantiate("figure.draw", self.settings["draw"])

    @property
    def roots(self) -> tuple[str, ...]:
        return (*targets(self.settings), *DRAWING)

    @property
    def fingerprint(self) -> str:
        return fingerprint({"figure": self.id, "settings": self.settings, "scale": self.scale})

    @property
    def file_name(self) -> str:
        """fig3 as shipped; with other settings the name says so, and both can be kept."""
        name = self.id.rpartition("/")[2]
        shipped = plain(compose("figure", [f"figure={self.id}", f"scale={self.scale}"]).figure)
        return name if self.settings == shipped else f"{name}-{self.fingerprint}"


def figure_job(cfg: DictConfig) -> Outcome:
    """One figure of a Hydra run."""
    plan = described(cfg)
    document = found(plan, cfg) or make(plan_of(cfg), cfg)
    return Outcome(document, code_of(document), lambda: show_figures([document]))


def plan_of(cfg: DictConfig, name: str | None = None) -> Plan:
    """Everything validated, nothing trained, drawn or written."""
    plan = described(cfg, name)
    plan.experiment, plan.figure  # noqa: B018  both validate
    return plan


def described(cfg: DictConfig, name: str | None = None) -> Plan:
    """What can be known of a figure without importing it."""
    common_settings(cfg, "figure", OWN)
    whole("jobs", cfg.jobs, 1)
    name = name or chosen_option("figure")
    node = plain(cfg.figure)
    if not name or not isinstance(node, dict):
        raise InputError("figure: choose one, such as figure=ahn/fig1")
    for part in ("experiment", "draw"):
        if not isinstance(node.get(part), dict):
            raise InputError(f"figure.{part}: missing in conf/figure/{name}.yaml")
    unknown = sorted(set(node) - {"experiment", "draw"})
    if unknown:
        raise InputError(f"figure.{unknown[0]}: no such key{nearest(unknown[0], ('experiment', 'draw'))}")
    return Plan(name, str(cfg.scale), node, logger_settings(cfg.logger))


def code_of(document: Mapping[str, Any]) -> int:
    return worst([OK, *(verdict_code(c["verdict"], c["expected"]) for c in document["claims"])])


def found(plan: Plan, cfg: DictConfig) -> dict[str, Any] | None:
    """The stored document with its files, where there is nothing to train, to draw or to tell."""
    outputs = outputs_folder(cfg)
    filed = None if cfg.force else _note(plan, outputs).read()
    stored = filed and JsonRecords(outputs, "figures").find(f"{plan.id}/{plan.scale}", *filed)
    if not stored or not _intact(stored):
        return None
    document = {**stored, "cached": True}
    return document if _story(document, plan, outputs).is_told() else None


def make(plan: Plan, cfg: DictConfig) -> dict[str, Any]:
    """The stored document with its files, or a fresh one."""
    started = time.monotonic()
    outputs = outputs_folder(cfg)
    keep_caches_in(outputs)
    records = plan.experiment.records(_Runner(cfg))
    key = f"{plan.id}/{plan.scale}"
    runs = {name: record.run["fingerprint"] for name, record in records.items()}
    mark, made = fingerprint({"settings": plan.settings, "runs": runs}), noted(records)
    digest = made_from(code_digest(plan.roots), made)
    store = JsonRecords(outputs, "figures")
    with store.lock(key, mark):
        stored = None if cfg.force else store.find(key, mark, digest)
        cached = stored is not None and _intact(stored)
        if stored is None or not cached:
            drawn = _drawn(plan, records, store.path(key, mark).parent, started)
            stored = store.save(key, mark, digest, drawn, plan.roots, made)
        document = {**stored, "cached": cached}
        _story(document, plan, outputs).tell(_config(plan), lambda sink: _tell(document, plan, sink))
    _note(plan, outputs).write(mark, digest, records)
    return document


def _drawn(plan: Plan, records: Mapping[str, RunRecord], folder: Path, started: float) -> dict[str, Any]:
    begun = time.monotonic()
    claims = [_settled(claim, plan.scale) for claim in plan.figure.claims(records)]
    files = _write(plan, records, claims, folder)
    return {
        "figure": plan.id,
        "scale": plan.scale,
        "files": files,
        "claims": claims,
        "runs": sorted({record.path for record in records.values()}),
        "seconds": time.monotonic() - started,
        "drawing_seconds": time.monotonic() - begun,  # without the runs, whose records have their own
        "contents": {extension: file_digest(path) for extension, path in files.items()},
    }


def _note(plan: Plan, outputs: Path) -> Note:
    return Note(outputs, plan.id, plan.scale, plan.settings, plan.logger)


def _intact(document: Mapping[str, Any]) -> bool:
    """Whether the files are still as they were written."""
    paths = {extension: Path(path) for extension, path in document["files"].items()}
    return all(
        path.is_file() and file_digest(path) == document["contents"][extension]
        for extension, path in paths.items()
    )


def _settled(claim: Any, scale: str) -> dict[str, Any]:
    """At smoke a claim about trained weights is not decided, whatever the drawing shows."""
    document = asdict(claim)
    trained = document.pop("trained")
    if trained and scale == "smoke":
        document |= {"verdict": "undecided", "expected": "undecided"}
    return document


def _write(
    plan: Plan,
    records: Mapping[str, RunRecord],
    claims: Sequence[Mapping[str, Any]],
    folder: Path,
) -> dict[str, Path]:
    import logging

    from matplotlib import rc_context

    from icl.figures.style import RC
    from icl.runs.atomic import write_bytes

    logging.getLogger("fontTools").setLevel(logging.ERROR)  # it warns of matplotlib's own fonts
    folder.mkdir(parents=True, exist_ok=True)
    name = plan.file_name
    files = {extension: folder / f"{name}.{extension}" for extension in ("png", "pdf", "csv", "md")}
    with rc_context(RC):
        drawing = plan.figure.draw(records)
        for extension, metadata in (("png", {}), ("pdf", {"CreationDate": None})):
            content = io.BytesIO()
            drawing.savefig(content, format=extension, metadata=metadata)
            write_bytes(files[extension], content.getvalue())
    write_bytes(files["csv"], _csv(plan.figure.table(records)).encode())
    write_bytes(files["md"], caption(plan, claims, records).encode())
    return files


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Everything drawn, one value a line: panel, series, x, y and what else a figure names."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def caption(plan: Plan, claims: Sequence[Mapping[str, Any]], records: Mapping[str, RunRecord]) -> str:
    """What is drawn, what was measured, and from which runs with which settings."""
    lines = [
        f"# {plan.id}",
        "",
        plan.figure.caption,
        "",
        f"`icl figure figure={plan.id} scale={plan.scale}`",
        "",
    ]
    lines += ["| claim | verdict | measured | bound |", "|---|---|---|---|"]
    for claim in claims:
        cells = claim["claim"], verdict_text(claim), short(claim["measured"]), claim["bound"]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    lines += ["", "Settings:", ""]
    for name, record in records.items():
        settings = [(key, value) for key, value in _flat(record.config) if key.split(".")[0] in _TOLD]
        told = [f"{key}: {short(value)}" for key, value in settings if value is not None]
        where = f"runs/{record.run['experiment']}/{record.run['fingerprint']}"
        lines.append(f"- `{name}` = {where}: {', '.join(told)}")
    return "\n".join(lines) + "\n"


def _flat(node: Any, prefix: str = "") -> list[tuple[str, Any]]:
    if not isinstance(node, Mapping):
        return [(prefix.removesuffix("."), node)]
    return [entry for key, value in node.items() for entry in _flat(value, f"{prefix}{key}.")]


def _story(document: Mapping[str, Any], plan: Plan, outputs: Path) -> Story:
    run_id = f"figure-{plan.id.replace('/', '-')}-{plan.fingerprint}"
    return Story(plan.logger, outputs, "figure", plan.id, plan.scale, run_id, document)


def _config(plan: Plan) -> dict[str, Any]:
    return {"figure": plan.settings, "scale": plan.scale}


def _tell(document: Mapping[str, Any], plan: Plan, sink: Sink) -> None:
    sink.image(0, plan.id, Path(document["files"]["png"]).read_bytes())
    verdicts = Counter(claim["verdict"] for claim in document["claims"])
    unexpected = sum(claim["verdict"] != claim["expected"] for claim in document["claims"])
    sink.summary({verdict: verdicts[verdict] for verdict in VERDICTS} | {"unexpected": unexpected})
    columns = ["claim", "verdict", "expected", "measured", "bound"]
    sink.table("claims", columns, [[short(claim[c]) for c in columns] for claim in document["claims"]])


class _Runner:
    """icl.experiments.runner.Runner over this process's configs and store."""

    def __init__(self, cfg: DictConfig) -> None:
        self.cfg, self.scale = cfg, str(cfg.scale)

    def train(self, experiment: str, overrides: Mapping[str, Any] | None = None) -> RunRecord:
        from icl.cli.train import obtain, request

        chosen = [f"experiment={experiment}", *passed_on(self.cfg)]
        settings = [f"{key}={literal(value)}" for key, value in (overrides or {}).items()]
        return obtain(request(compose("train", [*chosen, *settings]))).record

    def store(
        self,
        name: str,
        science: Mapping[str, Any],
        compute: Callable[[], Mapping[str, np.ndarray]],
        code: Sequence[str] | None = None,
    ) -> RunRecord:
        from icl.runs.store import RunStore

        store = RunStore(outputs_folder(self.cfg))
        config = {"settings": dict(science)}
        roots = (compute.__module__,) if code is None else code
        with store.begin(name, fingerprint(science), config, code_digest(roots), roots) as run:
            if run.cached is not None:
                return run.cached
            seeds = list(science.get("seeds", []))
            return run.finish(metrics=[], weights=dict(compute()), summary={}, steps=0, seeds=seeds)


def _composed(name: str, overrides: Sequence[str]) -> DictConfig:
    return compose("figure", [f"figure={name}", *overrides])


GROUP = Group(
    "figure",
    "ahn/fig1",
    COMMON,
    _composed,
    described,
    plan_of,
    found,
    make,
    code_of,
    show_figures,
    figure_job,
)


def passed_on(cfg: DictConfig) -> list[str]:
    """The settings every verb understands, as overrides for a part."""
    logger, shipped = logger_settings(cfg.logger), LoggerSettings()
    overrides = [f"logger={'none' if logger.mode == 'none' else f'wandb_{logger.mode}'}"]
    for name, value in asdict(logger).items():
        if name != "mode" and value != getattr(shipped, name):
            overrides.append(f"logger.{name}={literal(value)}")
    return [f"scale={cfg.scale}", f"paths.outputs={literal(str(outputs_folder(cfg)))}", *overrides]
