"""The runs in an outputs folder: listed, filtered and compared by their stored configs, without Hydra."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from icl.config.values import flatten
from icl.errors import SYNONYMS, InputError, Unavailable, nearest, nearest_key
from icl.jobs.stored.run_names import Label, differing_keys, labels_of
from icl.runs import layout
from icl.runs.index import StoredRun, stored_runs
from icl.text import brief

if TYPE_CHECKING:
    import pandas

    from icl.training.load import TrainedRun

_COLUMNS = ("experiment", "status", "fingerprint")  # of a run, beside its config
_WANDB = re.compile(r"(?:offline-)?run-[^-]*-(.+)")
_NEVER_TYPED = ("logger",)  # groups that no run is chosen by
_PRINTED = 20  # runs of a list in Python
_NOTHING = object()  # the value of a key that a run does not have


class ListedRun:
    """A run in a list: `.path`, `.name`, `.date`, `.status`, `.differs`, `.metrics`, `.stale` and `.wandb`.

    `.load()` returns it with its model and its curves.
    """

    def __init__(self, stored: StoredRun, label: Label, wandb: Path | None) -> None:
        self.stored, self.wandb = stored, wandb
        self.name, self.words, self.differs = label
        self.path, self.experiment, self.status = stored.path, stored.experiment, stored.status
        self.date, self.metrics, self.config = stored.date, stored.metrics, stored.config
        self.stale = stored.stale

    def __repr__(self) -> str:
        risk = self.stored.risk
        state = f"{self.status}, stale" if self.stale and self.status == "done" else self.status
        return f"<{self.name}: {state}{f', {risk[0]} {brief(risk[1])}' if risk else ''}>"

    def load(self) -> TrainedRun:
        """Return the finished run with its model, as `icl.load_run(run.path)` does."""
        from icl.training.load import load_run

        return load_run(self.path)

    def document(self) -> dict[str, Any]:
        """Return the run's entry in the JSON of `icl runs`."""
        stored, risk = self.stored, self.stored.risk
        return {
            "run_dir": str(self.path),
            "name": self.name,
            "experiment": self.experiment,
            "fingerprint": stored.fingerprint,
            "status": self.status,
            "why": stored.why,
            "date": self.date,
            "seeds": list(stored.seeds),
            "steps": stored.steps,
            "differs": dict(self.differs),
            "risk": None if risk is None else {"metric": risk[0], "mean": risk[1]},
            "metrics": dict(self.metrics),
            "notes": list(stored.notes),
            "figure": stored.figure or None,
            "stale": self.stale,
            "wandb": None if self.wandb is None else str(self.wandb),
        }


class RunList(list[ListedRun]):
    """Runs, the newest first. `.folded` counts, by figure, the figures' own runs that are left out; `.older`
    the runs beyond those that were wanted."""

    folded: Mapping[str, int] = MappingProxyType({})
    older = 0

    def __repr__(self) -> str:
        more = [f"... and {len(self) - _PRINTED} older runs"] if len(self) > _PRINTED else []
        return "\n".join(
            [f"{len(self)} run{'' if len(self) == 1 else 's'}", *map(repr, self[:_PRINTED]), *more]
        )

    def to_pandas(self) -> pandas.DataFrame:
        """Return a row for each run, with a column for each key that differs and for each metric."""
        try:
            import pandas
        except ImportError:
            raise Unavailable("to_pandas needs pandas: pip install 'icl-theory[notebook]'") from None
        rows = []
        for run in self:
            about = {"experiment": run.experiment, "status": run.status, "date": run.date, "stale": run.stale}
            rows.append({**about, **run.differs, **run.metrics, "run_dir": str(run.path)})
        return pandas.DataFrame(rows)


def listed_runs(
    outputs: str | Path,
    filters: Mapping[str, Any] | None = None,
    *,
    every: bool = False,
    most: int | None = None,
) -> RunList:
    """Return the training runs below `outputs` whose stored config has the values in `filters`, at `most` so
    many.

    `every`: also the runs that figures have trained for themselves, and arrays that they have computed. A run
    that a filter finds is never left out.
    """
    stored, folded = stored_runs(outputs), Counter[str]()
    if filters:
        stored = _filtered(stored, filters)
    elif not every:
        own = [run for run in stored if not run.figure and run.is_training]
        folded.update(run.figure or run.experiment for run in stored if run.figure or not run.is_training)
        stored = own
    found = described(stored[:most], Path(outputs).absolute())
    found.folded, found.older = folded, len(stored) - len(found)
    return found


def described(stored: Sequence[StoredRun], outputs: Path) -> RunList:
    """Return the runs with their names, what differs between them, and their W&B folders."""
    logged, labels = _wandb_folders(outputs), labels_of(stored)
    return RunList(
        ListedRun(run, label, logged.get(run.wandb_id)) for run, label in zip(stored, labels, strict=True)
    )


def find_run(outputs: str | Path, given: str, key: str) -> ListedRun:
    """Return the run that `given` names: its folder, its place below runs/, or the beginning of its
    fingerprint. An error begins with `key`."""
    stored, top = listed_runs(outputs, every=True), Path(outputs).absolute()
    folders = {Path(given).expanduser().absolute(), top / layout.RUNS / given}
    found = [run for run in stored if run.path in folders]
    if not found and re.fullmatch(r"[0-9a-f]{1,12}", given):
        found = [run for run in stored if run.path.name.startswith(given)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(f"{run.experiment}/{run.path.name}" for run in found[:4])
        raise InputError(
            f"{key}={given}: {len(found)} runs begin so: {names}{' ...' if len(found) > 4 else ''}"
        )
    known = [f"{run.experiment}/{run.path.name}" for run in stored]
    what = f"must be the folder of a run in {top}, or the beginning of its fingerprint"
    raise InputError(f"{key}={given}: {what}{nearest(given, known)}")


def compare(first: ListedRun, second: ListedRun) -> dict[str, Any]:
    """Return the document of `icl runs compare A B`: the keys that differ, and all metrics, of both."""
    of_first, of_second = differing_keys([first.config, second.config])
    keys = dict.fromkeys((*of_first, *of_second))
    metrics = dict.fromkeys((*first.metrics, *second.metrics))
    return {
        "a": str(first.path),
        "b": str(second.path),
        "names": [first.name, second.name],
        "experiments": [first.experiment, second.experiment],
        "status": [first.status, second.status],
        "differs": {key: {"a": of_first.get(key), "b": of_second.get(key)} for key in keys},
        "metrics": {key: {"a": first.metrics.get(key), "b": second.metrics.get(key)} for key in metrics},
    }


def _filtered(stored: Sequence[StoredRun], filters: Mapping[str, Any]) -> list[StoredRun]:
    """Return the runs that have all these values. A key that no run has is refused."""
    keys = _keys(stored)
    left = list(stored)
    for given, value in filters.items() if keys else ():
        key = _key(given, keys)
        left = [run for run in left if _same(_value(run, key), value)]
    return left


def _keys(stored: Sequence[StoredRun]) -> list[str]:
    """Return the keys that runs can be chosen by; most runs share the groups of their configs."""
    nodes = {
        (top, id(node)): node for run in stored for top, node in run.config.items() if top not in _NEVER_TYPED
    }
    choices = {id(run.choices): run.choices for run in stored}
    found = [key for (top, _), node in nodes.items() for key in flatten(node, top)]
    options = [group for chosen in choices.values() for group in chosen]
    return list(dict.fromkeys([*_COLUMNS, "seed", *options, *found])) if stored else []


def _value(run: StoredRun, key: str) -> Any:
    if key in _COLUMNS:
        return getattr(run, key)
    if key in run.choices:
        return run.choices[key]
    if key == "seed":
        return run.seeds[0] if len(run.seeds) == 1 else _NOTHING
    node: Any = run.config
    for name in key.split("."):
        if not isinstance(node, Mapping) or name not in node:
            return _NOTHING
        node = node[name]
    return node


def _key(given: str, known: Sequence[str]) -> str:
    """Return the key that was meant: as it is stored, its last part (lr), or a synonym of that (n, d, L)."""
    if given in known:
        return given
    short = [key for key in known if key.rpartition(".")[2] in (given, SYNONYMS.get(given))]
    if len(short) == 1:
        return short[0]
    if short:
        raise InputError(f"{given}: must be one of {', '.join(short)}")
    raise InputError(f"{given}: no run's config has this key{nearest_key(given, known)}")


def _same(stored: Any, given: Any) -> bool:
    """Return whether a stored value is the one given, as text or as a value."""
    if isinstance(given, str):
        given = given.strip("'\"") if isinstance(stored, str) else _read(given)
    if isinstance(stored, list | tuple) and isinstance(given, list | tuple):
        return len(stored) == len(given) and all(map(_same, stored, given))
    return bool(stored == given) and isinstance(stored, bool) == isinstance(given, bool)


def _read(text: str) -> Any:
    """Return a value as Hydra would read it."""
    import yaml

    try:
        return float(text)
    except ValueError:
        pass
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def _wandb_folders(outputs: Path) -> dict[str, Path]:
    """Return W&B's newest folder of each run id."""
    try:
        names = sorted(os.listdir(outputs / "wandb"))
    except OSError:
        return {}
    found = {name: _WANDB.fullmatch(name) for name in names}
    return {match[1]: outputs / "wandb" / name for name, match in found.items() if match}
