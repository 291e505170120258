"""Losses of Newton's iteration and of the scalar family of LSA: sums over the eigenvalues of drawn contexts,
or of an exact rule.

B prompts, D covariates, N context, T steps, L layers, J and K nodes of rules.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray

from icl.random import generator
from icl.stats import stratified_error
from icl.tasks import ConditionedRegressionLaw
from icl.tasks.tilted import draw_tilted, inflations_for
from icl.tasks.wishart import draw_wishart
from icl.theory.giannou.own_token import least_by_spectrum, unmasked_risk
from icl.theory.giannou.scalar_family import (
    DEEPEST,
    Masked,
    Problem,
    Unmasked,
    best_by_layers,
    response,
    risks,
)
from icl.theory.quadrature import MAX_NODES, gauss_rule
from icl.theory.wishart import trace_moment

Array = NDArray[np.float64]

ORDERS = (2, 3)
STARTS = ("transpose", "identity")  # X_0 = S / (s_1^2 + s_D^2), the authors', and 2 I / (s_1 + s_D)


def newton_losses(
    law: ConditionedRegressionLaw, seed: int, prompts: int, steps: int
) -> tuple[dict[str, Array], float]:
    """Return `transpose_2` and so on, the loss of each context after 0 to `steps` steps, (T, B), and that
    where S is inverted exactly, the task and the query integrated out. After t steps of order k the residual
    is (1 - s x_0)^{k^t} on S's eigenvalues."""
    rng, n = generator(seed, "eval"), law.context_R[0]
    s_BD, omega_BD = _eigen(law, rng, draw_wishart(rng, n, law.dim, prompts) / n)
    low_B1, high_B1 = s_BD[:, :1], s_BD[:, -1:]
    first = {
        "transpose": 1 - s_BD**2 / (low_B1**2 + high_B1**2),
        "identity": 1 - 2 * s_BD / (low_B1 + high_B1),
    }
    noise_BD = law.label_noise / n * omega_BD / s_BD
    found = {}
    for start in STARTS:
        for order in ORDERS:
            left = [first[start] ** (order**t) for t in range(steps + 1)]
            terms = [omega_BD * left_BD**2 + noise_BD * (1 - left_BD) ** 2 for left_BD in left]
            found[f"{start}_{order}"] = np.stack([term_BD.sum(-1) / law.dim for term_BD in terms])
    return found, float(noise_BD.sum(-1).mean() / law.dim)


def family_best(
    law: ConditionedRegressionLaw, mask: bool, layers: Sequence[int], seed: int, prompts: int, fitted: int
) -> dict[str, Array]:
    """Return the best points found of the scalar family by layers, `theta_LV` (nan beyond 2 L), their risk
    and its standard error, 0 where a rule is exact; deeper ones are fitted on `fitted` prompts, chosen on
    `prompts` others and judged on as many more. Beyond DEEPEST layers the others do nothing. `floor`, where
    Sigma is a multiple of I, without mask and noise: what no function of the spectrum, and so no depth, gets
    below."""
    deepest, roles = min(max(layers), DEEPEST), {"search": fitted, "check": prompts}
    ruled, exact = _deepest_rule(law, deepest) if mask else (0, None)
    thetas = {} if exact is None else best_by_layers(range(1, ruled + 1), exact)
    if ruled < deepest:
        fit, judge = (sampled_problem(law, mask, deepest, seed, role, n)[0] for role, n in roles.items())
        judged, components = sampled_problem(law, mask, deepest, seed, "eval", prompts)
        thetas = best_by_layers(range(1, max(layers) + 1), fit, judge, thetas)
    theta_LV = np.full((len(layers), 2 * max(layers)), np.nan)
    risk_L, error_L = np.empty(len(layers)), np.zeros(len(layers))
    integrated = not mask and law.condition == 1 and not law.label_noise
    floor: dict[str, Array] = {}
    if integrated:
        s_BD, weight_B, components = _own_spectra(law, deepest, seed, prompts)
        least_B = least_by_spectrum(s_BD, law.context_R[0])
        least_B *= weight_B * float(np.mean(law.largest))
        error = stratified_error(least_B * prompts, components)
        floor = {"floor": np.array(least_B.sum()), "floor_error": np.array(error)}
    for i, count in enumerate(layers):
        theta_LV[i, : 2 * count] = thetas[count]
        if exact is not None and count <= ruled:
            risk_L[i] = risks(thetas[count], exact).sum()
            continue
        if integrated:
            terms_B = weight_B * _risk_over_queries(thetas[count], law, s_BD, seed)
        else:
            terms_B = risks(thetas[count], judged)
        risk_L[i], error_L[i] = terms_B.sum(), stratified_error(terms_B * len(terms_B), components)
    return {"theta_LV": theta_LV, "risk_L": risk_L, "error_L": error_L, **floor}


def _deepest_rule(law: ConditionedRegressionLaw, layers: int) -> tuple[int, Masked | None]:
    """Return the largest number of layers, up to `layers`, that a rule is exact for, and the rule."""
    rules = ((count, exact_problem(law, count)) for count in range(layers, 0, -1))
    return next(((count, rule) for count, rule in rules if rule is not None), (0, None))


def _own_spectra(
    law: ConditionedRegressionLaw, layers: int, seed: int, prompts: int
) -> tuple[Array, Array, int]:
    """Eigenvalues of white S', the query among the tokens, and their weights, which add up to one."""
    n, D = law.context_R[0], law.dim
    inflations = inflations_for(3**layers - 1, n, D)
    W_BDD, weight_B = draw_tilted(generator(seed, "eval", 1), n + 1, D, prompts, inflations)
    return np.linalg.eigvalsh(W_BDD) * ((n + 1) / n), weight_B / prompts, len(inflations)


def _risk_over_queries(theta_V: Array, law: ConditionedRegressionLaw, s_BD: Array, seed: int) -> Array:
    """Risk of each spectrum where Sigma = lambda I, whatever the query (icl.theory.giannou.own_token)."""
    lambda_B = generator(seed, "eval", 2).uniform(*law.largest, len(s_BD))
    return lambda_B * unmasked_risk(response(theta_V, lambda_B[:, None] * s_BD), s_BD, law.context_R[0])


def exact_problem(law: ConditionedRegressionLaw, layers: int) -> Masked | None:
    """Gauss rules, where Sigma is a multiple of I, for the trace of powers of a Wishart matrix and for the
    multiple, exact for the family's polynomials of that many layers."""
    degree, (low, high) = (3**layers - 1) // 2, law.largest
    if law.condition != 1 or degree >= MAX_NODES:
        return None
    n, D = law.context_R[0], law.dim
    moments = [Fraction(trace_moment(k, D, n), n**k) for k in range(2 * degree + 2)]
    s_J, weight_J = gauss_rule(moments, degree + 1)
    node_K, weight_K = leggauss(1 if low == high else degree + 1)
    lambda_K1 = ((low + high) / 2 + (high - low) / 2 * node_K)[:, None]
    omega_KJ = lambda_K1 * weight_J * (weight_K[:, None] / 2) / D
    s_B1, omega_B1 = (lambda_K1 * s_J).reshape(-1, 1), omega_KJ.reshape(-1, 1)
    return Masked(s_B1, omega_B1, law.label_noise / n * omega_B1 / s_B1 if law.label_noise else None)


def sampled_problem(
    law: ConditionedRegressionLaw, mask: bool, layers: int, seed: int, role: str, prompts: int
) -> tuple[Problem, int]:
    """Weighted prompts that show the tail of a risk of `layers` layers (icl.tasks.tilted), neighbours of
    different components."""
    rng, n, D = generator(seed, role), law.context_R[0], law.dim
    tokens = n if mask else n + 1
    inflations = inflations_for(3**layers - 1, n, D)
    W_BDD, weight_B = draw_tilted(rng, tokens, D, prompts, inflations)
    W_BDD, weight_B = W_BDD * (tokens / n), weight_B / (prompts * D)
    if mask:
        s_BD, omega_BD = _eigen(law, rng, W_BDD)
        omega_BD = omega_BD * weight_B[:, None]
        noise_BD = law.label_noise / n * omega_BD / s_BD if law.label_noise else None
        return Masked(s_BD, omega_BD, noise_BD), len(inflations)
    # One of n + 1 columns with this Gram matrix: its root times D entries of a uniform unit vector.
    normal_BM = rng.standard_normal((prompts, tokens))
    unit_BD1 = (normal_BM / np.linalg.norm(normal_BM, axis=1, keepdims=True))[:, :D, None]
    F_BDD = law.roots(rng, prompts)
    x_BD1 = F_BDD @ (np.linalg.cholesky(n * W_BDD) @ unit_BD1)
    s_BD, V_BDD = np.linalg.eigh(F_BDD @ W_BDD @ F_BDD.transpose(0, 2, 1))
    own_BD = (V_BDD.transpose(0, 2, 1) @ x_BD1)[..., 0]
    return Unmasked(s_BD, own_BD, n, weight_B, law.label_noise), len(inflations)


def _eigen(law: ConditionedRegressionLaw, rng: np.random.Generator, W_BDD: Array) -> tuple[Array, Array]:
    """Eigenvalues of S = F W F^T in rising order and <v_i, Sigma v_i> at its eigenvectors, both (B, D)."""
    F_BDD = law.roots(rng, len(W_BDD))
    s_BD, V_BDD = np.linalg.eigh(F_BDD @ W_BDD @ F_BDD.transpose(0, 2, 1))
    return s_BD, np.square(F_BDD.transpose(0, 2, 1) @ V_BDD).sum(1)
