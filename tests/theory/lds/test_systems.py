"""The laws of lds's sequences and a layer's risk, exactly: by definition, and against the float64 twins."""

from random import Random

import pytest
import torch
from flint import fmpq, fmpq_poly

from icl.checks.statement import as_float
from icl.tasks import DynamicalSystem
from icl.tasks import sequence_moments as twins
from icl.theory.lds import layer as layers
from icl.theory.lds.layer import Layer, answer, gram, in_pattern, moment, pairs_of, weights
from icl.theory.lds.systems import (
    Noise,
    covariance,
    covariance_by_sums,
    draw,
    drawn_systems,
    independent_modes,
    listed_modes,
    mean_covariance,
    observability,
    squared_norm_moments,
)
from icl.theory.rationals import column, diagonal, identity, matrix, rational
from tests.theory.test_definitions import Numbers, dot, some

ROOTS = fmpq(1, 2), fmpq(1, 3), fmpq(2)  # of the variances of w, v and x_0
NOISE = Noise(*(root**2 for root in ROOTS))


class Sphere(Numbers):
    """The last d normal numbers are c, of a direction that is uniform and the length of a uniform c."""

    def __init__(self, normal: int, uniform: int, d: int) -> None:
        super().__init__(normal, uniform)
        self.d, self.first = d, normal - d

    def mean(self, poly) -> fmpq:
        by_degree: dict[int, fmpq] = {}
        for powers, factor in (poly + self.ring.constant(0)).terms():
            term, at = self.ring.constant(factor), sum(map(int, powers[self.first : self.normal]))
            for x, power in zip(self.ring.gens(), powers, strict=True):
                term *= x ** int(power)
            by_degree[at] = by_degree.get(at, 0) + super().mean(term)
        total = fmpq(0)
        for degree, value in by_degree.items():
            if degree % 2 == 0:
                total += value * squared_norm_moments(self.d)[degree // 2] / self._normal(degree // 2)
        return total

    def _normal(self, k: int) -> fmpq:
        """Return E |z|^2k."""
        return fmpq(1) if k == 0 else self._normal(k - 1) * (self.d + 2 * (k - 1))


def observed(numbers: Numbers, A, c, length: int) -> list:
    """Return y_1 .. y_T as polynomials; A as rows."""
    process, observation, start = ROOTS
    x, y = [start * e for e in numbers.draw(len(A))], []
    for _ in range(length):
        x = [dot(row, x) + process * e for row, e in zip(A, numbers.draw(len(A)), strict=True)]
        y.append(dot(c, x) + observation * numbers.draw(1)[0])
    return y


def prompt_of(mean, y, window: int):
    """Return the form, the linear terms and the constant of a layer's risk, token by token."""
    N = len(y) - window - 1
    G = [sum(y[t + a] * y[t + b] for t in range(N)) / fmpq(N) for a, b in pairs_of(window)]
    features = [q * g for q in y[-window - 1 : -1] for g in G]
    return (
        [mean(one * other) for one in features for other in features],
        [mean(y[-1] * one) for one in features],
        mean(y[-1] * y[-1]),
    )


def found(law, window: int):
    layer = Layer(law, window)
    return layer.form.entries(), layer.linear.entries(), layer.constant


@pytest.mark.parametrize(
    ("setting", "d", "length", "window"),
    [("a", 1, 4, 1), ("a", 2, 3, 1), ("a", 1, 4, 2), ("b", 1, 4, 1), ("b", 2, 3, 1)],
)
def test_trainer_a_and_b_are_their_definition(setting, d, length, window):
    """Take b in the eigenvectors of A."""
    drawn = d + length * (d + 1)
    numbers = Sphere(drawn + d, d, d) if setting == "b" else Numbers(drawn, d)
    gens = list(numbers.ring.gens())
    c, v = gens[-2 * d : -d] if setting == "b" else [fmpq(1)] * d, gens[-d:]
    y = observed(numbers, [[v[i] * (i == j) for j in range(d)] for i in range(d)], c, length)
    assert found(independent_modes(setting, d, length, NOISE), window) == prompt_of(numbers.mean, y, window)
    mean = mean_covariance(setting, d, length, NOISE)
    assert mean == [[numbers.mean(one * other) for other in y] for one in y]


def test_drawn_systems_and_their_covariances_are_their_definition():
    A, c, length = some(1, 2, 2), some(2, 2), 4
    root = matrix([[fmpq(1, 2), 0], [0, fmpq(1, 2)]])
    parts = []
    for sign in (1, -1):
        numbers = Numbers(2 + length * 3)
        y = observed(numbers, (sign * A).tolist(), c.entries(), length)
        form, linear, constant = prompt_of(numbers.mean, y, 1)
        parts.append([*form, *linear, constant])
        C = [[numbers.mean(one * other) for other in y] for one in y]
        for by in (covariance, covariance_by_sums):
            assert by(sign * A, c, length, NOISE, root * root) == C
        polynomials = [[fmpq_poly([e]) for e in row] for row in C]
        for times in ((0, 0, 1, 3), (1, 2, 2, 2, 2, 3)):
            value = y[0] * 0 + 1
            for t in times:
                value = value * y[t]
            assert moment(polynomials, times) == fmpq_poly([numbers.mean(value)])
    form, linear, constant = found(drawn_systems([(A, c)], length, NOISE, root * root), 1)
    assert [*form, *linear, constant] == [(a + b) / 2 for a, b in zip(*parts, strict=True)]


LISTED = [0.5, -0.25, 0.75]


def exact_law(law):
    """Return the law of the task in rationals."""
    noise = Noise(*map(rational, (law.process_noise, law.observation_noise, law.initial_variance)))
    if law.pool is None and law.spectrum == "uniform":
        return independent_modes(law.setting, law.states, law.length, noise)
    if law.pool is None:
        return listed_modes(law.setting, law.spectrum, law.length, noise)
    drawn = len(law.pool.c_RBD[0]) // 2
    pairs = zip(law.pool.A_RBDD[0, :drawn].tolist(), law.pool.c_RBD[0, :drawn].tolist(), strict=True)
    systems = [(matrix(A), column(c)) for A, c in pairs]
    return drawn_systems(systems, law.length, noise, matrix(law.Sigma_w_RDD[0].tolist()))


@pytest.mark.parametrize("window", [1, 2])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"setting": "b"},
        {"spectrum": LISTED},
        {"setting": "b", "spectrum": LISTED},
        {"setting": "c", "systems": 2},
        {"setting": "d", "systems": 2},
    ],
    ids=str,
)
def test_the_float64_twins_are_the_exact_moments(settings, window, monkeypatch):
    monkeypatch.setattr(twins, "CHUNK_ENTRIES", 500)  # several chunks
    law = DynamicalSystem(3, 7, window, process_noise=0.25, observation_noise=0.5, **settings).law([0])
    exact, twin = Layer(exact_law(law), window), twins.moments(law.covariances, window)
    size = len(exact.linear.entries())
    for one, other in (
        (exact.form, twin.form_KSKS.reshape(size, size)),
        (exact.linear, twin.linear_KS.reshape(size, 1)),
        (column([exact.constant]), twin.constant),
    ):
        floats, expected = [as_float(e) for e in one.entries()], other.flatten()
        assert floats == pytest.approx(expected.tolist(), abs=1e-12 * float(expected.abs().max()))
    free_b, free_a = in_pattern(window)
    mask_P, mask_PP = twins.parity_mask(window)
    assert (free_b, free_a) == (mask_P.tolist(), mask_PP[:window].tolist())
    b, keys = [fmpq(k + 1) for k in range(window + 1)], [[fmpq(3 - k) for k in range(window + 1)]] * window
    rows = torch.tensor([*[[3.0 - k for k in range(window + 1)]] * window, [0.0] * (window + 1)])
    column_P = torch.arange(1, window + 2).double()
    value = twins.quadratic_risk(twin, window).value_of_heads(column_P[None], rows.double()[None])
    assert float(value) == pytest.approx(as_float(exact.half_risk(exact.coefficients(b, keys))), rel=1e-9)


def test_the_risk_of_a_layer_is_that_of_its_answers():
    """At one sequence: q.(G x) is the answer, entry by entry of the tokens."""
    y = [fmpq(k) for k in (3, -1, 4, 1, -5, 9, 2)]
    window, b, keys = (
        2,
        [fmpq(k) for k in (2, 7, 1)],
        [[fmpq(k) for k in row] for row in ((8, 2, 8), (1, 8, 2))],
    )
    tokens = [y[t : t + 3] for t in range(4)]
    query = y[4:6]
    printed = sum(dot(b, z) * sum(query[k] * dot(keys[k], z) for k in range(2)) for z in tokens) / fmpq(4)
    assert answer(y, *weights(b, keys)) == printed
    layer = object.__new__(Layer)
    layer.pairs = pairs_of(window)
    x, G = layer.coefficients(b, keys).entries(), gram(y, window)
    assert dot(x, [q * G[i, j] for q in query for i, j in layer.pairs]) == printed


def test_drawn_systems_have_their_eigenvalues_and_are_well_conditioned():
    for setting in "abcd":
        A, c = draw(setting, 3, Random(1))
        roots = [root for root, _ in A.charpoly().complex_roots()]
        assert all(root.imag == 0 and abs(root.real) <= 1 for root in roots) and c.nrows() == 3
        assert (A.transpose() == A) == (setting == "a")
    assert observability(matrix([[1, 1], [0, 2]]), column([3, 5])) == matrix([[3, 5], [3, 13]])
    assert NOISE.covariance("d", 3) == NOISE.process * diagonal([fmpq(4, 5), fmpq(9, 10), 1])
    assert NOISE.covariance("b", 2) == NOISE.process * identity(2)
    assert layers.forced_zeros(1) == [0, 2]
