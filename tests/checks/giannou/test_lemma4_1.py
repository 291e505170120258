from icl.checks.giannou.lemma4_1 import Lemma4_1
from icl.constructions.giannou import inversion
from tests.checks.asking import Mutant, holds, seen


@holds(Lemma4_1, {}, {"dim": 1}, {"dim": 8, "condition": 1e6, "seed": 3, "samples": 2}, margin=1000)
def test_lemma_holds(check, finding):
    measured = finding.measured
    assert (measured["layers"], measured["heads"], measured["layers_transpose_stored"]) == (2, 2, 1)
    assert measured["width"] == 4 * check.dim
    assert check.dim == 1 or measured["error_two_layers_transpose_stored"] > 0.01
    lines = finding.details.lines()
    assert [line for line in lines if line.startswith(("Two", "One"))] == [lines[0], lines[-5]]
    assert "head 1: X += -X (A)^T X" in lines[-2]


test_a_wrong_lemma_is_seen = seen(
    Lemma4_1,
    Mutant(inversion, "two_layers", lambda right, rows: right(rows)[::-1]),
    Mutant(inversion, "one_layer", lambda right, rows, b="A": inversion.two_layers(rows)[1]),
)
