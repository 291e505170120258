import torch

from icl.checks.lds.lemma3_1 import Lemma31
from icl.checks.lds.support import position_heads
from tests.checks.asking import Mutant, holds, seen


@holds(
    Lemma31,
    *({"window": window, "length": length} for window, length in [(1, 3), (1, 7), (3, 9), (4, 30)]),
    samples=5,
)
def test_lemma_3_1_holds_for_the_repaired_heads_only(check, finding):
    measured = finding.measured
    assert measured["repaired_error"] == measured["shifted_error_first_rows"] == 0
    assert measured["printed_error"] > 0 and measured["shifted_error"] > 0 and measured["masked_error"] > 0
    assert measured["shifted_error_rows_below"] > 0 or check.window == 1


def test_lemma_3_1_by_slices():
    y = torch.arange(1.0, 7.0).double()[None]
    matrix = position_heads.layer(y, 2, position_heads.restricted)[0]
    rows = [[1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5, 0], [0, 0, 0], [0, 0, 0]]
    assert matrix.tolist() == rows


test_lemma_3_1_notices_heads_that_read_the_target = seen(
    Lemma31,
    Mutant(position_heads, "restricted", lambda right, *given: position_heads.shift(*given)),
    window=2,
    length=6,
)
