"""Levels of the risk that theorems give, saddles that are searched, and what tells how near weights are.

R replicas, L layers, D covariates, K entries of a matrix.
"""

from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from icl.models.parametrizations import Full, MultiHead
from icl.random import generator
from icl.tasks.ahn.risk_on_s import risk_on_s, scalars_of
from icl.tasks.law import Law
from icl.tasks.linear_regression import is_linear_regression
from icl.tasks.quadratic import QuadraticRisk
from icl.theory.ahn.invariant_risk import Derivatives, InvariantRisk

SADDLES = 3  # each further one takes as many searches as there are ways to split the layers
ATTAINED = 1e-12  # of E t'^2: so near to the convex bound the weights that were found attain it


class Exact:
    """Exact quantities of a model's weights under a law; `levels` by name, means over replicas."""

    def __init__(self, model: Any, law: Law) -> None:
        family, self.law = model.parametrization, law
        self.risk, on_s = law.exact_risk(model), risk_on_s(model, law)
        self.shared = getattr(family, "shared", False)
        self.sets: list[InvariantRisk] = []  # S of ahn's Theorems 3 and 4, of each replica
        self.steps_RL: list[list[float]] = []  # of the optimum on S, in rising order
        self.levels: dict[str, float] = {}
        known = self.risk or on_s
        if known is not None:
            zero = model.on(family.sharing([torch.zeros_like(M) for M in family.parameters()]))
            self.levels["level/null"] = float(known(zero).mean())
        dim, layers, contexts = law.dim, family.layers, law.context_R
        if on_s is not None:
            with_b = family.with_b and layers > 1
            by_context = {n: InvariantRisk(dim, n, layers, with_b) for n in set(contexts)}
            self.sets = [by_context[n] for n in contexts]
        plain = bool(self.sets) and not family.with_b
        if plain and self.shared and layers > 1 and self.risk is not None:
            found = [least_of(one, [layers]) for one in self.sets]
            at_best = _at_equal_steps(model, law, [float(a_K[0]) for a_K, _ in found])
            if max(self._of_shared_layer(at_best)) < 0:  # a rotation gains
                self.levels["level/saddle_1"] = float(np.mean([risk for _, risk in found]))
        elif plain and not self.shared:
            best = {n: one.optimum() for n, one in zip(contexts, self.sets, strict=True)}
            saddles = {n: saddles_of(one) for n, one in zip(contexts, self.sets, strict=True)}
            self.steps_RL = [best[n].a_L.tolist() for n in contexts]
            for k, risk in enumerate(np.mean([saddles[n] for n in contexts], axis=0).tolist(), 1):
                self.levels[f"level/saddle_{k}"] = risk
            self.levels["level/optimum"] = float(np.mean([best[n].risk for n in contexts]))
        elif layers == 1 and self.risk is not None and type(family) in (Full, MultiHead):
            bounds = [_attained(one, law, getattr(family, "heads", 1)) for one in _quadratic(law)]
            if None not in bounds:
                self.levels["level/optimum"] = float(np.mean(bounds))  # type: ignore[arg-type]

    def at(self, model: Any, risks: Sequence[float] | None = None) -> dict[str, float]:
        """Return the levels, the excess of the replicas' exact risks (None: computed), and the Hessian's
        least eigenvalue at these weights, if all of them are finite."""
        if not all(M.isfinite().all() for M in model.parametrization.parameters()):
            return self.levels
        found, risks = dict(self.levels), self.risks(model) if risks is None else risks
        if "level/optimum" in found and len(risks):
            found["excess"] = float(np.mean(risks)) / found["level/optimum"] - 1
        if (least_R := self._curvatures(model)) is not None:
            found["hessian/least"] = min(least_R)
        return found

    def risks(self, model: Any) -> list[float]:
        """Return each replica's exact risk, [] where none is known."""
        with torch.no_grad():
            return [] if self.risk is None else self.risk(model).tolist()

    def layers(self, model: Any) -> list[list[tuple[float, float | None]]]:
        """Return the scalar of each layer on S beside the optimum's, by replica, in rising order."""
        if not self.sets:
            return []
        trained_RL = scalars_of(model, self.law)[0].sort(-1)[0].tolist()
        exact_RL: Any = self.steps_RL or [[None] * len(a_L) for a_L in trained_RL]
        return [list(zip(*both, strict=True)) for both in zip(trained_RL, exact_RL, strict=True)]

    def _curvatures(self, model: Any) -> list[float] | None:
        """Return the least eigenvalue of the exact Hessian by replica: on S, in the scalars a and beta, or of
        a shared layer in all its entries."""
        if self.shared:
            return self._of_shared_layer(model) if self.risk is not None else None
        if not self.sets:
            return None
        a_RL, beta_RL = scalars_of(model, self.law)
        return [
            float(np.linalg.eigvalsh(one.derivatives(a, beta[:-1] if one.with_b else ()).hessian_VV)[0])
            for one, a, beta in zip(self.sets, a_RL.tolist(), beta_RL.tolist(), strict=True)
        ]

    def _of_shared_layer(self, model: Any) -> list[float]:
        family = model.parametrization
        (A_R1DD,) = (M.detach() for M in family.matrices().values())
        flat_RK = A_R1DD.flatten(1)

        def risk(flat_RK: Tensor) -> Tensor:
            return self.risk(model.on(family.sharing([flat_RK.view_as(A_R1DD)]))).sum()  # type: ignore[misc]

        hessian_RKRK: Any = torch.autograd.functional.hessian(risk, flat_RK)
        return [float(torch.linalg.eigvalsh(hessian_RKRK[r, :, r])[0]) for r in range(len(flat_RK))]


def saddles_of(on_s: InvariantRisk) -> list[float]:
    """Return the least risk found of layers with k different scalars, k = 1 .. L - 1, at most SADDLES. It is
    stationary, as equal layers have equal derivatives, and a saddle: to second order two equal layers gain by
    parting."""
    L = on_s.layers
    inner = [combinations(range(1, L), k - 1) for k in range(1, min(L, SADDLES + 1))]
    cuts = [[(0, *between, L) for between in of_k] for of_k in inner]
    return [min(least_of(on_s, [b - a for a, b in pairwise(cut)])[1] for cut in of_k) for of_k in cuts]


def least_of(on_s: InvariantRisk, sizes: Sequence[int]) -> tuple[np.ndarray, float]:
    """Return scalars, each that of as many layers as `sizes` says, and their risk: the minimum below the
    means of the optimum's scalars. With one scalar the risk is convex."""
    layer_LK = np.repeat(np.eye(len(sizes)), sizes, axis=0)

    def at(a_K: np.ndarray) -> Derivatives:
        return on_s.derivatives((layer_LK @ a_K).tolist())

    means_K = layer_LK.T @ on_s.optimum().a_L / sizes
    scale = at(means_K).value
    found: Any = minimize(
        lambda a_K: at(a_K).value / scale,
        means_K,
        jac=lambda a_K: layer_LK.T @ at(a_K).gradient_V / scale,
        hess=lambda a_K: layer_LK.T @ at(a_K).hessian_VV @ layer_LK / scale,
        method="trust-exact",
        options={"gtol": 1e-10},
    )
    return found.x, float(found.fun) * scale


def _at_equal_steps(model: Any, law: Any, a_R: list[float]) -> Any:
    A_RDD = torch.tensor(a_R, dtype=torch.float64)[:, None, None] * torch.linalg.inv(law.Sigma_RDD)
    return model.on(model.parametrization.sharing([A_RDD[:, None]]))


def _quadratic(law: Any) -> list[QuadraticRisk]:
    """Return the risk of one layer of each replica, [] where it is another."""
    if is_linear_regression(law):
        return [QuadraticRisk.linear_regression(**law.risk_arguments(r)) for r in range(len(law.context_R))]
    found = getattr(law, "quadratic_risk", None)
    return [] if found is None else [found]


def _attained(risk: QuadraticRisk, law: Law, heads: int) -> float | None:
    """Return the least risk of any heads if `heads` attain it: by lds, Theorem 4.1 on AR(1) tokens, or as
    weights that are found show."""
    if (window := getattr(law, "window", None)) is not None:
        return risk.convex_bound().value if window == 1 else None
    best = risk.best_with_heads(heads, generator(0, "search"), restarts=4)
    return risk.convex_bound().value if best.gap <= ATTAINED * risk.constant else None
