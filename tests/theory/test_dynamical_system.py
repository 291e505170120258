import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch
from numpy.polynomial.legendre import leggauss

from icl.theory import dynamical_system as lds
from icl.theory.gaussian import moment

PAPER = {"process": 0.01, "noise": 0.01, "start": 0.01}


def random_systems(seed, B=3, D=3):
    rng = np.random.default_rng(seed)
    A = torch.from_numpy(rng.standard_normal((B, D, D)))
    A = 0.8 * A / torch.linalg.eigvals(A).abs().max(-1).values[:, None, None]
    root = torch.from_numpy(rng.standard_normal((D, D)))
    return A, torch.from_numpy(rng.standard_normal((B, D))), root @ root.T


def by_unrolling(A, c, Sigma_w, noise, start, T):
    """Return C from y = F (x_0, w_1, ..., w_T) + v: another way than the recursion."""
    D = len(c)
    F = torch.zeros(T, (T + 1) * D, dtype=torch.float64)
    for t, k in itertools.product(range(1, T + 1), range(T + 1)):
        if k <= t:
            F[t - 1, k * D : (k + 1) * D] = c @ torch.linalg.matrix_power(A, t - k)
    inner = torch.block_diag(start * torch.eye(D, dtype=torch.float64), *[Sigma_w] * T)
    return F @ inner @ F.T + noise * torch.eye(T, dtype=torch.float64)


def test_covariance_by_unrolling():
    A, c, Sigma_w = random_systems(0)
    C = lds.covariances_of_systems(A, c, Sigma_w, 0.3, 0.7, 9)
    for b in range(3):
        assert torch.allclose(C[b], by_unrolling(A[b], c[b], Sigma_w, 0.3, 0.7, 9), rtol=1e-11, atol=1e-13)


def test_covariance_of_modes_is_that_of_scalar_systems():
    values = torch.tensor([-1.0, -0.3, 0.0, 0.8, 1.0], dtype=torch.float64)
    one = torch.ones(5, 1, dtype=torch.float64)
    full = lds.covariances_of_systems(values[:, None, None], one, 0.2 * torch.eye(1).double(), 0.0, 0.5, 7)
    assert torch.allclose(lds.covariance_of_modes(values, 0.2, 0.5, 7), full, rtol=1e-13, atol=0)


@pytest.mark.parametrize("window", [1, 2, 3])
def test_conditional_moments_by_pairings(window):
    A, c, Sigma_w = random_systems(window)
    T, s = window + 4, window
    C = lds.covariances_of_systems(A, c, Sigma_w, 0.1, 0.2, T)
    weight = torch.tensor([0.7, -0.2, 0.5], dtype=torch.float64)
    found, N = lds.moments(lds.Covariances(weight, C), s), T - s - 1
    pairs = list(zip(*(index.tolist() for index in lds.pairs(s)), strict=True))
    zero = torch.zeros(T, dtype=torch.float64)

    def expected(others, *grams):
        """Return E[product of others and Gram entries], 1-based times as in the paper."""
        total = 0.0
        for times in itertools.product(range(1, N + 1), repeat=len(grams)):
            index = [*others]
            for t, (a, b) in zip(times, grams, strict=True):
                index += [t + a, t + b]
            total += sum(
                float(w) * moment([i - 1 for i in index], zero, M) for w, M in zip(weight, C, strict=True)
            )
        return float(total) / N ** len(grams)

    query = [T - s - 1 + k for k in range(1, s + 1)]
    rng = np.random.default_rng(1)
    for _ in range(12):
        k, j = rng.integers(s, size=2)
        one, two = rng.integers(len(pairs), size=2)
        value = expected([query[k], query[j]], pairs[one], pairs[two])
        assert float(found.form_KSKS[k, one, j, two]) == pytest.approx(value, rel=1e-11)
        value = expected([T, query[k]], pairs[one])
        assert float(found.linear_KS[k, one]) == pytest.approx(value, rel=1e-11)
    assert float(found.constant) == pytest.approx(expected([T, T]), rel=1e-12)


def brute_force(dim, length, window, half_width):
    """Return moments by product quadrature over every eigenvalue, and over c itself: Q is a plane
    rotation."""
    v, v_weight = leggauss(3 * length + 1)
    u, u_weight = leggauss(4) if half_width else (np.ones(1), np.full(1, 2.0))
    angles = np.arange(8) * 2 * np.pi / 8  # trigonometric polynomials of degree 6
    turns = [np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]) for a in angles]
    turns, systems = turns if half_width and dim == 2 else [np.eye(dim)], []
    for picks in itertools.product(range(len(v)), repeat=dim):
        for ends in itertools.product(range(len(u)), repeat=dim):
            weight = np.prod([v_weight[p] * u_weight[i] / 4 for p, i in zip(picks, ends, strict=True)])
            c = (half_width or 1.0) * u[list(ends)]
            systems += [(v[list(picks)], turn @ c, weight / len(turns)) for turn in turns]
    A = torch.stack([torch.diag(torch.from_numpy(one)) for one, _, _ in systems])
    c = torch.from_numpy(np.stack([one for _, one, _ in systems]))
    weight = torch.tensor([one for _, _, one in systems], dtype=torch.float64)
    Sigma_w = PAPER["process"] * torch.eye(dim, dtype=torch.float64)
    C = lds.covariances_of_systems(A, c, Sigma_w, PAPER["noise"], PAPER["start"], length)
    return lds.moments(lds.Covariances(weight, C), window)


@pytest.mark.parametrize(
    ("dim", "length", "window", "half_width"),
    [
        (1, 5, 1, None),
        (2, 5, 2, None),
        (2, 4, 1, None),
        (3, 3, 1, None),
        (1, 5, 2, 2.0),
        (2, 3, 1, 5.0),
        (2, 4, 2, 1.5),
    ],
)
def test_the_mean_over_systems_by_product_quadrature(dim, length, window, half_width):
    exact = lds.moments(
        lds.covariances_of_independent_modes(dim, length=length, half_width=half_width, **PAPER), window
    )
    reference = brute_force(dim, length, window, half_width)
    for name in ("form_KSKS", "linear_KS", "constant"):
        one, other = getattr(exact, name), getattr(reference, name)
        assert torch.allclose(one, other, rtol=1e-10, atol=1e-13 * float(other.abs().max()))


@pytest.mark.parametrize("half_width", [None, 2.0])
def test_the_mean_over_listed_systems_by_product_quadrature(half_width):
    """Average at dim 2 over A and -A, and with c of every direction, by rotations of the plane."""
    values, window = [0.9, -0.4], 1
    exact = lds.moments(
        lds.covariances_of_listed_modes(values, length=5, half_width=half_width, **PAPER), window
    )
    u, u_weight = leggauss(4) if half_width else (np.ones(1), np.full(1, 2.0))
    angles = np.arange(8) * 2 * np.pi / 8 if half_width else [0.0]
    A, c, weight = [], [], []
    for sign, angle, i, j in itertools.product((1, -1), angles, range(len(u)), range(len(u))):
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        A.append(sign * np.diag(values))
        c.append(turn @ u[[i, j]] * (half_width or 1.0))
        weight.append(u_weight[i] * u_weight[j] / 8 / len(angles))
    noises = (PAPER["process"] * torch.eye(2).double(), PAPER["noise"], PAPER["start"])
    C = lds.covariances_of_systems(torch.tensor(np.stack(A)), torch.tensor(np.stack(c)), *noises, 5)
    reference = lds.moments(lds.Covariances(torch.tensor(weight, dtype=torch.float64), C), window)
    for name in ("form_KSKS", "linear_KS", "constant"):
        one, other = getattr(exact, name), getattr(reference, name)
        assert torch.allclose(one, other, rtol=1e-11, atol=1e-13 * float(other.abs().max()))


@pytest.mark.parametrize("dim", [1, 3, 4])
def test_the_rule_of_shares_has_the_moments_of_a_direction(dim):
    """Compare moments of C's diagonal, E[sum_m b_m x_m]^3 for b a direction's squares, by sampling."""
    values = np.linspace(0.1, 0.9, dim)
    found = lds.covariances_of_listed_modes(values.tolist(), 1.0, 0.0, 0.0, 2, half_width=1.0)
    cube = float(found.weight_Q @ found.covariance_QTT[:, 1, 1] ** 3)
    rng = np.random.default_rng(0)
    c = rng.uniform(-1, 1, (200_000, dim))
    direction = rng.standard_normal((200_000, dim))
    share = direction**2 / (direction**2).sum(1, keepdims=True)
    sampled = ((c**2).sum(1) * (share @ (1 + values**2))) ** 3
    assert abs(cube - sampled.mean()) < 4.5 * sampled.std() / len(c) ** 0.5
    assert float(found.weight_Q.sum()) == pytest.approx(1, rel=1e-13)


def test_rules_have_the_moments_they_promise():
    rng = np.random.default_rng(0)
    for rule, sample in (
        (lds.squared_norm_rule(3, 2.0), (rng.uniform(-2, 2, (400_000, 3)) ** 2).sum(1)),
        (lds.share_rule(4), rng.beta(0.5, 1.5, 400_000)),
    ):
        for power in range(4):
            value = float((rule.weights * rule.nodes**power).sum())
            assert value == pytest.approx((sample**power).mean(), rel=2e-2)
    assert lds.share_rule(1).nodes.tolist() == [1.0]
    assert lds.Rule.of_moments([Fraction(2) ** k for k in range(4)]).nodes.tolist() == [2.0]


def test_theorem_4_1s_constant_from_moments_written_out():
    """Sum over the printed (14) at d = 1, each moment a polynomial in the eigenvalue, integrated termwise."""
    T = 4
    v, weight = leggauss(16)

    def C(i, j, lam):
        i, j = min(i, j), max(i, j)
        steps = sum(lam ** (i + j - 2 * k) for k in range(1, i + 1))
        return 0.01 * lam ** (i + j) + 0.01 * steps + 0.01 * (i == j)

    def mean(index):
        total = 0.0
        for lam, w in zip(v, weight, strict=True):
            cov = [[C(i, j, lam) for j in range(T + 1)] for i in range(T + 1)]
            total += w / 2 * moment(index, [0.0] * (T + 1), cov)
        return total

    steps = range(1, T - 1)
    top = (T - 2) * sum(mean([i, i + 1, T - 1, T]) for i in steps)
    bottom = sum(mean([i, i + 1, r, r + 1, T - 1, T - 1]) for i in steps for r in steps)
    found = lds.moments(lds.covariances_of_independent_modes(1, length=T, **PAPER), 1)
    assert float(found.linear_KS[0, 1] / found.form_KSKS[0, 1, 0, 1]) == pytest.approx(
        top / bottom, rel=1e-12
    )


def test_chunks_change_nothing(monkeypatch):
    covariances = lds.covariances_of_independent_modes(2, length=6, **PAPER)
    whole, mean = lds.moments(covariances, 2), lds.gram_moments(covariances, 2)
    monkeypatch.setattr(lds, "CHUNK_ENTRIES", 3 * 9 * 36)
    parts, again = lds.moments(covariances, 2), lds.gram_moments(covariances, 2)
    assert torch.allclose(whole.form_KSKS, parts.form_KSKS, rtol=1e-12, atol=1e-18)
    assert torch.allclose(mean[1], again[1], rtol=1e-12, atol=1e-18)


def test_gram_moments_by_pairings():
    A, c, Sigma_w = random_systems(5, B=2)
    C = lds.covariances_of_systems(A, c, Sigma_w, 0.1, 0.2, 5)
    mean, second = lds.gram_moments(lds.Covariances(torch.tensor([0.4, 0.6], dtype=torch.float64), C), 1)
    zero, pairs = torch.zeros(5, dtype=torch.float64), [(0, 0), (0, 1), (1, 1)]
    for p, (a, b) in enumerate(pairs):
        value = sum(
            w * sum(moment([t + a, t + b], zero, M) for t in range(3)) / 3
            for w, M in zip((0.4, 0.6), C, strict=True)
        )
        assert float(mean[p]) == pytest.approx(float(value), rel=1e-12)
        for q, (e, f) in enumerate(pairs):
            value = sum(
                w * moment([t + a, t + b, u + e, u + f], zero, M) / 9
                for w, M in zip((0.4, 0.6), C, strict=True)
                for t in range(3)
                for u in range(3)
            )
            assert float(second[p, q]) == pytest.approx(float(value), rel=1e-12)


def test_the_risk_of_a_head_in_three_ways():
    covariances = lds.covariances_of_independent_modes(2, length=7, **PAPER)
    part, rng = lds.moments(covariances, 2), np.random.default_rng(0)
    b, a = torch.from_numpy(rng.standard_normal(3)), torch.from_numpy(rng.standard_normal((3, 3)))
    one = float(lds.half_squared_error(part, lds.coefficients(b, a[:2])))
    risk = lds.quadratic_risk(part, 2)
    assert float(risk.value_of_heads(b[None], a[None])) == pytest.approx(one, rel=1e-12)
    P, Q = torch.zeros(1, 3, 3).double(), a.T[None]
    P[0, 2] = b
    assert float(risk.value_of_layer(P, Q)) == pytest.approx(one, rel=1e-12)
    each = lds.conditional_moments(covariances.covariance_QTT, 2)
    by_system = lds.half_squared_error(each, lds.coefficients(b, a[:2]))
    assert float(covariances.weight_Q @ by_system) == pytest.approx(one, rel=1e-10)
