from __future__ import annotations

from dataclasses import replace

from icl.checks.giannou import step_error
from icl.checks.giannou.theorem5_2 import Theorem5_2
from icl.models.columns import ColumnStack, Head
from tests.checks.asking import Mutant, holds, seen


@holds(
    Theorem5_2,
    {"width": 500, "steps": 3},
    {"width": 300, "steps": 2, "mu": 1.0, "dim": 3, "context": 3},
    {"width": 1000, "steps": 2, "dim": 1, "context": 4, "mu": 0.02, "seed": 5},
)
def test_holds(check, finding):
    measured = finding.measured
    assert measured["layers"] == 11 + 2 * measured["inversion"] and measured["heads"] == 3
    assert measured["width"] == 6 * check.dim + 4
    assert len(measured["error_by_width"]["widths"]) == len(measured["error_by_width"]["errors"])
    assert measured["slope"] < -1.4
    errors = measured["error_by_inversion"]["errors"]
    assert errors[0] > 10 * errors[-1]


def negated(head):
    return Head(-head.V_PP, head.K_PP, head.Q_PP)


def wrongly(from_end, change):
    """The heads changed so many layers from the end; -3 is the fourth from the start."""

    def build(right, *args):
        stack = right(*args)
        layers = list(stack.layers)
        layers[-from_end] = replace(layers[-from_end], heads=change(list(layers[-from_end].heads)))
        return ColumnStack(stack.rows, layers)

    return build


test_a_wrong_construction_is_seen = seen(
    Theorem5_2,
    *(
        Mutant(step_error, "newton_step", wrongly(*of))
        for of in (
            (5, lambda heads: heads[:2]),  # no mu x
            (5, lambda heads: [negated(heads[0]), *heads[1:]]),  # the gradient
            (4, lambda heads: heads[:1]),  # the direction is not cleared
            (3, lambda heads: heads[1:]),  # no decrement
            (1, lambda heads: [negated(heads[0]), heads[1]]),  # a step forward
            (1, lambda heads: heads[:1]),  # not restored
            (-3, lambda heads: heads[:1]),  # not transposed
        )
    ),
    width=500,
    steps=2,
)


def test_too_few_inversion_steps_do_not_refute():
    finding = Theorem5_2(width=500, steps=2, inversion=3).measure()
    assert finding.verdict == "undecided" and finding.measured["layers"] == 17
