"""Imports run one way: what each module pulls in when it is the first that is imported."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BOTTOM = {"errors", "random", "verdicts", "progress", "events"}  # importable by all but theory
LAYERS = {
    "theory": {"theory"},
    "errors": {"errors"},
    "random": {"random", "errors"},
    "verdicts": {"verdicts"},
    "events": {"events"},
    "progress": {"progress"},
    "runs": {"runs"} | BOTTOM,
    "sinks": {"sinks", "config", "runs", "theory"} | BOTTOM,
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
    "jobs": {"jobs", "report", "sinks", "config", "runs"} | BOTTOM,
}  # fmt: skip
FREE = {"cli", "bench"}  # the top: may import anything
HEAVY = {
    "figures": {"torch"},
    "runs": {"torch", "numpy", "yaml"},
    "report": {"torch"},
    "jobs": {"torch", "matplotlib"},
}
OTHERS = """
import hydra, matplotlib.pyplot, mpmath, pytorch_lightning, scipy.linalg, scipy.optimize, scipy.stats, torch
"""  # what does not matter is loaded once, before the forks
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
    for name, loaded in imported(names, "" if "torch" in light else OTHERS).items():
        assert loaded is not None, f"{name} cannot be imported first"
        layers = {module.split(".")[1] for module in loaded if module.startswith("icl.")}
        assert layers <= LAYERS[layer], f"{name} imports {layers - LAYERS[layer]}"
        assert not light & set(loaded), f"{name} loads {light & set(loaded)}"


def graph(*, types: bool) -> dict[str, set[str]]:
    """What every module of icl and its Hydra plugins imports of icl, functions included; with `types` also
    what it names for type checkers alone."""
    paths = [*(ROOT / "icl").rglob("*.py"), *(ROOT / "hydra_plugins").rglob("*.py")]
    names = {path.relative_to(ROOT).with_suffix("").as_posix().replace("/", "."): path for path in paths}
    names = {name.removesuffix(".__init__"): path for name, path in names.items()}
    found = {}
    for name, path in names.items():
        wishes = _imports(ast.parse(path.read_text()), types)
        # `from icl.tasks import prompts` means the module, `from icl.tasks import Prompt` the package.
        found[name] = {wish if wish in names else wish.rpartition(".")[0] for wish in wishes} & set(names)
    return found


def _imports(node: ast.AST, types: bool) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        elif types or not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield from _imports(child, types)


def test_nothing_imports_in_a_circle() -> None:
    """Not even inside functions."""
    try:
        list(TopologicalSorter(graph(types=False)).static_order())
    except CycleError as error:
        raise AssertionError(" <- ".join(error.args[1])) from None


def test_nothing_imports_the_command_line() -> None:
    for name, wishes in graph(types=True).items():
        if not name.startswith("icl.cli"):
            assert not any(wish.startswith("icl.cli") for wish in wishes), name


def test_a_paper_serves_itself_alone() -> None:
    """No paper imports another, and no shared room a paper: a paper's folder in a room has its name."""
    papers = {path.stem for path in (ROOT / "conf/paper").glob("*.yaml")}

    def paper_of(name: str) -> str:
        return next((part for part in name.split(".")[2:3] if part in papers), "")

    found = graph(types=True)
    assert papers and any(paper_of(name) for name in found)
    for name, wishes in found.items():
        if name.startswith("icl.bench."):  # the top: it measures any
            continue
        others = {wish for wish in wishes if paper_of(wish) not in ("", paper_of(name))}
        assert not others, f"{name} imports {others}"
