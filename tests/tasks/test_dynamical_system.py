import numpy as np
import pytest
import torch

from icl.models import Full, LinearTransformer, MultiHead
from icl.random import generator
from icl.tasks import dynamical_system as lds
from icl.tasks.dynamical_system import DynamicalSystem, Systems, gram_prompts, token_prompts
from icl.tasks.sequence_moments import covariances_of_systems
from icl.training.threads import threads


def law_of(**settings):
    return DynamicalSystem(**settings).law([0])


@pytest.mark.parametrize("setting", lds.SETTINGS)
def test_observations_have_the_covariance_of_their_system(setting):
    """Draw one system and many sequences; the first observation has moved once from x_0."""
    law, B = law_of(setting=setting, dim=3, length=6, initial_variance=0.5), 60_000
    one = law.systems([generator(1, "check")], 1)
    many = Systems(one.A_RBDD.expand(1, B, 3, 3), one.c_RBD.expand(1, B, 3))
    y = law.observations(many, [generator(2, "check")])[0]
    C = covariances_of_systems(one.A_RBDD[0], one.c_RBD[0], law.Sigma_w_RDD[0], 0.01, 0.5, 6)[0]
    scale = (C.diagonal()[:, None] * C.diagonal() + C.square()).sqrt() / B**0.5
    assert ((y.T @ y / B - C) / scale).abs().max() < 4.5
    assert (y.mean(0) / (C.diagonal() / B).sqrt()).abs().max() < 4.5


def test_trainer_are_the_papers():
    B, D = 2000, 5
    drawn = {s: law_of(setting=s).systems([generator(0, "check")], B) for s in lds.SETTINGS}
    A, c = drawn["a"].A_RBDD[0], drawn["a"].c_RBD[0]
    assert torch.equal(A, torch.diag_embed(A.diagonal(dim1=1, dim2=2))) and torch.all(c == 1)
    for setting in "bd":
        A = drawn[setting].A_RBDD[0]
        assert torch.allclose(A, A.mT, atol=1e-12) and not torch.allclose(A, A.diagonal()[0])
    assert not torch.allclose(drawn["c"].A_RBDD, drawn["c"].A_RBDD.mT, atol=0.1)
    for setting in lds.SETTINGS:
        values = torch.linalg.eigvals(drawn[setting].A_RBDD[0])
        assert values.imag.abs().max() < 1e-6 and values.real.abs().max() < 1
        assert (values.real.flatten().square().mean() - 1 / 3).abs() < 5 * (4 / 45 / B / D) ** 0.5
    for setting in "bcd":
        c = drawn[setting].c_RBD[0]
        assert c.abs().max() <= 5 and (c.square().mean() - 25 / 3).abs() < 0.5
    spread = torch.linalg.eigvalsh(law_of(setting="d").Sigma_w_RDD[0])
    expected = 0.01 * torch.tensor([0.8, 0.85, 0.9, 0.95, 1.0], dtype=torch.float64)
    assert torch.allclose(spread, expected, rtol=1e-12)


def test_systems_of_c_are_those_of_their_mixing_matrix():
    """Compare A = P^-1 diag(v) P by LAPACK, with the v and P that the law draws; P as the paper makes it."""
    law, B, D = law_of(setting="c"), 20, 5
    rngs = [generator(0, "check") for _ in range(2)]
    A = law.systems(rngs[:1], B).A_RBDD[0].numpy()
    v = lds._eigenvalues(rngs[1], "uniform", B, D)
    M = np.moveaxis(rngs[1].uniform(-1.0, 1.0, (D, D, B)), -1, 0)
    Q, R = np.linalg.qr(M)
    size = np.abs(np.diagonal(R, axis1=1, axis2=2))
    low, high = size.min(1, keepdims=True), size.max(1, keepdims=True)
    moved = (high / 2 + high / 2 * (size - low) / (high - low)) * np.sign(np.diagonal(R, axis1=1, axis2=2))
    R[:, range(D), range(D)] = moved
    P = Q @ R
    assert np.allclose(A, np.linalg.solve(P, v[..., None] * P), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("setting", lds.SETTINGS)
@pytest.mark.parametrize("spectrum", ["uniform", "sphere", "ball", [0.9, -0.2, 0.5]])
def test_A_and_minus_A_have_the_same_law(setting, spectrum):
    """Test E.1 on the samplers: odd moments of traces vanish; y_1 y_2 has mean zero."""
    law, B = law_of(setting=setting, dim=3, length=3, spectrum=spectrum), 20_000
    systems = law.systems([generator(0, "check")], B)
    A = systems.A_RBDD[0]
    trace, cube = A.diagonal(dim1=1, dim2=2).sum(-1), (A @ A @ A).diagonal(dim1=1, dim2=2).sum(-1)
    y = law.observations(systems, [generator(1, "check")])[0]
    for sample in (trace, cube, y[:, 0] * y[:, 1]):
        assert abs(float(sample.mean())) < 4.5 * float(sample.std()) / B**0.5


def test_spectra():
    rng, B = np.random.default_rng(0), 4000
    sphere = lds._eigenvalues(rng, "sphere", B, 4)
    assert np.allclose(np.linalg.norm(sphere, axis=1), 1)
    ball = np.linalg.norm(lds._eigenvalues(rng, "ball", B, 4), axis=1)
    assert ball.max() <= 1 and abs(float(ball.mean()) - 4 / 5) < 0.02
    listed = lds._eigenvalues(rng, (0.5, -0.25), B, 2)
    assert {tuple(row) for row in listed.tolist()} == {(0.5, -0.25), (-0.5, 0.25)}


@pytest.mark.parametrize("window", [1, 2, 4])
def test_tokens_are_eq_7_and_the_gram_form_is_theirs(window):
    T, y = 9, torch.arange(1, 10).double()[None, None].repeat(1, 2, 1)
    y[0, 1] *= -0.3
    prompt = token_prompts(y, window)
    assert prompt.context_RBNP.shape == (1, 2, T - window - 1, window + 1)
    for t in range(1, T - window):
        assert prompt.context_RBNP[0, 0, t - 1].tolist() == list(range(t, t + window + 1))
    assert prompt.query_RBP[0, 0].tolist() == [*range(T - window, T), 0]
    assert prompt.target_RB[0].tolist() == [9.0, pytest.approx(-2.7)] and prompt.read_out == 1
    gram = gram_prompts(y, window)
    assert torch.allclose(gram.gram_RBPP, prompt.gram().gram_RBPP, rtol=1e-13)
    assert torch.equal(gram.query_RBP, prompt.query_RBP) and gram.read_out == 1
    assert 9 not in gram.query_RBP[0, 0]


@pytest.mark.parametrize("setting", ["a", "d"])
def test_threads_change_no_number(setting):
    law = DynamicalSystem(setting=setting).law([3, 4, 5])
    drawn = []
    for count in (1, 3):
        with threads(count):
            drawn.append(law.sequences([generator(seed, "train") for seed in (3, 4, 5)], 7))
    assert torch.equal(*drawn)


def model_of(law, family=MultiHead, **settings):
    parametrization = family(law.dim, init_std=0.7, **settings)
    parametrization.double().initialise(range(len(law.context_R)))
    return LinearTransformer(parametrization)


def test_where_no_exact_risk_is_declared():
    for settings in ({"setting": "c"}, {"setting": "d"}, {"spectrum": "ball"}):
        law = DynamicalSystem(dim=2, length=6, **settings).law([0])
        assert law.exact_risk(model_of(law, Full, layers=1)) is None
    many = DynamicalSystem(dim=21, length=6, setting="b", spectrum=[0.1] * 21).law([0])
    assert many.covariances is None
    law = DynamicalSystem(dim=2, length=6).law([0])
    assert law.exact_risk(model_of(law, Full, layers=2)) is None
    assert law.exact_risk(LinearTransformer(Full(1, 1), "tokens", "relu")) is None


def test_systems_drawn_once_are_all_there_is_and_the_same_for_every_seed():
    law = DynamicalSystem(dim=2, length=6, setting="d", systems=3).law([5, 9])
    drawn = law.systems([generator(seed, "train") for seed in (5, 9)], 200)
    for A in (drawn.A_RBDD[0], drawn.A_RBDD[1]):
        assert len(torch.unique(A.flatten(1), dim=0)) == 6
        assert all(any(torch.equal(one, known) for known in law.pool.A_RBDD[0]) for one in A[:9])
    assert not torch.equal(drawn.A_RBDD[0], drawn.A_RBDD[1])
    assert torch.equal(law.Sigma_w_RDD[0], law.Sigma_w_RDD[1])
    A, mirrored = law.pool.A_RBDD[0].chunk(2)
    assert torch.equal(mirrored, -A)
    again = DynamicalSystem(dim=2, length=6, setting="d", systems=3).law([0])
    assert torch.equal(again.pool.A_RBDD, law.pool.A_RBDD)
    assert law.replica(1).exact_risk(model_of(law.replica(1), Full, layers=1)) is not None
