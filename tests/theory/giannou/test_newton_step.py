"""Functions by ReLU neurons and the layers of Theorem 5.2 against their definitions."""

from itertools import pairwise
from random import Random

import pytest
from flint import arb, ctx, fmpq, fmpq_mat

from icl.theory.giannou import newton_step as steps
from icl.theory.giannou import piecewise
from icl.theory.giannou.balls import greatest
from icl.theory.giannou.logistic import Logistic, direction, draw, norm, probability, variance
from icl.theory.giannou.piecewise import Neurons, Piecewise, entry, even

KINK = Piecewise([fmpq(-1), fmpq(1, 2), fmpq(2)], [fmpq(3), fmpq(0), fmpq(1)])


def relu_layer(neurons, H):
    """Return H + W2 relu(W1 H), both matrices written out over rows s, v, y, one."""
    rows = list(H)
    W1, W2 = fmpq_mat(len(neurons), len(rows)), fmpq_mat(len(rows), len(neurons))
    for i, (reads, writes) in enumerate(neurons.all):
        for row, c in reads.items():
            W1[i, rows.index(row)] += c
        for row, c in writes.items():
            W2[rows.index(row), i] += c
    whole = fmpq_mat([H[name].tolist()[0] for name in rows])
    inner = W1 * whole
    inner = fmpq_mat(inner.nrows(), inner.ncols(), [max(x, fmpq(0)) for x in inner.entries()])
    return whole + W2 * inner


def state(s, v=(0, 0, 0), y=(1, -1, 1)):
    return {name: fmpq_mat([list(row)]) for name, row in zip("svy", (s, v, y), strict=True)} | {
        "one": fmpq_mat([[1, 1, 1]])
    }


def test_a_layer_of_neurons_is_its_two_matrices_and_writes_a_function():
    H = state((fmpq(-3), fmpq(1, 3), fmpq(5)), y=(1, -1, 1))
    neurons = Neurons()
    neurons.function(KINK, {"s": -1}, "v", 2, gate=("y", 1))
    neurons.clear("s")
    found = neurons.apply(H)
    assert fmpq_mat([found[name].tolist()[0] for name in H]) == relu_layer(neurons, H)
    assert found["v"].entries() == [2 * KINK(fmpq(3)), 0, 2 * KINK(fmpq(-5))]
    assert found["s"] == fmpq_mat(1, 3)
    neurons = Neurons()
    square = Piecewise(even(fmpq(2), 5), [u * u for u in even(fmpq(2), 5)])
    neurons.product(square, "s", 2, "v", "y")
    at = state((fmpq(1, 2), fmpq(-1, 4), fmpq(0)), (fmpq(1), fmpq(-1, 2), fmpq(1)))
    assert neurons.apply(at)["y"].entries() == [1 + fmpq(1, 2), -1 + fmpq(1, 8), 1]
    assert entry(at, "v", 1) == fmpq(-1, 2)


def test_an_interpolant_of_a_ball_holds_those_of_its_points():
    assert [KINK(fmpq(u)) for u in (-9, -1, 2, 9)] == [3, 3, 1, 1] and KINK(fmpq(-1, 4)) == fmpq(3, 2)
    ball = KINK(arb(fmpq(1, 2), fmpq(1, 10)))
    assert ball.contains(KINK(fmpq(4, 10))) and ball.contains(KINK(fmpq(6, 10)))


@pytest.mark.parametrize("mu", [fmpq(1, 10), fmpq(1, 1000), fmpq(100)])
def test_errors_of_functions_are_bounds_and_not_far_off(mu):
    by, c = steps.Functions.of(mu, 64), 2 * arb(mu).sqrt()
    cases = (
        (by.variance, variance, by.errors[0]),
        (by.probability, lambda z: probability(-z), by.errors[1]),
        (by.size, lambda u: c / (c + u.sqrt()), arb(by.errors[2])),
    )
    for f, right, stated in cases:
        shares = [fmpq(k, 8) for k in range(1, 8)]
        points = [a + (b - a) * share for a, b in pairwise(f.knots) for share in shares]
        seen = greatest(abs(f(u) - right(arb(u))) for u in points)
        assert stated / 6 < seen < stated
    assert (1 + mu * steps.radius_of_iterates(mu)) ** 2 / mu <= by.size.knots[-1]


def test_second_derivatives_are_those_of_the_functions():
    with ctx.workprec(200):
        z, h = arb(fmpq(7, 10)), fmpq(1, 2**20)
        for f, bend in ((variance, piecewise.variance_bend), (probability, piecewise.probability_bend)):
            assert abs((f(z + h) - 2 * f(z) + f(z - h)) / h**2 - bend(z)) < 1e-9


def test_a_step_of_many_neurons_is_near_newtons():
    mu = fmpq(1, 2)
    loss, x = draw(Random(5), 4, 2, mu), direction(Random(6), 2)
    layers = steps.newton_step(2, 4, mu, steps.inversion_steps(mu), steps.Functions.of(mu, 2000))
    with ctx.workprec(128):
        (error,), end = steps.follow(layers, loss, x, 1)
        at = loss.at(x)
        newton = at.hessian.inv() * at.gradient
        exact = at.x - newton * (1 / (1 + at.local_norm(newton)))
        assert error < 1e-5 and norm(exact - arb_column(end)) < 1e-5
        assert steps.follow(steps.lacking(layers, -5, 2), loss, x, 1)[0][0] > 0.01
        assert steps.follow(steps.lacking(layers, -1, 0), loss, x, 1)[0][0] > 0.01


def arb_column(x):
    return Logistic(fmpq_mat(1, x.nrows()), [1], fmpq(1)).at(x).x


def test_exact_steps_stay_within_the_radius_and_inversion_converges():
    mu = fmpq(1, 10)
    worst = Logistic(fmpq_mat([[1]]), [-1], mu)
    bound = 2 * worst.at(fmpq_mat([[1]])).value / mu  # the largest f(x_0) at |x_0| = 1
    assert bound.sqrt() <= steps.radius_of_iterates(mu) <= bound.sqrt() + 1
    k, alpha = steps.inversion_steps(mu), steps.Functions.of(mu, 64).alpha
    rest = max(abs(1 - alpha * mu**2), abs(1 - alpha * (mu + fmpq(1, 4)) ** 2))
    assert arb(rest) ** (2**k) < mu / 2**52 <= arb(rest) ** (2 ** (k - 1))
