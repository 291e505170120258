"""Certificates in two dimensions: a multiple of I is the best symmetric matrix, or the best of all."""

from flint import arb, fmpq_poly

from icl.theory.looped.plane import Terms
from icl.theory.roots import is_positive, near, real_roots


def scalar_is_least(terms: Terms, best: arb) -> bool:
    """Return whether it is certain, at two layers, that no matrix is below the best multiple of I.

    f = f0 + f1 b^2 + f2 b^4 + k1 h^2 + k2 h^4 + c b^2 h^2 >= f0 + f1 b^2 + e b^4, e = f2 - min(c, 0)^2 / (4
    k2), which is at least f0 where f1 >= 0 and f0 - f1^2 / (4 e) elsewhere; that must stay above the risk at
    a rational near the best a.
    """
    if not all(is_positive(poly) for (b, h), poly in terms.items() if b == 0 and h > 0):
        return False
    f0, f1 = terms[0, 0], terms[2, 0]
    f2, k2, c = (terms.get(at, fmpq_poly())(0) for at in ((4, 0), (0, 4), (2, 2)))
    e = f2 - c**2 / (4 * k2) if c < 0 else f2
    roots = real_roots(f1)
    if not roots:
        return bool(e >= 0 and f1(0) > 0)
    gap = 4 * e * (f0 - fmpq_poly([f0(near(best, 12))])) - f1 * f1
    middle = near((roots[0] + roots[-1]) / 2, 12)
    outside = all(x < roots[0] or x > roots[-1] for x in real_roots(gap))
    return bool(e > 0 and f1.leading_coefficient() > 0 and outside and gap(middle) > 0)
