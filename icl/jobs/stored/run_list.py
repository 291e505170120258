"""The runs in an outputs folder: listed, filtered and sorted by their stored configs, without Hydra."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from icl.config.values import flatten
from icl.errors import SYNONYMS, InputError, nearest, nearest_key
from icl.loggers.names import words_of
from icl.metrics import final_risk, of_one_matrix
from icl.runs import documents, layout
from icl.runs.code import current_digest
from icl.runs.record import invalid_reason, status_of
from icl.text import brief

if TYPE_CHECKING:
    from icl.training.load import TrainedRun

_CONDITION = re.compile(r"([\w./-]+)(<=|>=|<|>)([+-]?[\d.]+(?:e[+-]?\d+)?)", re.IGNORECASE)  # of a mean
_COMPARED = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_DAMAGED = (TypeError, ValueError, KeyError, AttributeError, OSError, yaml.YAMLError)  # whatever it leads to


class ListedRun:
    """A run in a list: `.path`, `.name`, `.date`, `.status`, `.metrics` (means over the seeds, None where
    undefined), `.config`, `.stale` and `.run`, its run.json. `.load()` returns it with its model and curves.
    """

    def __init__(self, place: layout.Place) -> None:
        self.path, self.experiment, self.fingerprint = place.path.parent, place.id, place.fingerprint
        self.config: dict[str, Any] = {}
        self.run: dict[str, Any] = {}
        self.metrics: dict[str, float | None] = {}
        self.keys: dict[str, Any] = {}
        self.date = ""
        try:
            self.config = documents.parse_yaml(documents.read_bytes(self.path / "config.yaml").decode())
            self.run = documents.read_record(place.path) or {}
            self.status, self.why = status_of(self.path, self.run)
            self.date = str(self.run.get("ended") or self.run["started"])
            means = {name: entry["mean"] for name, entry in self.run.get("metrics", {}).items()}
            shown = {name: mean for name, mean in means.items() if not of_one_matrix(name)}
            self.metrics = {name: None if mean is None else float(mean) for name, mean in shown.items()}
            seeds = self.run.get("seeds", [])
            self.keys = flatten({key: value for key, value in self.config.items() if key != "logger"})
            self.keys |= self.run.get("choices", {}) | ({"seed": seeds[0]} if len(seeds) == 1 else {})
        except _DAMAGED:
            why = invalid_reason(self.path, documents.read_record(place.path))
            self.status, self.why, self.run = "damaged", why or "its run.json is damaged", {}
        self.keys |= {"experiment": place.id, "status": self.status, "fingerprint": place.fingerprint}

    @property
    def name(self) -> str:
        """The experiment and what was typed."""
        return f"{self.experiment} {words_of(self.run.get('overrides', ()))}".strip()

    @property
    def risk(self) -> tuple[str, float] | None:
        """The name and the mean of the final risk: exact, projected or sampled, or else the loss."""
        return final_risk(self.metrics)

    @functools.cached_property
    def stale(self) -> bool | None:
        """True of a run that was made with other code than today's; None where that code is not here."""
        now = current_digest({"code": self.run.get("code")}, self.path)
        return None if now is None else now != self.run.get("digest")

    def __repr__(self) -> str:
        state = f"{self.status}, stale" if self.stale and self.status == "done" else self.status
        return f"<{self.name}: {state}{f', {self.risk[0]} {brief(self.risk[1])}' if self.risk else ''}>"

    def load(self) -> TrainedRun:
        """Return the finished run with its model, as `icl.load_run(run.path)` does."""
        from icl.training.load import load_run

        return load_run(self.path)

    def document(self) -> dict[str, Any]:
        """Return the run's entry in the JSON of `icl runs`."""
        own = ("experiment", "fingerprint", "status", "why", "name", "date", "metrics", "stale")
        stored = {key: self.run.get(key) for key in ("seeds", "steps", "overrides", "notes", "figure")}
        return {"run_dir": str(self.path), **{key: getattr(self, key) for key in own}, **stored}


def list_runs(
    outputs: str | Path,
    filters: Mapping[str, Any] | None = None,
    *,
    conditions: Sequence[str] = (),
    sort: str | None = None,
) -> list[ListedRun]:
    """Return the runs below `outputs` whose stored config has the values in `filters` (one of several, if
    they are separated by commas) and whose metrics meet the `conditions` ("exact_risk<0.2"): the newest
    first, or those with the least mean of the metric `sort`. Of data files only the sizes are looked at.
    """
    places = [place for place in layout.walk(Path(outputs).absolute()) if place.kind == layout.RUNS]
    runs = sorted(map(ListedRun, places), key=lambda run: (run.date, str(run.path)), reverse=True)
    keys = list(dict.fromkeys(key for run in runs for key in run.keys))
    metrics = list(dict.fromkeys(name for run in runs for name in run.metrics))
    for given, value in (filters or {}).items() if runs else ():
        key = _key(given, keys)  # several values are separated by commas outside of brackets
        values = re.split(r",(?![^\[{(]*[\])}])", value) if isinstance(value, str) else [value]
        runs = [run for run in runs if key in run.keys and any(_same(run.keys[key], one) for one in values)]
    for condition in conditions:
        if (match := _CONDITION.fullmatch(condition)) is None:
            raise InputError(f"{condition}: must compare with a number, such as exact_risk<0.2")
        name, compare, bound = _metric(match[1], metrics), _COMPARED[match[2]], float(match[3])
        runs = [run for run in runs if (mean := run.metrics.get(name)) is not None and compare(mean, bound)]
    if sort is not None:
        name = _metric(sort, metrics)
        known = [(mean, run) for run in runs if (mean := run.metrics.get(name)) is not None]
        runs = [run for _, run in sorted(known, key=operator.itemgetter(0))]
    return runs


def _metric(name: str, known: Sequence[str]) -> str:
    if known and name not in known:
        raise InputError(f"{name}: no run has this metric{nearest(name, known)}")
    return name


def _key(given: str, known: Sequence[str]) -> str:
    """Return the key that was meant: as it is stored, its last part (lr), or a synonym of that (n, d, L)."""
    short = [key for key in known if key.rpartition(".")[2] in (given, SYNONYMS.get(given))]
    if given in known or len(short) == 1:
        return given if given in known else short[0]
    if short:
        raise InputError(f"{given}: must be one of {', '.join(short)}")
    raise InputError(f"{given}: no run's config has this key{nearest_key(given, known)}")


def _same(stored: Any, given: Any) -> bool:
    """Return whether a stored value is the one given, as text or as a value."""
    if isinstance(given, str):
        given = given.strip("'\"") if isinstance(stored, str) else _read(given)
    given = list(given) if isinstance(given, tuple) else given
    return bool(stored == given) and isinstance(stored, bool) == isinstance(given, bool)


def _read(text: str) -> Any:
    """Return a value as Hydra would read it."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text
