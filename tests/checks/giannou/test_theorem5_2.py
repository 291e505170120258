from __future__ import annotations

from dataclasses import replace

import pytest

from icl.checks.giannou import step_error
from icl.checks.giannou.theorem5_2 import Theorem5_2
from icl.models.columns import ColumnStack, Head
from tests.checks.asking import held


@pytest.mark.parametrize(
    "settings",
    [
        {"width": 500, "steps": 3},
        {"width": 300, "steps": 2, "mu": 1.0, "dim": 3, "context": 3},
        {"width": 1000, "steps": 2, "dim": 1, "context": 4, "mu": 0.02, "seed": 5},
    ],
)
def test_holds_and_rejects_its_control(settings):
    finding = held(Theorem5_2(**settings))
    measured = finding.measured
    assert measured["layers"] == 11 + 2 * measured["inversion"] and measured["heads"] == 3
    assert measured["width"] == 6 * settings.get("dim", 5) + 4
    assert len(measured["error_by_width"]["widths"]) == len(measured["error_by_width"]["errors"])
    assert measured["slope"] < -1.4
    errors = measured["error_by_inversion"]["errors"]
    assert errors[0] > 10 * errors[-1]


def wrongly(kind):
    """Stacks with one thing wrong, so many layers from the end; -3 is the fourth from the start."""
    from_end, change = {
        "no mu x": (5, lambda heads: heads[:2]),
        "sign of the gradient": (
            5,
            lambda heads: [Head(-heads[0].V_PP, heads[0].K_PP, heads[0].Q_PP), *heads[1:]],
        ),
        "direction not cleared": (4, lambda heads: heads[:1]),
        "no decrement": (3, lambda heads: heads[1:]),
        "step forward": (1, lambda heads: [Head(-heads[0].V_PP, heads[0].K_PP, heads[0].Q_PP), heads[1]]),
        "not restored": (1, lambda heads: heads[:1]),
        "not transposed": (-3, lambda heads: heads[:1]),
    }[kind]
    right = step_error.newton_step

    def build(*args):
        stack = right(*args)
        layers = list(stack.layers)
        layers[-from_end] = replace(layers[-from_end], heads=change(list(layers[-from_end].heads)))
        return ColumnStack(stack.rows, layers)

    return build


KINDS = [
    "no mu x",
    "sign of the gradient",
    "direction not cleared",
    "no decrement",
    "step forward",
    "not restored",
    "not transposed",
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_construction_fails(monkeypatch, kind):
    monkeypatch.setattr(step_error, "newton_step", wrongly(kind))
    assert Theorem5_2(width=500, steps=2).measure().verdict == "fails"


def test_too_few_inversion_steps_do_not_refute():
    finding = Theorem5_2(width=500, steps=2, inversion=3).measure()
    assert finding.verdict == "undecided" and finding.measured["layers"] == 17
