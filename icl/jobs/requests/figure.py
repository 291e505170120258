"""A figure: one class names its runs, draws them and measures its claims.

figures/PAPER/FIG/SCALE/ keeps pictures, figure.json and arrays.npz: all that is drawn. Another style or width
is drawn from the arrays; so is a figure of another outputs folder (`from=DIR`), with the claims stored there.
`force` draws and measures anew; what a figure is drawn from is repeated by `icl train ... force=true`.

Which runs a figure needs is known once it is built, which takes seconds. So the record of a figure names its
runs and the configs it was drawn with: where neither these, nor the code, nor any run has changed, the figure
is not built again.
"""

from __future__ import annotations

import functools
import time
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from icl.config.compose import Composed, compose
from icl.config.objects import instantiate, target_of
from icl.config.session import Session, parse_session
from icl.config.values import by_content, flatten, literal
from icl.digests import file_digest
from icl.errors import InputError
from icl.figures.look import KEYS, Look, drawn_as
from icl.figures.runner import Runner
from icl.jobs.requests import train
from icl.jobs.requests.request import Document, StoredResult, run_request
from icl.loggers.documents import log_document
from icl.progress import WorkItem, listening
from icl.runs import layout
from icl.runs.atomic import with_room, write_bytes
from icl.runs.code import DRAWING, code_digest, content_ids, current_digest, derived_digest, targets
from icl.runs.documents import same
from icl.runs.fingerprint import fingerprint
from icl.runs.json_records import JsonRecords, invalid_reason, read
from icl.runs.record import RunRecord
from icl.text import brief
from icl.verdicts import VERDICTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

    from icl.figures.figure import Figure

OWN = ("figure", "jobs", "from")
_NO_SETTINGS = (*KEYS, "caption")
IN_STYLE = "to be drawn in this style"


@dataclass(frozen=True)
class FigureRequest:
    """A requested figure: the settings of its class, unbuilt."""

    kind: ClassVar[str] = "figure"
    id: str
    scale: str
    settings: Mapping[str, Any]
    look: Look = field(default_factory=Look)
    caption: str = ""
    changed: Mapping[str, Any] = field(default_factory=dict)  # settings that are not as shipped
    remark: str = ""  # where it is trained with fewer steps than the paper's
    source: Path | None = None  # the outputs folder whose arrays are drawn, with the claims stored there

    @functools.cached_property
    def figure(self) -> Figure:
        figure: Figure = instantiate("figure", self.settings)
        figure.caption, figure.remark = self.caption or figure.caption, self.remark
        return figure

    @functools.cached_property
    def identity(self) -> str:
        return fingerprint({"figure": self.id, "settings": self.settings, "scale": self.scale})

    @property
    def runs_key(self) -> str:
        """Key of the runs: equal for figures that are drawn from the same ones."""
        return fingerprint({key: value for key, value in self.settings.items() if key != "_target_"})

    @property
    def roots(self) -> tuple[str, ...]:
        return (*targets(self.settings), *DRAWING)

    @property
    def _key(self) -> str:
        return f"{self.id}/{self.scale}"

    def validate(self) -> None:
        self.figure  # noqa: B018  validates

    def _store(self, session: Session) -> JsonRecords:
        return JsonRecords(session.outputs, "figures", as_shipped=not self.changed)

    def lookup(self, session: Session) -> StoredResult | None:
        if self.source is not None:  # drawn in seconds, from what is there now
            return None
        path = self._store(session).path(self._key, self.identity)
        record = read(path)
        if record is None or record["fingerprint"] != self.identity:
            return None
        document = {**with_current_paths(record["document"], path.parent, session.outputs), "cached": True}
        if not same(document["settings"], self.settings):
            return None
        stale = _damage(document)
        if not stale and not session.uses_stale:
            today = current_digest({**record, "code": self.roots}, session.outputs)
            stale = invalid_reason(record, today) or ""
        left, configs = "", [drawn["config"] for drawn in document["drawn_from"]]
        of_files = any(by_content(one) != one for one in (self.settings, *configs))
        if of_files or document["configs"] != session.configs.digest():
            left = "a config or a file has changed, and with it perhaps the runs it needs"
        elif self._missing(document):
            left = IN_STYLE
        return StoredResult(self._in_formats(document), path, record, stale, left)

    def execute(self, session: Session) -> Document:
        started = time.monotonic()
        if self.source is not None:
            return self._drawn_from(self.source, session, started)
        found = None if session.force else self.lookup(session)
        if found is not None and not found.stale and found.left == IN_STYLE:
            return self._in_style(found.document, found.path.parent)
        with listening(WorkItem("figure", self.id), session.on_event):
            records = self.figure.runs(FigureRunner(self.scale, replace(session, figure=self.id)))
        made, configs = content_ids(records), session.configs.digest()
        digest = derived_digest(code_digest(self.roots), made)
        store = self._store(session)
        with with_room(session.outputs), store.lock(self._key, self.identity, session.info):
            folder = store.path(self._key, self.identity).parent
            found = None if session.force else self.lookup(session)  # of the very same runs, perhaps
            stored: Document | None = None
            if found and not found.stale and (session.uses_stale or found.record["digest"] == digest):
                stored = with_current_paths(found.record["document"], folder, session.outputs)
            cached = stored is not None
            if stored is None:
                stored = self._draw(records, folder, started)
            if not cached or stored["configs"] != configs:
                stored = {**stored, "configs": configs}
                stored = store.save(self._key, self.identity, digest, stored, self.roots, made)
        document = {**stored, "cached": cached}
        if not cached:
            claims = document["claims"]
            verdicts = Counter(claim["verdict"] for claim in claims)
            unexpected = sum(claim["verdict"] != claim["expected"] for claim in claims)
            columns = ["claim", "verdict", "expected", "measured", "kind", "bound"]
            log_document(
                self,
                session,
                config={"figure": self.settings, "scale": self.scale},
                summary={verdict: verdicts[verdict] for verdict in VERDICTS} | {"unexpected": unexpected},
                table=("claims", columns, [[brief(claim.get(key)) for key in columns] for claim in claims]),
                picture=(document["caption"], Path(document["files"]["png"])),
            )
        return self._in_style(document, folder)

    def _drawn_from(self, source: Path, session: Session, started: float) -> Document:
        """Draw the arrays that another outputs folder keeps of the figure."""
        document, kept = self._kept(source)
        runs = [str(source / drawn["run"]) for drawn in document["drawn_from"]]
        document = {**document, "runs": runs, "files": {}, "cached": False}
        request = replace(self, settings=document["settings"], remark=document["remark"])
        with with_room(session.outputs):
            drawn = request._in_style(document, session.outputs / "figures" / self._key, kept)
        return {**drawn, "seconds": time.monotonic() - started}

    def _kept(self, source: Path) -> tuple[Document, Path]:
        """Return the document that an outputs folder keeps of the figure, and its folder: of the settings
        asked for or, where none are, of those that are there."""
        place = source / "figures" / self._key
        for path in [place / layout.FIGURE, *sorted(place.glob(f"*/{layout.FIGURE}"))]:
            document = (read(path) or {}).get("document")
            if document and (not self.changed or same(document["settings"], self.settings)):
                return document, path.parent
        of = f"{self.id} at scale={self.scale}" + (" with these settings" if self.changed else "")
        raise InputError(f"from={source}: has no arrays of {of}")

    def _stored(self, document: Document, folder: Path) -> Mapping[str, RunRecord]:
        """Return the records as far as they are drawn."""
        from icl.figures.arrays import unpack

        try:
            return unpack(document["drawn_from"], folder / layout.ARRAYS)
        except (OSError, ValueError, KeyError) as error:
            raise InputError(f"{folder / layout.ARRAYS}: cannot be read ({error})") from None

    def _in_formats(self, document: Document) -> Document:
        """Return the document with the files of the formats asked for."""
        return {**document, "files": {k: v for k, v in document["files"].items() if k in self.look.formats}}

    def _in_style(self, document: Document, folder: Path, arrays: Path | None = None) -> Document:
        """Return the document with the files of this look: as shipped, or drawn from the stored arrays."""
        missing, document = self._missing(document), self._in_formats(document)
        if missing:
            records = self._stored(document, arrays or folder)
            with drawn_as(self.look):
                files = self._draw_files(records, folder, missing, self.look.name)
            document["files"] |= {extension: str(file) for extension, file in files.items()}
        return document

    def _missing(self, document: Document) -> list[str]:
        """Return the formats asked for in which the document has no file in this look."""
        there = document["files"] if not self.look.name else ()
        return [kind for kind in self.look.formats if kind not in there]

    def _draw_files(
        self, records: Mapping[str, RunRecord], folder: Path, formats: Collection[str], look: str = ""
    ) -> dict[str, Path]:
        """Draw the records in the look of now, and return the files by format."""
        from icl.figures.files import render, write

        words = [self.id.rpartition("/")[2], "from" if self.source else "", look]
        return write(
            folder / "-".join(filter(None, words)), render(lambda: self.figure.picture(records), formats)
        )

    def draw(self, session: Session) -> Picture:
        """Draw the figure from its arrays, which are there, without writing it."""
        records = self._stored(*self._kept(self.source or session.outputs))
        with drawn_as(self.look):
            return self.figure.picture(records)

    def claims(self, records: Mapping[str, RunRecord]) -> list[Document]:
        """Measure the claims on these records."""
        other = {key: value for key, value in self.changed.items() if "seeds" not in key}
        claims = self.figure.claims(records)
        return [claim.document(self.scale, other, self.figure.remark) for claim in claims]

    def _draw(self, records: Mapping[str, RunRecord], folder: Path, started: float) -> Document:
        """Measure and draw the figure as shipped, in the formats asked for and as the PNG that pages show."""
        from icl.figures import arrays

        seen = arrays.noted(records)
        document: Document = {
            "figure": self.id,
            "scale": self.scale,
            "claims": self.claims(seen),
            "runs": sorted({record.path for record in records.values()}),
            "settings": self.settings,
            "remark": self.remark,
            "typed": [f"figure={self.id}", *(f"{key}={literal(v)}" for key, v in self.changed.items())],
            "caption": f"{self.figure.caption_of(seen)} {self.figure.remark}".rstrip(),
            "drawn_from": [arrays.source(name, record) for name, record in records.items()],
        }
        files = self._draw_files(seen, folder, {"png", *self.look.formats})
        write_bytes(folder / layout.ARRAYS, arrays.pack(seen))
        contents = {**files, "npz": folder / layout.ARRAYS}
        return document | {
            "files": files,
            "contents": {extension: file_digest(path) for extension, path in contents.items()},
            "seconds": time.monotonic() - started,
        }


def parse(composed: Composed, session: Session) -> FigureRequest:
    """Parse a figure's config into a request, without importing the figure."""
    node, name = composed.settings["figure"], composed.choices.get("figure")
    if not name or not isinstance(node, dict):
        raise InputError("figure: choose one, such as figure=ahn/fig1")
    target_of("figure", node)
    settings = {key: value for key, value in node.items() if key not in _NO_SETTINGS}
    scale = str(composed.settings["scale"])
    changed, remark = dict[str, Any](), ""
    if any(override.lstrip("+~").startswith("figure.") for override in composed.overrides):
        alone = compose(session.configs, "figure", [f"figure={name}", f"scale={scale}"]).settings["figure"]
        known = flatten({key: value for key, value in alone.items() if key not in _NO_SETTINGS}, "figure")
        changed = {k: v for k, v in flatten(settings, "figure").items() if known.get(k) != v}
        remark = _of_fewer_steps(changed, known) if scale == "paper" else ""
    if remark and "decisive" in settings:
        settings["decisive"] = False
    given, source = composed.settings.get("from"), None
    if given is not None:
        source = Path(str(given)).expanduser().absolute()
        if not source.is_dir():
            raise InputError(f"from={given}: must be an outputs folder with figures")
    return FigureRequest(
        name, scale, settings, Look.of(node), node.get("caption") or "", changed, remark, source
    )


def _of_fewer_steps(changed: Mapping[str, Any], shipped: Mapping[str, Any]) -> str:
    """Say which numbers of steps are smaller than the paper's, a sentence; "" where none is."""
    pairs = []
    for key, own in changed.items():
        name, paper = key.rpartition(".")[2], shipped.get(key)
        if name.endswith("steps") and isinstance(own, int) and (paper is None or own < paper):
            pairs.append(f"{name}={own:,}" + (f" instead of {paper:,}" if paper else ""))
    return f"Trained with fewer steps than the paper's: {', '.join(pairs)}." if pairs else ""


class FigureRunner(Runner):
    """A runner over the session's configs."""

    def train(self, experiment: str, overrides: Mapping[str, Any] | None = None) -> RunRecord:
        settings = (f"{key}={literal(value)}" for key, value in (overrides or {}).items())
        chosen = (f"experiment={experiment}", f"scale={self.scale}", *settings)
        composed = compose(self.session.configs, "train", chosen)
        parse_session("train", train.OWN, composed, self.session.configs)
        request = train.parse(composed, self.session)
        if request.processes > 1:
            raise InputError(
                f"trainer.devices, trainer.num_nodes: {request.processes} processes: train {experiment} "
                "first, by icl train, whose command Lightning runs again for each process"
            )
        document = run_request(request, self.session)
        if document["status"] == "failed":
            raise RuntimeError(f"{experiment}: {document['error']}")
        record = request.finished(self.session)
        if record is None:
            place = document["run_dir"]
            raise RuntimeError(f"{place}: is no longer what this code made; the same command starts over")
        return record


def with_current_paths(document: Mapping[str, Any], folder: Path, outputs: Path) -> Document:
    """Return the document with current paths: its outputs may have been moved since it was drawn."""
    files = {extension: str(folder / Path(file).name) for extension, file in document["files"].items()}
    runs = sorted({str(outputs / drawn["run"]) for drawn in document["drawn_from"]})
    return {**document, "files": files, "runs": runs}


def _damage(document: Mapping[str, Any]) -> str:
    """Return which of its files has changed since it was written."""
    folder = Path(next(iter(document["files"].values()))).parent
    for extension, name in {**document["files"], "npz": folder / layout.ARRAYS}.items():
        path = Path(name)
        if not path.is_file() or file_digest(path) != document["contents"][extension]:
            return f"its {extension} file is gone or was changed"
    return ""
