import numpy as np
import pytest
from scipy.optimize import minimize

from icl.theory.ahn import softmax_bound
from icl.theory.ahn.softmax_bound import Share, linear_share, most_gain, softmax_share

DIM, CONTEXT = 4, 6


@pytest.fixture(scope="module")
def share():
    return softmax_share(np.random.default_rng(0).standard_normal((2000, CONTEXT)), 0.999)


@pytest.mark.parametrize("s", [0.01, 0.3, 1.7, 6.0, 100.0])
def test_share_is_above_that_of_softmax_on_other_samples(share, s):
    t = np.random.default_rng(1).standard_normal((20_000, CONTEXT))
    e = np.exp(s * (t - t.max(1, keepdims=True)))
    T = np.maximum((e * t).sum(1), 0) ** 2 / (e**2).sum(1)
    for ratio in (0.05, 1.0, 4.0, 30.0, 5000.0):
        assert (T / (ratio + T)).mean() < share.above(np.array(ratio))


def test_share_of_linear_attention_is_an_inverse_moment_of_chi_square():
    """E T / (l + T) for T ~ chi^2_2, l = 2, is 1 - e E_1(1)."""
    found = linear_share(np.random.default_rng(0).standard_normal((40_000, 2)), 0.999)
    assert found.above(np.array(2.0)) == pytest.approx(1 - 0.596347, abs=0.02)


@pytest.mark.parametrize(("side", "y"), [(0, (-0.3, -0.299)), (2, (0.05, 0.0501)), (3, (0.9, 0.901))])
@pytest.mark.parametrize("z", [(0.5, 0.501), (0.9, 0.90001), (0.97, 0.9701)])
def test_cells_of_a_narrow_box_enclose_the_means_given_the_norm(z, side, y):
    """Given |u| = s, u_1 = s cos(theta) has the density exp(a s cos) sin^(d - 2)."""
    cells, inside, angle_T = 200, slice(3, -3), np.linspace(0, 1, 801)
    boxes = np.array([[*z, side, *y]])
    with np.errstate(divide="ignore", invalid="ignore"):
        most_A, least_P, least_K = (bound[0, inside] for bound in softmax_bound._enclosed(DIM, boxes, cells))
    for at, end in zip(z, y, strict=True):
        a = DIM**0.5 * at / (1 - at)
        b_1, b_y = ((1, end), (-1, end), (end, 1), (end, -1))[side]
        s_C1 = softmax_bound._cell_ends(DIM, at, cells).s[inside, None]
        for s in (s_C1[:-1], s_C1[1:]):
            angle = angle_T * np.fmin(np.pi, 12 / (a * s) ** 0.5)
            cosine, density = np.cos(angle), np.exp(a * s * (np.cos(angle) - 1)) * np.sin(angle) ** (DIM - 2)
            w, p = s * cosine - a, cosine * (b_1 - a * b_y) + b_y * s
            square = b_1**2 + 2 * b_1 * b_y * w + b_y**2 * (s**2 + a**2 - 2 * a * s * cosine)
            for value, bound, sign in (w * p, most_A, 1), (p**2, least_P, -1), (square - p**2, least_K, -1):
                mean = (value * density).sum(1) / density.sum(1)
                assert (sign * (mean - bound) < 1e-9 * np.abs(mean)).all()


@pytest.fixture(scope="module")
def gain(share):
    return most_gain(DIM, share, 5000)


def test_no_head_of_its_own_for_a_query_passes_the_bound(gain):
    """Search r and the query's score on drawn tokens, b by least squares, as the bound does not."""
    rng = np.random.default_rng(2)
    x, w = rng.standard_normal((4000, CONTEXT, DIM)), rng.standard_normal((4000, DIM))
    z = np.concatenate([x, np.einsum("bnd,bd->bn", x, w)[..., None]], -1)

    def left(point):
        scores = np.concatenate([z @ point[:-1], np.full((len(z), 1), point[-1])], 1)
        e = np.exp(scores - scores.max(1, keepdims=True))
        read = np.einsum("bn,bnp->bp", e[:, :-1] / e.sum(1, keepdims=True), z)
        C, c = read.T @ read / len(z), read.T @ w[:, 0] / len(z)
        return 1 - c @ np.linalg.solve(C + 1e-9 * np.eye(DIM + 1), c)

    starts = [np.eye(DIM + 2)[0], np.eye(DIM + 2)[DIM], np.eye(DIM + 2)[0] + np.eye(DIM + 2)[DIM]]
    options = {"maxiter": 60}
    best = min(minimize(left, start, method="Nelder-Mead", options=options).fun for start in starts)
    assert 1 - gain < best < 1 - gain + 0.3
    assert gain < 1


def test_more_boxes_bound_more_closely_and_never_below_what_a_query_alone_allows(share, gain, monkeypatch):
    used = []
    right = softmax_bound._gain
    monkeypatch.setattr(softmax_bound, "_gain", lambda *given: used.append(len(given[2])) or right(*given))
    few = most_gain(DIM, share, 3000)
    assert share.above(np.array(DIM - 1.0)) <= gain < few < 1 and 2500 < sum(used) <= 3000
    free = Share(np.ones(len(softmax_bound.RATIOS)), np.inf)  # nothing is known of the weights
    assert most_gain(DIM, free, 300) >= 1
    with pytest.raises(ValueError, match="at least 3"):
        most_gain(2, share, 1000)
