import torch

from icl.constructions.giannou import inversion, logistic, regression
from icl.constructions.giannou.describe import describe
from icl.models.giannou.columns import ColumnStack, Head, Layer, Rows


def test_a_construction_in_words():
    assert describe(regression.theorem4_2(2, 3, 0.5, 0.25)).lines() == [
        "rows: X 2, R 2, I 2, A 2, t 1, y 1, out 1 = 11",
        "layer 1: R <- A^T A + mu I, X <- epsilon R",
        "  head 1: X += 0.5 A (A)^T I",
        "  head 1: R += A (A)^T I",
        "  head 2: X += (-0.875 I) (I)^T I",
        "  head 2: R += (-0.75 I) (I)^T I",
        "layers 2 to 4: Newton's iteration: X <- 2 X - X R^T X",
        "  head 1: X += -X (R)^T X",
        "  head 2: X += X (I)^T I",
        "layer 5: out <- y^T A X",
        "  head 1: out += y (A)^T X",
        "layer 6: out[0] <- y^T A X a_test",
        "  head 1: out += out (t)^T I[0]",
        "  head 2: out += -out (I)^T I",
    ]


def test_what_repeats_is_told_once():
    two = inversion.lemma4_1(2)
    lines = describe(ColumnStack(two.rows, [*two.layers] * 3)).lines()
    assert [line for line in lines if line.startswith("layers")] == [
        "layers 1 to 5, every second: Newton's iteration, first half: Z <- A X",
        "layers 2 to 6, every second: Newton's iteration, second half: X <- 2 X - X Z, Z <- 0",
    ]
    by = logistic.approximations(0.1, 32, 3.0)
    lines = describe(logistic.newton_step(2, 5, 0.1, 4, by)).lines()
    assert "  relu: s from y, s, one with 30 neurons" not in lines
    assert any(line.startswith("  relu: X, s from X, A, s, one with 66 neurons") for line in lines)


def test_it_is_read_off_the_weights():
    rows = Rows({"X": 2, "y": 1})
    generic = torch.tensor([[1.0, 2.0, 0], [0, 1, 0], [0, 0, 0]]).double()
    head = Head(generic, rows.gather({"y": 1.0}), rows.gather({"X[1]": -2.0}))
    assert describe(ColumnStack(rows, [Layer([head])])).lines() == [
        "rows: X 2, y 1 = 3",
        "layer 1: attention",
        "  head 1: X += M(X) (y)^T (-2 X[1])",
    ]
