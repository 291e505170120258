"""lds, Section 5: is a layer of pattern (13) two steps of preconditioned conjugate gradients on L_AR(s)?

With the Gram matrix [[H, g], [g^T, g0]] (H the Hessian of L_AR(s), g minus its gradient at 0), W_QK's rows
[P, p] and W_V's last column (q, c_N) the layer predicts with w = P H q + (p q^T + c_N P) g + c_N g0 p. Three
identities are held to: this, from the layer run on tokens; (17) with Gamma + P in place of Gamma H + P, and
with E.3's P'; and E.2's expansion of w_2, from Shewchuk's algorithm run with preconditioner P^-1 and d_0 = q.

Then the reading itself: how far are the predictions of the best head of (13) from those of the two steps, and
from those of one gradient step, over simulated sequences? As shares of the layer's own root mean square. The
two steps divide by what may be near 0, so that the square of this distance need have no mean: medians are
compared, each by an interval between two order statistics, which is one for any law.

B sequences, s window, P = s + 1 token width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from scipy.stats import binom
from torch import Tensor

from icl.algorithms import ConjugateGradient, GradientDescent, KalmanFilter
from icl.checks.lds.support.evidence import on_tokens, without_signs
from icl.checks.lds.support.population import PARTS, Population, balanced
from icl.checks.lds.support.sequences import Windows
from icl.checks.sequential import ALPHA
from icl.checks.settings import fits_in_memory, in_range
from icl.checks.verdict import Bound, Condition, Control, Finding, at_most, combine
from icl.errors import InputError
from icl.random import generator
from icl.tasks.dynamical_system import gram_prompts, token_prompts
from icl.theory.dynamical_system import (
    coefficients,
    covariances_of_systems,
    half_squared_error,
    parity_mask,
)
from icl.theory.lds.value_search import search_values
from icl.theory.quadratic import EPSILON

MAX_WINDOW = 5
FILTERED = 40  # systems whose Kalman filter is written out
LEAST_SAMPLES = 320


@dataclass(eq=False)
class Pcg(Windows):
    """Settings: setting, window s (2 to 5), length T, dim, seed, samples (sequences; a fifth as many systems
    where these are drawn)."""

    reference = "Section 5, eqs. (15) to (17); Appendices E.2 and E.3"
    claim = (
        "A layer of pattern (13), s >= 2, predicts by (17) and resembles two steps of preconditioned "
        "conjugate gradients on L_AR(s), preconditioner P^-1, first direction q: it is nearer to them than "
        "to one gradient step."
    )

    window: int = 2
    samples: int = 100_000

    def __post_init__(self) -> None:
        if self.window == 1:
            raise InputError(
                "check.window=1: two PCG steps on one weight are least squares, and (13) is Theorem 4.1's"
            )
        in_range("check.window", self.window, 2, MAX_WINDOW, "the searches take minutes")
        super().__post_init__()
        fits_in_memory(self.samples, LEAST_SAMPLES, self.dim**2 + self.length)

    def measure(self) -> Finding:
        population = Population(self.law, max(self.samples // 5, 3 * PARTS), self.seed)
        rng = generator(self.seed, "search")
        best = search_values(population.risk, 1, rng, 4, parity_mask(self.window)[0])
        b_P, a_KP = balanced(best, self.window)
        rngs = [generator(self.seed, "eval")]
        systems = self.law.systems(rngs, self.samples)
        y_RBT = self.law.observations(systems, rngs)
        measured = self._identities(y_RBT[:, :64], b_P, a_KP)
        printed = measured["printed_17_error"]
        # Each side sums N products a Gram entry and s an entry of H q, P H q or a quotient: four such sums.
        bound = EPSILON * 8 * (self.law.context + 4 * self.window)
        source = "rounding: 2^-52 times 8 (N + 4 s), errors as shares of the sizes of all terms"
        measured |= self._risks(population, b_P, a_KP)
        nearer = self._distances(population, y_RBT, b_P, a_KP, measured)
        filters, by_conditioning = self._kalman(systems)
        measured |= filters
        beaten = (
            "the median distance from one gradient step, which the reading must beat: 99.9 % intervals of "
            "both medians, between order statistics"
        )
        # The identities are the algebra of the claim; where they stand, the distances are what it says.
        verdict, decisive = combine(
            [
                (nearer, Bound(measured["distance_gd"], beaten, "distance_pcg")),
                at_most("identity_error", measured["identity_error"], bound, source),
                by_conditioning,
            ]
        )
        return Finding(
            verdict,
            measured,
            decisive,
            Control(
                "(17) as printed, (Gamma H + P) H q + ..., against the layer, as a share of the terms' sizes",
                printed,
                printed > bound,
            ),
            [
                population.note,
                f"Distances: {self.samples} simulated sequences, the best head of (13) that a search found.",
            ],
            self._remarks(measured),
            kinds={"*": "sampled", "risk_*": population.kind, "*_error": "tried", "kalman_*": "tried"},
        )

    def _identities(self, y_RBT: Tensor, b_P: Tensor, a_KP: Tensor) -> dict[str, Any]:
        """On single sequences, each error as a share of the sizes of all terms."""
        s = self.window
        prompt, gram = token_prompts(y_RBT, s), gram_prompts(y_RBT, s)
        x_BD, G_BPP = gram.query_RBP[0, :, :s], gram.gram_RBPP[0]
        layer = PcgLayer(b_P, a_KP, G_BPP)
        out_B = on_tokens(b_P, a_KP, prompt)
        size_B = on_tokens(b_P.abs(), a_KP.abs(), without_signs(prompt)) * layer.spread_B

        def error(w_BD: Tensor) -> float:
            return float((((w_BD * x_BD).sum(-1) - out_B) / size_B).abs().max())

        errors = {
            "predictor_error": error(layer.predictor()),
            "gamma_error": error(layer.seventeen(layer.gamma())),
            "e3_error": error(layer.seventeen(layer.e3())),
        }
        H_BDD, g_BD = G_BPP[:, :s, :s], G_BPP[:, :s, s]
        steps_BD = ConjugateGradient(2, layer.P_DD, layer.q_D).weights(H_BDD[None], g_BD[None])[0]
        expanded_BD, terms_BD = layer.expansion()
        errors["expansion_error"] = float(((steps_BD - expanded_BD) / terms_BD).abs().max())
        printed = error(layer.seventeen(layer.gamma() @ H_BDD))
        return {"identity_error": max(errors.values()), **errors, "printed_17_error": printed}

    def _risks(self, population: Population, b_P: Tensor, a_KP: Tensor) -> dict[str, float]:
        """Return the risks of the layer and of one gradient step of the best size."""
        part, step_KS = population.moments, self._step()
        eta = float((part.linear_KS * step_KS).sum()) / _mean_square(population, step_KS)
        points = {"layer": coefficients(b_P, a_KP), "gd": eta * step_KS}
        risks = {f"risk_{name}": float(half_squared_error(part, x_KS)) for name, x_KS in points.items()}
        return risks | {"gd_step_size": eta}

    def _step(self) -> Tensor:
        """A gradient step of size 1 as coefficients of a head."""
        entry_PP = torch.eye(self.window + 1, dtype=torch.float64)
        return coefficients(entry_PP[-1], entry_PP[: self.window])

    def _distances(
        self,
        population: Population,
        y_RBT: Tensor,
        b_P: Tensor,
        a_KP: Tensor,
        measured: dict[str, Any],
    ) -> str:
        """Median distances with their intervals; is that of the PCG steps the smaller?"""
        s, prompt = self.window, gram_prompts(y_RBT, self.window)
        layer = PcgLayer(b_P, a_KP, prompt.gram_RBPP[0])
        out_B = (layer.predictor() * prompt.query_RBP[0, :, :s]).sum(-1)
        size = _mean_square(population, coefficients(b_P, a_KP)) ** 0.5
        others: dict[str, ConjugateGradient | GradientDescent] = {
            "pcg": ConjugateGradient(2, layer.P_DD, layer.q_D),
            "gd": GradientDescent(measured["gd_step_size"], 1),
            "plain_cg": ConjugateGradient(2),
        }
        intervals = {}
        for name, method in others.items():
            distance_B = (method.predict(prompt)[0] - out_B).abs() / size
            measured[f"distance_{name}"] = float(distance_B.median())
            intervals[name] = measured[f"distance_{name}_interval"] = median_interval(distance_B, ALPHA / 2)
        (low_pcg, high_pcg), (low_gd, high_gd) = intervals["pcg"], intervals["gd"]
        return "holds" if high_pcg < low_gd else "fails" if low_pcg > high_gd else "undecided"

    def _kalman(self, systems: Any) -> tuple[dict[str, float], Condition]:
        """The filter against conditioning on y_1 .. y_(T-1), by its weights on them and by its variance; and
        the risk with sigma_v for sigma_v^2, as (2) prints it, over that of the filter."""
        law, T, few = self.law, self.law.length, slice(0, FILTERED)
        A_QDD, c_QD = systems.A_RBDD[0, few], systems.c_RBD[0, few]
        C_QTT = covariances_of_systems(
            A_QDD, c_QD, law.Sigma_w_RDD[0], law.observation_noise, law.initial_variance, T
        )
        Q, eye_TT = len(C_QTT), torch.eye(T, dtype=torch.float64)
        errors_QT, variance_Q = [], torch.zeros(Q)
        for noise in (law.observation_noise**0.5, law.observation_noise):
            # Linear in y: its answers to the unit sequences, system by system, are its weights.
            A_RBDD, c_RBD = A_QDD.repeat_interleave(T, 0)[None], c_QD.repeat_interleave(T, 0)[None]
            kalman = KalmanFilter(A_RBDD, c_RBD, law.Sigma_w_RDD, noise, law.initial_variance)
            mean_RBT, variance_RBT = kalman.forecasts(eye_TT.repeat(Q, 1)[None])
            errors_QT.append(eye_TT[-1] - mean_RBT[0, :, -1].view(Q, T))
            variance_Q = variance_RBT[0, ::T, -1]
        printed_Q, right_Q = (((off_QT[:, None] @ C_QTT)[:, 0] * off_QT).sum(1) for off_QT in errors_QT)
        past_QXX, cross_QX = C_QTT[:, :-1, :-1], C_QTT[:, :-1, -1]
        least_Q = C_QTT[:, -1, -1] - (cross_QX * torch.linalg.solve(past_QXX, cross_QX)).sum(1)
        size_Q = C_QTT[:, -1, -1] * torch.linalg.cond(past_QXX)
        off_Q = torch.maximum((right_Q - least_Q).abs(), (variance_Q - least_Q).abs()) / size_Q
        measured = {
            "kalman_error": float(off_Q.max()),
            "kalman_ratio_printed_2": float(printed_Q.mean() / right_Q.mean()),
        }
        source = (
            "rounding: 2^-52 times 8 T d, as a share of E[y_T^2] and the condition of the past's covariance"
        )
        bound = EPSILON * 8 * T * law.states
        return measured, at_most("kalman_error", measured["kalman_error"], bound, source)

    def _remarks(self, measured: dict[str, Any]) -> list[str]:
        return [
            "(17) as printed is wrong: with P' = Gamma H the term c_N g0 p is not P' H q but Gamma H q. The "
            "right form is (Gamma + P) H q + ...; E.3's P', another matrix, does satisfy P' H q = c_N g0 p.",
            "In (15) and (60) the vector called the gradient of L_AR(s) at 0 is minus the gradient; f in E.2 "
            "has + b^T w where r_0 = b - A w_0 belongs to - b^T w.",
            "Algorithm 1's step size must divide by d_i^T z_i, not d_0^T z_0. That P' is invertible, as "
            "Section 5 assumes, can only be meant of P: Gamma and P' have rank one.",
            "(2)'s gain needs sigma_v^2 where it prints sigma_v: the filter so printed has "
            f"{measured['kalman_ratio_printed_2']:.3f} times the squared error.",
            f"A resemblance, no identity: half of the sequences are more than {measured['distance_pcg']:.2g} "
            "of the layer's root mean square away from the two steps, and more than "
            f"{measured['distance_gd']:.2g} from one step of descent. (17) is quadratic in the Gram matrix, "
            "the steps divide by it.",
        ]


def median_interval(values_B: Tensor, alpha: float) -> list[float]:
    """[low, high] between two order statistics, which the median of any law is outside of in at most this
    share of samples."""
    B = len(values_B)
    below = int(binom.ppf(alpha / 2, B, 0.5))  # fewer lie below the median with at most alpha / 2
    if below < 1:
        return [0.0, math.inf]
    sorted_B = values_B.sort().values
    return [float(sorted_B[below - 1]), float(sorted_B[B - below])]


def _mean_square(population: Population, x_KS: Tensor) -> float:
    """E[y_hat^2]."""
    return float(torch.einsum("ks,kslr,lr->", x_KS, population.moments.form_KSKS, x_KS))


class PcgLayer:
    """The blocks of Section 5: P, p of W_QK and q, c_N of W_V, on Gram matrices (B, P, P)."""

    def __init__(self, b_P: Tensor, a_KP: Tensor, G_BPP: Tensor) -> None:
        s = len(a_KP)
        self.P_DD, self.p_D, self.q_D, self.c_N = a_KP[:, :s], a_KP[:, s], b_P[:s], b_P[s]
        self.H_BDD, self.g_BD, self.g0_B = G_BPP[:, :s, :s], G_BPP[:, :s, s], G_BPP[:, s, s]

    def predictor(self) -> Tensor:
        """w (B, s) = P H q + (p q^T + c_N P) g + c_N g0 p."""
        return self._rest() + self._Hq() @ self.P_DD.T + self.c_N * self.g0_B[:, None] * self.p_D

    def gamma(self) -> Tensor:
        """Gamma = c_N g0 p q^T / (q^T H q), (B, s, s)."""
        return self._rank_one(self.q_D.expand_as(self.g_BD))

    def e3(self) -> Tensor:
        """E.3's P' = c_N g0 p v^T / (v^T v), v = H q."""
        return self._rank_one(self._Hq())

    def seventeen(self, extra_BDD: Tensor) -> Tensor:
        """(extra + P) H q + (p q^T + c_N P) g."""
        return self._rest() + ((extra_BDD + self.P_DD) @ self._Hq()[..., None])[..., 0]

    @property
    def spread_B(self) -> Tensor:
        """How much larger the terms of Gamma H q are than their sum: |q|^T |H q| / |q^T H q|."""
        Hq_BD = self._Hq()
        return ((self.q_D * Hq_BD).abs().sum(-1) / (self.q_D * Hq_BD).sum(-1).abs()).clamp(min=1)

    def expansion(self) -> tuple[Tensor, Tensor]:
        """E.2's w_2 = [(alpha_0 + alpha_1 beta_1) H^-1 - alpha_0 alpha_1 P] H q + alpha_1 P g, and sizes."""
        q_BD = self.q_D.expand_as(self.g_BD)
        Hq_BD = self._Hq()
        first_B1 = (self.g_BD * q_BD).sum(-1, keepdim=True)
        alpha0_B1 = first_B1 / (q_BD * Hq_BD).sum(-1, keepdim=True)
        r1_BD = self.g_BD - alpha0_B1 * Hq_BD
        Pr1_BD = r1_BD @ self.P_DD.T
        second_B1 = (r1_BD * Pr1_BD).sum(-1, keepdim=True)
        beta_B1 = second_B1 / first_B1
        d1_BD = Pr1_BD + beta_B1 * q_BD
        z1_BD = (self.H_BDD @ d1_BD[..., None])[..., 0]
        alpha1_B1 = second_B1 / (d1_BD * z1_BD).sum(-1, keepdim=True)
        parts = [
            (alpha0_B1 + alpha1_B1 * beta_B1) * q_BD,
            -alpha0_B1 * alpha1_B1 * (Hq_BD @ self.P_DD.T),
            alpha1_B1 * (self.g_BD @ self.P_DD.T),
        ]
        # alpha_1 and beta_1 inherit r_1's cancellation, of the size of g over r_1, twice.
        lost_B1 = (self.g_BD.abs().amax(-1, keepdim=True) / r1_BD.abs().amax(-1, keepdim=True)).clamp(min=1)
        parts_XBD = torch.stack(parts)
        size_BD = parts_XBD.abs().sum(0)
        return parts_XBD.sum(0), size_BD.amax(-1, keepdim=True) * lost_B1**2

    def _Hq(self) -> Tensor:
        return self.H_BDD @ self.q_D

    def _rest(self) -> Tensor:
        return (self.g_BD @ self.q_D)[:, None] * self.p_D + self.c_N * self.g_BD @ self.P_DD.T

    def _rank_one(self, v_BD: Tensor) -> Tensor:
        """c_N g0 p v^T / (v^T H q)."""
        dual_BD = v_BD / (v_BD * self._Hq()).sum(-1, keepdim=True)
        return (self.c_N * self.g0_B[:, None] * self.p_D)[..., :, None] * dual_BD[..., None, :]
