"""A formula as text, evaluated exactly, and the formulas beside it."""

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
        self.text, self.names = " ".join(text.split()), names
        try:
            self.tree = ast.parse(self.text, mode="eval").body
        except SyntaxError:
            raise ValueError(f"{text}: is no formula") from None

    def value(self) -> Any:
        return self._value(self.tree)

    def beside(self) -> Iterator[tuple[str, Any]]:
        """Yield the values with each whole name, then each constant, one more; what is undefined is left
        out."""
        nodes = list(ast.walk(self.tree))
        used = dict.fromkeys(node.id for node in nodes if isinstance(node, ast.Name))
        tried = [
            (f"{name} + 1 for {name}", Formula(self.text, {**self.names, name: self.names[name] + 1}))
            for name in used
            if isinstance(self.names.get(name), int)
        ]
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, int):
                letters = self.text.encode()  # in which ast counts
                before, after = letters[: node.col_offset], letters[node.end_col_offset :]
                changed = f"{before.decode()}{node.value + 1}{after.decode()}"
                tried.append((f"{changed} for it", Formula(changed, self.names)))
        for about, formula in tried:
            try:
                yield about, formula.value()
            except ZeroDivisionError:
                continue

    def _value(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return fmpq(node.value)
        if isinstance(node, ast.Name) and node.id in self.names:
            value = self.names[node.id]
            return value if isinstance(value, arb) else rational(value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._value(node.operand)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            base, power = (self._value(part) for part in (node.left, node.right))
            return base ** int(power.p) if isinstance(power, fmpq) and power.q == 1 else arb(base) ** power
        if isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
            parts = (self._value(part) for part in (node.left, node.right))
            return _SIGNS[type(node.op)](*parts)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _BALLS:
            return getattr(arb(self._value(node.args[0])), node.func.id)()
        known = f"{', '.join(self.names)}, whole numbers, + - * / ** and {', '.join(_BALLS)}"
        raise ValueError(f"{self.text}: {ast.unparse(node)} is none of {known}")
