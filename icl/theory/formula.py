"""A formula as text, evaluated exactly, and the formulas beside it."""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterator, Mapping
from typing import Any

from flint import arb, fmpq

from icl.theory.rationals import rational

_SIGNS: Mapping[type, Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip
_BALLS = ("sqrt", "exp", "log")


class Formula:
    """Whole numbers, names, + - * / **, sqrt, exp and log: "d*(d + 1)/(n + d + 1)"."""

    def __init__(self, text: str, names: Mapping[str, Any]) -> None:
        self.text, self.names = text.strip(), names
        try:
            self.tree = ast.parse(self.text, mode="eval").body
        except SyntaxError:
            raise ValueError(f"{text}: is no formula") from None

    def value(self, names: Mapping[str, Any] | None = None, changed: ast.AST | None = None) -> Any:
        """Return the value; `changed` is a constant that counts for one more."""
        return self._value(self.tree, self.names if names is None else names, changed)

    def beside(self) -> Iterator[tuple[str, Any]]:
        """Yield the values with each whole name, then each constant, one more; what is undefined is left
        out."""
        nodes = list(ast.walk(self.tree))
        used = dict.fromkeys(node.id for node in nodes if isinstance(node, ast.Name))
        tried: list[tuple[str, Mapping[str, Any], ast.AST | None]] = [
            (f"{name} + 1 for {name}", {**self.names, name: self.names[name] + 1}, None)
            for name in used
            if isinstance(self.names.get(name), int)
        ]
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, int):
                tried.append((f"{node.value + 1} at letter {node.col_offset + 1}", self.names, node))
        for about, names, changed in tried:
            try:
                yield about, self.value(names, changed)
            except ZeroDivisionError:
                continue

    def _value(self, node: ast.AST, names: Mapping[str, Any], changed: ast.AST | None) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return fmpq(node.value + (node is changed))
        if isinstance(node, ast.Name) and node.id in names:
            value = names[node.id]
            return value if isinstance(value, arb) else rational(value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._value(node.operand, names, changed)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            base, power = (self._value(part, names, changed) for part in (node.left, node.right))
            return base ** int(power.p) if isinstance(power, fmpq) and power.q == 1 else arb(base) ** power
        if isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
            parts = (self._value(part, names, changed) for part in (node.left, node.right))
            return _SIGNS[type(node.op)](*parts)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _BALLS:
            return getattr(arb(self._value(node.args[0], names, changed)), node.func.id)()
        known = f"{', '.join(names)}, whole numbers, + - * / ** and {', '.join(_BALLS)}"
        raise ValueError(f"{self.text}: {ast.unparse(node)} is none of {known}")
