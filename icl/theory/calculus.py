"""Operations on an exact function: derivatives, minima, gradient flow, limits, counterexamples:
docs/vocabulary.md.

`gradient`, `hessian` and `limit` call it with rationals and interpolate. `minimise` and `flow` call it once,
with polynomials, so that it must be a formula in + - * and division by numbers.
"""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

from flint import Ordering, arb, arb_mat, ctx, fmpq, fmpq_mat, fmpq_mpoly_ctx, fmpq_poly

from icl.theory.rationals import column, identity, rational

MOST_SETTINGS = 100_000
SPARE = 3  # points at which an interpolated function is tested


def gradient(f: Callable[..., Any], x: Sequence[Any], degree: int = 2) -> list[fmpq]:
    """Return the gradient of f(*x), a polynomial of at most this degree in each argument."""
    return [_along(f, x, unit.entries(), degree)[1] for unit in map(column, identity(len(x)).tolist())]


def hessian(f: Callable[..., Any], x: Sequence[Any], degree: int = 2) -> fmpq_mat:
    """Return the second derivatives of f(*x), a polynomial of at most this degree in each argument."""
    units = identity(len(x)).tolist()
    own = [_along(f, x, unit, degree)[2] for unit in units]
    found = fmpq_mat(len(x), len(x))
    for i, u in enumerate(units):
        for j, v in enumerate(units[: i + 1]):
            both = [a + b for a, b in zip(u, v, strict=True)]
            mixed = 2 * own[i] if i == j else _along(f, x, both, 2 * degree)[2] - own[i] - own[j]
            found[i, j] = found[j, i] = mixed
    return found


def _along(f: Callable[..., Any], x: Sequence[Any], v: Sequence[fmpq], degree: int) -> list[fmpq]:
    """Return the coefficients of f(x + t v), a polynomial in t of at most this degree; another is refused."""
    points = range(max(degree, 2) + 1 + SPARE)
    values = column(f(*(rational(a) + t * b for a, b in zip(x, v, strict=True))) for t in points)
    powers = fmpq_mat([[fmpq(t) ** k for k in range(len(points))] for t in points])
    found = powers.solve(values).entries()
    if any(found[degree + 1 :]):
        raise ValueError(f"not a polynomial of degree {degree} in an argument: give degree=")
    return list(found)


class Minimum(NamedTuple):
    """Balls that hold the arguments of a strict local minimum, and its value."""

    x: list[arb]
    value: arb


def minimise(f: Callable[..., Any], start: Sequence[Any], steps: int = 100) -> Minimum:
    """Return a local minimum of the polynomial f, proved: one zero of the gradient lies in the balls
    (Krawczyk) and the Hessian is positive definite there."""
    poly, slopes, curves = _derivatives(f, len(start))
    x, damping, places = [rational(value) for value in start], fmpq(1), 2 ** (2 * ctx.prec)
    for _ in range(steps):  # Newton's, damped, in rationals that are rounded
        H = fmpq_mat([[_at(curve, x) for curve in row] for row in curves]) + damping * identity(len(x))
        if H.det() != 0:
            move = H.solve(column(_at(slope, x) for slope in slopes)).entries()
            new = [fmpq(((a - b) * places).floor(), places) for a, b in zip(x, move, strict=True)]
            if _at(poly, new) <= _at(poly, x):
                x, damping = new, damping / 8
                continue
        damping *= 4

    def derivatives(at: Sequence[Any]) -> tuple[arb_mat, arb_mat]:
        curved = [[_at(curve, at) for curve in row] for row in curves]
        return arb_mat([[_at(slope, at)] for slope in slopes]), arb_mat(curved)

    for digits in (ctx.prec // 2, ctx.prec // 4, 8):
        box = proved(derivatives, [arb(a) for a in x], [fmpq(1, 2**digits)] * len(x))
        if box is not None:
            return Minimum(box, _at(poly, box))
    raise ValueError("no minimum is proved near where the descent from the start ends")


def proved(
    derivatives: Callable[[Sequence[arb]], tuple[arb_mat, arb_mat]], x: Sequence[arb], radii: Sequence[Any]
) -> list[arb] | None:
    """Return balls that hold one zero of the gradient (Krawczyk), with a Hessian that is positive definite
    within the radii around x; None where that is not proved. `derivatives` are the two at balls."""
    spread, (slope, near) = arb_mat([[arb(0, r)] for r in radii]), derivatives(x)
    wide = derivatives([a + e for a, e in zip(x, spread.entries(), strict=True)])[1]
    if near.det().contains(0):
        return None
    inverse = near.inv()
    image = ((arb_mat(identity(len(x))) - inverse * wide) * spread - inverse * slope).entries()
    inside = all(e.abs_upper() < arb(r) for e, r in zip(image, radii, strict=True))
    minors = (arb_mat([[wide[i, j] for j in range(m)] for i in range(m)]).det() for m in range(1, len(x) + 1))
    return [a + e for a, e in zip(x, image, strict=True)] if inside and all(m > 0 for m in minors) else None


def flow(f: Callable[..., Any], start: Sequence[Any], order: int = 12) -> list[fmpq_poly]:
    """Return the Taylor polynomials in t of the gradient flow x' = -grad f(x) of a polynomial f."""
    _, slopes, _ = _derivatives(f, len(start))
    x = [fmpq_poly([rational(value)]) for value in start]
    for k in range(1, order + 1):
        moved = [a[0] - _at(slope, x).integral() for a, slope in zip(x, slopes, strict=True)]
        x = [fmpq_poly(poly.coeffs()[: k + 1]) for poly in moved]
    return x


def _derivatives(f: Callable[..., Any], k: int) -> tuple[Any, list[Any], list[list[Any]]]:
    ring = fmpq_mpoly_ctx.get([f"x{i}" for i in range(k)], Ordering.lex)
    poly: Any = f(*ring.gens()) + ring.constant(0)
    slopes = [poly.derivative(i) for i in range(k)]
    return poly, slopes, [[slope.derivative(i) for i in range(k)] for slope in slopes]


def _at(poly: Any, x: Sequence[Any]) -> Any:
    """Return a polynomial's value at rationals, balls or polynomials."""
    total = 0 * x[0]
    for powers, factor in poly.terms():
        for value, power in zip(x, powers, strict=True):
            factor = value ** int(power) * factor if power else factor
        total = total + factor
    return total


def limit(f: Callable[[int], Any], degree: int = 6, start: int = 20) -> tuple[int, fmpq]:
    """Return (p, c) of f(n) ~ c n^p as n grows, f a rational function of n that is interpolated from `start`
    on; three further values test it."""
    powers, most = range(degree + 1), 2 * degree + 2
    rows = []
    for n in range(start, start + most + SPARE):
        value = fmpq(f(n))
        rows.append([fmpq(n) ** k for k in powers] + [-value * fmpq(n) ** k for k in powers])
    reduced, rank = fmpq_mat(rows).rref()
    if rank == most:
        raise ValueError(f"not a rational function of degree {degree} in n: give degree=")
    pivots = [next(j for j in range(most) if reduced[i, j] != 0) for i in range(rank)]
    free = next(j for j in range(most) if j not in pivots)
    solved = {free: fmpq(1), **{pivot: -reduced[i, free] for i, pivot in enumerate(pivots)}}
    above, below = ([solved.get(k + s, fmpq(0)) for k in powers] for s in (0, degree + 1))
    if not any(above):
        return 0, fmpq(0)
    p, q = (max(k for k in powers if c[k] != 0) for c in (above, below))
    return p - q, above[p]  # below[q] is the free one, 1


def counterexample(claim: Callable[..., bool], **ranges: tuple[int, int]) -> dict[str, int] | None:
    """Return the whole settings of the least sum at which a claim is False, of all in the ranges, both ends
    included; None where there are none."""
    every = list(product(*(range(low, high + 1) for low, high in ranges.values())))
    if len(every) > MOST_SETTINGS:
        raise ValueError(f"{len(every)} settings: at most {MOST_SETTINGS}")
    ordered = (dict(zip(ranges, values, strict=True)) for values in sorted(every, key=lambda v: (sum(v), v)))
    return next((one for one in ordered if not claim(**one)), None)
