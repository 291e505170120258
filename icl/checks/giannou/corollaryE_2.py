"""giannou, Corollary E.2 and (E.5): the inverse and the condition of a perturbed Hessian.

B samples, D covariates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from icl.checks.giannou.support.logistic_rounding import TWO_WAYS, step_off
from icl.checks.giannou.support.problems import LogisticProblems
from icl.checks.numbers import finding, tried
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding
from icl.random import generator
from icl.theory.quadratic import EPSILON

REMARKS = [
    "Weyl's inequalities (Lemma E.3) require symmetric errors, but E_1 = A^T diag(u_1) A + A^T U_2 of the "
    "construction is not symmetric. Corollary E.2 needs no symmetry. For singular values (E.5) holds with "
    "-|E| and |E| instead of the extreme eigenvalues of E.",
    "Appendix E.4 writes grad f for the Hessian throughout.",
]


@dataclass(eq=False)
class CorollaryE2(LogisticProblems):
    """Settings: size of the problems, mu, random Hessians and errors (`samples`), their seed."""

    reference = "Corollary E.2; Lemma E.3, (E.5)"
    claim = (
        "For |E| < mu, |(Hess f + E)^-1 - (Hess f)^-1| <= |E| / (mu (mu - |E|)), and for symmetric E the "
        "condition number of Hess f + E lies within the bounds (E.5)."
    )

    samples: int = integer(1000, 1, 100_000)

    def measure(self) -> Finding:
        rng, mu = generator(self.seed, "check"), self.mu
        loss = self.losses(rng, self.samples)
        x_BD = torch.from_numpy(
            10 ** rng.uniform(-1, 2, (self.samples, 1)) * rng.standard_normal((self.samples, self.dim))
        )
        H_BDD = loss.hessian(x_BD)
        E_BDD, symmetric_BDD, worst_BDD = draw_errors(rng, H_BDD, mu)
        inverse = max(inverse_share(H_BDD, error, mu) for error in (E_BDD, symmetric_BDD, worst_BDD))
        condition = max(condition_share(H_BDD, error) for error in (symmetric_BDD, worst_BDD))
        # Two inverses, each off by 3 D^2 kappa 2^-52 of 1 / (mu - |E|); the bound is |E| / mu of that, .01 at
        # least. With |E| <= .95 mu kappa is at most 2 / .05 times the Hessian's.
        kappa = 2 * float(torch.linalg.cond(H_BDD).max()) / 0.05
        bound = 1 + 6 * EPSILON * self.dim**2 * kappa / 0.01
        halved = inverse_share(H_BDD, worst_BDD, mu) * 2
        return finding(
            [
                tried(inverse=inverse, condition=condition)
                .means(
                    inverse="largest ratio of |(H + E)^-1 - H^-1| to its bound",
                    condition="largest ratio of the condition number to its bound (E.5)",
                )
                .at_most(bound, "the claim, plus rounding by the condition number"),
                tried(step_off=step_off(loss, x_BD))
                .means("largest difference of a Newton step computed in two ways, over its rounding error")
                .at_most(1.0, TWO_WAYS),
            ],
            Control("the largest ratio to half of the bound of Corollary E.2", halved, halved > bound),
            notes=[
                "The errors E are random, random and symmetric, and the worst ones, along the least "
                "eigenvector of the Hessian."
            ],
            remarks=REMARKS,
        )


def draw_errors(rng: np.random.Generator, H_BDD: Tensor, mu: float) -> tuple[Tensor, Tensor, Tensor]:
    """Draw errors of .01 to .95 mu: any, their symmetric parts, and the worst there is, against the smallest
    eigenvalue of the Hessian."""
    shares_B11 = torch.from_numpy(rng.uniform(0.01, 0.95, (len(H_BDD), 1, 1)))
    E_BDD = torch.from_numpy(rng.standard_normal(tuple(H_BDD.shape)))
    E_BDD = mu * shares_B11 * E_BDD / torch.linalg.matrix_norm(E_BDD, 2)[:, None, None]
    least_BD = torch.linalg.eigh(H_BDD).eigenvectors[..., 0]
    worst_BDD = -mu * shares_B11 * least_BD[:, :, None] * least_BD[:, None]
    return E_BDD, (E_BDD + E_BDD.mT) / 2, worst_BDD


def inverse_share(H_BDD: Tensor, E_BDD: Tensor, mu: float) -> float:
    """Return the largest |(H + E)^-1 - H^-1| over E.2's bound."""
    size_B = torch.linalg.matrix_norm(E_BDD, 2)
    off_B = torch.linalg.matrix_norm(torch.linalg.inv(H_BDD + E_BDD) - torch.linalg.inv(H_BDD), 2)
    return float((off_B * mu * (mu - size_B) / size_B).max())


def condition_share(H_BDD: Tensor, E_BDD: Tensor) -> float:
    """Return the larger of kappa(B) over its upper bound and its lower bound over kappa(B), (E.5)."""
    h_BD, e_BD = torch.linalg.eigvalsh(H_BDD), torch.linalg.eigvalsh(E_BDD)
    b_BD = torch.linalg.eigvalsh(H_BDD + E_BDD)
    kappa_B = b_BD[:, -1] / b_BD[:, 0]
    high_B = (h_BD[:, -1] + e_BD[:, -1]) / (h_BD[:, 0] + e_BD[:, 0])
    low_B = (h_BD[:, -1] + e_BD[:, 0]) / (h_BD[:, 0] + e_BD[:, -1])
    return float(np.maximum((kappa_B / high_B).numpy(), (low_B / kappa_B).numpy()).max())
