"""Tests of the pictures of weights: which matrices are shown, and what their colours and outlines say."""

import io

import numpy as np
import pytest
from PIL import Image

from icl.errors import InputError
from icl.figures.heatmaps import free_of, heatmap_png, panels_of
from icl.tasks import DynamicalSystem

RNG = np.random.default_rng(0)
R, L, H, D = 3, 2, 2, 4
SQUARE = 120 * 1.7 / 3  # pixels of an entry of a 3 x 3 panel, which begins .16 and .6 in from the corner
EDGE = range(round(-SQUARE / 2) - 2, round(-SQUARE / 2) + 3)  # from an entry's middle to its left edge


def entry(png: bytes, row: int, column: int, off: int = 0) -> np.ndarray:
    """Return the colour at the middle of an entry, or the given number of pixels right of it."""
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
    x, y = (round(120 * start + (i + 0.5) * SQUARE) for start, i in ((0.16, column), (0.6, row)))
    return pixels[y, x + off]


def test_A_is_shown_where_Sigma_is_the_identity():
    A_RLDD, half_RDD = RNG.normal(size=(R, L, D, D)), RNG.normal(size=(R, D, D))
    root_RDD = half_RDD @ half_RDD.transpose(0, 2, 1)
    panels = panels_of({"A": A_RLDD}, root_RDD)
    assert list(panels["A"]) == [r"$\Sigma^{1/2}A_{0}\Sigma^{1/2}$", r"$\Sigma^{1/2}A_{1}\Sigma^{1/2}$"]
    expected = np.einsum("rij,rljk,rkm->lim", root_RDD, A_RLDD, root_RDD) / R
    np.testing.assert_allclose(list(panels["A"].values()), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "shape", "labels"),
    [
        ("P", (L, H), ["$P_{0,0}$", "$P_{0,1}$", "$P_{1,0}$", "$P_{1,1}$"]),
        ("P", (L, 1), ["$P_{0}$", "$P_{1}$"]),
        ("Q", (1,), ["$Q$"]),
        ("W_V", (L,), ["$W_{V,0}$", "$W_{V,1}$"]),
        ("W_QK", (1,), ["$W_{QK}$"]),
    ],
)
def test_every_matrix_has_a_label_and_every_seed_a_picture(name, shape, labels):
    stack = RNG.normal(size=(R, *shape, D, D))
    mean, each = panels_of({name: stack}), panels_of({name: stack}, None, "each", [7, 3, 11])
    assert list(mean) == [name] and list(each) == [f"{name}/seed_{seed}" for seed in (7, 3, 11)]
    flat = stack.reshape(R, -1, D, D)
    np.testing.assert_allclose(list(mean[name].values()), flat.mean(0))
    assert list(mean[name]) == list(each[f"{name}/seed_3"]) == labels
    np.testing.assert_array_equal(list(each[f"{name}/seed_3"].values()), flat[1])
    with pytest.raises(ValueError):
        panels_of({name: stack}, None, "each", [7, 3])
    with pytest.raises(InputError, match="seeds=all"):
        panels_of({name: stack}, None, "all")


def test_a_law_of_dynamical_systems_has_its_weights_seen_as_the_papers_with_pattern_13_outlined():
    free = free_of(DynamicalSystem(window=2).law([0, 1]).arrays())
    assert free["W_V"].tolist() == [[False, False, True], [False] * 3, [False, False, True]]
    assert free["W_QK"].tolist() == [[True, False, True], [False, True, False], [False] * 3]
    P, Q = RNG.normal(size=(2, 2, 1, 3, 3))
    panels = panels_of({"P": P, "Q": Q}, None, "each", [7, 3], free)
    assert list(panels) == ["W_V/seed_7", "W_V/seed_3", "W_QK/seed_7", "W_QK/seed_3"]
    np.testing.assert_array_equal(panels["W_QK/seed_3"]["$W_{QK}$"], Q[1, 0].T)
    np.testing.assert_array_equal(panels["W_V/seed_7"]["$W_{V}$"], P[0, 0].T)


def test_free_entries_are_outlined():
    matrix, free = np.zeros((3, 3)), np.eye(3, dtype=bool)
    masks = (None, {"M": free})
    plain, marked = (heatmap_png({"M": matrix}, "", annotate=False, free=mask) for mask in masks)
    for row, column in [(0, 1), (1, 1), (1, 2), (2, 1)]:
        np.testing.assert_array_equal(entry(marked, row, column), entry(plain, row, column))
        at_edge = [(entry(marked, row, column, x) != entry(plain, row, column, x)).any() for x in EDGE]
        assert any(at_edge) == (free[row, column - 1] or free[row, column])


def test_colours_diverge_from_zero_on_one_scale():
    def colour(value: float, **options: float) -> np.ndarray:
        return entry(heatmap_png({"$A_0$": np.full((3, 3), value)}, "", annotate=False, **options), 1, 1)

    red, blue, zero = colour(2.0, vmax=2.0), colour(-2.0, vmax=2.0), colour(0.0, vmax=2.0)
    assert red[0] > red[2] + 50 and blue[2] > blue[0] + 50 and zero.min() > 240
    assert colour(1.0, vmax=2.0).sum() > red.sum()
    np.testing.assert_array_equal(colour(1e-7), red)  # without vmax the largest entry has the darkest colour
    assert np.ptp(colour(float("nan"))) == 0


@pytest.mark.parametrize(
    ("side", "layers", "written"), [(8, 1, True), (9, 1, False), (5, 10, True), (5, 11, False)]
)
def test_entries_are_written_into_small_matrices_only(side, layers, written):
    matrices = {str(layer): RNG.normal(size=(side, side)) for layer in range(layers)}
    assert (heatmap_png(matrices, "") != heatmap_png(matrices, "", annotate=False)) == written


@pytest.mark.parametrize("extreme", [0.0, 1e30, float("nan"), float("inf")])
def test_weights_that_vanish_or_diverge_can_be_drawn(extreme):
    assert heatmap_png({"$A_0$": np.array([[extreme, 0.0]])}, "step 1")
