"""Imports run one way: what each module pulls in when it is the first that is imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BOTTOM = {"errors", "random", "verdicts", "progress"}  # importable by all but theory
LAYERS = {
    "theory": {"theory"},
    "errors": {"errors"},
    "random": {"random", "errors"},
    "verdicts": {"verdicts"},
    "progress": {"progress"},
    "runs": {"runs"} | BOTTOM,
    "sinks": {"sinks", "runs", "theory"} | BOTTOM,
    "tasks": {"tasks", "theory"} | BOTTOM,  # a law has its exact risk
    "algorithms": {"algorithms", "tasks", "theory"} | BOTTOM,
    "models": {"models", "tasks", "theory"} | BOTTOM,
    "constructions": {"constructions", "models", "tasks", "theory"} | BOTTOM,
    "training": {"training", "tasks", "models", "theory", "runs", "config"} | BOTTOM,
    "checks": {"checks", "theory", "tasks", "models", "constructions", "algorithms"} | BOTTOM,
    "experiments": {
        "experiments", "theory", "tasks", "models", "constructions", "algorithms", "training", "checks",
        "runs", "config",  # a stored run's config becomes its model again
    } | BOTTOM,
    "figures": {"figures", "runs"} | BOTTOM,
    "report": {"report", "figures", "runs"} | BOTTOM,
    "config": {"config"} | BOTTOM,
}  # fmt: skip
FREE = {"cli", "bench"}  # the top: may import anything
HEAVY = {"figures": {"torch"}, "runs": {"torch", "numpy", "yaml"}, "report": {"torch"}}
PROBE = """
import importlib, json, os, sys
found = {}
for name in sys.argv[1:]:
    reader, writer = os.pipe()
    if os.fork() == 0:  # first in its process, without paying for the interpreter or for torch each time
        importlib.import_module(name)
        os.write(writer, json.dumps([m for m in sys.modules]).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        found[name] = json.loads(pipe.read() or b"null")
    os.wait()
print(json.dumps(found))
"""


def modules() -> dict[str, list[str]]:
    """Every module of icl by layer."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "icl").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if len(parts) > 1 and name != "icl":
            found.setdefault(parts[1], []).append(name)
    return found


def imported(names: list[str], before: str) -> dict[str, list[str] | None]:
    done = subprocess.run(
        [sys.executable, "-c", before + PROBE, *names], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return json.loads(done.stdout)


def test_every_layer_has_its_rule() -> None:
    assert set(modules()) <= set(LAYERS) | FREE


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("layer", LAYERS)
def test_imports_run_one_way(layer: str) -> None:
    names = modules().get(layer, [])
    light = HEAVY.get(layer, set())
    for name, loaded in imported(names, "" if "torch" in light else "import torch\n").items():
        assert loaded is not None, f"{name} cannot be imported first"
        layers = {module.split(".")[1] for module in loaded if module.startswith("icl.")}
        assert layers <= LAYERS[layer], f"{name} imports {layers - LAYERS[layer]}"
        assert not light & set(loaded), f"{name} loads {light & set(loaded)}"
