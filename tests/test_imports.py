"""Tests that imports run one way: by the sources; what is heavy, in a process."""

import ast
import functools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
BOTTOM = {
    "errors", "random", "resolver", "verdicts", "metrics", "text", "digests", "progress", "stats",
    "kernel", "redact", "hydra_plugins",
}  # importable by all but theory  # fmt: skip
LAYERS = {
    "theory": {"theory"},
    "errors": {"errors"},
    "random": {"random", "errors"},
    "verdicts": {"verdicts"},
    "text": {"text", "verdicts"},
    "verdict_sentences": {"verdict_sentences", "text", "verdicts"},
    "digests": {"digests"},
    "resolver": {"resolver", "errors"},
    "conf": {"conf"},
    "progress": {"progress"},
    "stats": {"stats"},
    "metrics": {"metrics", "errors"},
    "catalog": {"catalog", "config", "loggers", "runs"} | BOTTOM,
    "kernel": {"kernel"},
    "redact": {"redact"},
    "runs": {"runs"} | BOTTOM,
    "loggers": {"loggers", "config", "runs", "theory"} | BOTTOM,
    "tasks": {"tasks", "theory"} | BOTTOM,  # a law has its exact risk
    "levels": {"levels", "tasks", "models", "theory"} | BOTTOM,
    "algorithms": {"algorithms", "tasks", "theory"} | BOTTOM,
    "models": {"models", "tasks", "theory"} | BOTTOM,
    "training": {"training", "tasks", "models", "theory", "runs", "config"} | BOTTOM,
    "callbacks": {
        "callbacks", "training", "loggers", "tasks", "models", "theory", "runs", "config",
        "levels",
        "figures",  # draws the heatmaps
    } | BOTTOM,
    "checks": {"checks", "theory", "tasks", "models", "algorithms"} | BOTTOM,
    "figures": {
        "figures", "theory", "tasks", "models", "algorithms", "training", "checks",
        "runs", "config",
    } | BOTTOM,
    "notebook": {"notebook", "report"} | BOTTOM,
    "report": {"report", "runs"} | BOTTOM,
    "config": {"config"} | BOTTOM,
    "jobs": {
        "jobs", "catalog", "figures", "verdict_sentences", "report", "loggers", "config", "runs",
    } | BOTTOM,
}  # fmt: skip
EXACT = {
    "icl.theory.one_layer",
    "icl.theory.words",
}  # laws that several papers' statements share, not all written yet
FREE = {"cli", "api"}  # the top: may import anything
HEAVY = {  # lightest first: one process imports them in turn
    "runs": {"torch", "numpy", "yaml"},
    "report": {"torch", "numpy"},
    "theory": {"torch"},
    "training.run_signals": {"torch", "pytorch_lightning"},  # which a worker of checks needs
    "jobs": {"torch", "matplotlib"},
}
PROBE = """
import importlib, json, sys
for names in sys.argv[1:]:
    for name in names.split():
        importlib.import_module(name)
    print(json.dumps(sorted(sys.modules)))
"""


def modules() -> dict[str, list[str]]:
    """Return every module of icl by layer."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "icl").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if len(parts) > 1 and name != "icl":
            found.setdefault(parts[1], []).append(name)
    return found


def test_every_layer_has_its_rule() -> None:
    assert set(modules()) <= set(LAYERS) | FREE


def test_imports_run_one_way() -> None:
    """Compare imports at import time: functions may reach further. No circle (below), so that any module
    may be first."""
    found = graph("import")

    def reached(name: str, seen: set[str]) -> set[str]:
        parents = {name.rsplit(".", n)[0] for n in range(1, name.count("."))}
        for wish in (found[name] | parents) - seen:
            seen.add(wish)
            reached(wish, seen)
        return seen

    for layer, names in modules().items():
        for name in names if layer in LAYERS else []:
            layers = {
                module.split(".")[module.startswith("icl.")] for module in reached(name, {name}) - {"icl"}
            }
            assert layers <= LAYERS[layer], f"{name} imports {layers - LAYERS[layer]}"


def test_what_must_be_quick_loads_nothing_heavy() -> None:
    every = modules()
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *(" ".join(every.get(layer, [f"icl.{layer}"])) for layer in HEAVY)],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    for layer, line in zip(HEAVY, done.stdout.splitlines(), strict=True):
        heavy = HEAVY[layer] & set(json.loads(line))
        assert not heavy, f"{layer} loads {heavy}"


@functools.cache
def sources() -> dict[str, ast.Module]:
    """Return every module of icl and its Hydra plugins."""
    paths = [*(ROOT / "icl").rglob("*.py"), *(ROOT / "hydra_plugins").rglob("*.py")]
    names = {path.relative_to(ROOT).with_suffix("").as_posix().replace("/", "."): path for path in paths}
    return {name.removesuffix(".__init__"): ast.parse(path.read_text()) for name, path in names.items()}


def graph(how: str) -> dict[str, set[str]]:
    """Return what each imports of icl: on `import`, when it is `run`, functions too, or also for `types`
    alone."""
    names = sources()
    found = {}
    for name, source in names.items():
        wishes = set(_imports(source, how))
        # `from icl.tasks import prompts` means the module, `from icl.tasks import Prompt` the package.
        found[name] = {wish if wish in names else wish.rpartition(".")[0] for wish in wishes} & set(names)
    return found


def _imports(node: ast.AST, how: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        elif how == "import" and isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        elif how == "types" or not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield from _imports(child, how)


def test_nothing_imports_in_a_circle() -> None:
    """Count imports inside functions and for types, too; only itself and Python's functions import the
    command line."""
    for name, wishes in graph("types").items():
        assert name.startswith(("icl.cli", "icl.api")) or not any(
            wish.startswith("icl.cli") for wish in wishes
        ), name
    try:
        list(TopologicalSorter(graph("types")).static_order())
    except CycleError as error:
        raise AssertionError(" <- ".join(error.args[1])) from None


def test_a_paper_serves_itself_alone() -> None:
    """Refuse imports of another paper, and of a paper in a shared room: a paper's folder in a room has its
    name."""
    papers = {path.stem for path in (ROOT / "conf/paper").glob("*.yaml")}

    def paper_of(name: str) -> str:
        return next((part for part in name.split(".")[2:3] if part in papers), "")

    found = graph("types")
    assert papers and any(paper_of(name) for name in found)
    for name, wishes in found.items():
        others = {wish for wish in wishes if paper_of(wish) not in ("", paper_of(name))}
        assert not others, f"{name} imports {others}"


def test_what_one_paper_alone_uses_lies_below_it() -> None:
    """Assert that a module only one paper imports lies in that paper's folder; shared modules belong to no
    paper."""
    papers, found = {path.stem for path in (ROOT / "conf/paper").glob("*.yaml")}, graph("types")
    shared = [name for name in found if name.count(".") > 1 and not papers & set(name.split("."))]
    shared = [name for name in shared if name not in EXACT and not name.startswith("icl.checks.")]
    for name in shared:
        users = {user for user, wishes in found.items() if name in wishes}
        owners = {next(iter(papers & set(user.split("."))), "") for user in users}
        assert "" in owners or len(owners) != 1, f"{name} serves {owners} alone"
