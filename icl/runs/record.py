"""A finished run, read back.

Letters: R seeds, L layers, D covariates.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl import metrics
from icl.digests import digest, file_digest
from icl.errors import InputError, one_of
from icl.metrics import final_risk
from icl.runs import documents, layout
from icl.runs.lock import is_live, locked
from icl.text import brief

if TYPE_CHECKING:
    import numpy as np

_NUMBERS = ("metrics.csv", "weights.npz")
DATA_FILES = ("config.yaml", *_NUMBERS)


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

    @property
    def verdicts(self) -> list[Any]:
        """Verdicts on these very weights, of the checks the experiment names."""
        found: list[Any] = self.run.get("verdicts", [])
        return found

    def with_verdicts(self, verdicts: Sequence[Any]) -> RunRecord:
        """Return the record with these verdicts, stored unless another process is making the run again."""
        path, run = self.path / "run.json", documents.to_json({**self.run, "verdicts": verdicts})
        with locked(self.path / "lock"):
            if documents.read_record(path) == self.run:
                documents.write_record(path, run)
        return RunRecord(self.path, run)

    @functools.cached_property
    def weights(self) -> Mapping[str, np.ndarray]:
        """Every stored array by name."""
        return documents.arrays_in(self._bytes("weights.npz"))

    def __repr__(self) -> str:
        means = {name: (entry or {}).get("mean") for name, entry in self.run.get("metrics", {}).items()}
        risk, count = final_risk(means), len(self.run.get("seeds", []))
        shown = f", {risk[0]} {brief(risk[1])}" if risk else ""
        return f"<{self.run['experiment']}: {count} seed{'' if count == 1 else 's'}{shown}; {self.path}>"

    def curve(self, metric: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the steps at which a metric was logged, and its values of shape (seeds, steps).

        A value that is not defined is NaN; seeds are in the order of `run["seeds"]`.
        """
        import numpy as np

        one_of("metric", metric, [name for name in self.metrics if name not in ("step", "seed")])
        rows = zip(self.metrics["step"], self.metrics["seed"], self.metrics[metric], strict=True)
        values = {(step, seed): value for step, seed, value in rows if value is not None}
        steps, nan = sorted({step for step, _ in values}), float("nan")
        table = [[values.get((step, seed), nan) for step in steps] for seed in self.run["seeds"]]
        return np.array(steps), np.array(table)

    @property
    def content_id(self) -> list[Any]:
        """Identity of the numbers, for what is made from the run: unchanged if it is made again with the same
        numbers."""
        written = self.run.get("files", {})
        contents = {name: written[name]["digest"] for name in _NUMBERS if name in written}
        return [self.run["fingerprint"], self.run["digest"], contents]

    # A_RLDD, B_RLDD: the final weights of each seed and layer; Sigma_RDD: the covariance of each seed.
    A = property(lambda self: self._array("A"))
    B = property(lambda self: self._array("B"))
    Sigma = property(lambda self: self._array("Sigma"))

    def _bytes(self, name: str) -> bytes:
        """Return a file's content, unless another process has made the run again since run.json was read."""
        content = documents.read_bytes(self.path / name)
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
    why = invalid_reason(folder, run)
    if run and not why and not all(map(run.get, ("experiment", "fingerprint", "digest", "files"))):
        why = "its run.json names no code or no files"
    if run is None or why:
        raise InputError(f"path={path}: must be the folder of a finished run; {why}")
    return RunRecord(folder, run)


def find_done(folder: Path, code: str | None) -> RunRecord | None:
    """Return the finished run in `folder`; of the code of this digest, if given."""
    run = documents.read_record(folder / "run.json")
    return RunRecord(folder, run) if run is not None and invalid_reason(folder, run, code) is None else None


def invalid_reason(
    folder: Path, run: Mapping[str, Any] | None, code: str | None = None, *, read: bool = True
) -> str | None:
    """Reason why the run in `folder` is not finished (or not of the code of this digest, if given), or
    None. Without `read` only the sizes of its files are looked at."""
    if run is None:
        known = (folder / "run.json").exists()
        return "its run.json is damaged or of another version" if known else "it has no run.json"
    if run.get("status") != "done":
        return f"its status is {run.get('status')}"
    if layout.is_fingerprint(folder.name) and folder.name != run.get("fingerprint"):  # a copy has any name
        return f"it is the record of {run.get('experiment')}/{run.get('fingerprint')}"
    if code is not None and run.get("digest") != code:
        return f"it was made with other code ({run.get('digest')}, now {code})"
    for name, written in run.get("files", {}).items():
        path = folder / name
        there = path.lstat() if path.is_file() and not path.is_symlink() else None  # a link leads elsewhere
        if there is None or there.st_size != written["bytes"]:
            size = 0 if there is None else there.st_size
            return f"its {name} is damaged ({size} of {written['bytes']} bytes)"
        if read and file_digest(path, there) != written["digest"]:
            return f"its {name} is damaged (not the bytes that were written)"
    return None


def status_of(folder: Path, run: Mapping[str, Any]) -> tuple[str, str]:
    """done | running | interrupted | failed | damaged, and why it failed or is damaged, by run.json and the
    sizes of the files."""
    status = run["status"]
    if status == "done" and (why := invalid_reason(folder, run, read=False)):
        return "damaged", why
    if run.get("diverged"):
        return "failed", run["notes"][-1]
    if status == "failed":
        return "failed", run.get("error", "")
    if status == "running" and not is_live(folder / "lock"):
        return "interrupted", ""  # killed
    return status, ""
