"""Tests that the gauge changes no prediction; supports and their distance are the paper's (18) to (20)."""

import numpy as np
import pytest

from icl.experiments.lds.gauge import canonical, jaccard, masks, matching_scales, outside, supports


def form(b, a_KP):
    """Return the form that the layer predicts with: sym(b a_k^T) for every k."""
    product = a_KP[:, :, None] * b
    return product + product.swapaxes(1, 2)


@pytest.mark.parametrize("window", [1, 2, 3, 4])
def test_the_gauge_is_balanced_and_changes_no_prediction(window):
    rng = np.random.default_rng(window)
    b_XP, a_XKP = rng.standard_normal((6, window + 1)), rng.standard_normal((6, window, window + 1))
    found_b, found_a = canonical(b_XP, a_XKP)
    for b, a, c, f in zip(b_XP, a_XKP, found_b, found_a, strict=True):
        np.testing.assert_allclose(form(c, f), form(b, a), atol=1e-12)
        assert np.linalg.norm(c) == pytest.approx(np.linalg.norm(f))
        assert c[np.abs(c) >= 0.1 * np.abs(c).max()][-1] > 0
    rescaled = canonical(-7 * b_XP, -a_XKP / 7)
    np.testing.assert_allclose(rescaled[0], found_b, atol=1e-12)
    np.testing.assert_allclose(rescaled[1], found_a, atol=1e-12)


def test_mirror_solutions_of_one_window_are_one():
    f, corner = np.array([1.7, 0.1]), np.array([0.2, 1.3])
    one, other = canonical(corner, f[None]), canonical(f, corner[None])
    for mine, yours in zip(one, other, strict=True):
        np.testing.assert_allclose(mine, yours, atol=1e-12)
    assert abs(one[0][1]) > abs(one[0][0])


def test_zero_weights_stay():
    b, a = canonical(np.zeros(3), np.zeros((2, 3)))
    assert not b.any() and not a.any()


def test_masks_are_13():
    free_P, free_KP = masks(3)
    assert free_P.tolist() == [False, True, False, True]
    assert free_KP.astype(int).tolist() == [[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]]


def test_supports_and_jaccard():
    M = np.array([[2.0, 0.15], [0.099, -0.3]])
    assert supports(M, relative=False).tolist() == [[True, True], [False, True]]
    assert supports(M, relative=True).tolist() == [[True, False], [False, True]]
    A, B = np.array([[1, 1], [0, 1]], dtype=bool), np.array([[1, 0], [0, 1]], dtype=bool)
    assert jaccard(A, B) == pytest.approx(1 / 3)
    assert jaccard(B, B) == 0 and jaccard(~B, B) == 1 and jaccard(np.zeros_like(B), B) == 1
    assert jaccard(np.stack([A, B]), B).tolist() == pytest.approx([1 / 3, 0])


def test_scales_at_which_the_supports_match_are_found():
    """Compare with supports at many scales; at s = 1 and a constant below .01 there is none."""
    rng = np.random.default_rng(0)
    for window, rest in ((2, 0.01), (3, 0.0), (3, 0.3)):
        mask_P, mask_KP = masks(window)
        b = np.where(mask_P, 1, rest) * rng.uniform(0.5, 2, window + 1)
        a = np.where(mask_KP, 1, rest) * rng.uniform(0.5, 2, (window, window + 1))
        least, most = matching_scales(b, a)
        for c in np.geomspace(1e-2, 1e2, 400):
            match = np.array_equal(supports((c * b)[:, None], False)[:, 0], mask_P)
            match = match and np.array_equal(supports(a / c, False), mask_KP)
            assert match == (least <= c <= most)
    low, high = matching_scales(np.array([0.0, 0.0992]), np.array([[0.0992, 0.0]]))
    assert low == pytest.approx(0.1 / 0.0992) and high == pytest.approx(0.992)


def test_what_is_outside_the_pattern_does_not_depend_on_the_scale():
    b, a = np.array([0.02, 2.0]), np.array([[4.0, 0.1]])
    assert outside(b, a) == outside(3 * b, a / 3) == pytest.approx(0.025)
    assert outside(b[::-1], a) == 1
