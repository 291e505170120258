"""Runs a function of torch tensors once on symbols and keeps the small matrix operations that it did.

Tensors lead with the replica axis and those that differ from prompt to prompt end with the prompts' axis, as
everywhere in icl.models. The function is run for one prompt and all R replicas. A symbol holds, in the place
of each number, the slot of the program that will hold it, so that views (slices, transposes, paddings) are
torch's own, done to the slots; arithmetic adds an operation. What does not fit raises NotRecordable.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from icl.kernel.program import (
    ENTRYWISE,
    LINEAR,
    PRODUCT,
    ROW_SUMS,
    SQUARED_NORM,
    Program,
    Slots,
    size_of,
)

REPLICA = 1 << 40  # between one replica's slots and the next one's: no operation may mix them
LARGEST = 128  # rows or columns of a matrix
MOST_OPERATIONS = 4000


class NotRecordable(Exception):
    """A part of the function that no kernel can run."""


@dataclass
class Recording:
    """A program and what it reads: `constants` are inputs by number, (R, size) each."""

    program: Program
    replicas: int
    dtype: torch.dtype
    constants: dict[int, Tensor]

    def symbol(self, start: int, shape: tuple[int, ...]) -> Symbol:
        """Return a symbol of the neighbouring slots from `start`; `shape` without the replica axis."""
        size = int(np.prod(shape, dtype=np.int64))
        return self.of_one(torch.arange(start, start + size).view(shape))

    def of_one(self, slots: Tensor) -> Symbol:
        """Return the shape without the replica axis."""
        steps_R = torch.arange(self.replicas).view(-1, *[1] * slots.ndim) * REPLICA
        return Symbol(self, slots + steps_R)

    def new(self, kind: int, shape: tuple[int, int], *operands: Slots | None, **given: Any) -> Tensor:
        """Return the slots, (rows, columns), of an operation's result."""
        program = self.program
        if len(program.ops) >= MOST_OPERATIONS or max(shape) > LARGEST * LARGEST:
            raise NotRecordable("a program of this size")
        of_product = kind == PRODUCT  # whose gradient is written block by block
        views = [
            None if slots is None else program.view(slots, injective=of_product and number < 2)
            for number, slots in enumerate(operands)
        ]
        per_prompt = any(slots is not None and program.is_per_prompt(slots) for slots in operands)
        a, b, plus = [*views, None, None, None][:3]
        start = program.add(kind, shape, per_prompt, a, b, plus, **given)
        size = size_of(kind, shape)
        return torch.arange(start, start + size).view(shape if size == shape[0] * shape[1] else (size, 1))

    def constant(self, tensor: Tensor, shape: tuple[int, ...] | None = None) -> Symbol:
        """Return a tensor of the function's own: (R, ...) or, broadcast to `shape`, the same for all."""
        tensor = tensor.detach().to(self.dtype)
        if shape is not None and tensor.ndim < len(shape):
            tensor = tensor.view(*[1] * (len(shape) - tensor.ndim), *tensor.shape)
        if tensor.ndim == 0 or tensor.shape[0] not in (1, self.replicas):
            raise NotRecordable(f"a constant of shape {tuple(tensor.shape)} for {self.replicas} replicas")
        tensor = tensor.expand(self.replicas, *tensor.shape[1:])
        start = self.program.add_input(tensor[0].numel(), per_prompt=False, trained=False)
        self.constants[len(self.program.inputs) - 1] = tensor.reshape(self.replicas, -1).contiguous()
        return self.symbol(start, tuple(tensor.shape[1:]))


class Symbol:
    """Stands for a tensor. Its shape has one prompt, where the tensor has many."""

    def __init__(self, recording: Recording, slots: Tensor, is_mean: bool = False) -> None:
        self.recording, self.slots, self.is_mean = recording, slots, is_mean

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name = getattr(function, "__name__", str(function))
        if name not in _FUNCTIONS:
            raise NotRecordable(f"torch's {name}")
        return _FUNCTIONS[name](*args, **(kwargs or {}))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotRecordable(f"a tensor's {name}")

    @property
    def shape(self) -> torch.Size:
        return self.slots.shape

    @property
    def ndim(self) -> int:
        return self.slots.ndim

    @property
    def dtype(self) -> torch.dtype:
        return self.recording.dtype

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    @property
    def mT(self) -> Symbol:
        return Symbol(self.recording, self.slots.mT)

    def of_one(self) -> Slots:
        """Slots of the first replica; the others' are as far from them as replicas are from one another."""
        steps_R = torch.arange(len(self.slots)).view(-1, *[1] * (self.ndim - 1)) * REPLICA
        if len(self.slots) != self.recording.replicas or not torch.equal(
            (self.slots - steps_R), self.slots[:1].expand_as(self.slots)
        ):
            raise NotRecordable("replicas that are not treated alike")
        return self.slots[0].numpy()

    def __getitem__(self, key: Any) -> Symbol:
        return Symbol(self.recording, self.slots[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, Tensor):
            value = self.recording.constant(value, tuple(self.slots[key].shape))
        if isinstance(value, int | float):
            value = self.recording.constant(torch.full((1,), float(value)))
            value = Symbol(self.recording, value.slots.view(-1, *[1] * (self.ndim - 1)))
            step = torch.zeros_like(self.slots) + value.slots
            self.slots[key] = step[key]
        else:
            self.slots[key] = value.slots

    def unbind(self, dim: int = 0) -> list[Symbol]:
        return [Symbol(self.recording, slots) for slots in self.slots.unbind(dim)]

    def new_zeros(self, *shape: int) -> Symbol:
        zero = self.recording.constant(torch.zeros(1))
        return Symbol(self.recording, zero.slots.view(-1, *[1] * (len(shape) - 1)).expand(shape).clone())

    def __add__(self, other: Any) -> Symbol:
        return _linear(self, other, 1.0, 1.0)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Symbol:
        return _linear(self, other, 1.0, -1.0)

    def __rsub__(self, other: Any) -> Symbol:
        return _linear(self, other, -1.0, 1.0)

    def __neg__(self) -> Symbol:
        return self * -1.0

    def __mul__(self, other: Any) -> Symbol:
        if isinstance(other, int | float):
            rows = _rows(self)
            shape = (rows.shape[0], rows.shape[1])
            made = self.recording.new(LINEAR, shape, rows, alpha=float(other))
            found = self.recording.of_one(made.view(self.shape[1:]))
            return Symbol(self.recording, found.slots, self.is_mean)
        a, b = _broadcast(self, other)
        rows_a, rows_b = _rows(a), _rows(b)
        made = a.recording.new(ENTRYWISE, (rows_a.shape[0], rows_a.shape[1]), rows_a, rows_b)
        return a.recording.of_one(made.view(a.shape[1:]))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Symbol:
        if not isinstance(other, int | float) or other == 0:
            raise NotRecordable("a quotient of tensors")
        return self * (1.0 / other)

    def __matmul__(self, other: Any) -> Symbol:
        return _matmul(self, other)

    def __rmatmul__(self, other: Any) -> Symbol:
        return _matmul(other, self)

    def square(self) -> Symbol:
        return self * self

    def sum(self, dim: int | tuple[int, ...] | None = None) -> Symbol:
        """Sum over axes other than the first, of replicas, and the last, of prompts."""
        dims = {d % self.ndim for d in ((dim,) if isinstance(dim, int) else dim or range(self.ndim))}
        if dims & {0, self.ndim - 1}:
            raise NotRecordable("a sum over replicas or prompts")
        kept = [d for d in range(1, self.ndim) if d not in dims]
        one = self.of_one().transpose([d - 1 for d in kept] + [d - 1 for d in sorted(dims)])
        shape = tuple(self.shape[d] for d in kept)
        summed = one.reshape(int(np.prod(shape, dtype=np.int64)), -1)
        made = self.recording.new(ROW_SUMS, (summed.shape[0], summed.shape[1]), summed)
        return self.recording.of_one(made[:, 0].view(shape))

    def mean(self, dim: int) -> Symbol:
        """Take the mean over prompts, the last step but for a factor."""
        if self.ndim != 2 or dim not in (-1, 1) or self.shape[1] != 1 or self.is_mean:
            raise NotRecordable("a mean that is not over the prompts")
        return Symbol(self.recording, self.slots[:, 0], is_mean=True)


def _view(name: str) -> Callable[..., Symbol]:
    def view(self: Symbol, *args: Any, **kwargs: Any) -> Symbol:
        return Symbol(self.recording, getattr(self.slots, name)(*args, **kwargs))

    return view


for _name in (
    "transpose", "reshape", "view", "expand", "movedim", "unsqueeze", "squeeze", "flatten", "unflatten",
    "permute",
    "contiguous", "clone",
):  # fmt: skip
    setattr(Symbol, _name, _view(_name))


def _recording(*operands: Any) -> Recording:
    return next(operand.recording for operand in operands if isinstance(operand, Symbol))


def _lifted(*operands: Any) -> list[Any]:
    """Record constants with an axis of replicas as symbols."""
    recording = _recording(*operands)
    axes = max(operand.ndim for operand in operands if isinstance(operand, Symbol | Tensor))
    return [
        recording.constant(operand, (0,) * axes) if isinstance(operand, Tensor) else operand
        for operand in operands
    ]


def _broadcast(a: Any, b: Any) -> tuple[Symbol, Symbol]:
    a, b = _lifted(a, b)
    if a.is_mean or b.is_mean:
        raise NotRecordable("arithmetic with the mean over prompts")
    slots_a, slots_b = torch.broadcast_tensors(a.slots, b.slots)
    return Symbol(a.recording, slots_a), Symbol(b.recording, slots_b)


def _rows(symbol: Symbol) -> Slots:
    """Return the shape as a matrix: trailing axes of length one dropped, the last left the columns."""
    one = symbol.of_one()
    while one.ndim > 2 and one.shape[-1] == 1:
        one = one[..., 0]
    return one.reshape(-1, one.shape[-1] if one.ndim > 1 else max(one.size, 1))


def _linear(a: Any, b: Any, alpha: float, beta: float) -> Symbol:
    if isinstance(b, int | float):
        b = torch.full((1,), float(b))
    a, b = _broadcast(a, b)
    rows_a, rows_b = _rows(a), _rows(b)
    shape = (rows_a.shape[0], rows_a.shape[1])
    made = a.recording.new(LINEAR, shape, rows_a, rows_b, alpha=alpha, beta=beta)
    return a.recording.of_one(made.view(a.shape[1:]))


def _multiplied(recording: Recording, a: Slots, b: Slots, plus: Slots | None = None) -> Tensor:
    if max(*a.shape, *b.shape) > LARGEST:
        raise NotRecordable(f"a matrix with more than {LARGEST} rows or columns")
    return recording.new(PRODUCT, (a.shape[0], b.shape[1]), a, b, plus)


def _matmul(a: Any, b: Any) -> Symbol:
    a, b = _lifted(a, b)
    if a.is_mean or b.is_mean or a.ndim < 3 or b.ndim < 3 or a.shape[-1] != b.shape[-2]:
        raise NotRecordable(f"a product of shapes {tuple(a.shape)} and {tuple(b.shape)}")
    recording, one, other = a.recording, a.of_one(), b.of_one()
    batch = np.broadcast_shapes(one.shape[:-2], other.shape[:-2])
    one, other = (
        np.broadcast_to(one, batch + one.shape[-2:]),
        np.broadcast_to(other, batch + other.shape[-2:]),
    )
    made = [
        _multiplied(recording, one[index], other[index])
        for index in itertools.product(*(range(n) for n in batch))
    ]
    return recording.of_one(torch.stack(made).view(*batch, one.shape[-2], other.shape[-1]))


def _batched_matmul(X: Any, Y: Any, plus: Any = None) -> Symbol:
    """Record icl.models.batched.matmul."""
    operands = _lifted(X, Y) if plus is None else _lifted(X, Y, plus)
    recording = operands[0].recording
    one, other = (operand.of_one()[..., 0] for operand in operands[:2])
    if one.shape[1] != other.shape[0]:
        raise NotRecordable(f"a product of shapes {one.shape} and {other.shape}")
    shape = (one.shape[0], other.shape[1])
    first = None if plus is None else np.broadcast_to(operands[2].of_one()[..., 0], shape)
    return recording.of_one(_multiplied(recording, one, other, first)[..., None])


def _left_matmul(M: Any, X: Any) -> Symbol:
    M, X = _lifted_apart(M, X)
    return M.recording.of_one(_multiplied(M.recording, M.of_one(), X.of_one()[..., 0])[..., None])


def _right_matmul(X: Any, M: Any) -> Symbol:
    M, X = _lifted_apart(M, X)
    return M.recording.of_one(_multiplied(M.recording, X.of_one()[..., 0], M.of_one())[..., None])


def _lifted_apart(M: Any, X: Any) -> tuple[Symbol, Symbol]:
    recording = _recording(M, X)
    M, X = (recording.constant(operand) if isinstance(operand, Tensor) else operand for operand in (M, X))
    return M, X


def _squared_norm(X: Symbol) -> Symbol:
    rows = X.of_one()[..., 0]
    return X.recording.of_one(X.recording.new(SQUARED_NORM, (rows.shape[0], rows.shape[1]), rows)[0])


def _pad(symbol: Symbol, pad: tuple[int, ...], mode: str = "constant", value: float | None = None) -> Symbol:
    if mode != "constant" or value:
        raise NotRecordable("a padding with other than zeros")
    marked = torch.nn.functional.pad(symbol.slots, pad, value=-1)
    zeros = symbol.new_zeros(*marked.shape).slots
    return Symbol(symbol.recording, torch.where(marked < 0, zeros, marked))


def _cat(parts: Any, dim: int = 0) -> Symbol:
    parts = _lifted(*parts)
    return Symbol(parts[0].recording, torch.cat([part.slots for part in parts], dim))


def _stack(parts: Any, dim: int = 0) -> Symbol:
    parts = _lifted(*parts)
    return Symbol(parts[0].recording, torch.stack([part.slots for part in parts], dim))


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: _linear(a, b, 1.0, 1.0),
    "sub": lambda a, b: _linear(a, b, 1.0, -1.0),
    "rsub": lambda a, b: _linear(b, a, 1.0, -1.0),
    "mul": lambda a, b: a * b if isinstance(a, Symbol) else b * a,
    "matmul": _matmul,
    "pad": _pad,
    "cat": _cat,
    "stack": _stack,
    "zeros_like": lambda symbol: symbol.new_zeros(*symbol.shape),
}
_FUNCTIONS |= {f"__{name}__": _FUNCTIONS[name] for name in ("add", "sub", "rsub", "mul", "matmul")}
_FUNCTIONS |= {"__radd__": _FUNCTIONS["add"], "__rmul__": _FUNCTIONS["mul"]}
_FUNCTIONS |= {"__rmatmul__": lambda a, b: _matmul(b, a)}

_BATCHED: dict[str, Callable[..., Any]] = {
    "matmul": _batched_matmul,
    "left_matmul": _left_matmul,
    "right_matmul": _right_matmul,
    "squared_norm": _squared_norm,
}


def recordable(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Decorate a product of icl.models.batched: symbols record it whole, not line by line."""
    on_symbols: Callable[..., Any] = _BATCHED[function.__name__]

    @functools.wraps(function)
    def either(*operands: Any) -> Tensor:
        if any(isinstance(operand, Symbol) for operand in operands):
            return on_symbols(*operands)
        return function(*operands)

    return either


def record(
    function: Callable[[Mapping[str, Any], Mapping[str, Any]], Any],
    weights: Mapping[str, Tensor],
    prompts: Mapping[str, Tensor],
) -> Recording:
    """Return the program of `function(weights, prompts)`: weights are (R, ...), prompts (R, ..., B), and it
    returns (R,) means over the prompts. Raises NotRecordable."""
    first = next(iter(weights.values()))
    recording = Recording(Program(), len(first), first.dtype, {})
    program = recording.program
    symbols: list[dict[str, Any]] = [{}, {}]
    for named, tensors, per_prompt in ((symbols[0], weights, False), (symbols[1], prompts, True)):
        for name, tensor in tensors.items():
            if tensor.ndim == 0 or len(tensor) != recording.replicas or tensor.dtype != recording.dtype:
                raise NotRecordable(f"{name} of shape {tuple(tensor.shape)} and {tensor.dtype}")
            shape = (*tensor.shape[1:-1], 1) if per_prompt else tuple(tensor.shape[1:])
            size = int(np.prod(shape, dtype=np.int64))
            named[name] = recording.symbol(program.add_input(size, per_prompt, not per_prompt), shape)
    try:
        found = function(*symbols)
    except (TypeError, RuntimeError, ValueError, IndexError, AttributeError) as error:
        raise NotRecordable(f"{type(error).__name__}: {error}") from error
    if not isinstance(found, Symbol) or not found.is_mean:
        raise NotRecordable("a function that is no mean over the prompts")
    result = found.of_one().reshape(1)
    if not program.is_per_prompt(result):
        raise NotRecordable("a function that does not depend on the prompts")
    program.result = int(result[0])
    return recording
