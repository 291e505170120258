"""Records without a folder, and runners that train nothing."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from icl.runs.documents import write_record
from icl.runs.layout import SCHEMA
from icl.runs.record import RunRecord


def record(**parts: Any) -> RunRecord:
    """Return a record with these as its `weights`, `run`, `config` and so on."""
    made = RunRecord.__new__(RunRecord)
    made.__dict__.update(parts)
    return made


def mark(fingerprint: Any, seeds: Any = ()) -> dict[str, Any]:
    """Return what `run.json` says of a run and an experiment reads."""
    return {"fingerprint": str(fingerprint), "digest": "d", "attempt": 1, "seeds": seeds}


def write_sealed(path: Path, **document: Any) -> Path:
    """Write a record that names its own place: OUTPUTS/KIND/ID/FINGERPRINT.json, run.json or figure.json."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.name == "run.json":
        experiment = "/".join(path.parent.parent.parts[-2:])
        own = {"schema": SCHEMA, "experiment": experiment, "fingerprint": path.parent.name}
    else:
        kind = next(name for name in ("checks", "figures") if name in path.parts)
        id = path.parent.as_posix().rpartition(f"/{kind}/")[2]
        own = {"schema": SCHEMA, "kind": kind, "id": id, "fingerprint": path.stem}
    write_record(path, own | document)
    return path


class FakeRunner:
    """A runner that keeps its requests, returns `made(experiment, overrides)`, and stores nothing."""

    def __init__(
        self, made: Callable[..., Any] = lambda experiment, overrides: experiment, scale: str = "smoke"
    ):
        self.made, self.scale = made, scale
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.science: Mapping[str, Any] = {}

    def train(self, experiment: str, overrides: Mapping[str, Any] | None = None) -> Any:
        self.asked.append((experiment, dict(overrides or {})))
        return self.made(*self.asked[-1])

    def info(self, line: str) -> None:
        pass

    def store(self, name: str, science: Mapping[str, Any], compute: Callable[[], Any]) -> Any:
        self.science = science
        return record(weights=dict(compute()), run=mark(name))
