"""Tests of Figures 1 and 2 on weights put on the set S, and off it."""

import numpy as np
import pytest
import torch

from icl.experiments.ahn.theorem3 import Theorem3
from icl.figures.ahn.fig1 import Fig1, _blue, _red_after_the_transient
from icl.figures.ahn.fig2 import Fig2
from icl.theory.ahn.invariant_risk import InvariantRisk

LAYERS = 3


@pytest.fixture
def law(law_of_context):
    return law_of_context(20)


def weights_on_s(law):
    a_L = torch.from_numpy(InvariantRisk(law.dim, 20, LAYERS).optimum().a_L)[[1, 0, 2]]
    return a_L[:, None, None] * torch.linalg.inv(law.Sigma_RDD)[:, None]


def verdicts(trained, law, A):
    records = Theorem3().records(trained(law, {"A": A}))
    claims = [*Fig1().claims(records), *Fig2().claims(records)]
    keys = ("blue", "red end", "red constant", "risk", "zero", "red after", "pattern", "scalars")
    return {key: c.verdict for key, c in zip(keys, claims, strict=True)}, records


EXPECTED = dict.fromkeys(("blue", "red end", "risk", "red after", "pattern", "scalars"), "holds")
EXPECTED |= dict.fromkeys(("red constant", "zero"), "fails")


def test_at_the_optimum_every_verdict_is_the_expected_one(trained, law):
    found, records = verdicts(trained, law, weights_on_s(law))
    assert found == EXPECTED
    claims = [*Fig1().claims(records), *Fig2().claims(records)]
    # A straight line from random weights has no transient to speak of.
    told = [claim for claim in claims if "remains constant after" not in claim.claim]
    assert [claim.verdict for claim in told] == [claim.expected for claim in told]


EVERY, I_DD = (slice(None), slice(None)), torch.eye(5, dtype=torch.float64)


@pytest.mark.parametrize(
    ("move", "which", "fail"),
    [
        (lambda A: 1.15 * A, EVERY, ["scalars"]),
        (lambda A: 1.15 * A, (0, 1), ["scalars"]),
        (lambda A: A + 0.2 * A.norm() * I_DD.roll(1, 0) / 5**0.5, (1, 2), ["blue", "pattern"]),
        (lambda A: I_DD, EVERY, ["blue", "red end", "pattern", "scalars"]),  # plain gradient descent
        (lambda A: I_DD, (1, 2), ["blue", "red end", "pattern", "scalars"]),
    ],
)
def test_weights_off_the_best_of_s_are_seen(trained, law, move, which, fail):
    """Move every layer and seed, and one layer of one seed; they cost risk, too."""
    A = weights_on_s(law)
    A[which] = move(A[which])
    found, _ = verdicts(trained, law, A)
    assert found == EXPECTED | dict.fromkeys(["risk", *fail], "fails")


def test_a_blue_line_that_is_low_must_have_fallen():
    for end, verdict in ((0.01, "holds"), (0.04, "fails")):
        assert _blue(np.array([[[0.03, end]]])).verdict == verdict


@pytest.mark.parametrize(("moves_at", "verdict"), [(9, "holds"), (11, "fails")])
def test_a_red_line_may_move_in_the_transient_only(moves_at, verdict):
    steps_T = np.arange(101)
    red_SLT = np.full((2, LAYERS, 101), 0.8)
    red_SLT[1, 2, moves_at] = 0.7
    assert _red_after_the_transient(red_SLT, steps_T).verdict == verdict


def test_the_stored_numbers(trained, law):
    records = Theorem3().records(trained(law, {"A": weights_on_s(law)}))
    exact = records["exact"].weights
    inverse = np.array([1, 1, 4, 16, 1.0])
    plain = np.linalg.norm(inverse - inverse.mean()) / np.linalg.norm(inverse)
    assert np.allclose(exact["dist_inverse_R"], plain)
    assert round(plain, 3) == 0.784
    # words of Wishart moments at the weights, against the polynomial on S and at no weights
    assert np.allclose(exact["risk_RT"][:, -1], exact["optimal_risk"], rtol=1e-9)
    assert np.allclose(exact["risk_RT"][:, 0], exact["null_risk"], rtol=1e-2)
    assert np.allclose(exact["risk_on_s_R"], exact["optimal_risk"], rtol=1e-12)
    assert np.allclose(exact["white_RLDD"], exact["a_RL"][..., None, None] * np.eye(5), atol=1e-9)


def test_everything_drawn_is_in_the_table(trained, law):
    records = Theorem3().records(trained(law, {"A": weights_on_s(law)}))
    figure = Fig1().draw(records)
    lines = sum(len(axes.lines) for axes in figure.axes)
    assert lines == len({(row["panel"], row["series"]) for row in Fig1().table(records)}) == 12
    rows = Fig2().table(records)
    assert len(rows) == 2 * LAYERS * law.dim**2
    shown = [image.get_array() for axes in Fig2().draw(records).axes for image in axes.images]
    first = [row["value"] for row in rows if row["seed"] == 0]
    assert np.allclose(np.ravel(shown), first)
