"""Limits of settings, read from the source of the class that takes them: nothing is imported.

A class declares `dim: int = integer(5, 1, 50, "...")`, or its constructor has statements such as
`self.layers = whole("model.layers", layers, 1, MAX_LAYERS)`. Where the arguments of such a call are constants
and its value is the one that was given, the same call is made here, so that a wrong number is refused before
torch is imported. All other rules are left to the class: lists, files, rules between several settings.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import Field
from typing import Any

from icl.config.values import learning_rate
from icl.errors import InputError, one_of, real, whole
from icl.ranges import RANGE, integer, sample_count, search_starts
from icl.runs.code import Sources

_DECLARE = {"integer": integer, "sample_count": sample_count, "search_starts": search_starts}
_VALIDATE: Mapping[str, Callable[..., Any]] = {"whole": whole, "real": real, "one_of": one_of}
_CONSTANT = (
    ast.Constant, ast.Name, ast.Load, ast.Tuple, ast.List, ast.Starred, ast.UnaryOp, ast.USub, ast.BinOp,
    ast.operator, ast.JoinedStr, ast.FormattedValue,
)  # fmt: skip
_FIXED = {"train": "icl.training.settings.TrainSettings", "trainer": "icl.training.settings.TrainerSettings"}
_GROUPS = (("check",), ("task",), ("model",), ("optimizer", "schedule"), ("train",), ("trainer",),
           ("figure", "experiment"), ("figure", "draw"))  # fmt: skip

Limit = Callable[[str, Any], Any]  # refuses a value by its key
_sources = Sources()


def validate_limits(settings: Mapping[str, Any]) -> None:
    """Refuse what the classes named in a composed config are sure to refuse."""
    for place in _GROUPS:
        node: Any = settings
        for name in place:
            node = node.get(name) if isinstance(node, Mapping) else None
        if isinstance(node, Mapping):
            for name, limits in limits_of(str(_FIXED.get(place[-1]) or node.get("_target_"))).items():
                for limit in limits if name in node else ():
                    limit(f"{'.'.join(place)}.{name}", node[name])
    optimizer = settings.get("optimizer")
    rates = optimizer.get("lr") if isinstance(optimizer, Mapping) and "lr" in optimizer else []
    for rate in rates if isinstance(rates, list) else [rates]:
        learning_rate(rate)


@functools.cache
def limits_of(target: str) -> dict[str, list[Limit]]:
    """Return the limits of a class's settings by name; {} where its source is not found."""
    try:
        modules = _sources.modules_of(target)
    except InputError:  # the import says what is wrong
        return {}
    found: dict[str, list[Limit]] = {}
    for name, limit in _limits(_classes(modules[0], target.rpartition(".")[2])):
        found.setdefault(name, []).append(limit)
    return found


Class = tuple[str, ast.ClassDef]  # and its module


def _classes(module: str, name: str) -> list[Class]:
    """Return a class and its bases, as far as they are defined in or imported from known source files."""
    for node in _body(module):
        if isinstance(node, ast.ClassDef) and node.name == name:
            bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
            return [(module, node), *(found for base in bases for found in _classes(module, base))]
        if isinstance(node, ast.ImportFrom) and (source := _imported_from(node, name)):
            return _classes(source, name)
    return []


def _limits(classes: Sequence[Class]) -> Iterator[tuple[str, Limit]]:
    seen: set[str] = set()
    for module, node in classes:
        for line in node.body:
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                if line.target.id not in seen and isinstance(line.value, ast.Call):
                    declared = _evaluated(module, line.value, _DECLARE)
                    if isinstance(declared, Field):
                        yield line.target.id, declared.metadata[RANGE].validate
                seen.add(line.target.id)
    for name in ("__post_init__", "__init__"):
        yield from _of_constructor(classes, name)


def _of_constructor(
    classes: Sequence[Class], name: str, given: set[str] | None = None
) -> Iterator[tuple[str, Limit]]:
    """Yield the limits in the first constructor; `given`: those a subclass passes on unchanged."""
    for i, (module, node) in enumerate(classes):
        for function in node.body:
            if isinstance(function, ast.FunctionDef) and function.name == name:
                parameters = {argument.arg for argument in function.args.args}
                known = parameters if given is None else parameters & given
                for call in _unconditional_calls(function):
                    names = {
                        arg.id
                        for arg in (*call.args, *(k.value for k in call.keywords))
                        if isinstance(arg, ast.Name)
                    }
                    if ast.unparse(call.func) == f"super().{name}":
                        yield from _of_constructor(classes[i + 1 :], name, names & known)
                    elif len(call.args) > 1 and (setting := _setting(call.args[1], known)):
                        limit = _limit(module, call)
                        if limit is not None:
                            yield setting, limit
                return


def _unconditional_calls(function: ast.FunctionDef) -> Iterator[ast.Call]:
    """Yield calls that are made with the values as they were given, before the function may return."""
    changed: set[str] = set()
    for line in function.body:
        value = line.value if isinstance(line, ast.Assign | ast.AnnAssign | ast.Expr) else None
        for call in value.elts if isinstance(value, ast.Tuple) else [value]:
            if isinstance(call, ast.Call) and not any(ast.unparse(arg) in changed for arg in call.args):
                yield call
        nodes = list(ast.walk(line))
        if any(isinstance(node, ast.Return) for node in nodes):
            return
        stored = (
            n for n in nodes if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Store)
        )
        changed |= {ast.unparse(node) for node in stored}


def _setting(value: ast.expr, known: set[str]) -> str | None:
    """Return the setting whose value an argument is: `dim`, or `self.dim` of a dataclass."""
    text = ast.unparse(value)
    own = text.startswith("self.") and text.count(".") == 1
    return text.removeprefix("self.") if own or text in known else None


def _limit(module: str, call: ast.Call) -> Limit | None:
    """Return a call of `whole`, `real` or `one_of` as a function of key and value."""
    if not isinstance(call.func, ast.Name) or call.func.id not in _VALIDATE:
        return None
    rest = ast.Call(ast.Name("partial", ast.Load()), call.args[2:], call.keywords)
    arguments = _evaluated(module, rest, {"partial": lambda *args, **named: (args, named)})
    if arguments is None:
        return None
    function, (args, named) = _VALIDATE[call.func.id], arguments
    return lambda key, value: function(key, value, *args, **named)


def _evaluated(module: str, call: ast.Call, functions: Mapping[str, Any]) -> Any:
    """Return the value of a call of one of `functions` with constants, None where it has other arguments."""
    if not isinstance(call.func, ast.Name) or call.func.id not in functions:
        return None
    arguments = [*call.args, *(word.value for word in call.keywords)]
    known: dict[str, Any] = {"__builtins__": {}}
    try:
        for argument in arguments:
            _constant(module, argument, known)
        known[call.func.id] = functions[call.func.id]
        expression = ast.fix_missing_locations(ast.Expression(call))
        return eval(compile(expression, module, "eval"), known)
    except LookupError:
        return None


def _constant(module: str, expression: ast.expr, known: dict[str, Any]) -> None:
    """Find the values of all names in an expression of constants; LookupError where it is more than that."""
    for node in ast.walk(expression):
        if not isinstance(node, _CONSTANT):
            raise LookupError(ast.unparse(node))
        if isinstance(node, ast.Name) and node.id not in known:
            known[node.id] = _value(module, node.id)


@functools.cache
def _value(module: str, name: str) -> Any:
    """Return the value of a module's constant; LookupError where it is computed."""
    for node in _body(module):
        if isinstance(node, ast.Assign):
            (target, *others), value = node.targets, node.value
            pairs = [(target, value)]
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = list(zip(target.elts, value.elts, strict=True))
            for left, right in pairs:
                if isinstance(left, ast.Name) and left.id == name and not others:
                    known: dict[str, Any] = {"__builtins__": {}}
                    _constant(module, right, known)
                    return eval(compile(ast.Expression(right), module, "eval"), known)
        if isinstance(node, ast.ImportFrom) and (source := _imported_from(node, name)):
            return _value(source, name)
    raise LookupError(name)


def _imported_from(node: ast.ImportFrom, name: str) -> str | None:
    """Return the module in which an import statement finds `name` under the same name."""
    if node.level or not node.module or not any((a.asname or a.name) == a.name == name for a in node.names):
        return None
    try:
        return _sources.modules_of(f"{node.module}.{name}")[0]
    except InputError:  # built into Python
        return None


@functools.cache
def _body(module: str) -> list[ast.stmt]:
    path = _sources.file(module)
    if path is None or path.suffix != ".py":
        return []
    try:
        return ast.parse(path.read_bytes()).body
    except (SyntaxError, ValueError):  # its import reports the error
        return []
