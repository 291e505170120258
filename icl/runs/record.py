"""A finished run, read back.

Letters: R seeds, L layers, D covariates.
"""

from __future__ import annotations

import functools
import io
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl.digests import digest, file_digest
from icl.errors import InputError, one_of
from icl.runs import documents, layout, metrics
from icl.runs.metric_kinds import final_risk
from icl.text import brief

if TYPE_CHECKING:
    import numpy as np

_NUMBERS = ("metrics.csv", "weights.npz")
DATA_FILES = ("config.yaml", *_NUMBERS)
VERDICTS = "verdicts.json"


@dataclass(frozen=True, eq=False)
class RunRecord:
    """A finished run. `run` is its run.json; config, metrics and weights are read on first access, and must
    be those that it names."""

    path: Path
    run: Mapping[str, Any] = field(repr=False)

    @functools.cached_property
    def config(self) -> dict[str, Any]:
        found: dict[str, Any] = documents.parse_yaml(self._bytes("config.yaml").decode())
        return found

    @functools.cached_property
    def metrics(self) -> metrics.Table:
        """Columns of metrics.csv by name."""
        return metrics.parse_metrics(self._bytes("metrics.csv").decode())

    @functools.cached_property
    def verdicts(self) -> list[Any]:
        """Verdicts on these very weights, of the checks the experiment names."""
        stored = documents.read_record(self.path / VERDICTS)
        return stored["verdicts"] if stored and stored.get("weights") == weights_digest(self.run) else []

    @functools.cached_property
    def weights(self) -> Mapping[str, np.ndarray]:
        """Return every stored array by name."""
        import numpy as np

        with np.load(io.BytesIO(self._bytes("weights.npz")), allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}

    def __repr__(self) -> str:
        """Return the experiment, the number of seeds, layers, d and n, the final risk, and the folder."""
        means = {name: (entry or {}).get("mean") for name, entry in self.run.get("metrics", {}).items()}
        task, model = ({**(self.config.get(group) or {})} for group in ("task", "model"))
        count, risk = len(self.run.get("seeds", [])), final_risk(means)
        parts = [f"{count} seed{'' if count == 1 else 's'}"]
        parts += [f"{brief(model['layers'])} layers"] if "layers" in model else []
        parts += [
            f"{letter} = {brief(task[key])}"
            for letter, key in (("d", "dim"), ("n", "context"))
            if key in task
        ]
        parts += [f"{risk[0]} {brief(risk[1])}"] if risk else []
        return f"<{self.run['experiment']}: {', '.join(parts)}; {self.path}>"

    def curve(self, metric: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the steps at which a metric was logged, and its values of shape (seeds, steps).

        A value that is not defined is NaN; seeds are in the order of `run["seeds"]`.
        """
        import numpy as np

        known = [name for name in self.metrics if name not in ("step", "seed")]
        one_of("metric", metric, known)
        rows = zip(self.metrics["step"], self.metrics["seed"], self.metrics[metric], strict=True)
        values = {(step, seed): value for step, seed, value in rows if value is not None}
        steps, seeds = sorted({step for step, _ in values}), self.run["seeds"]
        nan = float("nan")
        return np.array(steps), np.array(
            [[values.get((step, seed), nan) for step in steps] for seed in seeds]
        )

    @property
    def mark(self) -> list[Any]:
        """Identity of the numbers, for what is made from the run: unchanged if it is made again with the same
        numbers, and in an archive, which thins some of them."""
        written = {**self.run.get("files", {}), **self.run.get("thinned", {})}
        files = {name: written[name] for name in _NUMBERS if name in written}
        contents = {name: written["digest"] for name, written in files.items()}
        return [self.run["fingerprint"], self.run["digest"], contents]

    @property
    def A(self) -> np.ndarray:
        """A_RLDD, the final weights A of each seed and layer."""
        return self._array("A")

    @property
    def B(self) -> np.ndarray:
        """B_RLDD, the final weights B of each seed and layer."""
        return self._array("B")

    @property
    def Sigma(self) -> np.ndarray:
        """Sigma_RDD, the covariance of the covariates of each seed."""
        return self._array("Sigma")

    @property
    def U(self) -> np.ndarray:
        """U_RDD, the rotation in Sigma of each seed."""
        return self._array("U")

    def _bytes(self, name: str) -> bytes:
        """Return a file's content, unless another process has made the run again since run.json was read."""
        content = (self.path / name).read_bytes()
        written = self.run.get("files", {}).get(name)
        if written is not None and digest(content) != written["digest"]:
            raise RuntimeError(f"{self.path}: {name} has changed meanwhile; the same command starts over")
        return content

    def _array(self, name: str) -> np.ndarray:
        if name not in self.weights:
            names = ", ".join(self.weights) or "none"
            raise InputError(f"{self.path}: no array {name} in weights.npz; it has {names}")
        return self.weights[name]


def load_run(path: str | Path) -> RunRecord:
    """Return the finished run in folder `path`."""
    folder = Path(path).absolute()
    run = documents.read_record(folder / "run.json")
    why = complaint(folder, run) or (None if run and run.get("files") else "its run.json names no files")
    if run is None or why is not None:
        raise InputError(f"path={path}: must be the folder of a finished run; {why}")
    return RunRecord(folder, run)


def complaint(folder: Path, run: Mapping[str, Any] | None, code: str | None = None) -> str | None:
    """Reason why the run in `folder` is not finished (or not of the code of this digest, if given), or
    None."""
    if run is None:
        return "its run.json is damaged" if (folder / "run.json").exists() else "it has no run.json"
    if run.get("schema") != layout.SCHEMA:
        return f"it has schema version {run.get('schema')}, this is version {layout.SCHEMA}"
    if run.get("status") != "done":
        return f"its status is {run.get('status')}"
    if not _is_at(folder, run):
        return f"it is the record of {run.get('experiment')}/{run.get('fingerprint')}"
    if code is not None and run.get("digest") != code:
        return f"it was made with other code ({run.get('digest')}, now {code})"
    for name, written in run.get("files", {}).items():
        now = _stat(folder / name)
        there = 0 if now is None else now.st_size
        if there != written["bytes"]:
            return f"its {name} is damaged ({there} of {written['bytes']} bytes)"
        if file_digest(folder / name, now) != written["digest"]:
            return f"its {name} is damaged (not the bytes that were written)"
    return None


def weights_digest(run: Mapping[str, Any]) -> str | None:
    """Return the digest of the weights that belong to a run.json."""
    written = run.get("files", {}).get("weights.npz", {})
    return written.get("digest")


def write_verdicts(folder: Path, run: Mapping[str, Any], verdicts: Sequence[Any]) -> None:
    """Write the verdicts on a run's weights, with the digest of these weights."""
    documents.write_record(folder / VERDICTS, {"verdicts": list(verdicts), "weights": weights_digest(run)})


def _is_at(folder: Path, run: Mapping[str, Any]) -> bool:
    """Return whether run.json names the folder it lies in. A copy elsewhere may have any name but that of
    another run."""
    place = folder.parent if folder.name == layout.SUPERSEDED else folder
    if not layout.is_fingerprint(place.name):
        return True
    own = f"/{run.get('fingerprint')}"
    return place.as_posix().endswith(f"/{run.get('experiment')}{own}" if layout.RUNS in place.parts else own)


def _stat(path: Path) -> os.stat_result | None:
    """Return the state of an existing file with one call, since it may lie on a remote server."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def find_done(folder: Path, code: str | None) -> RunRecord | None:
    """Return the finished run in `folder`, or the one that an unfinished repetition has set aside there; of
    the code of this digest, if given."""
    for place in (folder, folder / layout.SUPERSEDED):
        run = documents.read_record(place / "run.json")
        if run is not None and complaint(place, run, code) is None:
            return RunRecord(place, run)
    return None
