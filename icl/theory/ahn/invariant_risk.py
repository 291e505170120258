"""Exact risk of ahn's stacks on the sets S of Theorems 3 and 4, its derivatives and its local minima.

S: x ~ N(0, Sigma), w ~ N(0, Sigma^{-1}), A_l = a_l Sigma^{-1} in (8), A_l = -a_l Sigma^{-1} and B_l = b_l I
in (11). There everything commutes after whitening and the risk is E tr q(W)^2 with N W ~ Wishart_d(N, I)
and, from p = q = 1,
    q <- q (1 - a_l s p^2),   p <- p (1 - beta_l s p^2),   beta_l = a_l b_l.
In (8) p = 1: one risk serves both families. The last beta has no effect and is left out.
J nodes of a Gauss rule, V = 2L - 1 (or L) variables: a_0 .. a_{L-1}, then beta_0 .. beta_{L-2}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from flint import fmpq
from numpy.typing import NDArray
from scipy.optimize import least_squares, minimize

from icl.theory.quadrature import MAX_NODES, gauss_rule
from icl.theory.wishart import best_polynomial, covariance_moments, trace_moment

Array = NDArray[np.float64]


STATIONARY = 1e-12  # what a Newton step from a minimum may still gain, as a share of the risk


class Derivatives(NamedTuple):
    """Risk, gradient (V,), Hessian (V, V); variables a_0 .. a_{L-1}, then beta_0 .. beta_{L-2}."""

    value: float
    gradient_V: Array
    hessian_VV: Array


@dataclass(frozen=True, eq=False)
class PolynomialMinimum:
    """A local minimum on S. `found` of the starts ended here.

    The Hessian's eigenvalues are in units of each variable in which its second derivative is 1 (or -1);
    `newton_gain` is what a Newton step from here would gain, as a share of the risk. Neither depends on the
    scale of the risk, which is 1e-22 at context 10^4.
    """

    a_L: Array
    beta_L: Array
    risk: float
    newton_gain: float
    hessian_eigenvalues_V: Array
    found: int

    @property
    def b_L(self) -> Array:
        """B's scalars in (11): b_l = beta_l / a_l, for all layers but the last."""
        return self.beta_L / self.a_L[:-1]

    @property
    def strict(self) -> bool:
        """The Hessian is positive definite, by a margin that rounding cannot produce."""
        smallest, largest = self.hessian_eigenvalues_V[[0, -1]]
        return bool(smallest > 1e-12 * largest)


class _Jet(NamedTuple):
    """A function of the variables at every node, with first derivatives and, where wanted, second ones."""

    value_J: Array
    first_VJ: Array
    second_VVJ: Array | None

    def times(self, other: _Jet) -> _Jet:
        here_J, there_J = self.value_J, other.value_J
        first_VJ = here_J * other.first_VJ + there_J * self.first_VJ
        if self.second_VVJ is None or other.second_VVJ is None:
            return _Jet(here_J * there_J, first_VJ, None)
        cross_VVJ = self.first_VJ[:, None] * other.first_VJ
        own_VVJ = there_J * self.second_VVJ + here_J * other.second_VVJ
        return _Jet(here_J * there_J, first_VJ, own_VVJ + cross_VVJ + cross_VVJ.swapaxes(0, 1))


class InvariantRisk:
    """Exact risk on S for d = `dim`, N = `context`; `with_b` for Theorem 4, without for Theorem 3.

    q has degree L (or (3^L - 1)/2 with B), so a Gauss rule with one node more makes the risk a weighted sum
    of squares: values and derivatives carry full double precision, relative error about degree * 2^-52.
    """

    def __init__(self, dim: int, context: int, layers: int, with_b: bool = False) -> None:
        if dim < 1 or context < 1:
            raise ValueError(f"dim={dim}, context={context}: must both be at least 1")
        if layers < 1:
            raise ValueError(f"layers={layers}: must be at least 1")
        degree = (3**layers - 1) // 2 if with_b else layers
        if degree >= MAX_NODES:
            limit = "L <= 4" if with_b else f"L <= {MAX_NODES - 1}"
            raise ValueError(
                f"layers={layers}: q would have degree {degree} and take Wishart moments of twice that; "
                f"{limit} here"
            )
        self.dim, self.context, self.layers, self.with_b = dim, context, layers, with_b
        self.degree = degree
        self.variables = 2 * layers - 1 if with_b else layers
        # m_k = E tr W^k, W the sample covariance of N standard Gaussian vectors.
        self.moments = [Fraction(trace_moment(k, dim, context), context**k) for k in range(2 * degree + 2)]
        self.nodes_J, self.weights_J = gauss_rule(self.moments, degree + 1)

    def value(self, a_L: Sequence[float], beta_L: Sequence[float] = ()) -> float:
        return float(self.weights_J @ self._query(self._variables(a_L, beta_L)).value_J ** 2)

    def derivatives(self, a_L: Sequence[float], beta_L: Sequence[float] = ()) -> Derivatives:
        return self._derivatives(self._variables(a_L, beta_L))

    def lower_bound(self) -> fmpq:
        """Return the least risk of any polynomial q of this degree with q(0) = 1, a lower bound for the
        family on S.

        Without B it is attained (`optimum`).
        """
        moments = covariance_moments(self.dim, self.context, 2 * self.degree + 1)
        return best_polynomial(moments, self.degree)[1]

    def optimum(self) -> PolynomialMinimum:
        """Theorem 3's set: the global minimum on S, unique up to the order of the layers.

        The risk is the integral of q^2 over polynomials with q(0) = 1; the best one is orthogonal to s
        times the polynomials of lower degree, so its roots are real, positive and distinct, and a_l = 1 /
        root is attained.
        """
        if self.with_b:
            raise ValueError("the global minimum is known without B only; use minimise")
        roots, _ = gauss_rule(self.moments[1:], self.layers)
        theta_V = self._polish(np.sort(1 / roots))
        return self._minimum(np.sort(theta_V), found=0)

    def minimise(
        self,
        rng: np.random.Generator,
        starts: int = 64,
        follow: Callable[[range], Iterable[int]] = iter,  # type: ignore[assignment]
    ) -> list[PolynomialMinimum]:
        """All distinct local minima reached from random starts, best first; layers of (8) sorted ascending.

        Levenberg-Marquardt on the sum of squares, then Newton. A list of what was found, not a proof of no
        others. `follow` goes through the starts and may say how far it is.
        """
        if starts < 1:
            raise ValueError(f"starts={starts}: must be at least 1")
        minima: list[PolynomialMinimum] = []
        for _ in follow(range(starts)):
            theta_V = self._polish(self._descend(self._start(rng)))
            new = self._minimum(theta_V if self.with_b else np.sort(theta_V), found=1)
            if not (new.strict and new.newton_gain < STATIONARY):
                continue
            known = next((i for i, old in enumerate(minima) if self._distance(old, new) < 1e-6), None)
            if known is None:
                minima.append(new)
            else:
                minima[known] = replace(minima[known], found=minima[known].found + 1)
        return sorted(minima, key=lambda minimum: minimum.risk)

    def descend(self, theta: Sequence[float]) -> list[float]:
        """Return the local minimum below a point, by a trust region, which leaves no basin, and
        Newton's method."""
        result: Any = minimize(
            lambda theta_V: self._derivatives(theta_V)[:2],
            np.array(theta, dtype=np.float64),
            jac=True,
            hess=lambda theta_V: self._derivatives(theta_V).hessian_VV,
            method="trust-exact",
        )
        return list(self._polish(result.x).tolist())

    def _start(self, rng: np.random.Generator) -> Array:
        """Inverse step sizes spread over the spectrum; B from none to a Newton-like correction."""
        a_L = 1 / rng.uniform(self.nodes_J[0], self.nodes_J[0] + 2 * self.moments[1] / self.dim, self.layers)
        a_L = a_L * rng.uniform(0.3, 1.2)
        beta = rng.uniform(-0.2, 0.6, self.variables - self.layers) * rng.uniform(0, 1)
        return np.concatenate([a_L, beta])

    def _descend(self, theta_V: Array) -> Array:
        root_weights_J = np.sqrt(self.weights_J)

        @lru_cache(maxsize=1)
        def query(point: bytes) -> _Jet:
            """Cache the last point: residual and Jacobian are evaluated one after the other."""
            return self._query(np.frombuffer(point), curved=False)

        def residual(point_V: Array) -> Array:
            return root_weights_J * query(point_V.tobytes()).value_J

        def jacobian(point_V: Array) -> Array:
            return (root_weights_J * query(point_V.tobytes()).first_VJ).T

        return least_squares(residual, theta_V, jacobian, method="lm", max_nfev=3000).x

    def _polish(self, theta_V: Array) -> Array:
        """Newton steps while they shrink the gradient."""
        now = self._derivatives(theta_V)
        for _ in range(50):
            step_V = np.linalg.lstsq(now.hessian_VV, now.gradient_V, rcond=1e-15)[0]
            after = self._derivatives(theta_V - step_V)
            if not np.linalg.norm(after.gradient_V) < np.linalg.norm(now.gradient_V):
                break
            theta_V, now = theta_V - step_V, after
        return theta_V

    def _minimum(self, theta_V: Array, found: int) -> PolynomialMinimum:
        value, gradient_V, hessian_VV = self._derivatives(theta_V)
        unit_V = 1 / np.sqrt(np.abs(np.diag(hessian_VV)))
        scaled_V, scaled_VV = unit_V * gradient_V, unit_V[:, None] * hessian_VV * unit_V
        spectrum_V, axes_VV = np.linalg.eigh(scaled_VV)
        gain = float(np.sum((axes_VV.T @ scaled_V) ** 2 / np.abs(spectrum_V))) / 2
        return PolynomialMinimum(
            a_L=theta_V[: self.layers],
            beta_L=theta_V[self.layers :],
            risk=value,
            newton_gain=gain / value,
            hessian_eigenvalues_V=spectrum_V,
            found=found,
        )

    def _distance(self, one: PolynomialMinimum, other: PolynomialMinimum) -> float:
        here, there = np.concatenate([one.a_L, one.beta_L]), np.concatenate([other.a_L, other.beta_L])
        return float(np.linalg.norm(here - there) / np.linalg.norm(here))

    def _derivatives(self, theta_V: Array) -> Derivatives:
        q = self._query(theta_V)
        assert q.second_VVJ is not None
        weighted_J = 2 * self.weights_J * q.value_J
        hessian_VV = 2 * self.weights_J * q.first_VJ @ q.first_VJ.T + q.second_VVJ @ weighted_J
        return Derivatives(float(self.weights_J @ q.value_J**2), q.first_VJ @ weighted_J, hessian_VV)

    def _query(self, theta_V: Array, curved: bool = True) -> _Jet:
        """q at the nodes; `curved` with its second derivatives."""
        nodes, V = len(self.nodes_J), self.variables
        unit_VVJ = np.eye(V)[..., None] * np.ones(nodes)
        zero_VJ, flat_VVJ = np.zeros((V, nodes)), np.zeros((V, V, nodes)) if curved else None

        def factor(k: int, at: _Jet) -> _Jet:
            step = _Jet(np.full(nodes, -theta_V[k]), -unit_VVJ[k], flat_VVJ).times(at)
            return step._replace(value_J=1 + step.value_J)

        q = p = _Jet(np.ones(nodes), zero_VJ, flat_VVJ)
        s = _Jet(self.nodes_J, zero_VJ, flat_VVJ)
        for layer in range(self.layers):
            at = s.times(p.times(p)) if layer and self.with_b else s
            q = q.times(factor(layer, at))
            if self.with_b and layer < self.layers - 1:
                p = p.times(factor(self.layers + layer, at))
        return q

    def _variables(self, a_L: Sequence[float], beta_L: Sequence[float]) -> Array:
        if len(a_L) != self.layers:
            raise ValueError(f"a has {len(a_L)} entries: must have {self.layers}")
        some = (self.layers - 1, self.layers) if self.with_b else (0,)
        if len(beta_L) not in some:
            raise ValueError(
                f"beta has {len(beta_L)} entries: must have {some[0]} (the last has no effect, (8) has no B)"
            )
        return np.array([*a_L, *beta_L][: self.variables], dtype=np.float64)


def conditions(beta_L: np.ndarray, s_BD: np.ndarray) -> list[np.ndarray]:
    """Return the condition number of X_l X_l^T, whitened, by layer, of each prompt with first spectrum s: the
    eigenvalues are s p^2."""
    p_BD, found = np.ones_like(s_BD), []
    for beta in (*beta_L, 0.0):
        moved_BD = s_BD * p_BD**2
        found.append(moved_BD.max(1) / moved_BD.min(1))
        p_BD = p_BD * (1 - beta * moved_BD)
    return found
