from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from icl.checks.statement import as_float
from icl.tasks.quadratic import LabelMoments, QuadraticRisk, SymmetricSpace, second_gram
from icl.theory.one_layer import OneLayer
from icl.theory.rationals import matrix
from tests.theory.drawing import covariance, draw, eye


def regression(dim, seed=0):
    """Return a setting with everything switched on: prior mean, label noise, guess with bias."""
    return dict(
        Sigma=covariance(seed, dim),
        Sigma_w=covariance(seed + 1, dim),
        context=6,
        prior_mean=draw(seed + 2, dim),
        label_noise=0.3,
        guess_vector=draw(seed + 3, dim),
        guess_bias=0.7,
    )


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 5), st.integers(0, 100))
def test_symmetric_coordinates_keep_inner_products(width, seed):
    space = SymmetricSpace(width)
    X, Y, T = draw(seed, 2, width, width), draw(seed + 1, width, width), draw(seed + 2, *[width] * 4)
    x, y = space.coordinates(X), space.coordinates(Y)
    assert torch.allclose(space.matrix(x), (X + X.mT) / 2, atol=1e-14)
    assert torch.allclose(x @ y, ((X + X.mT) / 2 * Y).sum((-1, -2)), atol=1e-12)
    T = T + T.transpose(0, 1)
    T = T + T.transpose(2, 3)
    assert torch.allclose(x[0] @ space.form(T) @ y, torch.einsum("ab,abce,ce->", X[0], T, Y), atol=1e-11)
    b, a = draw(seed + 3, 2, width), draw(seed + 4, 2, width)
    heads = torch.einsum("shp,hp->s", space.products(b), a)
    assert torch.allclose(heads, space.coordinates(b.T @ a), atol=1e-13)


@pytest.mark.parametrize(("dim", "context"), [(1, 1), (3, 2), (5, 20), (10, 20)])
def test_bound_is_theorem_1(dim, context):
    Sigma, Sigma_w = covariance(dim, dim), covariance(dim + 1, dim)
    for weights in (eye(dim), Sigma_w):
        risk = QuadraticRisk.linear_regression(Sigma, weights, context)
        layer = OneLayer(matrix(Sigma.tolist()), context, matrix(weights.tolist()))
        bound, closed = risk.convex_bound(), as_float(layer.least())
        assert abs(bound.value - closed) <= bound.rounding + 1e-15 * closed
        assert bound.rounding < 1e-8 * closed
        entries = [[[as_float(entry) for entry in x.entries()]] for x in layer.optimum()]
        P, Q = torch.tensor(entries, dtype=torch.float64).unflatten(-1, (dim + 1, dim + 1))
        Q.requires_grad_(), P.requires_grad_()
        value = risk.value_of_layer(P, Q)
        assert float(value.detach()) == pytest.approx(closed, rel=1e-11)
        assert all(float(g.abs().max()) < 1e-10 for g in torch.autograd.grad(value, (P, Q)))


def test_gradient_against_autograd_and_value_of_heads():
    risk = QuadraticRisk.linear_regression(**regression(3))
    X_KPP = draw(9, 2, 4, 4, 4).requires_grad_()
    (autograd,) = torch.autograd.grad(risk.value(X_KPP).sum(), X_KPP)
    assert torch.allclose(risk.gradient(X_KPP.detach()), autograd, rtol=1e-10, atol=1e-10)
    P_HPP, Q_HPP = draw(10, 2, 4, 4), draw(11, 2, 4, 4)
    by_heads = float(risk.value_of_heads(P_HPP[:, -1], Q_HPP.mT))
    assert float(risk.value_of_layer(P_HPP, Q_HPP)) == pytest.approx(by_heads, rel=1e-12)


def test_heads_reach_the_bound_at_p_and_never_pass_it():
    risk = QuadraticRisk.linear_regression(**regression(3), target_sign=1)
    bound, rng, values = risk.convex_bound(), np.random.default_rng(0), []
    assert float(risk.gradient(bound.X_KPP).norm()) < 1e-10
    for heads in range(1, 6):
        best = risk.best_with_heads(heads, rng, restarts=4)
        values.append(best.value)
        assert best.gap >= 0
        assert best.value >= bound.value - bound.rounding
        found = float(risk.value_of_heads(best.b_HP, best.a_HKP))
        assert found == pytest.approx(best.value, abs=10 * bound.rounding)
    assert values[3] == pytest.approx(bound.value, abs=bound.rounding)
    assert values[0] - bound.value > 1e-2
    assert all(more <= fewer + 1e-9 for fewer, more in pairwise(values))


@pytest.mark.parametrize(("size", "bias"), [(1e3, 0.1), (1e6, 1e-3), (1e6, 0.0), (1e-6, 1e6)])
def test_a_guess_of_any_size_leaves_condition_and_accuracy_alone(size, bias):
    """Vary y_q = <v, x_q> + b, a change of query coordinates, well conditioned or not."""
    setting = regression(3) | {"label_noise": 0.0, "target_sign": 1}
    v, m = size * draw(19, 3), setting["prior_mean"]

    def risk_of(vector, b):
        return QuadraticRisk.linear_regression(**setting | {"guess_vector": vector, "guess_bias": b})

    risk = risk_of(v, bias)
    bound = risk.convex_bound()
    # the gap to the step is linear in |m - v|^2 + b^2: at v = m, b = 0 it is none
    step = risk_of(m, 0.0).convex_bound()
    error = float((m - v) @ setting["Sigma"] @ (m - v)) + bias**2
    predicted = 2 / (3 * setting["context"] + 2) * error
    assert bound.value - step.value == pytest.approx(predicted, rel=1e-9, abs=1e-10)
    assert float(risk.value(bound.X_KPP)) == pytest.approx(bound.value, rel=1e-9)


def every_prompt(Sigma, Sigma_w, context, prior_mean, label_noise, guess_vector, guess_bias, target_sign):
    """Return mass, G, the query and the target of every node, in numpy and from the tokens themselves.

    Gauss-Hermite over noise and tokens (degree 4), w (4) and x_q (2): sums over these are exact risks."""
    D = len(prior_mean)
    sizes = [3] * (context + context * D + D) + [2] * D
    rules = [np.polynomial.hermite_e.hermegauss(size) for size in sizes]
    nodes = np.stack([axis.ravel() for axis in np.meshgrid(*[r[0] for r in rules], indexing="ij")], -1)
    mass = np.prod(np.stack(np.meshgrid(*[r[1] for r in rules], indexing="ij")), 0).ravel()
    mass = mass / (2 * np.pi) ** (len(sizes) / 2)
    root, root_w = np.linalg.cholesky(Sigma), np.linalg.cholesky(Sigma_w)
    noise, nodes = label_noise**0.5 * nodes[:, :context], nodes[:, context:]
    x = nodes[:, : context * D].reshape(-1, context, D) @ root.T
    w = prior_mean + nodes[:, context * D : -D] @ root_w.T
    x_q = nodes[:, -D:] @ root.T
    z = np.concatenate([x, (np.einsum("bnd,bd->bn", x, w) + noise)[..., None]], -1)
    q = np.concatenate([x_q, (x_q @ guess_vector + guess_bias)[:, None]], -1)
    return mass, np.einsum("bnp,bnr->bpr", z, z) / context, q, target_sign * (w * x_q).sum(-1)


def small_setting(dim, context, seed=0, **changes):
    return regression(dim, seed) | {"context": context, "target_sign": 1} | changes


def nodes_of(setting):
    return every_prompt(**{k: v.numpy() if isinstance(v, torch.Tensor) else v for k, v in setting.items()})


SMALL = [(1, 1), (1, 3), (2, 1), (2, 2)]


@pytest.mark.parametrize(("dim", "context"), SMALL)
@pytest.mark.parametrize("target_sign", [-1, 1])
def test_read_in_and_read_out_against_every_prompt(dim, context, target_sign):
    setting, size = small_setting(dim, context, target_sign=target_sign), dim + 1
    mass, G, q, t = nodes_of(setting)
    P, Q = draw(20, 2, size, size), draw(21, 2, size, size)
    read_in, read_out = draw(22, size, size), draw(23, size)
    risk = QuadraticRisk.linear_regression(**setting)
    entered = q @ read_in.numpy().T
    for given_in, given_out in ((read_in, read_out), (read_in, None), (None, read_out), (None, None)):
        start = entered if given_in is not None else q
        update = sum(
            np.einsum("pr,brs,su,bu->bp", p, G, k, start) for p, k in zip(P.numpy(), Q.numpy(), strict=True)
        )
        prediction = (start + update) @ (read_out.numpy() if given_out is not None else np.eye(size)[-1])
        value = float(risk.value_of_layer(P, Q, given_in, given_out))
        assert value == pytest.approx(float(mass @ (prediction - t) ** 2), rel=1e-11)


@pytest.mark.parametrize(("dim", "context"), SMALL)
@pytest.mark.parametrize("guess_bias", [0.0, 0.7])
def test_bounds_against_regression_on_every_prompt(dim, context, guess_bias):
    """Compare with weighted least squares of t on q_k G, which the bound is; q is degenerate without a
    bias."""
    setting = small_setting(dim, context, guess_bias=guess_bias)
    mass, G, q, t = nodes_of(setting)
    risk, root = QuadraticRisk.linear_regression(**setting), np.sqrt(mass)
    gram = SymmetricSpace(dim + 1).coordinates(torch.from_numpy(G)).numpy()
    goal, features = t - q[:, -1], np.einsum("bk,bs->bks", q, gram).reshape(len(q), -1)
    solution = np.linalg.lstsq(root[:, None] * features, root * goal, rcond=1e-11)[0]
    bound = risk.convex_bound()
    assert bound.value == pytest.approx(float(mass @ (goal - features @ solution) ** 2), rel=1e-9)
    assert float(risk.value(bound.X_KPP)) == pytest.approx(bound.value, rel=1e-10)
    assert bound.rounding < 1e-9


def test_read_in_and_read_out_over_replicas_and_their_gradients():
    """Broadcast leading axes: five replicas of some weights, one of the others."""
    risk = QuadraticRisk.linear_regression(**regression(2), target_sign=1)
    P, Q, read_in, read_out = draw(36, 5, 2, 3, 3), draw(37, 5, 2, 3, 3), draw(38, 5, 3, 3), draw(39, 5, 3)
    together = risk.value_of_layer(P, Q, read_in, read_out)
    alone = [float(risk.value_of_layer(P[r], Q[r], read_in[r], read_out[r])) for r in range(5)]
    assert together.tolist() == pytest.approx(alone, rel=1e-12)
    mixed = risk.value_of_layer(P, Q[0], read_in, read_out[0])
    alone = [float(risk.value_of_layer(P[r], Q[0], read_in[r], read_out[0])) for r in range(5)]
    assert mixed.tolist() == pytest.approx(alone, rel=1e-12)
    leaves = [weight[0].clone().requires_grad_() for weight in (P, Q, read_in, read_out)]
    assert torch.autograd.gradcheck(risk.value_of_layer, leaves, rtol=1e-6, atol=1e-7)
    X_KPP, direct_RK = draw(40, 3, 3, 3), draw(41, 5, 3)
    values = risk.value(X_KPP, direct_RK)
    assert values.tolist() == pytest.approx([float(risk.value(X_KPP, r)) for r in direct_RK], rel=1e-12)


def test_best_keys_at_given_values():
    """Reach the bound with unit b_h; for other b the gradient in the keys vanishes, and random keys lose."""
    risk = QuadraticRisk.linear_regression(**regression(3), target_sign=1)
    bound = risk.convex_bound()
    everything = risk.best_with_values(eye(4))
    assert everything.value == pytest.approx(bound.value, abs=bound.rounding)
    b_HP = draw(42, 2, 4)
    best = risk.best_with_values(b_HP)
    value = risk.value_of_heads(b_HP, a_HKP := best.a_HKP.clone().requires_grad_())
    (gradient,) = torch.autograd.grad(value, a_HKP)
    assert float(gradient.abs().max()) < 1e-9
    assert best.value == pytest.approx(float(value.detach()), rel=1e-10)
    assert best.value > bound.value + 1e-3


def test_a_direction_of_little_variance_still_counts():
    """Give E[G (x) G] eigenvalues of 1e-10 of the largest, and of 1 / C: none of them is rounding."""
    Sigma, Sigma_w = torch.diag(torch.tensor([1.0, 1e-5], dtype=torch.float64)), torch.eye(2).double()
    bound = QuadraticRisk.linear_regression(Sigma, Sigma_w, 4).convex_bound()
    assert bound.value == pytest.approx(as_float(OneLayer([1.0, 1e-5], 4).least()), rel=1e-9)
    of_many = QuadraticRisk.linear_regression(Sigma_w, Sigma_w, 10**10).convex_bound()
    assert of_many.value == pytest.approx(as_float(OneLayer([1, 1], 10**10).least()), rel=1e-5)


def test_the_rounding_of_a_bound_is_its_terms_and_its_residual(monkeypatch):
    setting = {"Sigma": covariance(0, 3), "Sigma_w": covariance(1, 3), "context": 6, "target_sign": 1}
    risk = QuadraticRisk.linear_regression(**setting)
    bound, zero = risk.convex_bound(), torch.zeros(3, dtype=torch.float64)
    moments = LabelMoments(setting["Sigma"], setting["Sigma_w"], zero, 0.0)
    form_SS = SymmetricSpace(4).form(second_gram(moments, 6)).abs()
    x_KS, Sigma = SymmetricSpace(4).coordinates(bound.X_KPP).abs(), setting["Sigma"].abs()
    terms = torch.einsum("ks,kl,lt,st->", x_KS[:3], Sigma, x_KS[:3], form_SS)
    terms += 2 * (risk.linear_KS.abs() * x_KS).sum() + risk.constant
    assert bound.rounding == pytest.approx(4 * 10 * 2.0**-52 * float(terms), rel=0.01)
    right = risk._form.solve
    monkeypatch.setattr(risk._form, "solve", lambda m: ((1 + 1e-5) * right(m)[0], right(m)[1]))
    missed = risk.convex_bound()
    assert 10 * bound.rounding < missed.value - bound.value < missed.rounding
