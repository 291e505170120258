"""A search for the least risk of a I + b K. What it finds proves itself: it is rational, and judged
exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from flint import arb, ctx, fmpq

from icl.theory.looped import normal, plane
from icl.theory.looped.equal_steps import EqualSteps
from icl.theory.roots import near

DIGITS = (4, 6, 9)  # decimals of a and b, before those that balls have


@dataclass(frozen=True)
class Rotated:
    """a I + b K, K the rotation by 90 degrees in so many planes."""

    a: fmpq
    b: fmpq
    planes: int
    risk: fmpq


def families(steps: EqualSteps) -> Iterator[tuple[int, plane.Terms]]:
    """Yield f(a I + b K) by the number of planes of K."""
    d, n, L = steps.dim, steps.context, steps.layers
    if d == 2:
        yield 1, {at: poly for at, poly in plane.coefficients(L, n).items() if at[1] == 0}
    else:
        yield from ((planes, normal.rotated(d, n, L, planes)) for planes in range(1, d // 2 + 1))


def best_rotation(steps: EqualSteps) -> Rotated:
    """Return the best one found, to all digits that balls have."""
    scalar = Rotated(a := near(steps.optimum[0], ctx.prec // 4), fmpq(0), 0, steps.polynomial(a))
    found = [scalar]
    for planes, terms in families(steps):
        a, b = (near(x, ctx.prec // 4) for x in lowest(terms, steps.optimum[0]))
        found.append(Rotated(a, abs(b), planes, value(terms, a, b)))
    return min(found, key=lambda one: one.risk)


def rounded(steps: EqualSteps, found: Rotated, enough: Callable[[Rotated], bool]) -> Rotated:
    """Return it with as few decimals as are enough."""
    one = found
    for digits in (*DIGITS, ctx.prec // 4):
        a, b = (fmpq(round(x * 10**digits), 10**digits) for x in (found.a, found.b))
        one = Rotated(a, b, found.planes, risk_of(steps, a, b, found.planes))
        if enough(one):
            break
    return one


def risk_of(steps: EqualSteps, a: fmpq, b: fmpq, planes: int) -> fmpq:
    if planes == 0 or b == 0:
        return steps.polynomial(a)
    return value(dict(families(steps))[planes], a, b)


def lowest(terms: plane.Terms, a: arb) -> tuple[arb, arb]:
    """Return where the sum of poly(a) b^j is least on a grid that shrinks around the best point so far."""
    bits = ctx.prec
    with ctx.workprec(4 * bits):  # the risk may be 10^-18 of the terms of its polynomial
        a, b, width = a.mid(), arb(0.5), arb(0.5)
        for _ in range(2 * bits):
            steps = [width * k / 2 for k in range(-2, 3)]
            tried = [(a + s, b + t) for s in steps for t in steps]
            a, b = min(tried, key=lambda at: plane.at(terms, *at).mid())
            a, b, width = a.mid(), b.mid(), width * 3 / 4
        return a, b


def value(terms: plane.Terms, a: fmpq, b: fmpq) -> fmpq:
    return sum((poly(a) * b**j for (j, _), poly in terms.items()), fmpq(0))
