"""The code a record depends on: the modules its own class can reach by imports, found without importing.

A record names its roots, the classes or modules that determine it: a check its class, a training run its
task, model, optimizer, schedule and the engine, a figure what computes and what draws it. The digest is that
of the source of every module the roots reach, byte for byte:

- of `icl` and of the packages the roots themselves lie in; what is installed beside them does not count;
- by any import, also one inside a function, but not one for type checkers alone (`if TYPE_CHECKING:`);
- not into `icl.errors`, which a number leaves as it came or not at all;
- through a package's `__init__` that does no more than offer names (imports, functions, constants) to the
  module that the name asked for comes from. One that does more when it is imported counts itself.

So a record is stale where one of these modules has changed, and nothing else makes it stale.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.machinery
import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from icl.errors import InputError
from icl.runs import documents
from icl.runs.fingerprint import fingerprint
from icl.runs.record import RunRecord, find_done

# With these a run's own classes become numbers; the last records a column of its own.
TRAINING = ("icl.training.loop", "icl.models.attention", "icl.callbacks.ahn")
DRAWING = ("icl.figures.files",)  # and a figure's a picture
_INSTALLED = ("torch", "pytorch_lightning")  # what else a target may come from; their versions are recorded
_WORDS = ("icl.errors", "icl.text")
_SUFFIXES = (".py", *importlib.machinery.EXTENSION_SUFFIXES)


class NotHere(InputError):
    """A package that is not on this machine, or not where Python looks."""


class Import(NamedTuple):
    """`import module`, or `from module import name`; `name` is "*" for all of them."""

    module: str
    name: str | None


class Module(NamedTuple):
    """Imports and names of a source file."""

    digest: bytes
    imports: tuple[Import, ...]
    reexports: Mapping[str, Import] | None  # of an __init__ that only offers names: where they come from


class Sources:
    """The source files of packages, each read once. `find(package)` is where a package or module lies."""

    def __init__(self, find: Callable[[str], Sequence[Path]] | None = None) -> None:
        self._find = functools.cache(find or places)
        self._file = functools.cache(self._look_up)
        self._read = functools.cache(read_module)

    def digest(self, roots: Iterable[str]) -> str:
        """Return the digest of the modules that `roots` reach."""
        total = hashlib.sha256()
        for name, path in sorted(self.closure(roots).items()):
            total.update(f"{name}\0".encode() + self._read(name, path).digest)
        return total.hexdigest()[:16]

    def closure(self, roots: Iterable[str]) -> dict[str, Path]:
        """Return every module that `roots`, dotted names of classes or modules, reach."""
        wanted = sorted(set(roots))
        packages = {"icl", *(root.partition(".")[0] for root in wanted)}
        found: dict[str, Path] = {}
        waiting = [name for root in wanted for name in self.modules_of(root)]
        while waiting:
            name = waiting.pop()
            path = self._file(name)
            if name in found or path is None or name in _WORDS:
                continue
            found[name] = path
            waiting += [parent for parent in _parents(name) if self._does_something(parent)]
            for wish in self._read(name, path).imports:
                if wish.module.partition(".")[0] in packages:
                    waiting += self._modules(wish)
        return found

    def file(self, module: str) -> Path | None:
        """Return the file of a module, None where it has none in its package."""
        return self._file(module)

    def modules_of(self, root: str) -> list[str]:
        """Return the modules in which a class or module by this dotted name is."""
        module, _, name = root.rpartition(".")
        found = self._modules(Import(module, name) if module else Import(root, None))
        if not any(map(self._file, found)):
            raise InputError(f"_target_={root}: no module {module or root}")
        return found

    def _modules(self, wish: Import, seen: frozenset[Import] = frozenset()) -> list[str]:
        """Return the modules that an import leads to; other packages' modules are left out."""
        module, name = wish
        if name is None:
            return [module]
        path = self._file(module)
        reexports = {} if path is None else self._read(module, path).reexports
        if reexports is not None and name in reexports and wish not in seen:
            return self._modules(reexports[name], seen | {wish})
        submodule = f"{module}.{name}"
        inside = self._file(submodule) is not None
        if inside and reexports is not None:
            return [submodule]
        return [module, submodule] if inside else [module]

    def _does_something(self, package: str) -> bool:
        path = self._file(package)
        return path is not None and self._read(package, path).reexports is None

    def _look_up(self, module: str) -> Path | None:
        """Return the file of a module, without the import of its package that importlib.util.find_spec
        makes."""
        top, *inner = module.split(".")
        for place in self._find(top):
            if place.is_file():
                return None if inner else place
            folder = place.joinpath(*inner)
            candidates = [folder / "__init__.py"]
            if inner:
                candidates += [folder.with_name(f"{folder.name}{suffix}") for suffix in _SUFFIXES]
            for path in candidates:
                if path.is_file():
                    return path
        return None


def places(package: str) -> list[Path]:
    """Return the folders of a package, or the file of a module."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        raise NotHere(f"_target_={package}...: no such package; is its folder in PYTHONPATH?")
    if spec.submodule_search_locations:
        return [Path(folder) for folder in spec.submodule_search_locations]
    return [Path(spec.origin)] if spec.origin and Path(spec.origin).is_file() else []


def _parents(module: str) -> Iterator[str]:
    while "." in module:
        module = module.rpartition(".")[0]
        yield module


def read_module(name: str, path: Path) -> Module:
    """Read what the file of module `name` imports and re-exports."""
    source = path.read_bytes()
    digest = hashlib.sha256(source).digest()
    try:
        tree = ast.parse(source) if path.suffix == ".py" else ast.Module([], [])
    except (SyntaxError, ValueError):  # its import reports the error
        return Module(digest, (), None)
    is_package = path.name == "__init__.py"
    here = name if is_package else name.rpartition(".")[0]
    found = list(_imports(tree.body, here))
    if b"import_module" in source:
        found += _literal_imports(tree)
    reexports = _offered(tree.body, here) if is_package else None
    return Module(digest, tuple(dict.fromkeys(found)), reexports)


def _imports(body: Sequence[ast.AST], here: str) -> Iterator[Import]:
    """Yield the imports of all statements, however deep. Expressions hold no statements."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (wish for _, wish in _bound(node, here))
        elif isinstance(node, ast.If) and _for_type_checkers(node.test):
            yield from _imports(node.orelse, here)
        else:
            for part in ("body", "orelse", "handlers", "finalbody", "cases"):
                inner = getattr(node, part, ())
                if isinstance(inner, list):  # the body of a lambda is none
                    yield from _imports(inner, here)


def _bound(node: ast.Import | ast.ImportFrom, here: str) -> Iterator[tuple[str, Import]]:
    """Yield each name that an import statement binds, with what it names."""
    if isinstance(node, ast.Import):
        yield from ((alias.asname or alias.name, Import(alias.name, None)) for alias in node.names)
        return
    module = node.module or ""
    if node.level:
        base = here.split(".")[: len(here.split(".")) - node.level + 1]
        module = ".".join([*base, *filter(None, [module])])
    yield from ((alias.asname or alias.name, Import(module, _named(alias.name))) for alias in node.names)


def _named(name: str) -> str | None:
    return None if name == "*" else name


def _for_type_checkers(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _literal_imports(tree: ast.Module) -> Iterator[Import]:
    """`importlib.import_module("icl.theory.gaussian")`; of a name that is computed nothing can be known."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called == "import_module" and isinstance(node.args[0].value, str):
                yield Import(node.args[0].value, None)


def _offered(body: Sequence[ast.stmt], here: str) -> dict[str, Import] | None:
    """Return the names that an `__init__` re-exports; None where it does more than that."""
    reexports: dict[str, Import] = {}
    for node in body:
        if isinstance(node, ast.ImportFrom) and all(alias.name != "*" for alias in node.names):
            reexports |= dict(_bound(node, here))
        elif isinstance(node, ast.Import) and all("." not in alias.name for alias in node.names):
            continue
        elif not _is_inert(node):
            return None
    return reexports


def _is_inert(node: ast.stmt) -> bool:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return not node.decorator_list
    if isinstance(node, ast.If):
        return _for_type_checkers(node.test) and not node.orelse
    if isinstance(node, ast.Expr | ast.Assign | ast.AnnAssign):
        try:
            ast.literal_eval(node.value or ast.Constant(None))
        except ValueError:
            return False
        return True
    return isinstance(node, ast.Pass)


_HERE = Sources()


def code_digest(roots: Iterable[str]) -> str:
    """Digest of the code that `roots`, dotted names of classes or modules, reach.

    It changes with any byte of it, and not with where a package lies or what is compiled. Files are read once
    per process, so that it is the code this process has loaded.
    """
    return _digest(tuple(sorted(set(roots))))


@functools.cache
def _digest(roots: tuple[str, ...]) -> str:
    return _HERE.digest(roots)


def targets(*nodes: Any) -> list[str]:
    """Return every `_target_` of nested settings that is ours or the user's own: roots."""
    found = sorted({name for node in nodes for name in _targets(node)})
    return [name for name in found if name.partition(".")[0] not in _INSTALLED]


def _targets(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        if isinstance(node.get("_target_"), str):
            yield node["_target_"]
        yield from (name for value in node.values() for name in _targets(value))
    elif isinstance(node, list | tuple):
        yield from (name for value in node for name in _targets(value))


def derived_digest(digest: str, runs: Mapping[str, Mapping[str, Any]]) -> str:
    """Digest of what is drawn by code of this digest from runs with these marks."""
    return fingerprint({"code": digest, "made": {name: run["mark"] for name, run in runs.items()}})


def run_marks(records: Mapping[str, RunRecord]) -> dict[str, dict[str, Any]]:
    """Return the paths below outputs and the marks of the runs that a record is made from."""
    return {
        name: {
            "run": f"runs/{record.run['experiment']}/{record.run['fingerprint']}",
            "mark": record.mark,
        }
        for name, record in records.items()
    }


def current_digest(record: Mapping[str, Any], outputs: Path) -> str | None:
    """Return the digest that `record` (a run, a check, a figure) would have if it were made by today's code.

    None where that cannot be known, since its package is not here: that makes no record stale.
    """
    if not record.get("code"):
        return "another"  # it says nothing of its code: nothing made today is like it
    try:
        digest = code_digest(record["code"])
    except NotHere:
        return None
    except InputError:
        return "gone"
    if "made" not in record:
        return digest
    found = {name: _todays_run(outputs / run["run"], outputs) for name, run in record["made"].items()}
    there = {name: run for name, run in found.items() if run is not None}
    return derived_digest(digest, there) if len(there) == len(found) else "gone"


def _todays_run(folder: Path, outputs: Path) -> Mapping[str, Any] | None:
    run = documents.read_record(folder / "run.json")
    record = None if run is None else find_done(folder, current_digest(run, outputs))
    return None if record is None else {"mark": record.mark}
