"""A list of small matrix operations, and its form that tiles.cpp runs.

Every entry of every matrix has a slot of its own. Slots of one allocation are neighbours; a matrix is a view
of slots with a stride for its rows and one for its columns, and what has no strides is gathered first.
"""

import bisect
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

PRODUCT, LINEAR, ENTRYWISE, GATHER, ROW_SUMS, SQUARED_NORM = range(6)  # kinds, as tiles.h numbers them
NONE, ADD, ASSIGN, WITH_PLUS = range(4)
Slots = npt.NDArray[np.int64]


@dataclass(frozen=True)
class View:
    """Entry (i, j) of a matrix is in slot start + i * row + j * column."""

    start: int
    row: int
    column: int
    shape: tuple[int, int]

    def slots(self) -> Slots:
        i, j = np.indices(self.shape)
        return self.start + i * self.row + j * self.column

    def all(self) -> set[int]:
        return {int(slot) for slot in self.slots().flat}

    @property
    def is_injective(self) -> bool:
        return np.unique(self.slots()).size == self.shape[0] * self.shape[1]


def view_of(slots: Slots) -> View | None:
    """None where these slots have no strides."""
    rows, columns = slots.shape
    row = int(slots[1, 0] - slots[0, 0]) if rows > 1 else 0
    column = int(slots[0, 1] - slots[0, 0]) if columns > 1 else 0
    found = View(int(slots[0, 0]), row, column, (rows, columns))
    return found if np.array_equal(found.slots(), slots) else None


def size_of(kind: int, shape: tuple[int, int]) -> int:
    """Return the number of slots that an operation's result has."""
    return {ROW_SUMS: shape[0], SQUARED_NORM: 1}.get(kind, shape[0] * shape[1])


@dataclass(frozen=True)
class Op:
    """Writes `out` and following slots; `shape` is what it goes over. `per_prompt`: differs between them."""

    kind: int
    out: int
    shape: tuple[int, int]
    per_prompt: bool
    a: View | None = None
    b: View | None = None
    plus: View | None = None
    alpha: float = 1.0
    beta: float = 1.0
    sources: tuple[int, ...] = ()  # of GATHER

    def views(self) -> list[View]:
        return [view for view in (self.plus, self.a, self.b) if view is not None]

    def reads(self) -> set[int]:
        return set().union(*(view.all() for view in self.views()), self.sources)

    @property
    def size(self) -> int:
        return size_of(self.kind, self.shape)

    def written(self) -> range:
        return range(self.out, self.out + self.size)


@dataclass(frozen=True)
class Input:
    start: int
    size: int
    per_prompt: bool
    trained: bool  # its gradient is wanted


@dataclass
class Code:
    """Arrays for tiles.h."""

    ops: Slots
    inputs: Slots
    lists: Slots
    n_slots: int
    n_prologue: int
    n_persistent: int
    zeros: int
    n_zeros: int
    result: int
    n_gradient: int


@dataclass
class Program:
    """A recorded function: `result` is the slot whose mean over prompts is its value."""

    inputs: list[Input] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    n_slots: int = 0
    result: int = -1
    _per_prompt: list[tuple[int, bool]] = field(default_factory=list)  # (start, ...) of each allocation

    def allocate(self, size: int, per_prompt: bool) -> int:
        start, self.n_slots = self.n_slots, self.n_slots + size
        self._per_prompt.append((start, per_prompt))
        return start

    def add_input(self, size: int, per_prompt: bool, trained: bool) -> int:
        start = self.allocate(size, per_prompt)
        self.inputs.append(Input(start, size, per_prompt, trained))
        return start

    def is_per_prompt(self, slots: Slots) -> bool:
        return any(self._per_prompt[i][1] for i in self._allocations(slots))

    def _allocations(self, slots: Slots) -> set[int]:
        """Return the allocations that these slots are in."""
        starts = [start for start, _ in self._per_prompt]
        return {bisect.bisect_right(starts, int(slot)) - 1 for slot in np.unique(slots)}

    def view(self, slots: Slots, *, injective: bool = False) -> View:
        """Return a view of these slots, or of copies of them."""
        found = view_of(slots)
        # Allocations that are neighbours here will not be (`_encode`).
        together = len(self._allocations(slots)) == 1
        if found is not None and together and (found.is_injective or not injective):
            return found
        flat = tuple(int(s) for s in slots.flat)
        start = self.add(GATHER, (1, len(flat)), self.is_per_prompt(slots), sources=flat)
        return View(start, slots.shape[1], 1, (slots.shape[0], slots.shape[1]))

    def add(
        self,
        kind: int,
        shape: tuple[int, int],
        per_prompt: bool,
        a: View | None = None,
        b: View | None = None,
        plus: View | None = None,
        alpha: float = 1.0,
        beta: float = 1.0,
        sources: tuple[int, ...] = (),
    ) -> int:
        """Append an operation and return the first slot of its result."""
        out = self.allocate(size_of(kind, shape), per_prompt)
        self.ops.append(Op(kind, out, shape, per_prompt, a, b, plus, alpha, beta, sources))
        return out

    def code(self) -> Code:
        ops = _needed(_sums_folded(_needed(self.ops, self.result)), self.result)  # without the gradient's
        ops = [op for op in ops if not op.per_prompt] + [op for op in ops if op.per_prompt]
        return _encode(self.inputs, ops, self.result)


def _needed(ops: Sequence[Op], result: int) -> list[Op]:
    """Return the operations that the result depends on."""
    wanted, kept = {result}, []
    for op in reversed(ops):
        if not wanted.isdisjoint(op.written()):
            kept.append(op)
            wanted |= op.reads()
    return kept[::-1]


def _sums_folded(ops: Sequence[Op]) -> list[Op]:
    """Fold x + (a b) into one operation where the product is used for nothing else."""
    readers: dict[int, int] = {}
    for op in ops:
        for slot in op.reads():
            readers[slot] = readers.get(slot, 0) + 1
    products = {op.out: op for op in ops if op.kind == PRODUCT and op.plus is None}
    folded: dict[int, Op] = {}
    gone: set[int] = set()
    for op in ops:
        if op.kind != LINEAR or op.b is None or (op.alpha, op.beta) != (1.0, 1.0):
            continue
        assert op.a is not None
        for own, other in ((op.a, op.b), (op.b, op.a)):
            made = products.get(own.start)
            alone = made is not None and all(readers[slot] == 1 for slot in made.written())
            whole = made is not None and (made.shape, own) == (op.shape, view_of(_contiguous(made)))
            if made is not None and alone and whole and made.per_prompt == op.per_prompt and own != other:
                folded[op.out] = dataclasses.replace(made, out=op.out, plus=other)
                gone.add(made.out)
                break
    return [folded.get(op.out, op) for op in ops if op.out not in gone]


def _contiguous(op: Op) -> Slots:
    return np.arange(op.out, op.out + op.size).reshape(op.shape)


def _encode(inputs: Sequence[Input], ops: Sequence[Op], result: int) -> Code:
    """Encode the operations: slots that live as long as a block first, and no unused slot."""
    blocks = [(i.start, i.size, i.per_prompt) for i in inputs]
    blocks += [(op.out, op.size, op.per_prompt) for op in ops]
    moved: dict[int, int] = {}
    n_slots = n_persistent = 0
    for is_per_prompt in (False, True):
        for start, size, per_prompt in blocks:
            if per_prompt == is_per_prompt:
                moved |= {start + i: n_slots + i for i in range(size)}
                n_slots += size
        n_persistent = n_persistent if is_per_prompt else n_slots

    differentiable = {s for i in inputs if i.trained for s in range(i.start, i.start + i.size)}
    for op in ops:
        if not op.reads().isdisjoint(differentiable):
            differentiable |= set(op.written())

    # Backwards: the first to give a slot of one tile its gradient writes it, later ones add. What a product
    # is added to, x in x + a b, has the gradient of the sum: it is written together with a's or b's own part
    # where these are x, and is the same memory where they are not.
    owners = {op.out: op for op in ops if op.per_prompt}
    begun = {result}
    zeros: set[int] = set()
    modes: dict[int, list[int]] = {}
    of_slot = {slot: slot for slot in moved}  # whose gradient's place it has

    def fresh(view: View) -> set[int]:
        slots = view.all()
        return {s for s in slots if moved[s] >= n_persistent} - begun

    def begins(view: View) -> bool:
        """Return whether all of it is written here first."""
        return view.is_injective and len(fresh(view)) == view.shape[0] * view.shape[1]

    def mode(view: View | None) -> int:
        if view is None or differentiable.isdisjoint(slots := view.all()):
            return NONE
        if begins(view):
            begun.update(slots)
            return ASSIGN
        zeros.update(fresh(view))
        begun.update(slots)
        return ADD

    for op in reversed(ops):
        if differentiable.isdisjoint(op.written()):
            modes[op.out] = [NONE] * 3
        elif op.kind == GATHER:
            slots = set(op.sources) & differentiable
            zeros |= {s for s in slots if moved[s] >= n_persistent} - begun
            begun |= slots
            modes[op.out] = [NONE] * 3
        else:
            plus, factors = op.plus, [op.a, op.b]
            shared = None
            if plus is not None and not differentiable.isdisjoint(reads := plus.all()) and begins(plus):
                owner = owners.get(plus.start)
                if plus in factors and op.a != op.b:
                    shared = factors.index(plus)
                elif (
                    owner
                    and plus == view_of(_contiguous(owner))
                    and reads.isdisjoint(s for view in factors if view is not None for s in view.all())
                ):
                    for i, slot in enumerate(owner.written()):
                        of_slot[slot] = of_slot[op.out + i]
                    begun |= reads
                    plus = None
            if shared is None:
                modes[op.out] = [mode(plus), mode(op.a), mode(op.b)]
            else:
                begun |= reads
                own = [mode(factor) if i != shared else WITH_PLUS for i, factor in enumerate(factors)]
                modes[op.out] = [NONE, *own]
    # What is differentiable, but of which only a part was reached.
    zeros |= {s for op in ops if op.per_prompt for s in op.written() if s in differentiable} - begun
    if any(of_slot[s] != s for s in zeros):
        raise AssertionError("a gradient that two matrices share must be written by the first")

    lists: list[int] = []
    trash = n_slots  # takes gradients that are not used
    rows = []

    def encoded(view: View | None, how: int) -> list[int]:
        if view is None:
            return [-1, 0, 0, 0, NONE]
        start = moved[view.start]
        return [start, view.row, view.column, moved[of_slot[view.start]], how]

    for op in ops:
        wanted = not differentiable.isdisjoint(op.written())
        of_plus, of_a, of_b = modes[op.out]
        list_start = len(lists)
        if op.kind == GATHER:
            lists += [moved[s] for s in op.sources]
            lists += [moved[of_slot[s]] if s in differentiable else trash for s in op.sources]
        alpha, beta = (int(np.float64(x).view(np.int64)) for x in (op.alpha, op.beta))
        inner = op.a.shape[1] if op.kind == PRODUCT and op.a is not None else 1
        out = moved[op.out]
        own = [moved[of_slot[op.out]] if wanted else -1]
        views = [*encoded(op.a, of_a), *encoded(op.b, of_b), *encoded(op.plus, of_plus)]
        rows.append([op.kind, *op.shape, inner, out, *own, *views, alpha, beta, list_start])
    first_zero = len(lists)
    lists += sorted(moved[s] for s in zeros)
    taken = 0
    described = []
    for given in inputs:
        described.append(
            [moved[given.start], given.size, int(given.per_prompt), taken if given.trained else -1]
        )
        taken += given.size if given.trained else 0
    return Code(
        ops=np.array(rows, dtype=np.int64).reshape(-1, 24),
        inputs=np.array(described, dtype=np.int64).reshape(-1, 4),
        lists=np.array(lists or [0], dtype=np.int64),
        n_slots=n_slots + 1,
        n_prologue=sum(not op.per_prompt for op in ops),
        n_persistent=n_persistent,
        zeros=first_zero,
        n_zeros=len(lists) - first_zero,
        result=moved[result],
        n_gradient=taken,
    )
