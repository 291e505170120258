"""One layer of linear attention: the risk is a quadratic form, with an exact minimum over any heads.

y_hat = q_p + sum_k q_k <G, X_k>,  X_k = sum_h b_h a_hk^T, with b_h the last row of P_h, a_hk column k of Q_h;
R(X) = sum_kl <X_k, M_kl X_l> - 2 sum_k <m_k, X_k> + c,
M_kl = E[q_k q_l G (x) G],  m_k = E[t' q_k G],  c = E[t'^2],  t' = t - q_p.
Only the symmetric part of X_k enters. With a free read-out, y_hat = sum_k q_k (r_k + <G, X_k>), M is the
same and t' becomes t' - <r - e_p, q>; r is `direct_K` below.
Inside, labels are less their prior mean: z = J z', J = [[I, 0], [prior_mean^T, 1]], so G = J G' J^T and
X' = J^T X J. Likewise a query entry y_q = <v, x_q> + b is equivalent to what it is made of: q = T q',
T = [[I, 0], [v^T, b]], so X'_k = sum_l T_lk X_l (at b = 0, X'_p = 0). Lower-case x, m and M live there; their
condition grows neither with the prior mean nor with the guess.
P token width, K = P query entries, H heads, D covariates, S = P (P + 1) / 2 coordinates of a symmetric
matrix, F rank of the query's second moment, E rank of E[G (x) G].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from icl.tasks.moment_tensors import moment_tensors

MAX_WIDTH = 64  # E[G (x) G] has P^4 entries: 134 MB at 64
EPSILON = torch.finfo(torch.float64).eps
ROUNDS, IMPROVEMENT = 2000, 1e-13  # of alternating least squares: at most, and when to stop
RANK_TOLERANCE = 1e-13  # eigenvalues below this share of the largest count as zero


@dataclass(frozen=True, eq=False)
class ConvexBound:
    """Least risk over all symmetric X_k: a lower bound for any number of heads, attained for H >= P.

    `value` is R at X_KPP; it exceeds the minimum by at most |gradient / 2|^2 / (least eigenvalue of M) plus
    evaluation, K S 2^-52 (|x|^T |M| |x| + 2 |m|^T |x| + c). `rounding` is the sum of the two.
    """

    value: float
    X_KPP: Tensor
    rounding: float


@dataclass(frozen=True, eq=False)
class DirectMoments:
    """Moments that a free read-out needs where G and q' are independent: E[q' q'^T], E[t' q'], E[G], E[G (x)
    G]."""

    query_KK: Tensor
    target_K: Tensor
    gram_S: Tensor
    gram_SS: Tensor


@dataclass(frozen=True, eq=False)
class HeadsOptimum:
    """Best risk found with H heads. `gap` is its distance to the convex bound, as a sum of squares."""

    value: float
    gap: float
    b_HP: Tensor
    a_HKP: Tensor


class SymmetricSpace:
    """Orthonormal coordinates of symmetric P x P matrices: <X, Y> is the dot product of coordinates."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.rows, self.columns = torch.tril_indices(width, width)
        self.dimension = len(self.rows)
        diagonal = (self.rows == self.columns).to(torch.float64)
        self.scale_S = (2 - diagonal).sqrt()

    def coordinates(self, X: Tensor) -> Tensor:
        """Coordinates (..., S) of the symmetric part of X (..., P, P)."""
        return ((X + X.mT) / 2)[..., self.rows, self.columns] * self.scale_S

    def matrix(self, x: Tensor) -> Tensor:
        """Return the symmetric matrix (..., P, P) with these coordinates."""
        X = x.new_zeros(*x.shape[:-1], self.width, self.width)
        X[..., self.rows, self.columns] = x / self.scale_S
        return X + X.tril(-1).mT

    def form(self, T_PPPP: Tensor) -> Tensor:
        """Return the matrix (S, S) of the form <X, T Y> on symmetric matrices."""
        rows_first = T_PPPP[self.rows, self.columns]
        return rows_first[:, self.rows, self.columns] * torch.outer(self.scale_S, self.scale_S)

    def products(self, b_HP: Tensor) -> Tensor:
        """Columns (S, H, P): coordinates of sym(b_h e_i^T), the linear map from a_h to X."""
        identity = torch.eye(self.width, dtype=b_HP.dtype)
        return self.coordinates(torch.einsum("hp,ij->hipj", b_HP, identity)).permute(2, 0, 1)


class _Form(Protocol):
    """The matrix M as the risk uses it: its action, its pseudo-inverse, and least squares in the metric of
    M."""

    def apply(self, x_KS: Tensor) -> Tensor: ...

    def magnitude(self, x_KS: Tensor) -> Tensor:
        """|M| |x|, the sums of the sizes of all terms of M x."""
        ...

    def solve(self, m_KS: Tensor) -> tuple[Tensor, Tensor]:
        """M^+ m, and the non-zero eigenvalues of M."""
        ...

    def whiten(self, x_KS: Tensor) -> Tensor:
        """Return a square root of M: x^T M y = <whiten(x), whiten(y)>, whiten(x) of shape (F, S')."""
        ...

    def best_keys(self, design_SHP: Tensor, goal: Tensor) -> Tensor:
        """a_HKP minimising ||whiten(design a) - goal||."""
        ...


class _KroneckerForm:
    """M_kl = E[q_k q_l] E[G (x) G]: the query does not depend on the context."""

    def __init__(self, query_KK: Tensor, gram_SS: Tensor) -> None:
        self.query_KK, self.gram_SS = query_KK, gram_SS
        self.query_root_KF, self.query_values_F = _root(query_KK)
        self.gram_root_SE, self.gram_values_E = _root(gram_SS)

    def apply(self, x_KS: Tensor) -> Tensor:
        return self.query_KK @ x_KS @ self.gram_SS

    def magnitude(self, x_KS: Tensor) -> Tensor:
        return self.query_KK.abs() @ x_KS.abs() @ self.gram_SS.abs()

    def solve(self, m_KS: Tensor) -> tuple[Tensor, Tensor]:
        eigenvalues = torch.outer(self.query_values_F, self.gram_values_E)
        query_inverse = _root_inverse(self.query_root_KF, self.query_values_F)
        gram_inverse = _root_inverse(self.gram_root_SE, self.gram_values_E)
        x_KS = query_inverse @ (query_inverse.T @ m_KS @ gram_inverse) @ gram_inverse.T
        return x_KS, eigenvalues.flatten()

    def whiten(self, x_KS: Tensor) -> Tensor:
        return self.query_root_KF.T @ x_KS @ self.gram_root_SE

    def best_keys(self, design_SHP: Tensor, goal: Tensor) -> Tensor:
        S, H, P = design_SHP.shape
        design = self.gram_root_SE.T @ design_SHP.reshape(S, H * P)
        keys_F = _least_squares(design, goal.T).T.reshape(-1, H, P)
        query_inverse = _root_inverse(self.query_root_KF, self.query_values_F)
        return torch.einsum("kf,fhp->hkp", query_inverse, keys_F)


class _DenseForm:
    """Any M: the query correlates with the context."""

    def __init__(self, form_KSKS: Tensor) -> None:
        self.shape = form_KSKS.shape[:2]
        size = self.shape[0] * self.shape[1]
        self.form = form_KSKS.reshape(size, size)
        self.root, self.values = _root(self.form)

    def apply(self, x_KS: Tensor) -> Tensor:
        return (x_KS.flatten(-2) @ self.form).unflatten(-1, self.shape)

    def magnitude(self, x_KS: Tensor) -> Tensor:
        return (x_KS.abs().flatten() @ self.form.abs()).unflatten(-1, self.shape)

    def solve(self, m_KS: Tensor) -> tuple[Tensor, Tensor]:
        inverse = _root_inverse(self.root, self.values)
        return (inverse @ (inverse.T @ m_KS.flatten())).unflatten(-1, self.shape), self.values

    def whiten(self, x_KS: Tensor) -> Tensor:
        return (x_KS.flatten(-2) @ self.root).unsqueeze(-2)

    def best_keys(self, design_SHP: Tensor, goal: Tensor) -> Tensor:
        (K, S), (_, H, P) = self.shape, design_SHP.shape
        design = torch.einsum("ksf,shp->fhkp", self.root.unflatten(0, (K, S)), design_SHP)
        return _least_squares(design.reshape(-1, H * K * P), goal.reshape(-1, 1)).reshape(H, K, P)


class QuadraticRisk:
    """The exact population risk of one layer of linear attention, any number of heads, any weights.

    `value` and its companions are differentiable in their weights: autograd gives the population gradient.
    """

    def __init__(
        self,
        space: SymmetricSpace,
        form: _Form,
        linear_KS: Tensor,
        constant: float,
        direct: DirectMoments | None = None,
        prior_mean: Tensor | None = None,
        guess: tuple[Tensor, float] | None = None,
    ) -> None:
        self.space, self._form = space, form
        self.linear_KS, self.constant, self._direct = linear_KS, constant, direct
        self._J, self._J_inverse = _centring(space.width, prior_mean)
        self._T, self._T_inverse = _query_of_guess(len(linear_KS), guess)

    @classmethod
    def from_moments(cls, form_KPPKPP: Tensor, linear_KPP: Tensor, constant: float) -> QuadraticRisk:
        """M[k, a, b, l, c, e] = E[q_k q_l G_ab G_ce], m[k, a, b] = E[t' q_k G_ab], c = E[t'^2].

        A free read-out needs more moments (E[q_k q_l G], E[t' q]): it raises ValueError here.
        """
        K, P = linear_KPP.shape[:2]
        if form_KPPKPP.shape != (K, P, P, K, P, P) or linear_KPP.shape != (K, P, P):
            raise ValueError(f"form has shape {tuple(form_KPPKPP.shape)}: must be {(K, P, P, K, P, P)}")
        space = SymmetricSpace(P)
        scale_SS = torch.outer(space.scale_S, space.scale_S)[None, :, None, :]
        gathered = form_KPPKPP[:, space.rows, space.columns][..., space.rows, space.columns]
        return cls(space, _DenseForm(gathered * scale_SS), space.coordinates(linear_KPP), float(constant))

    @classmethod
    def linear_regression(
        cls,
        Sigma: Tensor,
        Sigma_w: Tensor,
        context: int,
        *,
        prior_mean: Tensor | None = None,
        label_noise: float = 0.0,
        guess_vector: Tensor | None = None,
        guess_bias: float = 0.0,
        target_sign: int = -1,
        tasks: Tasks | None = None,
    ) -> QuadraticRisk:
        """x ~ N(0, Sigma), w ~ N(prior_mean, Sigma_w); context labels <w, x> + noise of variance label_noise.

        The query token is (x_q, <guess_vector, x_q> + guess_bias); the target is target_sign * <w, x_q>,
        without noise: -1 for ahn (the prediction is minus the last entry), +1 for xie. `tasks`: another law
        of w, of the same mean and covariance.
        """
        D = Sigma.shape[-1]
        zero = torch.zeros(D, dtype=torch.float64)
        mean = zero if prior_mean is None else prior_mean.to(torch.float64)
        guess = zero if guess_vector is None else guess_vector.to(torch.float64)
        _check_regression(Sigma, Sigma_w, context, mean, guess, label_noise, target_sign)
        Sigma, Sigma_w = Sigma.to(torch.float64), Sigma_w.to(torch.float64)
        centred = LabelMoments(Sigma, Sigma_w, zero, float(label_noise), tasks)
        space, bias, offset_D = SymmetricSpace(D + 1), float(guess_bias), target_sign * mean - guess
        query_KK = _query_second_moment(centred.Sigma, bias)
        gram_SS = space.form(second_gram(centred, context))
        linear_KPP, constant = _query_target_moment(centred, offset_D, bias, target_sign)
        target_K = torch.cat([centred.Sigma @ offset_D, torch.full((1,), -bias, dtype=torch.float64)])
        direct = DirectMoments(query_KK, target_K, space.coordinates(mean_gram(centred)), gram_SS)
        form, linear_KS = _KroneckerForm(query_KK, gram_SS), space.coordinates(linear_KPP)
        return cls(space, form, linear_KS, constant, direct, mean, (guess, bias))

    def value(self, X_KPP: Tensor, direct_K: Tensor | None = None) -> Tensor:
        """R(X) with read-out r = direct_K (default e_p), over any leading axes."""
        x_KS = self._coordinates(X_KPP)
        return self._value(x_KS) if direct_K is None else self._value_with_direct(x_KS, direct_K)

    def gradient(self, X_KPP: Tensor) -> Tensor:
        """dR/dX, symmetric, over any leading axes."""
        x_KS = self._coordinates(X_KPP)
        gradient_KPP = self.space.matrix(2 * self._form.apply(x_KS) - 2 * self.linear_KS)
        return _mixed(self._T, self._J @ gradient_KPP @ self._J.T)

    def value_of_heads(self, b_HP: Tensor, a_HKP: Tensor, direct_K: Tensor | None = None) -> Tensor:
        """Risk at last rows b_h of P_h and columns a_hk of Q_h, over any leading axes."""
        return self.value(_of_heads(b_HP, a_HKP), direct_K)

    def value_of_layer(
        self,
        P_HPP: Tensor,
        Q_HPP: Tensor,
        read_in_PP: Tensor | None = None,
        read_out_P: Tensor | None = None,
    ) -> Tensor:
        """Risk of <read_out, q' + sum_h P_h G Q_h q'> with q' = read_in q, over any leading axes.

        The defaults are read_in = I and read_out = e_p: then only the last row of P_h enters. A trained
        guess <v, x> is read_in = [[I, 0], [v^T, 0]]; a linear map after the attention is read_out.
        """
        return self.value(*self.of_layer(P_HPP, Q_HPP, read_in_PP, read_out_P))

    def of_layer(
        self,
        P_HPP: Tensor,
        Q_HPP: Tensor,
        read_in_PP: Tensor | None = None,
        read_out_P: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the X_KPP of a layer, and its read-out where that is not e_p."""
        if read_in_PP is None and read_out_P is None:
            return _of_heads(P_HPP[..., -1, :], Q_HPP.mT), None
        if read_in_PP is None:
            read_in_PP = torch.eye(self.space.width, dtype=P_HPP.dtype)
        if read_out_P is None:
            read_out_P = _last_entry(self.space.width).to(P_HPP.dtype)
        b_HP = torch.einsum("...p,...hpr->...hr", read_out_P, P_HPP)
        a_HKP = (Q_HPP @ read_in_PP.unsqueeze(-3)).mT
        return _of_heads(b_HP, a_HKP), torch.einsum("...p,...pk->...k", read_out_P, read_in_PP)

    def convex_bound(self) -> ConvexBound:
        """Return the least risk over all X."""
        x_KS, eigenvalues = self._form.solve(self.linear_KS)
        value, rounding = self._minimum(x_KS, float(eigenvalues.min()))
        X_KPP = _mixed(self._T_inverse.T, self._J_inverse.T @ self.space.matrix(x_KS) @ self._J_inverse)
        return ConvexBound(value, X_KPP, rounding)

    def best_with_values(self, b_HP: Tensor) -> HeadsOptimum:
        """Return the exact best keys a_HKP at given value directions b_h: one least-squares problem."""
        H, P = len(b_HP), self.space.width
        if H < 1 or b_HP.shape != (H, P):
            raise ValueError(f"b_HP has shape {tuple(b_HP.shape)}: must be {max(H, 1)} x {P}")
        bound, goal = self._bound_and_goal()
        centred_HP = b_HP @ self._J
        a_HKP = self._form.best_keys(self.space.products(centred_HP), goal)
        gap = self._gap(centred_HP, a_HKP, goal)
        return HeadsOptimum(bound + gap, gap, b_HP, self._keys(a_HKP))

    def best_with_heads(self, heads: int, rng: np.random.Generator, restarts: int = 8) -> HeadsOptimum:
        """Best risk found with H heads: alternating least squares over (b, a) from random starts.

        R(X) = bound + ||whiten(X - X_best)||^2, so the answer is never below the bound. A restart ends when
        one round improves the gap by less than IMPROVEMENT of the risk at X = 0. Best of the restarts, not
        a proof of optimality.
        """
        if heads < 1 or restarts < 1:
            raise ValueError(f"heads={heads}, restarts={restarts}: must both be at least 1")
        bound, goal = self._bound_and_goal()
        runs = [self._alternate(self._start(heads, rng), goal) for _ in range(restarts)]
        gap, b_HP, a_HKP = min(runs, key=lambda run: run[0])
        return HeadsOptimum(bound + gap, gap, b_HP @ self._J_inverse, self._keys(a_HKP))

    def _minimum(self, x_KS: Tensor, smallest: float) -> tuple[float, float]:
        """Return the risk at the solution x of M x = m, and what rounding can make of the least risk."""
        image_KS = self._form.apply(x_KS)
        sizes_KS = x_KS.abs() * (self._form.magnitude(x_KS) + 2 * self.linear_KS.abs())
        terms = float(sizes_KS.sum()) + self.constant
        residual = float((image_KS - self.linear_KS).square().sum())
        value = float((x_KS * (image_KS - 2 * self.linear_KS)).sum()) + self.constant
        return value, residual / smallest + x_KS.numel() * EPSILON * terms

    def _coordinates(self, X_KPP: Tensor) -> Tensor:
        return self.space.coordinates(self._J.T @ _mixed(self._T.T, X_KPP.to(torch.float64)) @ self._J)

    def _keys(self, a_HKP: Tensor) -> Tensor:
        """Keys in the tokens' own coordinates."""
        return self._T_inverse.T @ a_HKP @ self._J_inverse

    def _value(self, x_KS: Tensor) -> Tensor:
        return (x_KS * (self._form.apply(x_KS) - 2 * self.linear_KS)).sum((-1, -2)) + self.constant

    def _value_with_direct(self, x_KS: Tensor, direct_K: Tensor) -> Tensor:
        moments = self._direct_moments()
        delta_K = (direct_K - _last_entry(self.linear_KS.shape[0])) @ self._T
        shift_K = delta_K @ moments.query_KK
        crossed = (shift_K * (x_KS @ moments.gram_S)).sum(-1)
        return self._value(x_KS) + 2 * crossed + (delta_K * (shift_K - 2 * moments.target_K)).sum(-1)

    def _direct_moments(self) -> DirectMoments:
        if self._direct is None:
            raise ValueError("a free read-out (direct) needs E[q_k q_l G] and E[t' q]: not given here")
        return self._direct

    def _bound_and_goal(self) -> tuple[float, Tensor]:
        """R(X) = bound + ||whiten(X) - goal||^2."""
        x_KS, _ = self._form.solve(self.linear_KS)
        return float(self._value(x_KS)), self._form.whiten(x_KS)

    def _start(self, heads: int, rng: np.random.Generator) -> Tensor:
        return torch.from_numpy(rng.standard_normal((heads, self.space.width)))

    def _alternate(self, b_HP: Tensor, goal: Tensor) -> tuple[float, Tensor, Tensor]:
        gap = float("inf")
        for _ in range(ROUNDS):
            # The split of scale between b and a is free: orthonormal b keep the design well conditioned.
            b_HP = _orthonormal_rows(b_HP)
            a_HKP = self._form.best_keys(self.space.products(b_HP), goal)
            b_HP = self._best_values(a_HKP, goal)
            before, gap = gap, self._gap(b_HP, a_HKP, goal)
            if before - gap <= IMPROVEMENT * self.constant:
                break
        return gap, b_HP, a_HKP

    def _best_values(self, a_HKP: Tensor, goal: Tensor) -> Tensor:
        H, _, P = a_HKP.shape
        identity = torch.eye(P, dtype=a_HKP.dtype)
        directions = torch.einsum("ip,hkr->hikpr", identity, a_HKP)
        design = self._form.whiten(self.space.coordinates(directions)).reshape(H * P, -1).T
        return _least_squares(design, goal.reshape(-1, 1)).reshape(H, P)

    def _gap(self, b_HP: Tensor, a_HKP: Tensor, goal: Tensor) -> float:
        x_KS = self.space.coordinates(torch.einsum("hp,hkr->kpr", b_HP, a_HKP))
        return float((self._form.whiten(x_KS) - goal).square().sum())


class Tasks(Protocol):
    """A law of w of mean zero, by the moments of degree three and four that a layer's risk has."""

    def quadratic(self, Sigma: Tensor) -> tuple[Tensor, Tensor]:
        """E[w s] and E[s^2], s = w^T Sigma w."""
        ...


@dataclass(frozen=True, eq=False)
class TaskList:
    """Each of K tasks w_k, whose mean is zero, with probability 1/K."""

    w_KD: Tensor

    def quadratic(self, Sigma: Tensor) -> tuple[Tensor, Tensor]:
        s_K = ((self.w_KD @ Sigma) * self.w_KD).sum(-1)
        return (s_K[:, None] * self.w_KD).mean(0), s_K.square().mean()


@dataclass(frozen=True, eq=False)
class SphereTasks:
    """w = F s, F F^T = Sigma_w, s uniform on the sphere |s|^2 = D, on which E s_a s_b s_c s_e is D / (D + 2)
    times that of normal numbers."""

    Sigma_w: Tensor

    def quadratic(self, Sigma: Tensor) -> tuple[Tensor, Tensor]:
        D, M = len(Sigma), Sigma @ self.Sigma_w
        return torch.zeros_like(Sigma[0]), D / (D + 2) * (M.trace() ** 2 + 2 * (M @ M).trace())


class LabelMoments:
    """Moments over w of C(w) = [[Sigma, u], [u^T, v]], u = Sigma w, v = w^T Sigma w + noise: w is Gaussian,
    or, of mean zero, of the law `tasks`."""

    def __init__(
        self, Sigma: Tensor, Sigma_w: Tensor, mean: Tensor, noise: float, tasks: Tasks | None = None
    ) -> None:
        self.Sigma, self.Sigma_w, self.mean, self.noise = Sigma, Sigma_w, mean, noise
        w1, w2, w3, w4 = moment_tensors(mean, Sigma_w)
        self.w1, self.w2 = w1, w2
        self.u = Sigma @ w1
        self.uu = Sigma @ w2 @ Sigma
        self.v = (Sigma * w2).sum() + noise
        if tasks is None:
            w_quadratic = torch.einsum("abc,bc->a", w3, Sigma)
            quartic = torch.einsum("ab,abce,ce->", Sigma, w4, Sigma)
        else:
            w_quadratic, quartic = tasks.quadratic(Sigma)
        self.w_v = w_quadratic + noise * w1
        self.u_v = Sigma @ self.w_v
        self.v_v = quartic + 2 * noise * (self.v - noise) + noise**2


def mean_gram(moments_w: LabelMoments) -> Tensor:
    """E[G] = E[C(w)]."""
    return _border(moments_w.Sigma, moments_w.u, moments_w.v)


def second_gram(moments_w: LabelMoments, context: int) -> Tensor:
    """E[G_ab G_ce] = E[C_ab C_ce] + (E[C_ac C_be] + E[C_ae C_bc]) / N."""
    CC = _covariance_products(moments_w)
    return CC + (CC.permute(0, 2, 1, 3) + CC.permute(0, 2, 3, 1)) / context


def _covariance_products(moments_w: LabelMoments) -> Tensor:
    """E[C_ab C_ce] over w."""
    m, D = moments_w, moments_w.Sigma.shape[0]
    CC = m.Sigma.new_zeros(D + 1, D + 1, D + 1, D + 1)
    x, y = slice(0, D), D
    CC[x, x, x, x] = torch.einsum("ab,ce->abce", m.Sigma, m.Sigma)
    Sigma_u = torch.einsum("ab,c->abc", m.Sigma, m.u)
    CC[x, x, x, y] = CC[x, x, y, x] = Sigma_u
    CC[x, y, x, x] = CC[y, x, x, x] = Sigma_u.permute(2, 0, 1)
    CC[x, x, y, y] = CC[y, y, x, x] = m.Sigma * m.v
    for first in ((x, y), (y, x)):
        CC[(*first, x, y)] = CC[(*first, y, x)] = m.uu
        CC[(*first, y, y)] = CC[(y, y, *first)] = m.u_v
    CC[y, y, y, y] = m.v_v
    return CC


def _query_second_moment(Sigma: Tensor, bias: float) -> Tensor:
    """E[q' q'^T] for q' = (x, 1), or (x, 0) where there is no bias."""
    return torch.block_diag(Sigma, torch.tensor(float(bias != 0), dtype=Sigma.dtype))


def _query_target_moment(m: LabelMoments, offset: Tensor, bias: float, sign: int) -> tuple[Tensor, float]:
    """E[t' q'_k G'] and E[t'^2] for t' = <r, x> - bias, r = sign u + offset, where m are the moments of u.

    Given u, E[t' q'] = (Sigma r, -bias), and E[G'] = C(u).
    """
    r_C = sign * _weights_times_covariance(m) + torch.einsum("i,ab->iab", offset, mean_gram(m))
    rows_DPP = torch.einsum("ki,iab->kab", m.Sigma, r_C)
    last_PP = -bias * mean_gram(m)
    second_r = m.Sigma_w + torch.outer(offset, offset)
    return torch.cat([rows_DPP, last_PP[None]]), float((m.Sigma * second_r).sum() + bias**2)


def _weights_times_covariance(m: LabelMoments) -> Tensor:
    """E[w_i C_ab] for w of mean zero."""
    zero_DDD = torch.zeros_like(m.Sigma).repeat(len(m.Sigma), 1, 1)
    return _border(zero_DDD, m.w2 @ m.Sigma, m.w_v)


def _border(block: Tensor, border: Tensor, corner: Tensor) -> Tensor:
    """[[block, border], [border^T, corner]] over leading axes."""
    top = torch.cat([block, border.unsqueeze(-1)], -1)
    bottom = torch.cat([border, corner.unsqueeze(-1)], -1)
    return torch.cat([top, bottom.unsqueeze(-2)], -2)


def _centring(width: int, prior_mean: Tensor | None) -> tuple[Tensor, Tensor]:
    """J and its inverse; the identity twice without a prior mean."""
    J, J_inverse = torch.eye(width, dtype=torch.float64).repeat(2, 1, 1)
    if prior_mean is not None:
        J[-1, :-1], J_inverse[-1, :-1] = prior_mean, -prior_mean
    return J, J_inverse


def _query_of_guess(width: int, guess: tuple[Tensor, float] | None) -> tuple[Tensor, Tensor]:
    """T and its inverse (0 for 1 / b at b = 0); the identity twice where there is no guess."""
    T, T_inverse = torch.eye(width, dtype=torch.float64).repeat(2, 1, 1)
    if guess is not None:
        v_D, b = guess
        T[-1, :-1], T[-1, -1] = v_D, b
        T_inverse[-1, -1] = 1 / b if b else 0.0
        T_inverse[-1, :-1] = -v_D * T_inverse[-1, -1]
    return T, T_inverse


def _of_heads(b_HP: Tensor, a_HKP: Tensor) -> Tensor:
    """X_k = sum_h b_h a_hk^T."""
    return torch.einsum("...hp,...hkr->...kpr", b_HP, a_HKP)


def _mixed(T_KK: Tensor, X_KPP: Tensor) -> Tensor:
    """sum_l T_kl X_l."""
    return torch.einsum("kl,...lpr->...kpr", T_KK, X_KPP)


def _last_entry(width: int) -> Tensor:
    """e_p."""
    e_P = torch.zeros(width, dtype=torch.float64)
    e_P[-1] = 1
    return e_P


def _root(M: Tensor) -> tuple[Tensor, Tensor]:
    """R with M = R R^T, orthogonal columns, and the non-zero eigenvalues."""
    eigenvalues, U = torch.linalg.eigh(M)
    kept = eigenvalues > RANK_TOLERANCE * eigenvalues.max()
    return U[:, kept] * eigenvalues[kept].sqrt(), eigenvalues[kept]


def _root_inverse(root: Tensor, eigenvalues: Tensor) -> Tensor:
    """T with M^+ = T T^T and T^T R = I, for R = _root(M)."""
    return root / eigenvalues


def _orthonormal_rows(b_HP: Tensor) -> Tensor:
    """Return the same span where H <= P; rows of unit length beyond, where X is free anyway."""
    if b_HP.shape[0] <= b_HP.shape[1]:
        return torch.linalg.qr(b_HP.T).Q.T
    return b_HP / b_HP.norm(dim=-1, keepdim=True)


def _least_squares(design: Tensor, goal: Tensor) -> Tensor:
    """Least squares of least norm.

    Columns repeat when H > 1 (X keeps the symmetric part only), so the rank is cut explicitly, by singular
    values: with torch's pivoted QR (gelsy) the answers here were far from the minimum.
    """
    return torch.linalg.lstsq(design, goal, rcond=1e-11, driver="gelsd").solution


def _check_regression(
    Sigma: Tensor, Sigma_w: Tensor, context: int, mean: Tensor, guess: Tensor, noise: float, sign: int
) -> None:
    D = Sigma.shape[-1]
    for name, matrix in (("Sigma", Sigma), ("Sigma_w", Sigma_w)):
        if matrix.shape != (D, D) or not torch.allclose(matrix, matrix.T, rtol=1e-10):
            raise ValueError(f"{name} has shape {tuple(matrix.shape)}: must be symmetric, {D} x {D}")
    if mean.shape != (D,) or guess.shape != (D,):
        raise ValueError(
            f"prior_mean {tuple(mean.shape)} and guess_vector {tuple(guess.shape)} must have length {D}"
        )
    if D + 1 > MAX_WIDTH:
        raise ValueError(f"dim={D}: E[G (x) G] has (dim + 1)^4 entries; at most dim {MAX_WIDTH - 1}")
    if context < 1 or noise < 0 or sign not in (-1, 1):
        raise ValueError(
            f"context={context} >= 1, label_noise={noise} >= 0 and target_sign={sign} in -1, 1 required"
        )
