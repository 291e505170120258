import pytest

from icl.checks.giannou.theorem5_1 import Theorem5_1


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
