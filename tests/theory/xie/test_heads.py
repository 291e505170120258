"""Means by definition: prompts as tokens, the layer as printed, the error's polynomial taken monomial by
monomial."""

import pytest
from flint import fmpq

from icl.theory.rationals import column, dot, matrix
from icl.theory.xie.heads import Heads, all_heads_of, descent_head, descent_risk, heads_of
from tests.theory.test_definitions import Numbers, some
from tests.theory.test_definitions import dot as product

GIVEN = [
    ((1,), 1, None, 0),
    ((1, -0.5), 2, (0.25, 0.75), 0.5),
    ((1, -0.5), 1, (1, -1), 0),
    ((0, 0), 2, None, -2),
]


def risk_by_definition(layer, heads, context):
    """Return E (y_q + sum_h b_h.G (a_h q) - w.x_q)^2, q = (x_q, y_q), over tokens (x, w.x)."""
    numbers = Numbers(layer.d * (context + 2))
    w = [m + u for m, u in zip(layer.mean, numbers.draw(layer.d), strict=True)]
    query, tokens = numbers.draw(layer.d), [numbers.draw(layer.d) for _ in range(context)]
    tokens = [[*x, product(w, x)] for x in tokens]
    query = [*query, product(layer.guess, query) + layer.bias]
    error = query[-1] - product(w, query[:-1])
    for b, a in heads:
        for z in tokens:
            scores = [product(k.entries(), z) for k in a]
            error += product(b.entries(), z) * product(query, scores) / fmpq(context)
    return numbers.mean(error * error)


def heads_of_size(d):
    return [(some(h + 1, d + 1), [some(h + 3 * k + 2, d + 1) for k in range(d + 1)]) for h in range(2)]


@pytest.mark.parametrize(("mean", "context", "guess", "bias"), GIVEN)
def test_risk_gradient_and_least_risk(mean, context, guess, bias):
    d = len(mean)
    layer, heads = Heads(mean, fmpq(1, context), guess, bias), heads_of_size(d)
    assert layer.risk(layer.matrices(heads)) == risk_by_definition(layer, heads, context)

    def moved(h, k, i, by):
        changed = [(1 * b, [1 * a for a in keys]) for b, keys in heads]
        vector = changed[h][0] if k is None else changed[h][1][k]
        vector[i, 0] += by
        return layer.risk(layer.matrices(changed))

    # exact by differences: the risk is quadratic in each entry
    slopes = [
        (moved(h, k, i, 1) - moved(h, k, i, -1)) / 2
        for h in range(2) for k in (None, *range(d + 1)) for i in range(d + 1)
    ]  # fmt: skip
    assert layer.gradient(heads) == slopes
    X = layer.best()
    assert layer.risk(X) == layer.least() == layer.risk(layer.matrices(all_heads_of(X)))
    assert layer.risk(layer.matrices(heads_of(X))) == layer.least()
    assert not any(layer.gradient(heads_of(X)))
    # convex in X: nowhere lower, and the form is that of the risk
    assert all(layer.risk([x + step for x in X]) > layer.least() for step in _steps(d))


def _steps(d):
    """Return symmetric matrices."""
    pairs = [(some(k, d + 1), some(k + 5, d + 1)) for k in range(4)]
    return [u * v.transpose() + v * u.transpose() for u, v in pairs]


@pytest.mark.parametrize(("mean", "context", "guess", "bias"), GIVEN[:3])
def test_the_gradient_in_the_guess_and_the_least_over_guesses(mean, context, guess, bias):
    d, share, heads = len(mean), fmpq(1, context), heads_of_size(len(mean))
    at = list(guess or [0] * d)

    def risk(v):
        layer = Heads(mean, share, v)
        return layer.risk(layer.matrices(heads))

    layer = Heads(mean, share, at)
    moved = [[[v + by * (i == k) for k, v in enumerate(at)] for by in (1, -1)] for i in range(d)]
    slopes = [(risk(plus) - risk(minus)) / 2 for plus, minus in moved]
    assert layer.slopes(layer.matrices(heads))[1] == slopes
    step = Heads(mean, share, mean)
    assert step.risk(step.matrices([descent_head(mean, 1 / step.square)])) == layer.least_of_any_guess()
    assert layer.least_of_any_guess() == descent_risk(d, share) <= layer.least()


@pytest.mark.parametrize(("dim", "context"), [(1, 1), (2, 1), (3, 7), (5, 10)])
def test_what_fewer_heads_lose(dim, context):
    """Vanish on the first covariates: the least of the form over what is left, entry by entry."""
    layer = Heads([1] * dim, fmpq(1, context))
    for heads in range(dim + 1):
        places = [(i, j) for i in range(dim + 1) for j in range(i, dim + 1) if j >= dim - heads]
        basis = [0 * layer.gram for _ in places]
        for one, (i, j) in zip(basis, places, strict=True):
            one[i, j] = one[j, i] = 1
        form = [[dot(layer.form(x), y) for y in basis] for x in basis]
        target = column([dot(layer.gram, x) for x in basis])
        least = 1 - dot(target, matrix(form).solve(target))
        assert least == layer.least_miss(heads)
    for heads in range(1, dim + 1):
        kappa = fmpq(2 * (dim - heads) * (dim * context + 2), context * (heads * context + 2))
        rho, tau = 2 * dim * layer.square, fmpq(context, dim * context + 2)
        assert layer.lost(heads) == tau**2 * kappa * rho / (kappa + rho) * layer.guess_error
    step = descent_risk(dim, layer.share)
    assert step == fmpq(dim * (dim + 1), context + dim + 1)
    assert layer.least() - step == 2 * layer.guess_error / (dim * context + 2)
