from dataclasses import replace

import pytest

from icl.checks.giannou import theorem5_1
from icl.checks.giannou.support import step_error
from icl.checks.giannou.theorem5_1 import Theorem5_1
from tests.checks.asking import Mutant, holds, seen
from tests.checks.giannou.losses import wrong_losses


@holds(
    Theorem5_1,
    {},
    {"mu": 0.01, "width": 1000},
    {"mu": 10.0},
    {"dim": 1, "context": 1},
    {"steps": 12},
    width=500,
    samples=2,
)
def test_theorem5_1(check, finding):
    measured = finding.measured
    distances = measured["by_width"]["distances"]
    assert distances[0] > distances[-1]
    assert measured["layers"] == measured["steps"] * (11 + 2 * check.k) and check.steps in (None, 12)


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"steps": 2}, "check.steps=null"),  # far from the minimum yet
        ({"steps": 1, "mu": 1e-3}, "check.steps=null"),
        ({"mu": 0.01, "width": 300}, "check.width="),
        ({"inversion": 1}, "check.inversion=null"),
    ],
    ids=str,
)
def test_what_has_not_come_to_phase_two_refutes_nothing(settings, words):
    finding = Theorem5_1(**{"width": 300, "samples": 1} | settings).measure()
    assert finding.verdict == "undecided" and any(words in note for note in finding.notes)


test_a_wrong_loss_or_distance_is_seen = seen(
    Theorem5_1,
    *wrong_losses(""),
    Mutant(theorem5_1, "damped_newton", lambda right, *of: replace(right(*of), x_BD=0 * of[1])),
    Mutant(step_error.Trajectory, "step_errors", lambda right, *of: 1e3 * right(*of), "undecided"),
    width=300,
    samples=1,
)
