"""Measured numbers, each with its kind, its meaning and, where it decides, its bound and verdict.

A check lists what it measured, in the order in which a bound is shown, and `finding` puts it together:

    return finding(
        [
            exact(optimal_risk=least).also_by("quadrature over tokens", optimal_risk=other),
            exact(gradient_norm=slope).means("gradient of the exact risk at eq. (6)").at_most(bound, SOURCE),
            tried(paths_error=error).at_most(rounding, PATHS),
        ],
        Control("gradient norm with the trace term dropped", control, control > bound),
        remarks=[UNIQUE],
    )
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from icl import quantiles
from icl.checks.rounding import ROUNDING
from icl.checks.verdict import CONFIDENCE, Bound, Control, Finding, Route
from icl.constructions.account import Account
from icl.errors import one_of
from icl.verdicts import KINDS, ROUTE_ROUNDING, VERDICTS, decide, joint


@dataclass(frozen=True)
class Number:
    """A measured number. One with a `verdict` decides, by its bound; the others only describe."""

    name: str
    value: Any
    kind: str
    meaning: str = ""
    verdict: str = ""
    bound: Bound | None = None
    route: Route | None = None

    def __post_init__(self) -> None:
        one_of("kind", self.kind, list(KINDS))
        one_of("verdict", self.verdict, ["", *VERDICTS])


class Numbers(tuple[Number, ...]):
    """Numbers to which the same is done: every method returns them with a change to each."""

    def means(self, meaning: str = "", **meanings: str) -> Numbers:
        """Say in one line what they are, `of_name=...` each by its name. The line is a noun phrase that can
        follow "the": "gradient of the exact risk at eq. (6)"."""
        unknown = meanings.keys() - {number.name for number in self}
        if unknown:
            raise ValueError(f"means: none of {', '.join(sorted(unknown))} is measured here")
        return self._each(
            lambda number: replace(number, meaning=meanings.get(number.name, meaning or number.meaning))
        )

    def at_most(
        self, bound: float, source: str, *, half_width: float = 0.0, otherwise: str = "fails"
    ) -> Numbers:
        """Require value <= bound; undecided where the interval value +- half_width straddles it."""

        def compare(number: Number) -> str:
            verdict = decide(number.value, bound, half_width)
            return otherwise if verdict == "fails" else verdict

        return self._compared(compare, "<", bound, source)

    def above(
        self, bound: float, source: str, *, half_width: float = 0.0, otherwise: str = "fails"
    ) -> Numbers:
        """Require value > bound; `otherwise` is "undecided" where a smaller value says nothing."""

        def compare(number: Number) -> str:
            verdict = decide(number.value, bound, half_width)
            return {"holds": otherwise, "fails": "holds"}.get(verdict, verdict)

        return self._compared(compare, ">", bound, source)

    def judged(self, verdict: str, direction: str, bound: float, source: str) -> Numbers:
        """Give a verdict that no comparison with the bound yields, such as that of a search."""
        return self._compared(lambda number: verdict, direction, bound, source)

    def holds_only_if(self, condition: bool) -> Numbers:
        """Make "holds" undecided where the condition is false: the number could not have told."""
        changed = {"holds": "holds" if condition else "undecided"}
        return self._each(lambda number: replace(number, verdict=changed.get(number.verdict, number.verdict)))

    def decides_only_if(self, condition: bool) -> Numbers:
        """Make any verdict undecided where the condition is false."""
        return self if condition else self._each(lambda number: replace(number, verdict="undecided"))

    def provided(self, *sound: Numbers) -> Numbers:
        """Decide only where all of `sound` hold; where one does not, those come first and decide instead."""
        tests = Numbers(number for numbers in sound for number in numbers)
        return Numbers(
            [*self, *tests] if tests.verdict == "holds" else [*tests, *self.decides_only_if(False)]
        )

    def with_bounds(self) -> Numbers:
        """Add NAME_bound after each NAME."""
        listed = []
        for number in self:
            bound = exact(**({f"{number.name}_bound": number.bound.value} if number.bound else {}))
            listed += [number, *bound.by_definition()]
        return Numbers(listed)

    def also_by(self, route: str, *, stderr: Any = None, size: float = 0.0, **values: Any) -> Numbers:
        """Give what an independent second computation makes of them, each by its name; `route` says in plain
        words what it is. Unless they agree the verdict is undecided: to 1e-9, relative to the larger of
        the two, or to `size`, that of the terms of a number that may be near 0; or, with a standard error,
        within a 99.9 % interval for all entries together."""
        unknown = values.keys() - {number.name for number in self}
        if unknown:
            raise ValueError(f"also_by: none of {', '.join(sorted(unknown))} is measured here")
        found = {
            n.name: second(route, n.value, values[n.name], stderr, size) for n in self if n.name in values
        }
        return self.confirmed(**found)

    def confirmed(self, **routes: Route | None) -> Numbers:
        """Give each its second route by its name."""
        return Numbers(replace(n, route=routes.get(n.name, n.route)) for n in self)

    def compared_by(self, number: str, route: str) -> Numbers:
        """Say that the number of this name, which has a bound, compares them with a second computation; it
        may be the number itself, if that is a difference."""
        return self._each(lambda n: replace(n, route=Route("compared", route, by=number)))

    def in_tests(self, route: str) -> Numbers:
        """Say that only a test computes them a second time, and how: that takes too long for a check."""
        return self._each(lambda n: replace(n, route=Route("tests", route)))

    def by_definition(self) -> Numbers:
        """Say that there is nothing to compute twice: an input, a count, a bound."""
        return self._each(lambda n: replace(n, route=Route("definition")))

    @property
    def verdict(self) -> str:
        """The verdict of all that decide."""
        return joint([number.verdict for number in self])

    def _compared(self, compare: Callable[[Number], str], sign: str, bound: float, source: str) -> Numbers:
        return self._each(lambda n: replace(n, verdict=compare(n), bound=Bound(bound, source, n.name, sign)))

    def _each(self, change: Callable[[Number], Number]) -> Numbers:
        return Numbers(map(change, self))


def second(route: str, first: Any, value: Any, stderr: Any = None, size: float = 0.0) -> Route:
    """Return the second route of a number: `first` by the first one, `value` by this, see `also_by`."""
    pairs = list(zip(_entries(first), _entries(value), strict=True))
    if stderr is None:
        sizes = [max(abs(a), abs(b), size) for a, b in pairs]
        off = [abs(a - b) / scale if scale else 0.0 for (a, b), scale in zip(pairs, sizes, strict=True)]
        unit, within = "relative", ROUTE_ROUNDING
    else:
        errors = [
            math.hypot(error, ROUNDING * max(abs(a), abs(b), size))
            for (a, b), error in zip(pairs, _entries(stderr), strict=True)
        ]
        off = [abs(a - b) / error if error else 0.0 for (a, b), error in zip(pairs, errors, strict=True)]
        unit, within = "standard errors", quantiles.normal((1 - CONFIDENCE) / (2 * len(pairs)))
    largest = math.nan if any(map(math.isnan, off)) else max(off)
    return Route("computed", route, value, largest, unit, within, largest <= within)


def _entries(value: Any) -> Iterator[float]:
    """Yield the numbers of a table in order."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for entry in value:
            yield from _entries(entry)
    else:
        yield float(value)


def exact(**values: Any) -> Numbers:
    """Numbers from formulas: no error but rounding."""
    return of_kind("exact", **values)


def tried(**values: Any) -> Numbers:
    """Numbers without sampling error at prompts, weights or problems that were drawn or given: the worst of
    them."""
    return of_kind("tried", **values)


def searched(**values: Any) -> Numbers:
    """Best values that a search found: another may find a better one."""
    return of_kind("searched", **values)


def sampled(**values: Any) -> Numbers:
    """Averages of random draws; give the standard error of NAME as NAME_stderr."""
    return of_kind("sampled", **values)


def projected(**values: Any) -> Numbers:
    """Exact numbers of the nearest weights on a theorem's set."""
    return of_kind("projected", **values)


def of_kind(kind: str, **values: Any) -> Numbers:
    """Numbers of a kind that is only known at run time."""
    return Numbers(Number(name, value, kind) for name, value in values.items())


def finding(
    numbers: Iterable[Numbers],
    control: Control,
    *,
    notes: Sequence[str] = (),
    remarks: Sequence[str] = (),
    details: Account | None = None,
    counterexample: bool = False,
) -> Finding:
    """Return what was found. It fails where a number fails, else is undecided where one is, else holds; the
    bound shown is that of the first number that decides so. With `counterexample` the numbers establish
    the opposite of the claim: it fails where all of them hold, and is undecided otherwise."""
    given = [number for part in numbers for number in part]
    measured = {number.name: number.value for number in given}
    if len(measured) < len(given):
        raise ValueError(f"two numbers have one name: {', '.join(number.name for number in given)}")
    bounds = [(number.verdict, number.bound) for number in given if number.bound is not None]
    verdict = joint([verdict for verdict, _ in bounds])
    bound = next(bound for its, bound in bounds if its == verdict)
    by_name = {number.name: number for number in given}
    routes = {n.name: _resolved(n.route, by_name) for n in given if n.route is not None}
    if counterexample:
        verdict = "fails" if verdict == "holds" else "undecided"
    return Finding(
        verdict,
        measured,
        bound,
        control,
        notes,
        remarks,
        details,
        kinds={number.name: number.kind for number in given},
        meanings={number.name: number.meaning for number in given if number.meaning},
        bounds={number.name: number.bound for number in given if number.bound is not None},
        routes=routes,
    )


def _resolved(route: Route, numbers: Mapping[str, Number]) -> Route:
    """Add to a route what the number says that compares the two."""
    if route.how != "compared":
        return route
    by = numbers[route.by]
    if by.bound is None:
        raise ValueError(f"compared_by: {by.name} has no bound")
    unit = "standard errors" if by.kind == "sampled" else ""
    return replace(route, off=by.value, unit=unit, within=by.bound.value, agrees=by.verdict == "holds")
