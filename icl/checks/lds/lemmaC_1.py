"""lds, Lemma C.1: (A, c) is observable with probability one under Assumption 3.2.

O = [c^T; c^T A; ...; c^T A^(d-1)] has rank d: its smallest singular value over its largest, in all drawn
systems of every setting, against what rounding makes of an exact zero. O's rows are powers of A, so the ratio
falls fast with d; Popov, Belevitch and Hautus's test, |(A - v I; c^T)| of full rank at every eigenvalue v,
says the same with a far better condition and is measured beside it. That the systems are section 5's and
appendix B.6's is held to LAPACK's of the same stream.

Q systems, D states.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from icl.checks.lds.support.sequences import law_of
from icl.checks.settings import fits_in_memory, in_range
from icl.checks.verdict import Control, Finding, at_most, combine, exceeds
from icl.random import generator
from icl.tasks.dynamical_system import SETTINGS
from icl.theory.quadratic import EPSILON

MAX_DIM = 8
SOURCE = "rounding: 2^-52 d times the largest singular value, what a zero one would be computed as"


class LemmaC1:
    """Settings: dim, drawn systems of each setting (`samples`), seed; setting null is all four."""

    reference = "Lemma C.1; Assumptions 3.1 and 3.2, eq. (5); Appendix E.1"
    claim = "A system drawn by Assumption 3.2 is observable with probability one: O has rank d."

    def __init__(self, setting: str | None = None, dim: int = 5, seed: int = 0, samples: int = 4000) -> None:
        reason = "O's smallest singular value is lost in rounding"
        self.dim, self.seed = in_range("check.dim", dim, 1, MAX_DIM, reason), seed
        settings = SETTINGS if setting is None else (setting,)
        self.laws = {name: law_of(name, 1, 3, dim, seed) for name in settings}
        self.samples = fits_in_memory(samples, 1, self.dim**3)

    def measure(self) -> Finding:
        ratios, hautus, off, worst = {}, {}, {}, 1.0
        for name, law in self.laws.items():
            drawn = law.systems([generator(self.seed, "check")], self.samples)
            A_QDD, c_QD = drawn.A_RBDD[0], drawn.c_RBD[0]
            ratio_Q = _ratio(observability(A_QDD, c_QD))
            ratios[name] = float(ratio_Q.min())
            hautus[name] = float(_hautus(A_QDD, c_QD).min())
            off[name] = systems_off(name, generator(self.seed, "check"), A_QDD, c_QD)
            worst = min(worst, ratios[name])
        measured = {
            "least_ratio": worst,
            "least_ratio_by_setting": ratios,
            "least_hautus": min(hautus.values()),
            "least_hautus_by_setting": hautus,
            "systems_off": max(off.values()),
            "systems": self.samples,
        }
        threshold = self.dim * EPSILON
        verdict, bound = combine(
            [
                exceeds("least_ratio", worst, threshold, SOURCE),
                exceeds("least_hautus", min(hautus.values()), threshold, SOURCE),
                at_most("systems_off", max(off.values()), 1.0, "rounding, of the systems by LAPACK"),
            ]
        )
        return Finding(
            verdict,
            measured,
            bound,
            self._control(threshold),
            ["A full rank in every drawn system is evidence, no proof: a null set is never drawn."],
            [
                "In (a) c = (1, ..., 1) is no draw from a density (Assumption 3.2); E.1 covers it: the "
                "eigenvalues alone are enough, O is then Vandermonde's matrix.",
                "Almost sure is not well conditioned: O's singular values span many orders already at d = 5, "
                "and an estimate of the states from d observations would be useless.",
            ],
            kinds={"*": "tried", "systems": "exact"},
        )

    def _control(self, threshold: float) -> Control:
        """The same systems with a repeated eigenvalue, or at d = 1 with c = 0."""
        law = next(iter(self.laws.values()))
        drawn = law.systems([generator(self.seed, "control")], 1000)
        v_QD, c_QD = torch.linalg.eigvals(drawn.A_RBDD[0]).real, drawn.c_RBD[0]
        if self.dim == 1:
            ratio_Q, text = _ratio(observability(drawn.A_RBDD[0], 0 * c_QD)), "c = 0"
        else:
            v_QD[:, 1] = v_QD[:, 0]
            ratio_Q, text = _ratio(observability(torch.diag_embed(v_QD), c_QD)), "a repeated eigenvalue"
        largest = float(ratio_Q.max())
        return Control(f"largest ratio of 1000 systems with {text}", largest, largest <= threshold)


def observability(A_QDD: Tensor, c_QD: Tensor) -> Tensor:
    """O of eq. (5)."""
    rows = [c_QD]
    for _ in range(c_QD.shape[1] - 1):
        rows.append((rows[-1][:, None] @ A_QDD)[:, 0])
    return torch.stack(rows, 1)


def systems_off(setting: str, rng: np.random.Generator, A_QDD: Tensor, c_QD: Tensor) -> float:
    """The largest difference of A and c from those that LAPACK makes of the same numbers, over rounding.

    R's own rounding is that of M times M's condition, A's is P's times P's condition.
    """
    Q, D = c_QD.shape
    v_QD, unit = rng.uniform(-1.0, 1.0, (Q, D)), 16 * D**2 * EPSILON
    condition_Q, expected_c_QD = np.ones(Q), np.ones((Q, D))
    if setting == "a":
        P_QDD = np.broadcast_to(np.eye(D), (Q, D, D))
    else:
        draw = rng.uniform(-1.0, 1.0, (D, D, Q)) if setting == "c" else rng.standard_normal((D, D, Q))
        M_QDD = draw.transpose(2, 0, 1)
        condition_Q = np.linalg.cond(M_QDD)
        P_QDD, R_QDD = np.linalg.qr(M_QDD)
        diagonal_QD = R_QDD[:, range(D), range(D)].copy()
        if setting == "c":
            if D > 1:
                size_QD = np.abs(diagonal_QD)
                low_Q1, high_Q1 = size_QD.min(1, keepdims=True), size_QD.max(1, keepdims=True)
                # from [low, high] to [high / 2, high]
                moved_QD = high_Q1 - (high_Q1 - size_QD) * (high_Q1 / 2) / (high_Q1 - low_Q1)
                R_QDD[:, range(D), range(D)] = np.sign(diagonal_QD) * moved_QD
                condition_Q = condition_Q * (1 + (high_Q1 / (high_Q1 - low_Q1))[:, 0])
            P_QDD = P_QDD @ R_QDD
            condition_Q = condition_Q * np.linalg.cond(P_QDD)
        else:
            P_QDD = P_QDD * np.sign(diagonal_QD)[:, None]
        expected_c_QD = rng.uniform(-5.0, 5.0, (Q, D))
    expected_QDD = np.linalg.solve(P_QDD, v_QD[..., None] * P_QDD)
    sizes_Q = unit * condition_Q * np.linalg.norm(expected_QDD, axis=(1, 2))
    shares_Q = np.linalg.norm(A_QDD.numpy() - expected_QDD, axis=(1, 2)) / sizes_Q
    off_c = float(np.abs(c_QD.numpy() - expected_c_QD).max()) / (8 * EPSILON)
    return max(float(shares_Q.max()), off_c)


def _ratio(M_QXD: Tensor) -> Tensor:
    singular_QD = torch.linalg.svdvals(M_QXD)
    return torch.where(singular_QD[:, 0] > 0, singular_QD[:, -1] / singular_QD[:, 0], 0.0)


def _hautus(A_QDD: Tensor, c_QD: Tensor) -> Tensor:
    """The least ratio of singular values of [A - v I; c^T] over the eigenvalues v."""
    v_QD = torch.linalg.eigvals(A_QDD).real
    D = c_QD.shape[1]
    shifted_QDDD = A_QDD[:, None] - v_QD[..., None, None] * torch.eye(D, dtype=torch.float64)
    bordered = torch.cat([shifted_QDDD, c_QD[:, None, None].expand(-1, D, 1, D)], 2)
    return _ratio(bordered.flatten(0, 1)).view(v_QD.shape).min(1).values
