from __future__ import annotations

import pytest

from icl.checks.giannou.lemma4_1 import Lemma4_1
from icl.constructions.giannou import inversion
from tests.checks.asking import held


@pytest.mark.parametrize("settings", [{}, {"dim": 1}, {"dim": 8, "condition": 1e6, "seed": 3, "samples": 2}])
def test_lemma_holds_and_rejects_its_control(settings):
    finding = held(Lemma4_1(**settings), 1000)
    measured = finding.measured
    assert (measured["layers"], measured["heads"], measured["layers_transpose_stored"]) == (2, 2, 1)
    assert measured["width"] == 4 * settings.get("dim", 5)
    if settings.get("dim") != 1:
        assert measured["error_two_layers_transpose_stored"] > 0.01
    lines = finding.details.lines()
    assert [line for line in lines if line.startswith(("Two", "One"))] == [lines[0], lines[-5]]
    assert "head 1: X += -X (A)^T X" in lines[-2]


def test_a_wrong_lemma_fails(monkeypatch):
    right = inversion.two_layers
    monkeypatch.setattr(inversion, "two_layers", lambda rows: right(rows)[::-1])
    assert Lemma4_1().measure().verdict == "fails"
    monkeypatch.undo()
    monkeypatch.setattr(inversion, "one_layer", lambda rows, b="A": right(rows)[1])
    assert Lemma4_1().measure().verdict == "fails"
