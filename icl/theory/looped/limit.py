"""Long prompts: n^L f(I + B / sqrt(n)) tends to E |(X + B)^L|_F^2 as n grows, X of long_prompts.py (GOE).

At d = 2 exactly, by B = alpha I + beta J. At large d, X and B over sqrt(d), by pairings that do not cross.
"""

from math import comb

from flint import arb, fmpq, fmpq_poly

from icl.theory.looped.plane import chi
from icl.theory.roots import evaluate, real_roots
from icl.theory.wishart import best_polynomial

T = fmpq_poly([0, 1])


def in_alpha(layers: int) -> list[fmpq_poly]:
    """Return the coefficients of alpha^0, alpha^2, .. at d = 2, polynomials in t = beta^2.

    X + B = s I + N with s - alpha ~ N(0, 1), N^2 = (w - t) I, |N|_F^2 = 2 (w + t), w ~ chi2_2. Its power is
    P I + Q N with P, Q = ((s + N)^L +- (s - N)^L) / 2, and P^2 - Q^2 N^2 = (s^2 - N^2)^L.
    """
    L = layers
    total = [fmpq_poly()] * (L + 1)
    for j in range(L + 1):
        of_s = comb(2 * L, 2 * j)
        terms = 2 * of_s * _shifted(j)
        if j:
            terms += 2 * T * (of_s - (-1) ** j * comb(L, j)) * _shifted(j - 1)
        for i in range(L - j + 1):  # E (s + alpha)^(2 (L - j))
            total[i] += comb(2 * L - 2 * j, 2 * i) * chi(2 * (L - j - i), 1) * terms
    return total


def _shifted(j: int) -> fmpq_poly:
    """Return E (w - t)^j."""
    return sum((comb(j, i) * chi(2 * i, 2) * (-T) ** (j - i) for i in range(j + 1)), fmpq_poly())


def best_turn(layers: int) -> tuple[arb, arb]:
    """Return beta^2 at the least risk with alpha = 0, and its share of the risk at B = 0."""
    risk = in_alpha(layers)[0]
    turns = [t for t in real_roots(risk.derivative()) if t > 0]
    t = min(turns, key=lambda t: float(evaluate(risk, t)))
    return t, evaluate(risk, t) / risk(0)


def is_centred(layers: int) -> bool:
    """Return whether it is certain that no alpha has a lower risk, at any beta.

    Up to t0 the coefficients of the powers of alpha are positive. Beyond 1, |M^L|_F^2 >= 2 |det M|^L has at
    least the mean 2 (t - 1)^L by Jensen: E det (X + B) = alpha^2 + t - 1.
    """
    rest = in_alpha(layers)[1:]
    low = best_turn(layers)[1] * in_alpha(layers)[0](0)
    roots = [x for poly in rest for x in real_roots(poly) if x > 0]
    certain = all(x > 1 and 2 * (x - 1) ** layers > low for x in roots)
    return bool(certain and all(poly(0) > 0 for poly in rest))


def separate(moments: list[fmpq], layers: int) -> fmpq:
    """Return the least risk of B_1, .., B_L that may differ, all multiples of I: E tr q(X)^2, q monic."""
    return best_polynomial(moments[2 * layers :: -1], layers)[1]


def semicircle(count: int) -> list[fmpq]:
    """Return the moments of the limit of X / sqrt(d): Catalan's numbers."""
    return [fmpq(0 if k % 2 else comb(k, k // 2), k // 2 + 1) for k in range(count)]


def gaussian_turn(layers: int) -> fmpq_poly:
    """Return the limit for B = kappa K, K antisymmetric and Gaussian with variance 1, in q = 1 - kappa^2.

    M = X + B has E M_ij M_kl = (2 - q) [ik][jl] + q [il][jk]. Of the pairings of M^L M^TL that do not cross k
    lines run from one half to the other, and each half has as many ways to pair its other letters.
    """
    L, q = layers, T
    ways = {k: comb(L, (L - k) // 2) * (k + 1) // ((L + k) // 2 + 1) for k in range(L % 2, L + 1, 2)}
    return sum((w * w * (2 - q) ** k * q ** (L - k) for k, w in ways.items()), fmpq_poly())


def block_rate(square: fmpq) -> arb:
    """Return the limit's rate for B = sqrt(square) times a rotation by 90 degrees in every plane.

    The series for (lambda - X - B)^-1 diverge from where, at lambda = w + w / (w^2 + square), the mean of
    1 / |w - i h|^2 over h = +- sqrt(square) is 1. There |lambda|^2 is a function of r = |w|^2.
    """
    g, r = square, T
    top = r * (2 * g * (g + 1) + r * (g + 1) - r * r)
    low = g * (r + g)
    edge = arb(8 * g + 1).sqrt()
    first, last = arb(1 - g) if g < 1 else (2 * g + 1 - edge) / 2, (2 * g + 1 + edge) / 2
    inner = real_roots(top.derivative() * low - top * low.derivative())
    greatest = evaluate(top, last) / evaluate(low, last)
    for x in [first, *(x for x in inner if x > first and x < last)]:
        greatest = greatest.max(evaluate(top, x) / evaluate(low, x))
    return greatest
