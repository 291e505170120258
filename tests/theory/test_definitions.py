"""The battery by definition: every exact function of theory against the mean that it is, monomial by
monomial.

Prompts are written as tokens, a model as it is printed, and the error as a polynomial in independent
numbers; nothing is shared with the formula. A row is (function, definition) at one small size.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from flint import Ordering, arb, arb_mat, fmpq, fmpq_mat, fmpq_mpoly_ctx, fmpq_poly, fmpz_poly

from icl.theory.ahn.critical_set import query_polynomial, slope_of_prompt
from icl.theory.ahn.forward import forward, sparse, tokens
from icl.theory.ahn.relu_layer import curvature, relu_layer_risk, steepest, terms_of_b_0
from icl.theory.ahn.two_layer_certificate import mean_square, traceless
from icl.theory.giannou import inversion, polynomials
from icl.theory.giannou.balls import greatest, positive
from icl.theory.looped import normal, plane
from icl.theory.looped.equal_steps import EqualSteps
from icl.theory.looped.search import families
from icl.theory.looped.tokens import paths_error, predicted, root, turned, whitened
from icl.theory.one_layer import OneLayer, products
from icl.theory.rationals import diagonal, identity, largest, matrix, trace
from icl.theory.rationals import dot as inner
from icl.theory.wishart import best_polynomial, covariance_moments, mean_trace
from icl.theory.words import ONE, Drawn, stack_risk, stack_slope


class Numbers:
    """Independent numbers, each standard normal or, after these, uniform on [-1, 1]."""

    def __init__(self, normal: int, uniform: int = 0) -> None:
        self.normal = normal
        self.ring = fmpq_mpoly_ctx.get([f"x{i}" for i in range(normal + uniform)], Ordering.lex)
        self._left = iter(self.ring.gens())

    def draw(self, count: int) -> list:
        return [next(self._left) for _ in range(count)]

    def mean(self, poly) -> fmpq:
        total = fmpq(0)
        for powers, factor in (poly + self.ring.constant(0)).terms():
            for i, power in enumerate(powers):
                factor *= 0 if power % 2 else odd_factorial(power) if i < self.normal else fmpq(1, power + 1)
            total += factor
        return total


def odd_factorial(power: int) -> int:
    return 1 if power < 2 else (power - 1) * odd_factorial(power - 2)


def dot(one, other):
    return sum(a * b for a, b in zip(one, other, strict=True))


def some(k: int, rows: int, columns: int = 1) -> fmpq_mat:
    """Return a matrix of entries without a pattern."""
    entries = [fmpq((7 * i * i + 5 * i * k + 3 * k + 1) % 11 - 5, 4) for i in range(rows * columns)]
    return fmpq_mat(rows, columns, entries)


def times(root: fmpq_mat, vector) -> list:
    return [dot([root[i, j] for j in range(len(vector))], vector) for i in range(len(vector))]


def layer_by_definition(P, Q, root, task_root, n) -> fmpq:
    """Return E (y_q + w.x_q)^2 with Z + P Z M Z^T Q Z / n as printed, x = root u, w = task_root u."""
    d = root.nrows()
    numbers = Numbers(d * (n + 2))
    w, query = times(task_root, numbers.draw(d)), times(root, numbers.draw(d))
    tokens = [times(root, numbers.draw(d)) for _ in range(n)]
    Z = [[*x, dot(w, x)] for x in tokens]
    last = [*query, 0 * query[0]]
    moved = times(Q, last)
    error = dot(w, query) + last[-1]
    for z in Z:
        error += dot([P[d, i] for i in range(d + 1)], z) * dot(z, moved) / fmpq(n)
    return numbers.mean(error * error)


def stack_by_definition(A, n) -> fmpq:
    """Return E (label entry of the query + w.x_q)^2 of eq. (8), tokens through every layer."""
    d = A[0].nrows()
    numbers = Numbers(d * (n + 2))
    w, query, tokens = numbers.draw(d), numbers.draw(d), [numbers.draw(d) for _ in range(n)]
    labels, entry = [dot(w, x) for x in tokens], 0 * query[0]
    for a in A:  # y <- y - (1/n) sum_i y_i x_i^T A x
        row = [sum(y * x[i] for y, x in zip(labels, tokens, strict=True)) / fmpq(n) for i in range(d)]
        move = [dot(row, [a[i, j] for i in range(d)]) for j in range(d)]
        labels = [y - dot(move, x) for y, x in zip(labels, tokens, strict=True)]
        entry = entry - dot(move, query)
    return numbers.mean((entry + dot(w, query)) ** 2)


def trace_by_definition(d, n, power) -> fmpq:
    numbers = Numbers(d * n)
    X = [numbers.draw(d) for _ in range(n)]
    S = [[sum(x[i] * x[j] for x in X) / fmpq(n) for j in range(d)] for i in range(d)]
    product = S
    for _ in range(power - 1):
        product = [[dot(row, [S[k][j] for k in range(d)]) for j in range(d)] for row in product]
    return numbers.mean(sum(product[i][i] for i in range(d)))


def layer_rows():
    for d, n in ((1, 1), (1, 3), (2, 1), (2, 2)):
        root, task_root = some(1, d, d) + identity(d), some(4, d, d)
        layer = OneLayer(root * root.transpose(), n, task_root * task_root.transpose())
        P, Q = some(2, d + 1, d + 1), some(5, d + 1, d + 1)
        by_definition = layer_by_definition(P, Q, root, task_root, n)
        yield f"risk of a layer {d} {n}", layer.risk(products(P, Q)), by_definition
        A = some(3, d, d)
        P = matrix([[int(i == j == d) for j in range(d + 1)] for i in range(d + 1)])
        Q = matrix([[-A[i, j] if max(i, j) < d else 0 for j in range(d + 1)] for i in range(d + 1)])
        by_definition = layer_by_definition(P, Q, root, task_root, n)
        yield f"risk at A {d} {n}", layer.risk_at(A), by_definition
        step = some(7, d, d)
        plus, minus = (layer.risk_at(A + s * step) for s in (1, -1))
        along = dot(layer.gradient(A).entries(), step.entries())
        yield f"gradient in A {d} {n}", along, (plus - minus) / 2
        best = layer.optimum()
        yield f"optimum {d} {n}", layer.risk(products(*best)), layer.least()
        yield f"least {d} {n}", layer_by_definition(*best, root, task_root, n), layer.least()
        yield f"shapes {d}", [(x.nrows(), x.ncols()) for x in best], [(d + 1, d + 1)] * 2


def stack_rows():
    for d, n, L in ((1, 1, 3), (2, 1, 2), (2, 2, 2), (2, 2, 3), (3, 2, 2)):
        A = [some(layer + 1, d, d) for layer in range(L)]
        yield f"stack {d} {n} {L}", stack_risk(A, n), stack_by_definition(A, n)
        E = some(9, d, d)
        h = fmpq(1, 3)
        plus, minus = (stack_by_definition([A[0] + s * h * E, *A[1:]], n) for s in (1, -1))
        yield f"slope {d} {n} {L}", stack_slope(A, n, 0, E), (plus - minus) / (2 * h)


def moment_rows():
    for d, n in ((1, 2), (2, 1), (2, 2)):
        moments = [trace_by_definition(d, n, k) for k in range(1, 5)]
        yield f"moments {d} {n}", covariance_moments(d, n, 5)[1:], moments
        yield f"words {d} {n}", [Drawn(identity(d), n).expect([ONE] * k) for k in range(1, 5)], moments


def forward_rows():
    """Tokens one by one: z <- z + (1/n) sum over the context of P z_k (z_k . Q z), as eq. (4) prints it."""
    for d, n, L in ((1, 1, 1), (2, 3, 2)):
        Z, layers = some(3, d + 1, n + 1), [(some(1, d + 1, d + 1), some(2, d + 1, d + 1))] * L
        states = [[Z[i, j] for i in range(d + 1)] for j in range(n + 1)]
        for P, Q in layers:
            moved = [[(times(P, z), dot(z, times(Q, at))) for z in states[:n]] for at in states]
            states = [
                [at[i] + sum(p[i] * score for p, score in of) / fmpq(n) for i in range(d + 1)]
                for at, of in zip(states, moved, strict=True)
            ]
        yield f"forward {d} {n} {L}", forward(Z, layers)[-1], matrix(states).transpose()
    A, B = some(1, 2, 2), some(2, 2, 2)
    P, Q = (
        matrix([[*row, 0] for row in B.tolist()] + [[0, 0, 1]]),
        matrix([[*row, 0] for row in A.tolist()] + [[0, 0, 0]]),
    )
    Z, label = tokens(Random(0), 1, 2)
    yield "tokens", [Z[1, j] / Z[0, j] for j in range(3)], [label / Z[0, 2]] * 2 + [0]
    yield "eq. (11)", sparse(A, B), (P, Q)


def errors_of(X, A, B) -> fmpq_mat:
    """Return K, w.K x the error of eq. (11) on the examples X, by tokens at unit w and query."""
    d, n = X.nrows(), X.ncols()
    layers = [sparse(a, b) for a, b in zip(A, [*B, None], strict=True)]
    rows = X.tolist()
    K = fmpq_mat(d, d)
    for i in range(d):
        for j in range(d):
            Z = matrix([*([*row, int(j == k)] for k, row in enumerate(rows)), [*rows[i], 0]])
            K[i, j] = forward(Z, layers)[-1][d, n] + int(i == j)
    return K


def critical_set_rows():
    for d, n, L, with_b in ((1, 2, 2, False), (2, 2, 2, False), (2, 3, 2, True), (2, 2, 3, True)):
        X, a = some(3, d, n), [fmpq(k + 2, 5) for k in range(L)]
        b = [fmpq(2 - 3 * k, 7) for k in range(L - 1)] if with_b else []
        A, B = [diagonal([-x] * d) for x in a], [diagonal([x] * d) for x in b or [0] * (L - 1)]
        G, K = X * X.transpose() / n, errors_of(X, A, B)
        q = query_polynomial(a, [x * y for x, y in zip(a, b, strict=False)])
        power, total = identity(d), fmpq_mat(d, d)
        for c in q.coeffs():
            total, power = total + c * power, power * G
        yield f"q {d} {n} {L}", total, K
        A = [x + some(k, d, d) for k, x in enumerate(A)]
        B = [x + some(k + 5, d, d) for k, x in enumerate(B)]
        for at in range(2 * L - 1):
            E, degree = some(8, d, d), 3**L
            values = []
            for t in range(degree):
                moved = [M + t * E if k == at else M for k, M in enumerate([*A, *B])]
                K = errors_of(X, moved[:L], moved[L:])
                values.append(inner(K, K))
            powers = fmpq_mat(degree, degree, [t**k for t in range(degree) for k in range(degree)])
            slope = powers.solve(fmpq_mat(degree, 1, values))[1, 0]
            yield f"slope of a prompt {d} {L} {at}", slope_of_prompt(G, A, B, at, E), slope
    for d, n in ((1, 1), (2, 1), (2, 2)):
        moments = covariance_moments(d, n, 5)
        a = [fmpq(2, 5), fmpq(3, 4)]
        by_definition = stack_by_definition([diagonal([x] * d) for x in a], n)
        yield f"mean of q {d} {n}", mean_trace(moments, query_polynomial(a) ** 2), by_definition
        q, least = best_polynomial(moments, 1)
        m0, m1, m2 = moments[:3]  # of 1 - c s
        yield f"best q {d} {n}", (q, least), (fmpq_poly([1, -m1 / m2]), m0 - m1**2 / m2)


def tensor_rows():
    """E |S_ai S_jk W_ijkl|^2 by tokens."""
    for d, n in ((2, 1), (2, 2), (3, 1)):
        W = traceless(some(1, d, d), some(2, d, d))
        numbers, places = Numbers(d * n), range(d)
        X = [numbers.draw(d) for _ in range(n)]
        S = [[sum(x[i] * x[j] for x in X) / fmpq(n) for j in places] for i in places]
        total = fmpq(0)
        for a in places:
            for m in places:
                entry = sum(S[a][i] * S[j][k] * W[i, j, k, m] for i in places for j in places for k in places)
                total += numbers.mean(entry * entry)
        yield f"mean square {d} {n}", mean_square(W, fmpq(n)), total
        traces = [np.trace(W, axis1=i, axis2=j) for i in range(4) for j in range(i)]
        yield f"traces {d}", {x for trace in traces for x in trace.flat}, {fmpq(0)}


def relu_rows():
    """Use that a token's part of the error is relu(x.u) (b_0.x + b_1 w.x), even in x: half of it, a
    quarter of two."""
    for d, n in ((1, 1), (1, 2), (2, 1), (2, 2)):
        b_0, b_1, A = some(1, d), fmpq(3, 2), some(2, d, d)
        numbers = Numbers(d * (n + 2))
        w, query = numbers.draw(d), numbers.draw(d)
        u, label, b = times(A, query), dot(w, query), b_0.entries()
        parts = [
            dot(x, u) * (dot(b, x) + b_1 * dot(w, x)) / fmpq(n) for x in (numbers.draw(d) for _ in range(n))
        ]
        total = numbers.mean(label * label) + sum(numbers.mean(label * part) for part in parts)
        for i, part in enumerate(parts):
            total += sum(numbers.mean(part * other) / (2 if i == j else 4) for j, other in enumerate(parts))
        yield f"relu {d} {n}", relu_layer_risk(b_0, b_1, A, fmpq(n)), total
        risks = [relu_layer_risk(some(1, d), fmpq(0), s * matrix(A.tolist()), fmpq(n)) for s in (0, 1)]
        moved, (spread, drift) = A.transpose() * b_0, terms_of_b_0(fmpq(n))
        square = dot(b, b) * dot(A.entries(), A.entries())
        rise = spread * square + drift * dot(moved.entries(), moved.entries())
        yield f"b_0 {d} {n}", risks[1] - risks[0], rise
        flat = [relu_layer_risk(0 * b_0, s * b_1, A, fmpq(n)) for s in (1, -1)]
        bend = b_1**2 * dot(A.entries(), A.entries()) * curvature(d, fmpq(n))
        factor = curvature(d, fmpq(n))  # of |b_1 A|^2, beside b_1 tr A: at b_1 = 1
        along = [trace(A) + 2 * factor * dot(A.entries(), A.entries())]
        along += (2 * factor * A + identity(d)).entries()
        yield f"steepest {d} {n}", steepest(A, fmpq(n)), max(map(abs, along))
        yield f"curvature {d} {n}", sum(flat) / 2 - d, bend


def looped_rows():
    """One layer many times: the tokens of every stack of equal layers."""

    def by_definition(A, n, L):
        return stack_by_definition([A] * L, n)

    a, b, h = fmpq(3, 4), fmpq(1, 5), fmpq(-1, 7)
    for n, L in ((1, 2), (2, 2), (2, 3)):
        total = by_definition(matrix([[a + h, -b], [b, a - h]]), n, L)
        yield f"plane {n} {L}", plane.risk(L, n, a, b, h), total
        yield f"coefficients {n} {L}", plane.at(plane.coefficients(L, n), a, b, h * h), total
    sizes = (1, 2, 3, 0), (2, 1, 3, 1), (2, 2, 2, 1), (3, 1, 2, 1), (3, 2, 2, 1), (4, 1, 2, 2)
    for d, n, L, planes in sizes:
        steps, scalar = EqualSteps(d, n, L), diagonal([a] * d)
        yield f"equal steps {d} {n} {L}", steps.polynomial(a), by_definition(scalar, n, L)
        total = by_definition(turned(d, a, b, planes), n, L)
        yield f"risk of the search {d} {n} {L}", plane.at(families(steps)[planes], a, b), total
        if planes:
            yield f"rotated {d} {n} {L}", plane.at(normal.rotated(d, n, L)[planes], a, b), total
        total = by_definition(diagonal([a + b] + [a] * (d - 1)), n, L)
        yield f"stretched {d} {n} {L}", plane.at(normal.stretched(d, n, L), a, b), total
        if d > 1 and L < 3:
            directions = turned(d, fmpq(0), fmpq(1), 1), diagonal([1, -1] + [0] * (d - 2))
            curvatures = steps.antisymmetric_curvature, steps.symmetric_curvature
            for name, X, curvature in zip("KH", directions, curvatures, strict=True):
                rises = []  # f is of degree 4 along X
                for t in (1, 2):
                    ends = [by_definition(scalar + s * t * X, n, L) for s in (1, -1)]
                    rises.append(sum(ends) / 2 - steps.polynomial(a))
                yield f"curvature {name} {d} {n}", 2 * curvature(a), (16 * rises[0] - rises[1]) / 12
    for d, n, L in ((1, 2, 1), (2, 2, 1), (2, 2, 2)):
        moments = [fmpq(d)] + [trace_by_definition(d, n, k) for k in range(1, 2 * L + 1)]
        gram = matrix([[moments[i + j] for j in range(L + 1)] for i in range(L + 1)])
        below = matrix([row[1:] for row in gram.tolist()[1:]])
        yield f"separate {d} {n} {L}", EqualSteps(d, n, L).separate_risk, gram.det() / below.det()


def inversion_rows():
    """giannou: iterations and polynomials, run and written out."""
    A, X = matrix([[1, 2], [fmpq(-1, 3), 1]]), some(2, 2, 2)
    one, R = identity(2), identity(2) - X * A
    for k in (2, 3, 4):
        yield f"step of order {k}", inversion.step(X, A, k), (one - R**k) * A.inv()
    for kappa, share in ((fmpq(3), fmpq(1, 10)), (fmpq(5, 2), fmpq(9, 10))):
        D = diagonal([1, fmpq(2, 3), 1 / kappa])
        for alpha, found in (
            (1 / (1 + 1 / kappa**2), inversion.authors_residual(kappa)),
            (2 * share, inversion.residual(2 * share, kappa)),
        ):
            R = identity(3) - alpha * D * D
            yield f"residual {kappa} {alpha}", found, largest(R)
            for k in (2, 3):
                Y, count = alpha * D, 0
                while largest(identity(3) - Y * D) > fmpq(1, 1000):
                    Y, count = inversion.step(Y, D, k), count + 1
                yield f"steps {kappa} {alpha} {k}", inversion.steps_to(k, largest(R), fmpq(1, 1000)), count
        rate, error, count = (kappa - 1) / (kappa + 1), fmpq(1), 0
        while error > fmpq(1, 1000):
            error, count = error * rate, count + 1
        yield f"descent {kappa}", inversion.descent_steps(rate, fmpq(1, 1000)), count
    yield "no rate", inversion.descent_steps(fmpq(0), fmpq(1, 2)), 1
    equal = [inversion.falls_to(fmpq(1, 2), k, fmpq(1, 2**60)) for k in (59, 60, 10**6)]
    yield "falls", equal, [False, True, True]
    printed = inversion.printed_steps(fmpq(1), fmpq(1), arb(2)) - 2 - (arb(3).log() / arb(2).log())
    yield "printed", printed.contains(0) and printed.rad() < 1e-12, True
    yield "needed", inversion.needed_accuracy(fmpq(1, 2), fmpq(1, 3)), fmpq(1, 9 * 4) / fmpq(27, 8)


def polynomial_rows():
    a = fmpz_poly([0, 1])
    for seed in (0, 1):
        H, rng, found = [a, fmpz_poly([1])], Random(seed), []
        for _ in range(3):
            V, K, Q = ([[rng.randint(1, 5) for _ in H] for _ in H] for _ in "VKQ")
            key, query = ([dot(row, H) for row in W] for W in (K, Q))
            H = [h + dot(row, H) * dot(key, query) for h, row in zip(H, V, strict=True)]
            found.append(max(h.degree() for h in H))
        yield f"attention {seed}", polynomials.attention_degrees(3, Random(seed)), found
    for order in (2, 3, 4):
        X, found, one = a, [], fmpz_poly([1])
        for _ in range(3):
            power = (one - a * X) ** order
            X = (one - power) // a
            found.append(X.degree())
        yield f"newton {order}", polynomials.newton_degrees(order, 3), found
    for k in (0, 1, 4):  # rho = (sqrt kappa + 1) / (sqrt kappa - 1) = 3 at kappa = 4
        best = 2 / (fmpq(3) ** (k + 1) + fmpq(1, 3) ** (k + 1))
        yield f"best {k}", polynomials.best_residual(k, fmpq(4)), best
    D = diagonal([1, 2, 3])
    X = D / 10
    for t in (1, 2):
        X = inversion.step(X, D, 3)
        yield f"residual {t}", polynomials.newton_residual(3, t, fmpq(3)), largest(identity(3) - X * D)


def test_the_greatest_ball_and_what_is_positive_on_a_box():
    assert greatest([arb(1), arb(3, 1e-9), arb(2)]) > 2.9
    unit = (fmpq(0), fmpq(1))
    assert positive(lambda x, y: x * x - x * y + y * y + arb(1) / 100, unit, unit) is True
    assert positive(lambda x: x * (1 - x) - arb(1) / 5, unit) is False
    assert positive(lambda x: x * x, unit) is None  # it is 0 at 0
    assert positive(lambda x: None if x < 0.5 else x - arb(1) / 4, unit) is True


def test_a_looped_layer_over_tokens_is_descent_in_whitened_coordinates():
    A, sigma = matrix([[1, 2], [fmpq(-1, 3), fmpq(1, 2)]]), matrix([[2, 1], [1, 3]])
    F = root(sigma)
    assert (F * F.transpose() - arb_mat(sigma)).contains(fmpq_mat(2, 2))
    for loops in (1, 3):
        assert paths_error(A, sigma, 5, loops).contains(0)
        assert not paths_error(A, sigma, 5, loops, loops + 1).contains(0)
    X, w, query, n, label = some(1, 3, 2), some(2, 2), some(3, 2), 3, fmpq(0)
    labels = X * w
    for _ in range(2):
        G = labels.transpose() * X * A / fmpq(n)
        label, labels = label + (G * query)[0, 0], labels - X * G.transpose()
    parts = [arb_mat(x) for x in (A, X, w, query)]
    assert predicted(*parts, n, 2).contains(label) and whitened(*parts, n, 2).contains(label)


@pytest.mark.parametrize(
    "rows",
    [
        relu_rows,
        forward_rows,
        layer_rows,
        stack_rows,
        critical_set_rows,
        tensor_rows,
        moment_rows,
        looped_rows,
        inversion_rows,
        polynomial_rows,
    ],
)
def test_every_formula_is_its_definition(rows):
    assert [name for name, formula, definition in rows() if formula != definition] == []


def test_means_are_those_of_the_laws():
    numbers = Numbers(1, 1)
    (x,), (u,) = numbers.draw(1), numbers.draw(1)
    assert numbers.mean(x**4 * u**2 + 3 * x + 2) == 3
