import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from icl.theory.ahn import relu_risk
from icl.theory.ahn.relu_risk import ReluRisk
from tests.theory.changing import sees
from tests.theory.drawing import draw, eye, within


def relu_losses(P, Q, dim, context, seed, prompts=300_000):
    """Return squared errors against -<w, x> of Attn^sigma (ahn, section 6) over tokens, the query masked."""
    x, w = draw(seed, prompts, context + 1, dim), draw(seed + 1, prompts, dim)
    labels = torch.einsum("bnd,bd->bn", x, w)
    z = torch.cat([x, labels.unsqueeze(-1)], -1)
    query = z[:, context].clone()
    query[:, dim] = 0
    weights = torch.relu(torch.einsum("bnp,pr,br->bn", z[:, :context], Q, query))
    moved = query + torch.einsum("bn,bnp->bp", weights, z[:, :context]) @ P.T / context
    return (moved[:, dim] + labels[:, context]).square()


@pytest.mark.parametrize(("dim", "context"), [(2, 1), (3, 5)])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_relu_risk_against_sampling(dim, context, seed):
    """Compare within 4 standard errors, fixed seed; random b_0, b_1, A and the column `a` that drops out."""
    P, Q = draw(10 + seed, dim + 1, dim + 1), draw(20 + seed, dim + 1, dim + 1) / 2
    Q[-1] = 0
    losses = relu_losses(P, Q, dim, context, seed=30 + seed)
    assert within(losses, ReluRisk(dim, context).value_of_layer(P, Q))


def relu_risk_by_enumeration(b_P, A_DD, dim, context):
    """Return the same, exact for one and two covariates. Given x_q the tokens' axes are turned along A
    x_q: what remains is a polynomial on either side of 0, which Gauss and Hermite's rule with no node at 0
    integrates."""
    rules = [np.polynomial.hermite_e.hermegauss(4)] * (context * dim) + [([-1, 1], [1, 1])] * dim  # x and w
    nodes = np.stack([axis.ravel() for axis in np.meshgrid(*[r[0] for r in rules], indexing="ij")], -1)
    mass = np.prod(np.stack(np.meshgrid(*[r[1] for r in rules], indexing="ij")), 0).ravel()
    x, w = nodes[:, :-dim].reshape(-1, context, dim), nodes[:, -dim:]
    angles = 2 * np.pi * np.arange(8) / 8
    queries = [np.ones(1)] if dim == 1 else 2**0.5 * np.stack([np.cos(angles), np.sin(angles)], -1)
    risks = []
    for x_q in queries:  # of length sqrt(dim), as the loss is a multiple of its square
        u = A_DD @ x_q
        first = u / np.linalg.norm(u)
        turned = x @ (first[None, None] if dim == 1 else np.stack([first, [-first[1], first[0]]]))
        labels = np.einsum("bnd,bd->bn", turned, w)
        tokens = turned @ b_P[:-1] + b_P[-1] * labels
        read = (np.maximum(turned @ u, 0) * tokens).mean(1)
        risks.append(mass @ (read + w @ x_q) ** 2 / mass.sum())
    return np.mean(risks)


@pytest.mark.parametrize(("dim", "context"), [(1, 1), (1, 3), (2, 1), (2, 2)])
def test_relu_risk_against_enumeration(dim, context):
    for seed in range(3):
        b_P, A_DD = draw(seed, dim + 1), draw(seed + 3, dim, dim)
        exact = relu_risk_by_enumeration(b_P.numpy(), A_DD.numpy(), dim, context)
        assert float(ReluRisk(dim, context).value(b_P, A_DD)) == pytest.approx(exact, rel=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.integers(1, 30), st.integers(0, 1000))
def test_theorem_5_is_the_global_minimum(dim, context, seed):
    risk = ReluRisk(dim, context)
    b_P = eye(dim + 1)[-1].requires_grad_()
    A_DD = (risk.minimiser * eye(dim)).requires_grad_()
    value = risk.value(b_P, A_DD)
    assert float(value.detach()) == pytest.approx(risk.minimum, rel=1e-12)
    assert all(float(g.abs().max()) < 1e-12 for g in torch.autograd.grad(value, (b_P, A_DD)))
    b, A = draw(seed, 20, dim + 1), draw(seed + 1, 20, dim, dim)
    assert bool((risk.value(b, A) >= risk.minimum - 1e-12).all())
    assert bool((risk.covariate_term(b[:, :-1], A) >= 0).all())


def test_relu_invariances():
    risk, b, A = ReluRisk(4, 7), draw(3, 5), draw(4, 4, 4)
    assert float(risk.value(3 * b, A / 3)) == pytest.approx(float(risk.value(b, A)), rel=1e-12)
    R = torch.linalg.qr(draw(5, 4, 4)).Q
    rotated = torch.cat([R @ b[:-1], b[-1:]])
    assert float(risk.value(rotated, R @ A @ R.T)) == pytest.approx(float(risk.value(b, A)), rel=1e-12)


test_a_changed_constant_is_seen = sees(
    relu_risk,
    ("self.context + 3", "self.context + 2", 0, test_relu_risk_against_enumeration, (1, 3)),
    ("(4 * self.context)", "(3 * self.context)", 0, test_relu_risk_against_enumeration, (1, 3)),
    (
        "(4 * self.context) * drift",
        "(3 * self.context) * drift",
        0,
        test_relu_risk_against_enumeration,
        (1, 1),
    ),
    ("/ (2 * self.context)", "/ self.context", 0, test_relu_risk_against_enumeration, (1, 1)),
    ("A_DD.mT @ b_0", "A_DD @ b_0", 0, test_relu_risk_against_enumeration, (2, 2)),
    ("2 * (self.dim + 2)", "2 * (self.dim + 1)", 0, test_relu_risk_against_enumeration, (2, 1)),
    ("b_1 * trace", "trace", 0, test_relu_risk_against_enumeration, (1, 1)),
)
