"""Exact risk of one layer of linear attention with an initial guess: x ~ N(0, I), w ~ N(w*, I), y = w.x.

C context tokens, W = sum_i x_i x_i^T / C and w = w* + u. A head enters by b, the last row of P, and a_k,
column k of Q: X_k = sym(sum_h b_h a_hk^T) multiplies entry k of the query (x_q, y_q), y_q = v.x_q + bias.
Tokens are J (x, u.x), so the Gram matrix G has <G, X> = tr S W + 2 r.W u + c u.W u with [[S, r], [r, c]] =
J^T X J. A mean of products of such needs

    E tr A W tr B W = tr A tr B + 2 tr A B / C,    E W^2 = (1 + (d + 1) / C) I,

which are affine in 1/C: `share` is 1/C, and 0 is the limit of long contexts.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from flint import arb, fmpq, fmpq_mat

from icl.theory.rationals import ZERO, column, diagonal, dot, rational

Head = tuple[fmpq_mat, list[fmpq_mat]]


class Heads:
    """The risk (4), E (prediction - w.x_q)^2: sum_k E (<G, Y_k> - u_k - missed_k)^2, one form for every k."""

    def __init__(
        self, prior_mean: Sequence[Any], share: Any, guess: Sequence[Any] | None = None, bias: Any = 0
    ) -> None:
        self.d, self.share = len(prior_mean), rational(share)
        self.mean, self.bias = [rational(e) for e in prior_mean], rational(bias)
        self.guess = [rational(e) for e in (guess or [0] * self.d)]
        self.missed = [m - v for m, v in zip(self.mean, self.guess, strict=True)]
        self.guess_error = sum((e * e for e in self.missed), self.bias**2)  # |w* - v|^2 + b^2
        self.square = 1 + (self.d + 1) * self.share  # E W^2
        self.J = fmpq_mat(
            [[int(i == j) for j in range(self.d + 1)] for i in range(self.d)] + [[*self.mean, 1]]
        )
        self.gram = diagonal([1] * self.d + [self.d])
        # E u_k G is twice that
        self.odd = [symmetric(axis(k, self.d), axis(self.d, self.d)) for k in range(self.d)]
        self.targets = [2 * o + m * self.gram for o, m in zip(self.odd, self.missed, strict=True)]
        self.targets.append(-self.bias * self.gram)
        self.constant = self.d + self.guess_error

    def form(self, Y: fmpq_mat) -> fmpq_mat:
        """Return E <G, Y> G, in the coordinates (x, u.x)."""
        d, share = self.d, self.share
        trace, c = sum((Y[i, i] for i in range(d)), ZERO), Y[d, d]
        out = fmpq_mat(d + 1, d + 1, [2 * share * e for e in Y.entries()])
        for i in range(d):
            out[i, i] += trace + c * (d + 2 * share)
            out[i, d] = out[d, i] = 2 * self.square * Y[i, d]
        out[d, d] = trace * (d + 2 * share) + c * self.fourth
        return out

    @property
    def fourth(self) -> fmpq:
        """E (u.W u)^2 = E (tr W)^2 + 2 E tr W^2."""
        return self.d * (self.d + 2 * self.share + 2 * self.square)

    def solve(self, target: fmpq_mat) -> fmpq_mat:
        """Return the Y with form(Y) = target: that of least risk, because the form is a mean square."""
        d, share = self.d, self.share
        trace = sum((target[i, i] for i in range(d)), ZERO)
        both = fmpq_mat([[1 + 2 * share / d, d + 2 * share], [d + 2 * share, self.fourth]])
        own, c = both.solve(column([trace / d, target[d, d]])).entries()  # tr S and c
        Y = fmpq_mat(d + 1, d + 1)
        for i in range(d):
            for j in range(i):
                Y[i, j] = Y[j, i] = target[i, j] / (2 * share) if target[i, j] else ZERO
            alone = target[i, i] - trace / d
            Y[i, i] = own / d + (alone / (2 * share) if alone else 0)
            Y[i, d] = Y[d, i] = target[i, d] / (2 * self.square)
        Y[d, d] = c
        return Y

    def matrices(self, heads: Sequence[Head]) -> list[fmpq_mat]:
        """Return X_1 .. X_{d+1} of heads (b, [a_1, ..]); a missing a_k is 0."""
        zero = fmpq_mat(self.d + 1, self.d + 1)
        return [sum((symmetric(b, a[k]) for b, a in heads if k < len(a)), zero) for k in range(self.d + 1)]

    def predictor(self, heads: Sequence[Head]) -> list[fmpq_mat]:
        """Return v and X_k + v_k X_{d+1}: the prediction is v.x_q + sum_k x_k <G, that>, and nothing else."""
        *X, last = self.matrices(heads)
        return [column(self.guess), *(x + v * last for x, v in zip(X, self.guess, strict=True))]

    def seen(self, X: Sequence[fmpq_mat]) -> list[fmpq_mat]:
        """Return the Y_k, and last that of the bias."""
        turned = [self.J.transpose() * x * self.J for x in X]
        return [y + v * turned[-1] for y, v in zip(turned, self.guess, strict=False)] + [
            self.bias * turned[-1]
        ]

    def risk(self, X: Sequence[fmpq_mat]) -> fmpq:
        pairs = zip(self.seen(X), self.targets, strict=True)
        return sum((dot(y, self.form(y) - 2 * t) for y, t in pairs), self.constant)

    def least(self) -> fmpq:
        """Return the least risk of any number of heads: the least over all symmetric X_k."""
        return self.constant - sum((dot(t, self.solve(t)) for t in self.targets), ZERO)

    def least_of_any_guess(self) -> fmpq:
        """Return the least risk of any number of heads with any guess v.x_q."""
        of_gram, miss = self.solve(self.gram), self.least_miss()
        gains = (dot(2 * o, self.solve(2 * o)) + dot(2 * o, of_gram) ** 2 / miss for o in self.odd)
        return self.d - sum(gains, ZERO)

    def least_miss(self, heads: int | None = None) -> fmpq:
        """Return the least E (1 - <G, Y>)^2; where fewer than d heads force Y to vanish on d - heads
        covariates, a multiple of the identity on the others is best."""
        kept = self.d if heads is None else min(heads, self.d)
        both = self.fourth, self.d + 2 * self.share
        if not kept:
            return 1 - fmpq(self.d) ** 2 / both[0]
        form = fmpq_mat([[1 + 2 * self.share / kept, both[1]], [both[1], both[0]]])
        one = column([1, self.d])
        return 1 - dot(one, form.solve(one))

    def lost(self, heads: int) -> fmpq:
        """Return what this number of heads loses at least, for all weights, on the least risk."""
        if not heads:
            return self.constant - self.least()
        return (self.least_miss(heads) - self.least_miss()) * self.guess_error

    def slopes(self, X: Sequence[fmpq_mat]) -> tuple[list[fmpq_mat], list[fmpq]]:
        """Return the gradients in X_1 .. X_{d+1}, and in v_1 .. v_d of the guess."""
        Y, last = self.seen(X), self.J.transpose() * X[-1] * self.J
        half = [self.form(y) - t for y, t in zip(Y, self.targets, strict=True)]
        along = [2 * (self.J * h * self.J.transpose()) for h in half]
        in_X = [
            *along[:-1],
            sum((v * g for v, g in zip(self.guess, along, strict=False)), self.bias * along[-1]),
        ]
        in_v = [
            2 * (dot(h, last) + dot(self.gram, y) - m) for h, y, m in zip(half, Y, self.missed, strict=False)
        ]
        return in_X, in_v

    def gradient(self, heads: Sequence[Head]) -> list[fmpq]:
        """Return every entry of the gradient in all b_h and a_hk."""
        return in_weights(self.slopes(self.matrices(heads))[0], heads)

    def best(self) -> list[fmpq_mat]:
        """Return those of least risk: X_k = eta sym(e_k (-w*, 1)^T) + tau (w* - v)_k I, with a bias -tau I as
        X_{d+1}, eta = C / (C + d + 1), tau = C / (d C + 2)."""
        eta, tau = 1 / self.square, 1 / (self.d + 2 * self.share)
        target, covariates = self.mean if self.bias else self.missed, diagonal([1] * self.d + [0])
        row = column([*(-m for m in self.mean), 1])
        X = [eta * symmetric(axis(k, self.d), row) + tau * t * covariates for k, t in enumerate(target)]
        return [*X, (-tau if self.bias else 0) * covariates]


def in_weights(in_X: Sequence[fmpq_mat], heads: Sequence[Head]) -> list[fmpq]:
    """Return every entry of the gradient in all b_h and a_hk, from those in X_k."""
    entries = []
    for b, a in heads:
        entries += sum((g * one for g, one in zip(in_X, a, strict=False)), 0 * b).entries()
        entries += [e for g, _ in zip(in_X, a, strict=False) for e in (g * b).entries()]
    return entries


def descent_risk(d: int, share: Any) -> fmpq:
    """Return the least risk of one gradient step from w*, d (1 - 2 eta + eta^2 (1 + (d + 1)/C))."""
    return d * (1 - 1 / (1 + (d + 1) * rational(share)))


def descent_head(start: Sequence[Any], eta: Any) -> Head:
    """Return the one head of eq. (7): a gradient step from `start` where the guess is its prediction."""
    d = len(start)
    b = column([*(-rational(eta) * rational(e) for e in start), rational(eta)])
    return b, [*(axis(k, d) for k in range(d)), 0 * axis(0, d)]


def heads_of(X: Sequence[fmpq_mat]) -> list[Head]:
    """Return d heads with these X_k of corner 0: b_h = e_h, a_hk row h of X_k with its last entry twice."""
    d = X[0].nrows() - 1
    return [
        (axis(h, d), [column([x[h, j] * (2 if j == d else 1) for j in range(d + 1)]) for x in X])
        for h in range(d)
    ]


def all_heads_of(X: Sequence[fmpq_mat]) -> list[Head]:
    """Return the d + 1 heads of Appendix A.1: b_h = e_h, a_hk row h of X_k."""
    d = X[0].nrows() - 1
    return [(axis(h, d), [x.transpose() * axis(h, d) for x in X]) for h in range(d + 1)]


def factorised_slopes(prior_mean: Sequence[Any], X: Sequence[fmpq_mat]) -> list[fmpq_mat]:
    """Return the gradients in X_k, k <= d, at y_q = 0 of the form that Appendix A.2 has in the limit, with
    E[G] x E[G] for E[G x G]. G is [[I, w], [w^T, |w|^2]] there."""
    mean = [rational(e) for e in prior_mean]
    d, size, slopes = len(mean), sum((m * m for m in mean), ZERO), []
    own = fmpq_mat([[*(fmpq(i == j) for j in range(d)), mean[i]] for i in range(d)] + [[*mean, d + size]])
    for k in range(d):
        row = [mean[k] * m + (i == k) for i, m in enumerate(mean)]
        square = [[*(mean[k] * (i == j) for j in range(d)), row[i]] for i in range(d)]
        target = fmpq_mat([*square, [*row, mean[k] * (d + 2 + size)]])  # E w_k G
        slopes.append(2 * (dot(X[k], own) * own - target))
    return slopes


def norm(entries: Iterable[fmpq]) -> fmpq | arb:
    """Return the Euclidean norm: 0 itself where all entries are, else a ball."""
    total = sum((e * e for e in entries), ZERO)
    return arb(total).sqrt() if total else total


def symmetric(b: fmpq_mat, a: fmpq_mat) -> fmpq_mat:
    product = b * a.transpose()
    return (product + product.transpose()) / 2


def axis(i: int, d: int) -> fmpq_mat:
    return column([int(i == j) for j in range(d + 1)])
