import io
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from icl.errors import InputError
from icl.figures import heatmaps
from icl.figures.heatmaps import free_of, heatmap_png, matrix_panels, panels_of, stack_panels, weight_panels
from icl.tasks import DynamicalSystem

RNG = np.random.default_rng(0)
R, L, H, D = 3, 2, 2, 4


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


def middle(png: bytes) -> np.ndarray:
    """Return the colour in the middle of a picture's only panel: 1.7 in wide, .16 from the left, .6 from
    the top."""
    return pixels(png)[round(120 * (0.6 + 0.85)), round(120 * (0.16 + 0.85))]


def test_preconditioned_mean():
    A_RLDD, A_half_RDD = RNG.normal(size=(R, L, D, D)), RNG.normal(size=(R, D, D))
    root_RDD = A_half_RDD @ A_half_RDD.transpose(0, 2, 1)
    panels = weight_panels(A_RLDD, root_RDD)
    assert list(panels) == ["A"]
    assert list(panels["A"]) == [r"$\Sigma^{1/2}A_{0}\Sigma^{1/2}$", r"$\Sigma^{1/2}A_{1}\Sigma^{1/2}$"]
    expected = np.einsum("rij,rljk,rkm->lim", root_RDD, A_RLDD, root_RDD) / R
    np.testing.assert_allclose(list(panels["A"].values()), expected, rtol=1e-12)


def test_on_the_theorems_set_the_panels_are_the_identity():
    covariance_DD = np.diag([1, 4.0, 0.25, 9])
    A_RLDD = np.broadcast_to(np.linalg.inv(covariance_DD), (R, L, D, D))
    root_RDD = np.broadcast_to(np.sqrt(covariance_DD), (R, D, D))
    for matrix_DD in weight_panels(A_RLDD, root_RDD)["A"].values():
        np.testing.assert_allclose(matrix_DD, np.eye(D), atol=1e-15)


def test_each_seed_under_its_own_name():
    A_RLDD, B_RLDD = RNG.normal(size=(2, R, L, D, D))
    panels = weight_panels(A_RLDD, np.stack([2 * np.eye(D)] * R), B_RLDD[:, :1], "each", [7, 3, 11])
    assert list(panels) == ["A/seed_7", "A/seed_3", "A/seed_11", "B/seed_7", "B/seed_3", "B/seed_11"]
    np.testing.assert_allclose(list(panels["A/seed_3"].values()), 4 * A_RLDD[1])
    assert list(panels["B/seed_11"]) == ["$B_{0}$"]
    np.testing.assert_array_equal(panels["B/seed_11"]["$B_{0}$"], B_RLDD[2, 0])
    with pytest.raises(ValueError):
        weight_panels(A_RLDD, np.stack([np.eye(D)] * R), None, "each", [7, 3])


def test_raw_stacks():
    P_RLHPP, Q_RLHPP = RNG.normal(size=(2, R, L, H, D + 1, D + 1))
    panels = stack_panels(P_RLHPP, Q_RLHPP)
    assert list(panels) == ["P", "Q"]
    assert list(panels["P"]) == ["$P_{0,0}$", "$P_{0,1}$", "$P_{1,0}$", "$P_{1,1}$"]
    np.testing.assert_allclose(panels["Q"]["$Q_{1,0}$"], Q_RLHPP[:, 1, 0].mean(axis=0))
    one_head = stack_panels(P_RLHPP[:, :, :1], Q_RLHPP[:, :, :1], "each")
    assert list(one_head["Q/seed_2"]) == ["$Q_{0}$", "$Q_{1}$"]
    np.testing.assert_array_equal(one_head["Q/seed_2"]["$Q_{1}$"], Q_RLHPP[2, 1, 0])
    with pytest.raises(InputError, match="seeds=all"):
        stack_panels(P_RLHPP, Q_RLHPP, "all")


def test_a_law_of_dynamical_systems_has_its_weights_seen_as_the_papers_with_pattern_13_outlined():
    free = free_of(DynamicalSystem(window=2).law([0, 1]).arrays())
    assert free["W_V"].tolist() == [[False, False, True], [False] * 3, [False, False, True]]
    assert free["W_QK"].tolist() == [[True, False, True], [False, True, False], [False] * 3]
    P, Q = RNG.normal(size=(2, 2, 1, 3, 3))
    panels = panels_of({"P": P, "Q": Q}, None, "each", [7, 3], free)
    assert list(panels) == ["W_V/seed_7", "W_V/seed_3", "W_QK/seed_7", "W_QK/seed_3"]
    np.testing.assert_array_equal(panels["W_QK/seed_3"]["$W_{QK}$"], Q[1, 0].T)
    np.testing.assert_array_equal(panels["W_V/seed_7"]["$W_{V}$"], P[0, 0].T)
    assert list(panels_of({"P": P, "Q": Q}, None)) == ["P", "Q"]
    assert list(matrix_panels({"W_V": RNG.normal(size=(1, 2, 3, 3)), "v": P})["W_V"]) == [
        "$W_{V,0}$",
        "$W_{V,1}$",
    ]


def test_free_entries_are_outlined():
    """Compare cells, which are unchanged but for the edges of those that are free."""
    matrix, free = np.zeros((3, 3)), np.eye(3, dtype=bool)
    plain, marked = (pixels(heatmap_png({"M": matrix}, "", annotate=False, free=f)) for f in (None, free))
    left, top, cell = 120 * 0.16, 120 * 0.6, 120 * 1.7 / 3
    for row, column in np.ndindex(3, 3):
        y, x = round(top + (row + 0.5) * cell), round(left + (column + 0.5) * cell)
        np.testing.assert_array_equal(marked[y, x], plain[y, x])
        edge = slice(x - round(cell / 2) - 2, x - round(cell / 2) + 4)
        drawn = (marked[y, edge] != plain[y, edge]).any()
        if column:  # the first one's edge is the panel's
            assert drawn == (free[row, column - 1] or free[row, column])


def test_colours_diverge_from_zero_on_one_scale():
    def colour(entry: float, **options: float) -> np.ndarray:
        return middle(heatmap_png({"$A_0$": np.full((3, 3), entry)}, "", annotate=False, **options))

    red, blue, zero = colour(2.0, vmax=2.0), colour(-2.0, vmax=2.0), colour(0.0, vmax=2.0)
    assert red[0] > red[2] + 50
    assert blue[2] > blue[0] + 50
    assert zero.min() > 240
    assert colour(1.0, vmax=2.0).sum() > red.sum()
    # Without vmax the largest entry has the darkest colour, whatever its size.
    np.testing.assert_array_equal(colour(1e-7), red)
    np.testing.assert_array_equal(colour(-300.0), blue)
    assert np.ptp(colour(float("nan"))) == 0


def test_layers_stand_side_by_side_and_wrap():
    def size(layers: int) -> tuple[int, int]:
        png = heatmap_png({f"$A_{{{layer}}}$": np.eye(3) for layer in range(layers)}, "")
        return Image.open(io.BytesIO(png)).size

    (one, height), (two, same), (six, _), (seven, taller) = size(1), size(2), size(6), size(7)
    assert same == height
    assert two - one == pytest.approx((six - one) / 5, abs=2)
    assert seven == six
    assert taller > 1.5 * height


def test_entries_are_written_into_small_matrices_only():
    def differs(side: int, layers: int = 1) -> bool:
        matrices = {str(layer): RNG.normal(size=(side, side)) for layer in range(layers)}
        return heatmap_png(matrices, "") != heatmap_png(matrices, "", annotate=False)

    assert differs(8)
    assert not differs(9)
    assert differs(5, layers=10)
    assert not differs(5, layers=11)


def test_a_page_shows_nothing_of_the_picture_before():
    """Compare with a page of its own, after a picture with another power of ten, other numbers and inks, a
    longer title and an entry that is not finite."""
    first, second = RNG.normal(size=(2, 2, 3, 3)) * [[[[1.0]]], [[[1e-9]]]]
    first[0, 0] = float("nan")

    def draw(matrices: np.ndarray, title: str) -> bytes:
        return heatmap_png({"$A_0$": matrices[0], "$A_1$": matrices[1]}, title, free=np.eye(3) > 0)

    heatmaps._page.cache_clear()
    alone = draw(second, "step 2")
    heatmaps._page.cache_clear()
    assert draw(first, "step 1, longer") != alone
    assert draw(second, "step 2") == alone
    assert heatmaps._page.cache_info().misses == 1


@pytest.mark.parametrize("entry", [0.0, 1e-30, 1e30, float("nan"), float("inf"), -0.001])
def test_extreme_entries_can_be_drawn(entry):
    assert pixels(heatmap_png({"$A_0$": np.array([[entry, 0.0]])}, "step 1")).shape[2] == 3


def test_pyplot_is_left_alone():
    body = (
        "import sys, numpy as np; from icl.figures.heatmaps import heatmap_png\n"
        "assert 'matplotlib' not in sys.modules\n"
        "heatmap_png({'a': np.eye(2)}, '')\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", body], check=True)
