import numpy as np
import torch

from icl.checks.giannou.support import iteration
from icl.checks.giannou.theorem4_2 import Theorem4_2
from icl.models.giannou.columns import ColumnStack, Head, Layer
from tests.checks.asking import Mutant, holds, seen


@holds(
    Theorem4_2,
    {"dim": 6, "context": 12, "steps": 8, "condition": 50},
    {"dim": 1, "context": 1, "steps": 30},
    {"dim": 3, "context": 3, "steps": 0, "samples": 2},
    {"condition": 100, "steps": 40, "samples": 2},
    {"steps": 30},
    {"dim": 2, "context": 3, "design": [[1, 2], [3, 4], [0, 1]], "samples": 2},
    # X_0 ~ 1 / lambda_max, left over where an identity is taken away
    *(
        {
            "dim": 2,
            "context": 3,
            "design": [[50 * s, 0], [0, 30 * s], [20 * s, 10 * s]],
            "steps": T,
            "samples": 2,
        }
        for s in (1e-3, 1, 1e3)
        for T in (1, 30)
    ),
    margin=100,
)
def test_theorem_holds(check, finding):
    assert finding.measured["layers"] == 3 + check.steps and finding.measured["heads"] == 2
    assert finding.measured["width"] == 4 * check.dim + 3
    ours = check.design is None
    assert finding.measured["max_relative_error"] < 1e-7 or not ours
    assert check.steps < 30 or not ours or finding.measured["distance_to_least_squares"] < 1e-10


def changed(stack, number, layer):
    return ColumnStack(stack.rows, [*stack.layers[:number], layer, *stack.layers[number + 1 :]])


def swapped(stack, number, h, **blocks):
    """The same head reading other blocks as key or query."""
    head, rows = stack.layers[number].heads[h], stack.rows
    K = rows.gather({blocks["key"]: 1.0}) if "key" in blocks else head.K_PP
    Q = rows.gather({blocks["query"]: 1.0}) if "query" in blocks else head.Q_PP
    heads = list(stack.layers[number].heads)
    heads[h] = Head(head.V_PP, K, Q)
    return changed(stack, number, Layer(heads))


test_the_listings_of_the_proof_and_a_little_off_fail = seen(
    Theorem4_2,
    *(
        Mutant(iteration, "theorem4_2", wrong)
        for wrong in (
            # a Newton layer's key as listed: block 1; the first output layer as listed
            lambda right, *given: swapped(right(*given), 1, 0, key="X"),
            lambda right, *given: swapped(right(*given), 3, 0, key="I", query="I"),
            lambda right, *given: swapped(right(*given), 0, 0, key="I"),
            lambda right, d, t, e, mu: right(d, t, e * (1 + 1e-11), mu),
        )
    ),
    dim=3,
    context=5,
    steps=2,
    samples=1,
)


def test_the_sizes_bound_rounding_far_from_convergence_too():
    rng = np.random.default_rng(0)
    A = torch.from_numpy(rng.standard_normal((9, 4)) @ np.diag([1, 0.5, 0.01, 1e-3]))
    problem = iteration.Regression(A, torch.ones(9).double(), torch.ones(4).double(), 0.0)
    for steps in (1, 10, 40):
        its = iteration.Reference.of(problem, steps)
        stack = problem.stack(steps)
        states = stack.every_layer(problem.prompt(stack))
        assert iteration._answer_error(stack, states[-1], its) < 2**-52 * problem.operations()


test_a_layer_too_many_is_seen = seen(
    Theorem4_2,
    Mutant(
        iteration,
        "theorem4_2",
        lambda right, *given: right(*given) + ColumnStack(right(*given).rows, [Layer()]),
        of="sizes_off",
    ),
    samples=1,
)
