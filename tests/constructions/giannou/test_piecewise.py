import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from icl.constructions.giannou import piecewise
from icl.constructions.giannou.piecewise import Neurons, sigmoid
from icl.models.giannou.columns import ColumnStack, Layer, Rows

ROWS = Rows({"y": 1, "a": 1, "s": 1, "out": 1, "one": 1})


def run(neurons, **rows):
    count = max(len(np.atleast_1d(v)) for v in rows.values())
    blocks = {name: np.broadcast_to(value, count) for name, value in ({"one": 1.0} | rows).items()}
    stack = ColumnStack(ROWS, [Layer([], neurons.layer())])
    H = stack.fill({name: torch.tensor(value.copy())[None] for name, value in blocks.items()}, count)
    return {name: stack.block(stack(H), name)[0].numpy() for name in ROWS.sizes}


def through_neurons(f, u):
    neurons = Neurons(ROWS)
    neurons.function(f, {"s": 1.0}, "out")
    return run(neurons, s=u)["out"]


CASES = {
    "variance": (lambda n: piecewise.variance_of_label(n, 4.0), piecewise.sigmoid_slope, -4, 4),
    "variance, narrow": (lambda n: piecewise.variance_of_label(n, 1.0), piecewise.sigmoid_slope, -1, 1),
    "probability": (lambda n: piecewise.probability(n, 4.0), lambda z: sigmoid(-z), -4, 4),
    "step": (lambda n: piecewise.step_size(n, 0.1, 9.0), lambda u: 1 / (1 + np.sqrt(u / 0.4)), 0, 9),
    "square": (piecewise.half_square, lambda u: u**2, -2, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("neurons", [8, 9, 50, 501])
def test_the_error_is_within_its_bound_and_the_bound_is_sharp(name, neurons):
    make, f, low, high = CASES[name]
    approximation = make(neurons)
    even = np.linspace(0, 1, 20_001)
    u = np.unique(np.concatenate([np.linspace(low, high, 20_001), (high - low) * even**8 + low]))
    error = np.abs(approximation(u) - f(u)).max()
    assert approximation.neurons == neurons
    # a parabola's tangents meet at twice the gap
    assert error <= approximation.error * (1 + 1e-9) <= 4.5 * error
    if neurons > 500:
        assert make(4 * neurons).error == pytest.approx(approximation.error / 16, rel=0.05)
    few = u[::40]  # every neuron is on at some of them and off at others
    np.testing.assert_allclose(through_neurons(approximation, few), approximation(few), atol=1e-11)
    beyond = np.array([low - 1.0, high + 1.0])
    np.testing.assert_allclose(through_neurons(approximation, beyond), f(np.array([low, high])), atol=1e-11)


@settings(max_examples=30, deadline=None)
@given(st.floats(-1, 1), st.floats(-1, 1))
def test_products_of_two_rows(u, v):
    square, neurons = piecewise.half_square(99), Neurons(ROWS)
    neurons.product(square, "s", 8.0, "a", "out")
    assert abs(run(neurons, s=u / 8, a=v)["out"][0] - u / 8 * v) <= square.error / 32 + 1e-14


def test_a_gate_lets_one_sign_through():
    f, neurons = piecewise.probability(100, 4.0), Neurons(ROWS)
    neurons.function(f, {"s": 1.0}, "out", gate=("y", -1.0))
    z = np.linspace(-12, 12, 101)
    np.testing.assert_array_equal(run(neurons, s=z, y=1.0)["out"], 0)
    np.testing.assert_allclose(run(neurons, s=z, y=-1.0)["out"], f(z), atol=1e-12)


def test_clear_is_exact():
    neurons = Neurons(ROWS)
    neurons.clear("s")
    assert not run(neurons, s=np.array([1e-300, -3.7, 1e12, 0.1]))["s"].any()
