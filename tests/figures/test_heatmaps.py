"""Tests of the pictures of weights: which matrices are shown, and what their colours and outlines say."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from icl.errors import InputError
from icl.figures.heatmaps import free_of, heatmap_png, panels_of
from icl.tasks import DynamicalSystem

RNG = np.random.default_rng(0)
R, L, H, D = 3, 2, 2, 4


def test_A_is_shown_where_Sigma_is_the_identity():
    A_RLDD, half_RDD = RNG.normal(size=(R, L, D, D)), RNG.normal(size=(R, D, D))
    root_RDD = half_RDD @ half_RDD.transpose(0, 2, 1)
    panels = panels_of({"A": A_RLDD}, root_RDD)
    assert list(panels["A"]) == [r"$\Sigma^{1/2}A_{0}\Sigma^{1/2}$", r"$\Sigma^{1/2}A_{1}\Sigma^{1/2}$"]
    expected = np.einsum("rij,rljk,rkm->lim", root_RDD, A_RLDD, root_RDD) / R
    np.testing.assert_allclose(list(panels["A"].values()), expected, rtol=1e-12)


LABELS = [
    ("P", (L, H), ["$P_{0,0}$", "$P_{0,1}$", "$P_{1,0}$", "$P_{1,1}$"]),
    ("P", (L, 1), ["$P_{0}$", "$P_{1}$"]),
    ("Q", (1,), ["$Q$"]),
    ("W_V", (L,), ["$W_{V,0}$", "$W_{V,1}$"]),
    ("W_QK", (1,), ["$W_{QK}$"]),
]


@pytest.mark.parametrize(("name", "shape", "labels"), LABELS)
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


@pytest.fixture
def drawn(monkeypatch):
    """Return what draws matrices, and the axes instead of a PNG."""
    kept = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *to, **how: kept.append(figure))

    def draw(matrices, **options):
        heatmap_png({str(i): np.array(M, dtype=float) for i, M in enumerate(matrices)}, "", **options)
        return kept[-1].axes

    return draw


def test_colours_diverge_from_zero_on_one_scale_and_free_entries_are_outlined(drawn):
    def colour(axes, value):
        return axes.images[0].to_rgba(np.array([[value]]))[0, 0]

    one, other, bar = drawn([np.eye(3), -2 * np.eye(3)], free={"1": np.eye(3, dtype=bool)})
    red, blue, zero = (colour(one, value) for value in (2.0, -2.0, 0.0))
    assert red[0] > red[2] + 0.2 and blue[2] > blue[0] + 0.2 and zero.min() > 0.94
    assert colour(one, 1.0).sum() > red.sum() and np.ptp(colour(one, np.nan)[:3]) == 0
    assert (colour(other, 2.0) == red).all(), "the largest entry has the darkest colour"
    assert [label.get_text() for label in bar.get_yticklabels()] == ["−2.00", "0", "2.00"]
    corners = [cell.get_xy() for cell in other.patches]
    assert not one.patches and corners == [(i - 0.5, i - 0.5) for i in range(3)]
    one, bar = drawn([1e-7 * np.eye(3)])
    assert one.images[0].get_clim() == pytest.approx((-1, 1)) and one.texts[0].get_text() == "1.00"
    assert drawn([np.eye(3)], vmax=4.0)[0].images[0].get_clim() == (-4, 4)


def test_entries_are_written_into_small_matrices_only(drawn):
    sizes = {(1, 8, 8): True, (1, 9, 9): False, (10, 5, 5): True, (11, 5, 5): False}
    assert {size: bool(drawn(np.ones(size))[0].texts) for size in sizes} == sizes


@pytest.mark.parametrize("extreme", [0.0, 1e30, float("nan"), float("inf")])
def test_weights_that_vanish_or_diverge_can_be_drawn(extreme):
    assert heatmap_png({"$A_0$": np.array([[extreme, 0.0]])}, "step 1")
