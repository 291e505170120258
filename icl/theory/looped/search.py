"""A search for the least risk of a I + b K. What it finds proves itself: it is rational, and judged
exactly."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from flint import arb, arb_poly, ctx, fmpq

from icl.theory.looped import normal, plane
from icl.theory.looped.equal_steps import EqualSteps
from icl.theory.roots import near

DIGITS = (4, 6, 9)  # decimals of a and b, before those that balls have


@dataclass(frozen=True)
class Rotated:
    """a I + b K, K the rotation by 90 degrees in the given number of planes."""

    a: fmpq
    b: fmpq
    planes: int
    risk: fmpq


@cache
def families(steps: EqualSteps) -> dict[int, plane.Terms]:
    """Return f(a I + b K) by the number of planes of K."""
    d, n, L = steps.dim, steps.context, steps.layers
    found = {0: {(0, 0): steps.polynomial}}
    if d == 2:
        found[1] = plane.coefficients(L, n, stretched=False)
    return found | normal.rotated(d, n, L) if d > 2 else found


def best_rotation(steps: EqualSteps) -> Rotated:
    """Return the best one found, to all digits that balls have."""
    found, best = [], steps.optimum[0]
    for planes, terms in families(steps).items():
        where = lowest(terms, best) if planes else (best, arb(0))
        a, b = (near(x, ctx.prec // 4) for x in where)
        found.append(Rotated(a, abs(b), planes, plane.at(terms, a, b)))
    return min(found, key=lambda one: one.risk)


def rounded(steps: EqualSteps, found: Rotated, enough: Callable[[Rotated], bool]) -> Rotated:
    """Return it with as few decimals as are enough."""
    one = found
    for digits in (*DIGITS, ctx.prec // 4):
        a, b = (fmpq(round(x * 10**digits), 10**digits) for x in (found.a, found.b))
        one = Rotated(a, b, found.planes, plane.at(families(steps)[found.planes], a, b))
        if enough(one):
            break
    return one


def lowest(terms: plane.Terms, a: arb) -> tuple[arb, arb]:
    """Return where the sum of poly(a) b^j is least on a grid that shrinks around the best point so far."""
    bits = ctx.prec
    with ctx.workprec(4 * bits):  # the risk may be 10^-18 of the terms of its polynomial
        polys = [(j, arb_poly(poly)) for (j, _), poly in terms.items()]

        def height(at: tuple[arb, arb]) -> arb:
            return sum((poly(at[0]) * at[1] ** j for j, poly in polys), arb(0)).mid()

        a, b, width = a.mid(), arb(0.5), arb(0.5)
        for _ in range(2 * bits):
            steps = [width * k / 2 for k in range(-2, 3)]
            tried = [(a + s, b + t) for s in steps for t in steps]
            a, b = min(tried, key=height)
            a, b, width = a.mid(), b.mid(), width * 3 / 4
        return a, b
