"""A figure: an experiment makes or finds its records, the figure draws them and measures its claims.

`force` draws and measures anew; what a figure is drawn from is repeated by `icl train ... force=true`.

An experiment decides which runs a figure needs, and must be built to find out; that takes seconds. So
the record of a figure names its runs and the configs it was drawn with: where neither these, nor the code,
nor any run has changed, the experiment is not built again.
"""

from __future__ import annotations

import functools
import shlex
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from icl.config.compose import Composed
from icl.config.objects import instantiate, target_of
from icl.config.session import Session, parse_session
from icl.config.values import flatten, literal
from icl.digests import file_digest
from icl.errors import InputError, Interrupted, nearest
from icl.events import ItemProgress, WorkItem
from icl.jobs.execution.estimate import as_text, estimates
from icl.jobs.execution.memory import release_memory
from icl.jobs.execution.time_limit import TimeLimit, hours_of
from icl.jobs.requests import budget, train
from icl.jobs.requests.budget import Budget
from icl.jobs.requests.request import Document, Found, state_smoke
from icl.jobs.requests.train import TrainRequest
from icl.jobs.stored.run_names import name_of_overrides
from icl.loggers.logged_once import DocumentLogger
from icl.loggers.run_log import DocumentLog, model_of
from icl.look import FORMATS, KEYS, Look, drawn_as
from icl.progress import listening
from icl.runs.archive import Archive, commits, copied_runs, is_as_shipped, scale_of, short
from icl.runs.atomic import with_room
from icl.runs.code import DRAWING, code_digest, current_digest, derived_digest, run_marks, targets
from icl.runs.documents import same
from icl.runs.fingerprint import fingerprint
from icl.runs.json_records import JsonRecords, complaint, read
from icl.runs.record import RunRecord
from icl.runs.store import RunStore
from icl.runs.sweeps import Table
from icl.text import brief, outcome
from icl.verdicts import KINDS, VERDICTS

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

    from icl.experiments.runner import Experiment
    from icl.figures.drawing import Drawing

OWN = ("figure", "jobs", "cluster", "from", "hours", "budget")
_SHOWN = ("task", "model", "optimizer", "train", "seeds", "settings")  # of a run's config, with the figure


@dataclass(frozen=True)
class FigureRequest:
    """A requested figure: the experiment that makes its records and the class that draws them, unbuilt."""

    kind: ClassVar[str] = "figure"
    id: str
    scale: str
    settings: Mapping[str, Any]
    look: Look = field(default_factory=Look)
    archive: Archive | None = None  # whose runs are taken as they are, whatever code made them
    hours: float | None = None  # after which it stops; the same request goes on
    budget: Budget | None = None  # of training at scale=paper, in `settings` already

    @functools.cached_property
    def experiment(self) -> Experiment:
        return instantiate("figure.experiment", self.settings["experiment"])

    @functools.cached_property
    def drawing(self) -> Drawing:
        return instantiate("figure.draw", self.settings["draw"])

    @functools.cached_property
    def identity(self) -> str:
        about = {"figure": self.id, "settings": self.settings, "scale": self.scale}
        return fingerprint(about if self.archive is None else {**about, "archive": True})

    @property
    def runs_key(self) -> str:
        """Key of the runs: equal for figures that are drawn from the same ones."""
        return fingerprint({"experiment": self.settings["experiment"]})

    @property
    def roots(self) -> tuple[str, ...]:
        return (*targets(self.settings), *DRAWING)

    @property
    def _key(self) -> str:
        return f"{self.id}/{self.scale}"

    def validate(self) -> None:
        self.experiment, self.drawing  # noqa: B018  both validate

    def lookup(self, session: Session) -> Found | None:
        if self.archive is not None:  # drawn in seconds, from what is there now
            return None
        path = JsonRecords(session.outputs, "figures").path(self._key, self.identity)
        record = read(path)
        if record is None or complaint(record, None) is not None:
            return None
        document = {**_with_current_paths(record["document"], path.parent, session.outputs), "cached": True}
        if not same(document["settings"], self.settings):
            return None
        shown = self._in_look(document)
        stale = _damage(document)
        if not stale:
            today = current_digest({**record, "code": self.roots}, session.outputs)
            stale = complaint(record, today) or ""
        left = ""
        if document["configs"] != session.configs.digest():
            left = "a config has changed, and with it perhaps the runs it needs"
        elif _names_existing_path([self.settings, *(drawn["settings"] for drawn in document["drawn_from"])]):
            left = "a file or folder in its settings may have changed"
        elif not self._logger(document, session).marker.is_there:
            left = "not logged yet"
        elif shown is None:
            left = "not drawn in this style yet"
        return Found(shown or document, path, record, stale, left)

    def _dry_run(self, session: Session, *, validated: bool = True) -> _DryRunner:
        """Validate all runs known beforehand, so that none is made if a later one is impossible."""
        runner = FigureRunner(self.scale, replace(session, figure=self.id), self.archive)
        dry = _DryRunner(runner, validated)
        try:
            self.experiment.records(dry)
        except InputError:
            raise
        except Exception:  # whatever comes of runs that are not there; of those that are it comes again
            pass
        if self.archive is not None and not dry.archived:
            raise self.archive.error(self._not_there(self.archive))
        return dry

    def _not_there(self, archive: Archive) -> str:
        names = archive.names()
        asked = f"{self.id} at {scale_of(self._asked)}"
        return f"has nothing of {asked}; it has {', '.join(names) or 'no figures'}"

    @property
    def _asked(self) -> Document:
        """Return what its document says of scale and budget."""
        return {"scale": self.scale, "budget": None if self.budget is None else asdict(self.budget)}

    def _archived(self, session: Session) -> dict[str, RunRecord] | None:
        """Return the records the archive's figure was drawn from: with these very settings or, as shipped,
        with those that were shipped then. None where it has no such figure, or its arrays are to be computed
        anew."""
        kept = self._kept(session)
        return None if kept is None or self.archive is None else copied_runs(kept, self.archive)

    def _kept(self, session: Session) -> Mapping[str, Any] | None:
        """Return the archive's record of the figure, with the same budget."""
        if self.archive is None or session.force:
            return None
        name = self.budget and self.budget.name
        drawn = [
            record
            for record in self.archive.figures(self.id, self.scale)
            if record["document"].get("budget", {}).get("name") == name
        ]
        found = [one for one in drawn if same(one["document"]["settings"], self.settings)]
        if not found and not self.changed(session):
            found = [one for one in drawn if is_as_shipped(one)]
        return next(iter(found), None)

    def missing(self, session: Session, *, validated: bool = True) -> list[TrainRequest]:
        """Return the runs that are to be trained, as far as they are known beforehand. Validating them takes
        seconds."""
        return list(self._dry_run(session, validated=validated).missing.values())

    def _made(self, session: Session) -> Mapping[str, RunRecord]:
        dry = self._dry_run(session)
        runner = dry.runner
        state_smoke(self.scale, session)
        if self.scale == "paper" and dry.missing:
            about = f"{self.id} at {scale_of(self._asked)}"
            session.info(as_text(about, estimates(dry.missing.values(), session)))
        with listening(
            lambda what, share, _: session.on_event(ItemProgress(WorkItem("figure", self.id), share, what))
        ):
            return self.experiment.records(runner)

    def execute(self, session: Session) -> Document:
        started = time.monotonic()
        limit = TimeLimit(self.hours)
        try:
            with limit:
                return self._execute(session, started)
        except Interrupted:
            if not limit.expired:
                raise
        return self._unfinished(session, started)

    def _unfinished(self, session: Session, started: float) -> Document:
        """Return the document of a figure whose time was over."""
        left = [f"{run.id}/{run.identity}" for run in self.missing(session)]
        runs = (
            f"{len(left)} run{'' if len(left) == 1 else 's'} left to train" if left else "its runs are done"
        )
        session.info(f"icl: {self.id}: hours={self.hours:g} are over, {runs}; the same command goes on")
        document: Document = {"figure": self.id, "scale": self.scale, "files": {}, "claims": [], "runs": []}
        seconds = time.monotonic() - started
        return {**document, "status": "interrupted", "left": left, "seconds": seconds, "cached": False}

    def _execute(self, session: Session, started: float) -> Document:
        records = self._archived(session) or self._made(session)
        made, configs = run_marks(records), session.configs.digest()
        digest = derived_digest(code_digest(self.roots), made)
        store = JsonRecords(session.outputs, "figures")
        with with_room(session.outputs), store.lock(self._key, self.identity, session.info):
            folder = store.path(self._key, self.identity).parent
            fresh = session.force or self.archive is not None
            stored = None if fresh else store.find(self._key, self.identity, digest)
            stored = stored and _with_current_paths(stored, folder, session.outputs)
            damage = _damage(stored) if stored is not None else ""
            if damage:
                session.info(f"{folder}: {damage}; it is plotted again")
            cached = stored is not None and "drawn_from" in stored and not damage
            if stored is None or not cached:
                stored = self._draw(records, folder, session, started)
            shown = self._in_look(stored)
            if shown is None:
                stored = self._draw_in_look(stored, records, folder)
            if not cached or shown is None or stored["configs"] != configs:
                stored = {**stored, "configs": configs}
                if self.archive is None:
                    stored = store.save(self._key, self.identity, digest, stored, self.roots, made)
                else:  # its runs lie elsewhere, and are never stale
                    stored = store.save(self._key, self.identity, code_digest(self.roots), stored, self.roots)
        document = {**stored, "cached": cached and shown is not None}
        config = {"figure": self.settings, "scale": self.scale}
        self._logger(document, session).log(
            config, lambda log: self._write(document, records, log), session.info
        )
        return self._in_look(document) or document

    def _in_look(self, document: Document) -> Document | None:
        """Return the document with the files of this look, in these formats; None if they are not there."""
        files, contents = document["files"], document["contents"]
        if not self.look.is_default:
            drawn = document.get("looks", {}).get(self.look.name)
            if drawn is None or drawn["identity"] != self.look.identity or _damage(drawn):
                return None
            files, contents = {**files, **drawn["files"]}, drawn["contents"]
        if not set(self.look.formats) <= set(contents):
            return None
        left_out = set(FORMATS) - set(self.look.formats)
        files = {extension: path for extension, path in files.items() if extension not in left_out}
        return {**{key: value for key, value in document.items() if key != "looks"}, "files": files}

    def _draw_in_look(self, document: Document, records: Mapping[str, RunRecord], folder: Path) -> Document:
        """Add the pictures of the look asked for to the document, from the arrays that are stored."""
        from icl.figures.files import render, write

        with drawn_as(self.look):
            pictures = render(lambda: self.drawing.draw(records), FORMATS)
        files = write(folder / f"{Path(document['files']['png']).stem}-{self.look.name}", pictures)
        drawn = {
            "identity": self.look.identity,
            "files": files,
            "contents": {extension: file_digest(path) for extension, path in files.items()},
        }
        return {**document, "looks": {**document.get("looks", {}), self.look.name: drawn}}

    def _records(self, session: Session) -> Mapping[str, RunRecord]:
        return self._archived(session) or self.experiment.records(
            FigureRunner(self.scale, session, self.archive)
        )

    def draw(self, session: Session) -> Figure:
        """Draw the figure from its records, which are there, without writing it."""
        with drawn_as(self.look):
            return self.drawing.draw(self._records(session))

    def data(self, session: Session) -> Table:
        """Return everything that is drawn, of every seed."""
        return self.drawing.data(self._records(session))

    def claims(self, records: Mapping[str, RunRecord], session: Session) -> list[Document]:
        """Measure the claims on these records."""
        other, made = self._other_training(session), self._trained_with(session)
        return [_claim_document(claim, self.scale, other, made) for claim in self.drawing.claims(records)]

    def _trained_with(self, session: Session) -> Budget | None:
        """Return the budget of its runs: an archive's may be an earlier one of the same name."""
        kept = self._kept(session)
        return self.budget if kept is None or self.budget is None else Budget(**kept["document"]["budget"])

    def _draw(
        self, records: Mapping[str, RunRecord], folder: Path, session: Session, started: float
    ) -> Document:
        from icl.figures.files import save

        begun = time.monotonic()
        claims = self.claims(records, session)
        document: Document = {
            "figure": self.id,
            "scale": self.scale,
            "claims": claims,
            "runs": sorted({record.path for record in records.values()}),
            "settings": self.settings,
            "caption": _caption(self.drawing, records),
            "drawn_from": [_source(name, record) for name, record in records.items()],
        }
        if (made := self._trained_with(session)) is not None:
            document["budget"] = asdict(made)
            document["caption"] += f" {made.text}"
        if self.archive is not None:
            by = commits(record.run for record in records.values())
            document["archive"] = {"folder": str(self.archive.path), "commits": by}
            document["caption"] += f" Drawn from records of commit {', '.join(map(short, by))}."
        stem, rows = folder / self._file_name(session), self.drawing.table(records)
        description = _markdown(document, self.changed(session))
        files = save(stem, lambda: self.drawing.draw(records), rows, description)
        document |= {
            "files": files,
            "contents": {extension: file_digest(path) for extension, path in files.items()},
            "seconds": time.monotonic() - started,
            "drawing_seconds": time.monotonic() - begun,  # without the runs, whose records have their own
        }
        return document

    def _file_name(self, session: Session) -> str:
        """Name of the files: fig3 as shipped; other settings are in the name, so that both can be kept."""
        name = self.id.rpartition("/")[2] + (f"-{self.budget.name}" if self.budget else "")
        name = name if self.archive is None else f"{name}-archived"
        return f"{name}-{self.identity}" if self.changed(session) else name

    def changed(self, session: Session) -> dict[str, Any]:
        """Return the settings that are not as shipped, with the same budget, by dotted key."""
        shipped = session.compose("figure", [f"figure={self.id}", f"scale={self.scale}"]).settings["figure"]
        shipped = shipped if self.budget is None else self.budget.of(shipped).put(shipped)
        known, own = flatten(shipped, "figure"), flatten(self.settings, "figure")
        return {key: value for key, value in own.items() if known.get(key) != value}

    def _other_training(self, session: Session) -> dict[str, Any]:
        """Return the settings of the experiment that are not as shipped, but seeds."""
        changed = self.changed(session)
        return {
            key: v
            for key, v in changed.items()
            if key.startswith("figure.experiment.") and "seeds" not in key
        }

    def _logger(self, document: Document, session: Session) -> DocumentLogger:
        name = name_of_overrides(self.id, session.overrides)
        about = (self.id, name, self.scale, self.identity, document, session.group)
        return DocumentLogger(session.logger, session.outputs, "figure", *about)

    def _write(self, document: Document, records: Mapping[str, RunRecord], log: DocumentLog) -> None:
        trained = {record.path: record for record in records.values() if "model" in record.config}
        for _, record in sorted(trained.items()):
            log.uses(*model_of(record))
        log.images(0, self.id, [(document["caption"], Path(document["files"]["png"]).read_bytes())])
        verdicts = Counter(claim["verdict"] for claim in document["claims"])
        unexpected = sum(claim["verdict"] != claim["expected"] for claim in document["claims"])
        log.summary({verdict: verdicts[verdict] for verdict in VERDICTS} | {"unexpected": unexpected})
        columns = ["claim", "verdict", "expected", "measured", "kind", "bound"]
        rows = [[brief(claim.get(column)) for column in columns] for claim in document["claims"]]
        log.table("claims", columns, rows)


def parse(composed: Composed, session: Session) -> FigureRequest:
    """Parse a figure's config into a request, without importing the figure."""
    node, name = composed.settings["figure"], composed.choices.get("figure")
    if not name or not isinstance(node, dict):
        raise InputError("figure: choose one, such as figure=ahn/fig1")
    parts = ("experiment", "draw")
    for part in parts:
        if not isinstance(node.get(part), dict):
            raise InputError(f"figure.{part}: missing in conf/figure/{name}.yaml")
        target_of(f"figure.{part}", node[part])
    unknown = sorted(set(node) - {*parts, *KEYS, budget.KEY})
    if unknown:
        raise InputError(f"figure.{unknown[0]}: no such key{nearest(unknown[0], [*parts, *KEYS])}")
    chosen = Budget.chosen(name, composed)
    settings = {part: node[part] for part in parts} if chosen is None else chosen.put(node)
    given = composed.settings.get("from")
    archive = None if given is None else Archive.at(given)
    hours = hours_of(composed.settings.get("hours"))
    scale = str(composed.settings["scale"])
    return FigureRequest(name, scale, settings, Look.of(node), archive, hours, chosen)


class FigureRunner:
    """icl.experiments.runner.Runner over the session's configs and store, and over an archive, if one is
    given: its finished runs are taken, its unfinished ones continued, and what it does not have is made."""

    def __init__(self, scale: str, session: Session, archive: Archive | None = None) -> None:
        self.scale, self.session, self.archive = scale, replace(session, force=False), archive
        self.anew = session.force  # of an archive the runs alone
        self.validated: dict[tuple[str, ...], TrainRequest] = {}  # each for one run, which changes its parts

    def train(self, experiment: str, overrides: Mapping[str, Any] | None = None) -> RunRecord:
        chosen = self.chosen(experiment, overrides)
        request = self.validated.pop(chosen, None) or self.parse(chosen)
        found = None if self.archive is None else self.archive.run(request.id, request.identity)
        if found is not None:
            return found
        if self.archive is not None:
            self._restore(request, self.archive)
        return request.run(self.session)

    def _restore(self, request: TrainRequest, archive: Archive) -> None:
        """Put an unfinished run where it goes on, if today's code can continue it bit for bit."""
        run = archive.unfinished(request.id, request.identity)
        if run is None or RunStore(self.session.outputs).path(request.id, request.identity).exists():
            return
        if run["digest"] == request.digest:
            archive.restore(request.id, request.identity, self.session.outputs)
        else:
            name = f"{request.id}/{request.identity}"
            why = f"by code {run['digest']}, which alone can continue it (now {request.digest})"
            self.info(f"from={archive.given}: {name} was begun {why}; it starts over")

    def chosen(self, experiment: str, overrides: Mapping[str, Any] | None) -> tuple[str, ...]:
        settings = (f"{key}={literal(value)}" for key, value in (overrides or {}).items())
        return (f"experiment={experiment}", f"scale={self.scale}", *settings)

    def parse(self, chosen: Sequence[str]) -> TrainRequest:
        composed = self.session.compose("train", chosen)
        parse_session("train", train.OWN, composed, self.session.configs)
        return train.parse(composed, self.session)

    def store(
        self,
        name: str,
        science: Mapping[str, Any],
        compute: Callable[[], Mapping[str, np.ndarray]],
        code: Sequence[str] | None = None,
    ) -> RunRecord:
        mark = fingerprint(science)
        found = None if self.archive is None or self.anew else self.archive.run(name, mark)
        if found is not None:
            return found
        store, config = RunStore(self.session.outputs), {"settings": dict(science)}
        roots = (compute.__module__,) if code is None else code
        digest, notify = code_digest(roots), self.session.info
        origin = {"figure": self.session.figure, "scale": self.scale}
        with store.begin(name, mark, config, digest, roots, origin=origin, notify=notify) as run:
            if run.cached is not None:
                return run.cached
            seeds = list(science.get("seeds", []))
            made = run.finish(metrics=[], weights=dict(compute()), summary={}, steps=0, seeds=seeds)
        release_memory()
        return made

    def info(self, line: str) -> None:
        self.session.info(line)


class _MissingRun:
    """A placeholder for a run that is not made yet: its settings are known, its numbers are not."""

    def __init__(
        self, experiment: str, identity: str, config: Mapping[str, Any], seeds: Sequence[int]
    ) -> None:
        self.run = {"experiment": experiment, "fingerprint": identity, "seeds": list(seeds)}
        self.config = config

    @property
    def mark(self) -> list[Any]:
        return ["missing", self.run["fingerprint"]]

    def __getattr__(self, name: str) -> Any:
        raise LookupError(name)


class _DryRunner(FigureRunner):
    """Makes nothing. Validates the requested runs, up to where their numbers are wanted, and leaves
    them to the runner that will make them. `missing` are those to be trained, `archived` those that the
    archive has."""

    def __init__(self, runner: FigureRunner, validates: bool) -> None:
        super().__init__(runner.scale, runner.session, runner.archive)
        self.runner, self.anew, self.validated = runner, runner.anew, runner.validated
        self.validates = validates
        self.missing: dict[str, TrainRequest] = {}
        self.archived: list[RunRecord] = []

    def train(self, experiment: str, overrides: Mapping[str, Any] | None = None) -> RunRecord:
        chosen = self.chosen(experiment, overrides)
        request = self.validated[chosen] = self.parse(chosen)
        found = None if self.archive is None else self.archive.run(request.id, request.identity)
        if found is not None:
            self.archived.append(found)
            return found
        if self.validates and request.lookup(self.session) is None:
            request.validate()
        if request.needs_training(self.session):
            self.missing[request.identity] = request
        if self.archive is not None and self.archive.unfinished(request.id, request.identity):
            self.archived.append(_unmade(request))
        return _unmade(request)

    def store(
        self,
        name: str,
        science: Mapping[str, Any],
        compute: Callable[[], Mapping[str, np.ndarray]],
        code: Sequence[str] | None = None,
    ) -> RunRecord:
        mark = fingerprint(science)
        found = None if self.archive is None or self.anew else self.archive.run(name, mark)
        if found is not None:
            self.archived.append(found)
            return found
        unmade: Any = _MissingRun(name, mark, {"settings": dict(science)}, science.get("seeds", []))
        return unmade


def _unmade(request: TrainRequest) -> RunRecord:
    run: Any = _MissingRun(request.id, request.identity, request.config.stored, request.seeds)
    return run


def _caption(drawing: Drawing, records: Mapping[str, RunRecord]) -> str:
    """Return the caption; a user's class may have a plain one."""
    made = getattr(drawing, "caption_of", None)
    return drawing.caption if made is None else made(records)


def _claim_document(claim: Any, scale: str, other: Mapping[str, Any], made: Budget | None = None) -> Document:
    """Return the claim; one about trained weights is undecided at smoke scale, and at `other` settings than
    the paper's, or with fewer steps, where they do not confirm it."""
    document = asdict(claim)
    trained, reason, at_paper = (document.pop(key, "") for key in ("trained", "reason", "at_paper"))
    if scale == "paper" and at_paper:
        document["expected"] = at_paper
    if trained and scale == "smoke":
        reason = reason or "training at scale=smoke is too short to decide it"
    elif trained and made:
        document["remarks"] = [*document["remarks"], made.text]
        if document["verdict"] != "holds":
            reason = reason or "training with fewer steps than the paper's can only confirm it"
    elif trained and other and document["verdict"] != document["expected"]:
        given = ", ".join(f"{key}={brief(value)}" for key, value in other.items())
        reason = reason or f"it is about training at other settings than {given}, which can only confirm it"
    if reason:
        document |= {"verdict": "undecided", "expected": "undecided", "reason": reason}
    return document


def _source(name: str, record: RunRecord) -> Document:
    """Return a run as the figure's reader wants to know it."""
    settings = {
        k: v for k, v in flatten(record.config).items() if k.split(".")[0] in _SHOWN and v is not None
    }
    place = f"runs/{record.run['experiment']}/{record.run['fingerprint']}"
    return {"name": name, "run": place, "settings": settings}


def _with_current_paths(document: Mapping[str, Any], folder: Path, outputs: Path) -> Document:
    """Return the document with current paths: its outputs may have been moved since it was drawn."""

    def here(files: Mapping[str, str]) -> dict[str, str]:
        return {extension: str(folder / Path(file).name) for extension, file in files.items()}

    looks = {k: {**drawn, "files": here(drawn["files"])} for k, drawn in document.get("looks", {}).items()}
    runs = sorted({str(outputs / drawn["run"]) for drawn in document.get("drawn_from", ())})
    return {**document, "files": here(document["files"]), "looks": looks, "runs": runs}


def _damage(document: Mapping[str, Any]) -> str:
    """Return which of its files has changed since it was written."""
    for extension, name in document["files"].items():
        path = Path(name)
        if not path.is_file() or file_digest(path) != document["contents"][extension]:
            return f"its {extension} file is gone or was changed"
    return ""


def _markdown(document: Document, changed: Mapping[str, Any]) -> str:
    """Return the figure's description: claims, measurements, runs and their settings. `changed`: the figure's
    settings that are not as shipped."""
    own = [shlex.quote(f"{key}={literal(value)}") for key, value in changed.items()]
    words = ["icl figure", f"figure={document['figure']}", scale_of(document), *own]
    command = f"`{' '.join(words)}`"
    lines = [f"# {document['figure']}", "", document["caption"], "", command, ""]
    lines += ["| claim | verdict | measured | bound |", "|---|---|---|---|"]
    for claim in document["claims"]:
        kind = f" ({KINDS[claim['kind']]})" if claim["kind"] else ""
        cells = claim["claim"], outcome(claim), brief(claim["measured"]) + kind, claim["bound"]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    lines += ["", "Settings:", ""]
    for drawn in document["drawn_from"]:
        settings = [f"{key}: {brief(value)}" for key, value in drawn["settings"].items()]
        lines.append(f"- `{drawn['name']}` = {drawn['run']}: {', '.join(settings)}")
    return "\n".join(lines) + "\n"


def _names_existing_path(node: Any) -> bool:
    """Return whether a setting names an existing path, whose content can change without the setting."""
    if isinstance(node, Mapping):
        return any(map(_names_existing_path, node.values()))
    if isinstance(node, list | tuple):
        return any(map(_names_existing_path, node))
    return (
        isinstance(node, str) and ("/" in node or node.endswith(".npy")) and Path(node).expanduser().exists()
    )
