from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as how
from hypothesis import strategies as st

from icl.algorithms import LogisticLoss
from icl.checks.giannou import step_error
from icl.checks.giannou.problems import classified
from icl.checks.giannou.step_error import Setting, Trajectory, inversion_steps, step_error_bound
from icl.checks.giannou.theorem5_1 import Theorem5_1
from icl.checks.giannou.theorem5_2 import Theorem5_2
from icl.errors import InputError
from icl.models.columns import ColumnStack, Head


@pytest.mark.parametrize(
    "settings",
    [
        {"width": 500, "steps": 3},
        {"width": 300, "steps": 2, "mu": 1.0, "dim": 3, "context": 3},
        {"width": 1000, "steps": 2, "dim": 1, "context": 4, "mu": 0.02, "seed": 5},
    ],
)
def test_holds_and_rejects_its_control(settings):
    finding = Theorem5_2(**settings).measure()
    assert finding.verdict == "holds" and finding.control.rejected
    measured = finding.measured
    assert measured["layers"] == 11 + 2 * measured["inversion"] and measured["heads"] == 3
    assert measured["width"] == 6 * settings.get("dim", 5) + 4
    assert len(measured["error_by_width"]["widths"]) == len(measured["error_by_width"]["errors"])
    assert measured["slope"] < -1.4
    errors = measured["error_by_inversion"]["errors"]
    assert errors[0] > 10 * errors[-1]


@how(max_examples=12, deadline=None)
@given(
    st.integers(1, 4),
    st.integers(0, 6),
    st.sampled_from([0.05, 0.3, 5.0]),
    st.integers(100, 600),
    st.integers(0, 999),
)
def test_the_bound_holds_at_random(dim, more, mu, width, seed):
    setting = Setting(dim, dim + more, mu, 1.0, inversion_steps(mu))
    rng = np.random.default_rng(seed)
    loss = LogisticLoss(*classified(rng, 2, dim + more, dim), mu)
    x_BD = torch.from_numpy(rng.standard_normal((2, dim)))
    x_BD = x_BD / x_BD.norm(dim=1, keepdim=True).clamp_min(1)
    errors_B = Trajectory.of(setting.step(width), loss.A_BND, loss.y_BN, x_BD, 1).step_errors(loss)[0]
    assert (errors_B <= step_error_bound(setting, width, loss, x_BD).numpy()).all()


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


def test_theorem5_1():
    finding = Theorem5_1(width=500, steps=12, samples=2).measure()
    assert finding.verdict == "holds" and finding.control.rejected
    distances = finding.measured["by_width"]["distances"]
    assert distances[0] > distances[-1] and finding.measured["layers"] == 12 * 27
    assert Theorem5_1(width=500, steps=2, samples=1).measure().verdict == "fails"  # far from the minimum yet


def test_refuses():
    for check in (Theorem5_1, Theorem5_2):
        for settings, key in (
            ({"width": 0}, "width=0"),
            ({"width": 10**9}, "width"),
            ({"mu": 0.0}, "mu"),
            ({"mu": -0.1}, "mu"),
            ({"dim": 5, "context": 4}, "context=4"),
            ({"inversion": 0}, "inversion=0"),
            ({"steps": 0}, "steps=0"),
        ):
            with pytest.raises(InputError, match=rf"check\.{key}"):
                check(**settings)
