"""Each layer of Theorem 5.2's step against the operation that appendix C states for it, on the rows as they
come to the layer: heads to rounding, ReLU layers to rounding of the piecewise linear functions.

What one layer does wrong shows there, however little of it reaches x. D covariates, N context and columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from icl.checks.giannou.support.mutants import mutants, or_infinite
from icl.checks.giannou.support.step_error import StepSetting
from icl.checks.numbers import Numbers, exact, tried
from icl.constructions.giannou.logistic import Approximations
from icl.constructions.giannou.piecewise import Function, Piecewise, sigmoid
from icl.models.giannou.columns import ColumnStack, Layer, forward
from icl.theory.logistic import LogisticLoss
from icl.theory.quadratic import EPSILON

Blocks = Mapping[str, Tensor]
Operation = Callable[[Blocks], Blocks]  # rows before -> the rows that are written


@dataclass(frozen=True)
class Operations:
    """Operations of the layers on the rows: `heads` and `relu`, one of each for every layer."""

    heads: list[Operation]
    relu: list[Operation]

    @classmethod
    def of(cls, setting: StepSetting, by: Approximations) -> Operations:
        D, N, mu = setting.dim, setting.context, setting.mu
        alpha = 2 / (mu**2 + (mu + 0.25) ** 2)

        def left(H_DM: Tensor) -> Tensor:
            return H_DM[:, :D]

        def from_left(H_DX: Tensor) -> Tensor:
            return torch.nn.functional.pad(H_DX, (0, N - H_DX.shape[1]))

        identity_DD = torch.eye(D, dtype=torch.float64)
        start = from_left(identity_DD)

        def nothing(h: Blocks) -> Blocks:
            return {}

        def scores(h: Blocks) -> Blocks:
            return {"s": left(h["x"])[:, :1].mT @ h["A"]}

        def divide(h: Blocks) -> Blocks:
            return {"s": h["s"] / N}

        def hessian(h: Blocks) -> Blocks:
            B_DD = h["A"] @ h["X"].mT + mu * identity_DD
            return {"R": from_left(B_DD), "X": from_left(alpha * B_DD)}

        def transpose(h: Blocks) -> Blocks:
            return {"X": from_left(left(h["X"]).mT)}

        def product(h: Blocks) -> Blocks:
            return {"Z": from_left(left(h["R"]) @ left(h["X"]))}

        def iterate(h: Blocks) -> Blocks:
            return {"X": from_left(2 * left(h["X"]) - left(h["X"]) @ left(h["Z"])), "Z": 0 * h["Z"]}

        def gradient(h: Blocks) -> Blocks:
            return {"R": from_left(mu * h["x"][:, :1] - h["A"] @ h["s"].mT)}

        def direction(h: Blocks) -> Blocks:
            return {"X": from_left(left(h["X"]) @ left(h["R"]))}

        def decrement(h: Blocks) -> Blocks:
            return {"s": h["R"][:, :1].mT @ h["X"]}

        def scale(h: Blocks) -> Blocks:
            return {"s": torch.cat([h["s"] @ h["X"].mT, h["s"][:, D:]], 1)}

        def move(h: Blocks) -> Blocks:
            return {"x": h["x"] - left(h["s"]).mT, "X": start, "R": start}

        def products(h: Blocks) -> Blocks:
            u, v = 4 * N * h["s"], h["A"]
            squares = _of(by.square, u + v) - _of(by.square, u - v)
            return {"X": squares / (16 * N), "s": 0 * h["s"]}

        k = setting.inversion
        return cls(
            heads=[
                *(scores, divide, hessian, transpose),
                *[product, iterate] * (k - 1),
                *(product, lambda h: {**iterate(h), "R": start}),
                *(scores, divide, gradient, direction, decrement, scale, move),
            ],
            relu=[
                lambda h: {"s": _of(by.variance, h["s"])},
                products,
                *[nothing] * (2 + 2 * k),
                lambda h: {"s": _of(by.probability, h["y"] * h["s"])},
                lambda h: {"s": h["y"] * h["s"]},
                *(nothing, nothing),
                lambda h: {"s": _of(by.step_size, h["s"])},
                nothing,
                lambda h: {"s": 0 * h["s"]},
            ],
        )


@dataclass(frozen=True)
class LayerByLayer:
    """One prompt's way through the step: P rows, M columns."""

    step: ColumnStack
    operations: Operations
    states: list[Tensor]  # before each layer, (P, M)

    @classmethod
    def of(cls, step: ColumnStack, setting: StepSetting, by: Approximations, H_PM: Tensor) -> LayerByLayer:
        return cls(step, Operations.of(setting, by), step.every_layer(H_PM)[:-1])

    def over_rounding(self) -> float:
        """Return the largest difference of a layer from its operation, over what rounding can make of it."""
        of_heads = [self._of_heads(number, layer) for number, layer in enumerate(self.step.layers)]
        return max(*of_heads, *map(self._of_relu, range(len(self.step.layers))))

    def wrong(self) -> Iterator[tuple[str, float]]:
        """Yield the same of each head that is missing or of the wrong sign, after the heads of its own
        layer."""
        for number, name, layer in mutants(self.step):
            yield name, self._of_heads(number, layer)

    def _of_heads(self, number: int, layer: Layer) -> float:
        before_PM, right = self.states[number], self.step.layers[number]
        sizes_PM = before_PM.abs()
        for head in right.heads:
            key, query = (W_PP.abs() @ before_PM.abs() for W_PP in (head.K_PP, head.Q_PP))
            sizes_PM = sizes_PM + (head.V_PP.abs() @ before_PM.abs()) @ key.mT @ query
        P, M = before_PM.shape
        terms = 2 * (M + 4 * P + len(right.heads))
        after_PM = forward(replace(layer, relu=None), before_PM)
        return self._over_rounding(self.operations.heads[number], before_PM, after_PM, terms * sizes_PM)

    def _of_relu(self, number: int) -> float:
        layer = self.step.layers[number]
        before_PM = forward(replace(layer, relu=None), self.states[number])
        sizes_PM, terms = before_PM.abs(), 2
        if layer.relu is not None:
            inner_XM = layer.relu.W1_XP.abs() @ before_PM.abs()
            sizes_PM = sizes_PM + layer.relu.W2_PX.abs() @ inner_XM
            terms = 2 * (layer.relu.width + len(before_PM))
        after_PM = forward(Layer(relu=layer.relu), before_PM)
        return self._over_rounding(self.operations.relu[number], before_PM, after_PM, terms * sizes_PM)

    def _over_rounding(
        self, operation: Operation, before_PM: Tensor, after_PM: Tensor, sizes_PM: Tensor
    ) -> float:
        expected_PM = before_PM.clone()
        rows = self.step.rows
        for name, block in operation({name: before_PM[rows[name]] for name in rows.sizes}).items():
            expected_PM[rows[name]] = block
        off_PM = (after_PM - expected_PM).abs()
        # where all terms are zero, so is their rounding
        shares_PM = torch.where(off_PM == 0, 0.0, off_PM / (EPSILON * sizes_PM))
        return or_infinite(float(torch.nan_to_num(shares_PM, nan=torch.inf).max()))


def compare_functions(by: Approximations, setting: StepSetting) -> list[Numbers]:
    """Compare the ReLU layers' functions with those that they stand for."""
    errors = {
        "p(1-p)": by.variance.error,
        "d_i a_ij / n": by.product_error(setting.context),
        "p": by.probability.error,
        "step size": by.step_size.error,
    }
    return [
        tried(interpolation_off=interpolation_off(by, setting.mu, setting.context))
        .means("largest error of a ReLU layer's function between its knots, over its error bound")
        .at_most(1.0, "from a quarter to all of relu_errors"),
        tried(knots_end_off=knots_end_off(by, setting.mu, setting.start))
        .means("relative distance of the last knots from the ends of the functions' domains")
        .at_most(64 * EPSILON, "rounding: 64 * 2^-52"),
        exact(relu_errors=errors)
        .means("error bounds of the functions that the ReLU layers approximate")
        .compared_by("interpolation_off", "largest errors between the knots"),
    ]


def knots_end_off(by: Approximations, mu: float, start: float) -> float:
    """Return how far the knots end from the largest margin, and how far short of the largest lambda_f^2.

    Of the worst problem, one point of norm 1 on the wrong side: the largest loss at |x_0| = start, 1 / mu of
    twice that bounds |x|^2; the largest gradient at that |x|.
    """
    one = torch.ones(1, 1, 1, dtype=torch.float64)
    worst = LogisticLoss(one, -one[..., 0], mu)
    radius = float((2 * worst.value(start * one[0]) / mu).sqrt())
    squared_decrement = float(worst.gradient(radius * one[0]).square()) / mu
    ends = [end for f in (by.variance, by.probability) for end in (-f.knots_J[0], f.knots_J[-1])]
    short = 1 - by.step_size.knots_J[-1] / squared_decrement
    return float(max(*(abs(end / radius - 1) for end in ends), short, 0.0))


def interpolation_off(by: Approximations, mu: float, context: int, points: int = 16) -> float:
    """Return how far the error of a function between its knots is outside what is stated: at most 1.

    Stated is a bound; the error of a chord of a parabola, or of a root that starts at 0, is half of it. So
    the largest difference at `points` places between knots is from a quarter of the bound to all of it.
    """
    c, middle = 2 * mu**0.5, by.square.knots_J[len(by.square.knots_J) // 2]
    functions: list[tuple[Piecewise, Function, Function, float]] = [
        (by.variance, by.variance, lambda z: sigmoid(z) * sigmoid(-z), by.variance.error),
        (by.probability, by.probability, lambda z: sigmoid(-z), by.probability.error),
        (by.step_size, by.step_size, lambda u: c / (c + np.sqrt(u)), by.step_size.error),
        # (d / n) a for 4 d = (u + middle) / 2 and a = (u - middle) / 2
        (
            by.square,
            lambda u: (by.square(u) - by.square(middle)) / (16 * context),
            lambda u: (u + middle) / 2 / 4 / context * (u - middle) / 2,
            by.product_error(context),
        ),
    ]
    return max(_interpolation_off(*function, points) for function in functions)


def _interpolation_off(f: Piecewise, stands: Function, for_it: Function, stated: float, points: int) -> float:
    shares_S = (np.arange(points) + 0.5) / points
    u = (f.knots_J[:-1, None] + np.diff(f.knots_J)[:, None] * shares_S).ravel()
    expected = for_it(u)
    error = float(np.abs(expected - stands(u)).max())
    rounding = 8 * EPSILON * float(np.abs(expected).max())
    return max((error - rounding) / stated, stated / (4 * error + rounding))


def _of(f: Piecewise, u: Tensor) -> Tensor:
    return torch.from_numpy(f(u.numpy()))
