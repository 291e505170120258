"""A statement, decided: settings, law, claim, and what it measures as rationals (fmpq), balls (arb) or
samples.

The kind of a number is its type, and so is its error: a rational has none, a ball carries its own, a sample
has a standard error. A bare float, nan, a ball or sample wider than the control, and an empty list decide
nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from itertools import pairwise
from threading import RLock
from typing import Any, ClassVar, NamedTuple

from flint import arb, ctx, fmpq

from icl.errors import InputError, one_of, real, whole
from icl.theory import numbers
from icl.theory.blurred import Blurred, Undecided
from icl.theory.formula import Formula
from icl.theory.numbers import QUANTILE, Sample, as_float, entries_of, minus, sign, text

__all__ = ["QUANTILE", "Blurred", "Measured", "Sample", "Statement", "as_float", "setting", "sign", "text"]

_PRECISION_LOCK = RLock()  # flint's precision is the whole process's: threads decide in turn
BITS = (64, 128, 256, 512, 1024, 2048, 4096)  # of balls, doubled only while a ball is what leaves it open
OPEN = "open"  # expected where the true verdict is not known
UNREFUTED = "holds or undecided"  # where it is true, and too little may be asked for to tell
SEEN = {"nonzero": (1, -1), "positive": (1,), "negative": (-1,), "not positive": (0, -1),
        "not negative": (0, 1)}  # signs of a control that is rejected  # fmt: skip


class Range(NamedTuple):
    """The values of a setting. Tries are drawn from `low` to `high`; more may be asked for, to `most` where
    given, `beyond` which `beyond` happens. Or it has `choices`, or `draw(rng, share, drawn)`, where `share`
    grows to 1 and `drawn` are the settings before it."""

    low: Any = None
    high: Any = None
    most: Any = None
    beyond: str = ""
    choices: tuple[Any, ...] = ()
    draw: Callable[..., Any] | None = None


def setting(default: Any, low: Any = None, high: Any = None, **more: Any) -> Any:
    """Declare a setting: whole if its default is, else real. `low`, `high` and `more` make its Range."""
    return field(default=default, metadata={"range": Range(low, high, **more)})


def ranges(statement: Any) -> dict[str, Range]:
    return {f.name: f.metadata["range"] for f in fields(statement) if "range" in f.metadata}


@dataclass(kw_only=True)
class Statement(ABC):
    """A statement of a paper. A subclass is a dataclass of its settings; its texts stand in the class once.

    Every statement takes `seed` and `samples`; one that draws declares them. `tries` is how many random
    settings are decided beside those asked: fewer where one takes long.
    """

    seed: int | None = None
    samples: int | None = None

    paper: ClassVar[str] = ""
    where: ClassVar[str] = ""  # in the paper: "Theorem 1, eqs. (6) and (7)"
    title: ClassVar[str] = ""
    law: ClassVar[str] = ""  # "x ~ N(0, Sigma), w ~ N(0, I), n examples, y = w.x"
    claim: ClassVar[str] = ""
    quote: ClassVar[str] = ""
    formula: ClassVar[str] = ""  # the claim in LaTeX
    origin: ClassVar[str] = ""  # "icl" where the statement is this project's own
    tries: ClassVar[int] = 20
    most_bits: ClassVar[int] = BITS[-1]
    compared: ClassVar[str] = "the weights"  # whose risk is compared where weights are judged

    def __post_init__(self) -> None:
        validate(self)

    def expected(self) -> str:
        """Return the true verdict at these settings, two with `or` between, or OPEN: a document expects
        what is found, if it is one of them."""
        return "holds"

    @abstractmethod
    def measure(self, m: Measured) -> None:
        """Measure what the claim says, and controls."""

    def decide(self) -> Measured:
        """Measure with as many bits as it takes."""
        return decided(self.measure, self.most_bits, vars(self))


def accepts(expected: str, verdict: str) -> bool:
    """Return whether a verdict is one that is expected."""
    return expected == OPEN or verdict in expected.split(" or ")


def decided(
    measure: Callable[[Measured], None], most_bits: int = BITS[-1], settings: Mapping[str, Any] | None = None
) -> Measured:
    """Measure, and again with twice the bits while a ball leaves it open."""
    for bits in [bits for bits in BITS if bits <= most_bits]:
        m = Measured(bits, settings)
        with _PRECISION_LOCK, ctx.workprec(bits):
            try:
                measure(m)
                m.vary()
            except Undecided as reason:
                m.undecided(str(reason))
            except Blurred:
                m = Measured(bits)
                m.undecided(f"a ball has lost its digits at {bits} bits")
                continue
        if not m.wants_bits:
            break
    return m


def validate(statement: Any, prefix: str = "check") -> None:
    """Refuse a setting that is of another type than its default or out of its range, by name."""
    for name in ("seed", "samples"):
        if getattr(statement, name) is not None:
            whole(f"{prefix}.{name}", getattr(statement, name), 0)
    for name, declared in ranges(statement).items():
        key, value = f"{prefix}.{name}", getattr(statement, name)
        default = next(f.default for f in fields(statement) if f.name == name)
        if declared.choices:
            one_of(key, value, declared.choices)
        elif declared.low is None:
            continue
        elif isinstance(default, int):
            if isinstance(value, float) and value.is_integer():  # context=1e12
                object.__setattr__(statement, name, value := int(value))
            whole(key, value, declared.low)
        elif value is not None or default is not None:
            real(key, value, declared.low)
        if declared.most is not None and value is not None and value > declared.most:
            raise InputError(f"{key}={value}: at most {declared.most}; beyond, {declared.beyond}")


class Number(NamedTuple):
    value: Any
    about: str
    kind: str


class Requirement(NamedTuple):
    sign: str  # "=", "<", ">" or "true"
    truth: bool | None
    limit: Any = 0  # what the number is compared with
    agrees_below: fmpq | None = None  # an open "= 0" agrees if its control is farther from 0 than this


class Control(NamedTuple):
    about: str
    value: Any
    of: str
    rejected: bool


class Measured:
    """The measurements of a statement: what it requires, numbers beside that, and controls."""

    def __init__(self, bits: int = BITS[0], settings: Mapping[str, Any] | None = None) -> None:
        self.bits, self.settings = bits, settings or {}
        self.formulas: list[tuple[str, Any, Formula, str]] = []  # name, value, text, what is seen as wrong
        self.numbers: dict[str, Number] = {}
        self.required: dict[str, Requirement] = {}
        self.controls: list[Control] = []
        self.notes: list[str] = []
        self.open: list[str] = []

    def zero(self, name: str, value: Any, about: str, *, within: Any = None, searched: bool = False) -> None:
        """Require 0, of each entry of a list. A ball or sample around 0 agrees if it reaches less far
        than the control, or than `within`."""
        self.number(name, value, about, searched=searched)
        signs = [sign(entry) for entry in numbers.some_of(name, value)]
        truth = False if any(s in (1, -1) for s in signs) else None if None in signs else True
        reach = [numbers.farthest(entry) for entry in entries_of(value)]
        limit = None if None in reach else max(r for r in reach if r is not None)
        if truth is None and within is not None and limit is not None and limit < within:
            truth = True
        self.required[name] = Requirement("=", truth, agrees_below=limit if truth is None else None)

    def equal(self, name: str, value: Any, formula: Any, about: str = "", **names: Any) -> None:
        """Require value = formula: a number, or text in the settings and in `names`. Such text is a control,
        too: with a name or a constant changed by one it must be seen to be wrong."""
        right = self._right(name, value, formula, names, "nonzero")
        shown = f" ({text(value)})" if isinstance(value, int | fmpq | arb | Sample) else ""
        about = about or f"{name.replace('_', ' ')}{shown} less {formula}"
        self.zero(name, minus(value, right), about)

    def at_most(self, name: str, value: Any, formula: Any, about: str = "", **names: Any) -> None:
        """Require value <= formula, as in `equal`: the bound must be seen to be the best of its kind."""
        right = self._right(name, value, formula, names, "positive")
        self.number(name, value, about or f"{name.replace('_', ' ')}, at most {formula}")
        side = sign(minus(value, right))
        self.required[name] = Requirement("<", None if side is None else side <= 0, right)

    def agrees(self, name: str, sample: Any, exact: Any, about: str = "", **names: Any) -> None:
        """Require that a sample (mean, standard error) is that of an exact number, or of a formula."""
        self.equal(name, Sample(*sample) if isinstance(sample, tuple) else sample, exact, about, **names)

    def rate(
        self, name: str, f: Callable[[int], Any], exponent: Any, about: str = "", *, last: int = 6
    ) -> None:
        """Require that f(n) falls or grows like n^exponent: its slope over the decade before 10^last is
        within 1/100, which that of f(n) n^(1/20) is not."""
        values = [arb(f(10**k)) for k in range(1, last + 1)]
        slopes = [abs(b / a).log() / arb(10).log() for a, b in pairwise(values)]
        self.number(f"{name}_by_decade", slopes, "slope of log f in log n, by decade")
        limit, about = fmpq(1, 100), about or f"{name.replace('_', ' ')}: exponent less {exponent}"
        self.below(name, abs(slopes[-1] - exponent), limit, about)
        wrong = abs(slopes[-1] + fmpq(1, 20) - exponent) - limit
        self.control("the same of f(n) n^(1/20)", wrong, of=name)

    def vary(self) -> None:
        """Add controls where none is given: each formula with a name or a constant changed by one."""
        for name, value, formula, wants in [] if self.controls else self.formulas:
            wrong = [(about, minus(value, other)) for about, other in formula.beside()]
            seen = [one for one in wrong if sign(one[1]) in SEEN[wants]]
            unseen = [about for about, other in wrong if sign(other) not in SEEN[wants]]
            if wrong:
                about, other = min(seen, key=lambda one: numbers.nearest(one[1])) if seen else wrong[0]
                told = f"{len(seen)} of {len(wrong)} such changes are seen to be wrong"
                told += f", not {', '.join(unseen)}" if unseen else ""
                self.control(f"{formula.text} with {about}; {told}", other, of=name, wants=wants)

    def _right(self, name: str, value: Any, formula: Any, names: Mapping[str, Any], wants: str) -> Any:
        sign(value)  # refuses a float
        if not isinstance(formula, str):
            return formula
        known = {k: v for k, v in self.settings.items() if isinstance(v, int | float)} | dict(names)
        self.formulas.append((name, value, Formula(formula, known), wants))
        return self.formulas[-1][2].value()

    def positive(self, name: str, value: Any, about: str, *, searched: bool = False) -> None:
        """Require more than 0, of each entry of a list."""
        self.above(name, value, 0, about, searched=searched)

    def above(self, name: str, value: Any, limit: Any, about: str, *, searched: bool = False) -> None:
        """Require more than a limit, which is no sample."""
        self._compare(name, value, limit, about, ">", searched)

    def below(self, name: str, value: Any, limit: Any, about: str, *, searched: bool = False) -> None:
        """Require less than a limit, which is no sample."""
        self._compare(name, value, limit, about, "<", searched)

    def _compare(self, name: str, value: Any, limit: Any, about: str, wanted: str, searched: bool) -> None:
        self.number(name, value, about, searched=searched)
        signs = [sign(minus(entry, limit)) for entry in numbers.some_of(name, value)]
        right = 1 if wanted == ">" else -1
        truth = False if any(s in (0, -right) for s in signs) else None if None in signs else True
        self.required[name] = Requirement(wanted, truth, limit)

    def true(self, name: str, value: bool | None, about: str) -> None:
        """Require a truth; None where no proof was found."""
        if not (value is None or isinstance(value, bool)):
            raise TypeError(f"{name}: a truth is True, False or None")
        self._add(name, Number(value, about, "exact"))
        self.required[name] = Requirement("true", value)

    def number(self, name: str, value: Any, about: str, *, searched: bool = False) -> None:
        """Show a number, or a list of them, that decides nothing. `searched`: another may be better."""
        kinds = {numbers.kind_of(entry) for entry in entries_of(value)}
        kind = next((k for k in ("sampled", "ball", "exact") if k in kinds), "exact")
        self._add(name, Number(value, about, "searched" if searched else kind))

    def control(self, about: str, value: Any, *, of: str = "", wants: str = "") -> None:
        """Give what a wrong statement has in the place of the requirement `of`, which it must be seen to
        miss: by default it `wants` "nonzero" for "= 0" and "not positive" for "> 0"; "positive" and
        "negative" where only one direction refutes. For a limit give value - limit."""
        if of and of not in self.required:
            raise ValueError(f"{of}: a control stands after the requirement that it is of")
        missed = {">": "not positive", "<": "not negative"}
        wants = wants or (missed.get(self.required[of].sign, "nonzero") if of else "nonzero")
        self.controls.append(Control(about, value, of, sign(value) in SEEN[wants]))

    def note(self, text: str) -> None:
        self.notes.append(text)

    def undecided(self, reason: str) -> None:
        """Let nothing hold, and say why."""
        self.open.append(reason)

    @property
    def truths(self) -> dict[str, bool | None]:
        """Return what is known of each requirement."""
        return {
            name: True if r.agrees_below is not None and r.agrees_below < self._seen(name) else r.truth
            for name, r in self.required.items()
        }

    @property
    def verdict(self) -> str:
        truths = list(self.truths.values())
        if not self.controls or not all(control.rejected for control in self.controls):
            return "undecided"
        if False in truths:
            return "fails"
        return "holds" if truths and None not in truths and not self.open else "undecided"

    @property
    def reasons(self) -> list[str]:
        """Return why it is undecided."""
        if self.verdict != "undecided":
            return []
        found = list(self.open)
        for control in self.controls:
            if not control.rejected:
                found.append(f"the control is not rejected: {control.about} gives {text(control.value)}")
        for name, truth in self.truths.items():
            if truth is None:
                shown, what = self.numbers[name], self.required[name].sign
                if shown.value is None:
                    found.append(f"no proof was found, nor a refutation: {shown.about}")
                    continue
                limit = f" at {self.bits} bits" if shown.kind == "ball" else ""
                beside = "0" if what == "=" else text(self.required[name].limit)
                found.append(
                    f"{shown.about} is {text(shown.value)}{limit}, which cannot be told from {beside}"
                )
        return found or ["no control" if not self.controls else "nothing was required"]

    @property
    def wants_bits(self) -> bool:
        """Return whether a ball leaves it open: no number of bits makes up for a missing proof."""
        if self.verdict != "undecided":
            return False
        values = [self.numbers[name].value for name, truth in self.truths.items() if truth is None]
        values += [c.value for c in self.controls if not c.rejected and sign(c.value) is None]
        return any(isinstance(entry, arb) for value in values for entry in entries_of(value))

    @property
    def decides(self) -> str:
        """Return the requirement that the verdict rests on: the first that fails, is open, or holds."""
        truths = self.truths
        ranked = [name for wanted in (False, None, True) for name in truths if truths[name] is wanted]
        return ranked[0] if ranked else ""

    def document(self) -> dict[str, Any]:
        """Return the part of a check's document that is measured."""
        measured: dict[str, Any] = {}
        for name, number in self.numbers.items():
            measured[name] = numbers.each(number.value, as_float)
            if number.kind == "sampled":
                measured[f"{name}_stderr"] = numbers.each(
                    number.value, lambda e: e.stderr if isinstance(e, Sample) else 0.0
                )
        shown = next((c for c in self.controls if not c.rejected), next(iter(self.controls), None))
        required = {
            name: {"direction": r.sign, "value": None if r.sign == "true" else as_float(r.limit)}
            for name, r in self.required.items()
        }
        of = self.decides
        return {
            "verdict": self.verdict,
            "measured": measured,
            "exact": {
                name: e for name, n in self.numbers.items() if (e := numbers.written(n.value)) is not None
            },
            "kinds": {name: number.kind for name, number in self.numbers.items()},
            "radii": {
                n: float(max(numbers.radii(k.value))) for n, k in self.numbers.items() if k.kind == "ball"
            },
            "meanings": {name: number.about for name, number in self.numbers.items()},
            "bounds": required,
            "bound": {"of": of, "source": "", **required.get(of, {"direction": "=", "value": 0.0})},
            "control": _control(shown or Control("none", None, "", rejected=False)),
            "controls": [_control(control) for control in self.controls],
            "bits": self.bits if any(n.kind == "ball" for n in self.numbers.values()) else None,
            "notes": [*(f"undecided: {reason}." for reason in self.reasons), *self.notes],
        }

    def _add(self, name: str, number: Number) -> None:
        if name in self.numbers:
            raise ValueError(f"{name}: two numbers have this name")
        self.numbers[name] = number

    def _seen(self, name: str) -> fmpq:
        """Return the least deviation from 0 that the controls of a requirement show to be seen."""
        own = [c for c in self.controls if c.of == name] or [c for c in self.controls if not c.of]
        return min((numbers.nearest(c.value) for c in own or self.controls if c.rejected), default=fmpq(0))


def _control(control: Control) -> dict[str, Any]:
    return {
        "description": control.about,
        "measured": as_float(control.value),
        "exact": numbers.written(control.value),
        "rejected": control.rejected,
    }
