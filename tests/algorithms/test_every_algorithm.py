"""Battery of the algorithms: each answers like a dense computation for each prompt alone, over tokens as over
Gram matrices, in any units that a float has. A new one needs an entry in CASES."""

import inspect
from math import comb

import numpy as np
import pytest
import torch
from scipy.sparse.linalg import LinearOperator, cg

import icl.algorithms
from icl.algorithms import (
    ConjugateGradient,
    DiscreteMMSE,
    GradientDescent,
    KalmanFilter,
    LeastSquares,
    RidgeRegression,
)
from icl.algorithms.newton import newton_iteration, transpose_start
from icl.random import generator
from icl.tasks import DynamicalSystem, GramPrompt, LinearRegression, TokenPrompt
from icl.tasks.sequence_moments import covariances_of_systems

SEEDS, D = (0, 1), 4
CONTEXTS = (1, 3, 4, 9)  # fewer tokens than covariates, as many, more
ETA = torch.tensor([[0.3, 0.7, 1.1], [0.5, 0.2, 0.9]], dtype=torch.float64)
LAM = (0.3, 0.05)
FIRST = torch.tensor([0.7, -0.4, 0.1, 0.2], dtype=torch.float64)
MEAN = [1.0, 0.0, -1.0, 0.5]
INVERSE = torch.from_numpy(np.random.default_rng(0).standard_normal((D, D)))
INVERSE = INVERSE @ INVERSE.T + 0.5 * torch.eye(D).double()
LAW = LinearRegression(
    D, 9, eigenvalues=[1.0, 0.5, 0.25, 2.0], task_covariance="inverse", prior_mean=MEAN
).law(SEEDS)


def prompts(context, noise=0.2):
    task = {"eigenvalues": [1.0, 0.5, 0.25, 2.0], "task_covariance": "inverse", "prior_mean": MEAN}
    law = LinearRegression(D, context, label_noise=noise, **task).law(SEEDS)
    return law.token_prompts([generator(seed, "check") for seed in SEEDS], 5)


def descent(x, y, x_q, r, Sigma):
    w = np.zeros(D)
    for step in ETA[r].numpy():
        gradient = sum((w @ x_i - y_i) * x_i for x_i, y_i in zip(x, y, strict=True)) / len(y)
        w = w - step * np.linalg.solve(Sigma, gradient)
    return w @ x_q


def least_norm(x, y, x_q, r, Sigma):
    """Return the interpolation of least |Sigma^{1/2} w|, by another root of Sigma than the algorithm's."""
    values, U = np.linalg.eigh(Sigma)
    root = (U * values**0.5) @ U.T
    return x_q @ np.linalg.solve(root, np.linalg.lstsq(np.linalg.solve(root, x.T).T, y, rcond=None)[0])


def penalised(x, y, x_q, r, Sigma_w, mean):
    """Return the solution with penalty rows sqrt(N lam) L^{-1} (w - mean), Sigma_w = L L^T, added to the
    examples."""
    rows = (len(y) * LAM[r]) ** 0.5 * np.linalg.inv(np.linalg.cholesky(Sigma_w))
    return x_q @ np.linalg.lstsq(np.vstack([x, rows]), np.concatenate([y, rows @ mean]), rcond=None)[0]


def conjugate(x, y, x_q, r, P, first):
    """Return scipy's solution, or two steps by hand with another first direction, from page 51 of
    Shewchuk."""
    S, g = x.T @ x / len(y), x.T @ y / len(y)
    if first is None:
        M = LinearOperator((D, D), matvec=lambda v: P @ v)
        return cg(S, g, rtol=0, atol=0, maxiter=min(3, len(y)), M=M)[0] @ x_q
    a = (g @ first) / (first @ S @ first)
    residual = g - a * S @ first
    direction = P @ residual + (residual @ P @ residual) / (g @ first) * first
    return (a * first + (residual @ P @ residual) / (direction @ S @ direction) * direction) @ x_q


def of_sigma(oracle, Sigma_RDD):
    return lambda x, y, x_q, r: oracle(x, y, x_q, r, np.eye(D) if Sigma_RDD is None else Sigma_RDD[r].numpy())


def ridge(whole, s, t):
    """Return ridge with the penalty of Sigma_w (and the mean), or of the identity."""
    if not whole:
        return RidgeRegression([lam * s**2 for lam in LAM]), lambda *g: penalised(*g, np.eye(D), np.zeros(D))
    covariances = LAW.Sigma_w_RDD
    return (
        RidgeRegression([lam * s**2 for lam in LAM], covariances, LAW.mean_RD * t / s),
        lambda x, y, x_q, r: penalised(x, y, x_q, r, covariances[r].numpy(), LAW.mean_RD[r].numpy()),
    )


def conjugate_gradient(P=None, first=None):
    """Return three steps where there is as much to solve; with another first direction two."""
    dense = np.eye(D) if P is None else P.numpy(), None if first is None else first.numpy()
    return lambda n, s, t: (
        ConjugateGradient(min(3 if first is None else 2, n), P, first),
        lambda *prompt: conjugate(*prompt, *dense),
    )


TASKS = torch.from_numpy(np.random.default_rng(1).standard_normal((2, 6, D)))


def discrete(noise):
    """Return the posterior mean, task by task; without noise the task of the least squared error."""

    def oracle(x, y, x_q, r):
        errors = np.array([np.sum((x @ w - y) ** 2) for w in TASKS[r].numpy()])
        weights = np.exp(-(errors - errors.min()) / (2 * noise)) if noise else errors == errors.min()
        return x_q @ (weights @ TASKS[r].numpy() / weights.sum())

    return lambda n, s, t: (DiscreteMMSE(TASKS * t / s, noise * t**2, n), oracle)


SIGMA, WHITE = LAW.Sigma_RDD, of_sigma(descent, LAW.Sigma_RDD)
# By class and variant: (n tokens, covariates times s, labels times t) -> the algorithm, its oracle at s = t
# = 1.
CASES = {
    "GradientDescent": lambda n, s, t: (GradientDescent(ETA / s**2, 3), of_sigma(descent, None)),
    "GradientDescent white": lambda n, s, t: (GradientDescent(ETA / s**2, 3, SIGMA), WHITE),
    "LeastSquares": lambda n, s, t: (LeastSquares(n), of_sigma(least_norm, None)),
    "LeastSquares white": lambda n, s, t: (LeastSquares(n, SIGMA), of_sigma(least_norm, SIGMA)),
    "RidgeRegression": lambda n, s, t: ridge(False, s, t),
    "RidgeRegression prior": lambda n, s, t: ridge(True, s, t),
    "DiscreteMMSE": discrete(0.7),
    "DiscreteMMSE noiseless": discrete(0.0),
    "ConjugateGradient": conjugate_gradient(),
    "ConjugateGradient P": conjugate_gradient(INVERSE),
    "ConjugateGradient P, d_0": conjugate_gradient(INVERSE, FIRST),
}
EACH = pytest.mark.parametrize("case", CASES)


def test_every_algorithm_is_here():
    classes = {getattr(icl.algorithms, name) for name in icl.algorithms.__all__}
    predicting = {cls for cls in classes if inspect.isclass(cls) and hasattr(cls, "predict")}
    assert {cls.__name__ for cls in predicting} == {case.split()[0] for case in CASES}
    assert {cls for cls in classes if hasattr(cls, "predict_last")} == {KalmanFilter}


@EACH
@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize("context", CONTEXTS)
def test_each_prompt_is_answered_as_by_a_dense_computation(case, context, noise):
    context = max(context, D) if "d_0" in case else context  # two steps by hand need a definite S
    prompt = prompts(context, noise)
    algorithm, oracle = CASES[case](context, 1.0, 1.0)
    by_tokens, by_gram = algorithm.predict(prompt), algorithm.predict(prompt.gram())
    assert torch.equal(by_tokens, by_gram) and by_tokens.shape == prompt.target_RB.shape
    z, q = prompt.context_RBNP.numpy(), prompt.query_RBP.numpy()
    for r in range(len(SEEDS)):
        for b in range(z.shape[1]):
            x, y, x_q = z[r, b, :, :-1], z[r, b, :, -1], q[r, b, :-1]
            expected = oracle(x, y, x_q, r)
            # the normal equations square the condition number
            size = np.linalg.norm(y) * np.linalg.norm(x_q)
            rounding = 1e-12 * np.linalg.cond(x) ** 2 if case.startswith("LeastSquares") else 1e-10
            assert float(by_tokens[r, b]) == pytest.approx(expected, rel=1e-8, abs=rounding * (1 + size))


@EACH
@pytest.mark.parametrize(
    ("s", "t"), [(2.0**90, 1.0), (2.0**-90, 1.0), (1.0, 2.0**160), (2.0**-60, 2.0**-160)]
)
def test_units_do_not_matter(case, s, t):
    """Multiply covariates by s and labels by t, far beyond what the squares of a float32 can be."""
    for context in (2, 9):
        prompt = prompts(context)
        unit = torch.tensor([s] * D + [t], dtype=torch.float64)
        query_RBP = torch.cat([prompt.query_RBP[..., :D] * s, prompt.query_RBP[..., D:]], -1)
        scaled = TokenPrompt(prompt.context_RBNP * unit, query_RBP, prompt.target_RB * t, prompt.read_out)
        found, plain = (
            CASES[case](context, *by)[0].predict(p) for p, by in ((scaled, (s, t)), (prompt, (1.0, 1.0)))
        )
        assert torch.allclose(found / t, plain, rtol=1e-9, atol=1e-9 * float(plain.abs().max()))


@EACH
def test_single_precision_and_empty_prompts(case):
    """Compare float32 prompts with float64 answers; where all is zero so is the answer."""
    algorithm, _ = CASES[case](9, 1.0, 1.0)
    prompt = prompts(9)
    single, double = algorithm.predict(prompt.to(torch.float32)), algorithm.predict(prompt)
    assert single.dtype == torch.float64
    assert torch.allclose(single, double, rtol=1e-3, atol=1e-3 * float(double.abs().max()))
    parts = prompt.context_RBNP, prompt.query_RBP, prompt.target_RB
    nothing = TokenPrompt(*(torch.zeros_like(part) for part in parts))
    assert not algorithm.predict(nothing).any()


@EACH
@pytest.mark.parametrize("context", [3, 9])
def test_a_prompt_is_answered_as_it_is_alone(case, context):
    """Vary what shares the batch, also the same context again, in one replica or in both."""
    algorithm, prompt = CASES[case](context, 1.0, 1.0)[0], prompts(context).gram()
    gram = prompt.gram_RBPP[:, [0, 1, 1, 3, 0]].clone()
    gram[0, 4] = gram[0, 3]
    parts = gram, prompt.query_RBP, prompt.target_RB
    whole = algorithm.predict(GramPrompt(*parts))
    alone = [algorithm.predict(GramPrompt(*(part[:, [b]] for part in parts))) for b in range(5)]
    torch.testing.assert_close(whole, torch.cat(alone, 1), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("setting", ["a", "c", "d"])
@pytest.mark.parametrize(("s", "t"), [(1.0, 1.0), (2.0**100, 2.0**-100), (2.0**-100, 1.0), (1.0, 2.0**100)])
def test_the_kalman_filter_is_conditioning_on_the_joint_gaussian(setting, s, t):
    """Scale the states by s and the observations by s t."""
    law = DynamicalSystem(setting=setting, dim=3, length=12).law([0])
    systems = law.systems([generator(0, "check")], 5)
    y = law.observations(systems, [generator(1, "check")])
    of = systems.A_RBDD, systems.c_RBD * t, law.Sigma_w_RDD * s**2, 0.01 * (s * t) ** 2, 0.01 * s**2
    kalman = KalmanFilter(*of)
    mean, variance = kalman.forecasts(y * s * t)
    mean, variance = mean / (s * t), variance / (s * t) ** 2
    A, c, noise = systems.A_RBDD[0], systems.c_RBD[0], law.Sigma_w_RDD[0]
    C = covariances_of_systems(A, c, noise, 0.01, 0.01, law.length)
    for b in range(5):
        for at in range(12):
            past, cross = C[b, :at, :at], C[b, at, :at]
            weights = torch.linalg.solve(past, cross) if at else cross
            assert float(mean[0, b, at]) == pytest.approx(float(weights @ y[0, b, :at]), rel=1e-7, abs=1e-9)
            assert float(variance[0, b, at]) == pytest.approx(float(C[b, at, at] - weights @ cross), rel=1e-7)
    assert torch.equal(kalman.predict_last(y * s * t) / (s * t), mean[..., -1])


def test_conjugate_gradients_stop_at_the_solution():
    S, g = torch.eye(2).double()[None, None], torch.ones(1, 1, 2).double()
    assert torch.equal(ConjugateGradient(5).weights(S, g), g)


@pytest.mark.parametrize(("order", "steps"), [(2, 3), (3, 2), (5, 2)])
def test_newtons_iteration_is_eq_3_4_with_its_binomial_coefficients(order, steps):
    A_BDD = np.random.default_rng(2).standard_normal((3, D, D))
    X_BDD = transpose_start(torch.from_numpy(A_BDD))
    found = newton_iteration(torch.from_numpy(A_BDD), X_BDD, order, steps)
    assert len(found) == steps + 1
    for b, A in enumerate(A_BDD):
        s = np.linalg.svd(A, compute_uv=False)
        X = A.T / (s[0] ** 2 + s[-1] ** 2)
        for iterate in found:
            np.testing.assert_allclose(iterate[b].numpy(), X, rtol=1e-9, atol=1e-11)
            powers = [np.linalg.matrix_power(A @ X, m) for m in range(order)]
            X = X @ sum((-1) ** m * comb(order, m + 1) * power for m, power in enumerate(powers))
