"""The arrays a figure is drawn from, stored with it: what it reads of its records, and the records again.

arrays.npz: RECORD/ARRAY of a record's weights, RECORD/metrics/COLUMN of its metrics. The records' names,
places, seeds and settings are in figure.json.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from icl.runs import documents
from icl.runs.record import RunRecord

Records = Mapping[str, RunRecord]
METRICS = "metrics"
CONFIG = ("task", "model", "optimizer", "train", "seeds", "settings")  # parts of a run's config that are kept
_WHOLE = ("step", "seed")  # columns of metrics


class _Noted(Mapping[str, Any]):
    """The weights or metrics of a record, loaded when one is read; those read are noted."""

    def __init__(self, record: RunRecord, part: str) -> None:
        self._record, self._part = record, part
        self._names: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        value = getattr(self._record, self._part)[name]
        self._names.add(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(getattr(self._record, self._part))

    def __len__(self) -> int:
        return len(getattr(self._record, self._part))

    @property
    def read(self) -> dict[str, Any]:
        """Return what was read, in the order of the record."""
        return {name: self[name] for name in self if name in self._names} if self._names else {}


def metric(run: RunRecord, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return (steps_T, values_ST) of a column of metrics.csv, at the steps where every seed has a value."""
    steps_T, values_ST = run.curve(name)
    known_T = ~np.isnan(values_ST).any(0)
    return steps_T[known_T], values_ST[:, known_T]


def noted(records: Records) -> dict[str, RunRecord]:
    """Return the records anew, so that what is read of them is noted."""
    return {
        name: _with(
            record,
            weights=_Noted(record, "weights"),
            metrics=_Noted(record, METRICS),
            config=kept_config(record),
        )
        for name, record in records.items()
    }


def pack(records: Records) -> bytes:
    """Return arrays.npz: what was read of these records, which `noted` returned."""
    arrays: dict[str, np.ndarray] = {}
    for name, record in records.items():
        weights, metrics = (vars(record)[part].read for part in ("weights", METRICS))
        arrays |= {f"{name}/{array}": value for array, value in weights.items()}
        for column, values in metrics.items():
            kind = np.int64 if column in _WHOLE else np.float64
            arrays[f"{name}/{METRICS}/{column}"] = np.array(values, dtype=kind)
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)  # type: ignore[arg-type]
    return content.getvalue()


def unpack(sources: Sequence[Mapping[str, Any]], path: Path) -> dict[str, RunRecord]:
    """Return the records by name, as far as they were read: `sources` are those of the figure's document."""
    arrays = documents.arrays_in(documents.read_bytes(path))
    found = {}
    for source in sources:
        weights, metrics = {}, {}
        for name, array in arrays.items():
            of, _, own = name.partition("/")
            if of != source["name"]:
                continue
            if own.startswith(f"{METRICS}/"):  # None where no number is
                values = [None if value != value else value for value in array.tolist()]
                metrics[own.removeprefix(f"{METRICS}/")] = values
            else:
                weights[own] = array
        experiment, _, fingerprint = source["run"].removeprefix("runs/").rpartition("/")
        run = {"experiment": experiment, "fingerprint": fingerprint, "seeds": source["seeds"]}
        record = RunRecord(Path(source["run"]), run)
        found[source["name"]] = _with(record, weights=weights, metrics=metrics, config=source["config"])
    return found


def source(name: str, record: RunRecord) -> dict[str, Any]:
    """Return what a figure's document keeps of a record."""
    place = f"runs/{record.run['experiment']}/{record.run['fingerprint']}"
    return {"name": name, "run": place, "seeds": record.run["seeds"], "config": kept_config(record)}


def kept_config(record: RunRecord) -> dict[str, Any]:
    return {key: value for key, value in record.config.items() if key in CONFIG}


def _with(record: RunRecord, **parts: Any) -> RunRecord:
    made = RunRecord(record.path, record.run)
    vars(made).update(parts)
    return made
