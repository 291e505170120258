"""Tests of Figures 3 to 5 on weights put on the set S of Theorem 4, and off it."""

import numpy as np
import pytest
import torch

from icl.experiments.ahn import trained as weights_of
from icl.experiments.ahn.theorem4 import Theorem4
from icl.figures.ahn.fig3 import Fig3, _falls
from icl.figures.ahn.fig4 import Fig4, where_converged
from icl.figures.ahn.fig5 import Fig5
from icl.figures.claims import Claim
from icl.theory.ahn.invariant_risk import InvariantRisk
from tests.records import record

# Near the best point of S at n = 10.
A_SCALARS, B_SCALARS = (0.539, 1.57, 11.781), (0.297, 0.948)


@pytest.fixture(autouse=True)
def smaller_batches(monkeypatch):
    monkeypatch.setattr(weights_of, "BATCH", 4000)


@pytest.fixture
def law(law_of_context):
    return law_of_context(10)


def weights_on_s(law):
    a_L, b_L = (torch.tensor(s, dtype=torch.float64)[:, None, None] for s in (A_SCALARS, B_SCALARS))
    identity = torch.eye(law.dim, dtype=torch.float64).expand(2, 1, -1, -1)
    return {"A": -a_L * torch.linalg.inv(law.Sigma_RDD)[:, None], "B": b_L * identity}


def records_of(trained, law, weights):
    return Theorem4(starts=16, batches=2).records(trained(law, weights))


def verdicts(records):
    fig3 = ["B_0", "B_1", "A_0", "A_1", "A_2", "nearer", "beyond", "understated"]
    fig3 += ["almost zero", "zero"]
    fig4, fig5 = ["B_0 pattern", "B_1 pattern"], ["order", *(f"A_{i} pattern" for i in range(3))]
    claims = [*Fig3().claims(records), *Fig4().claims(records), *Fig5().claims(records)]
    return {key: claim.verdict for key, claim in zip([*fig3, *fig4, *fig5], claims, strict=True)}


def test_on_s_every_verdict_is_the_expected_one(trained, law):
    records = records_of(trained, law, weights_on_s(law))
    claims = [*Fig3().claims(records), *Fig4().claims(records), *Fig5().claims(records)]
    # A straight line from random weights comes to the optimum of the risk, where batches are tame.
    told = [c for c in claims if "need not show" not in c.claim and not c.claim.startswith("||A_0||")]
    assert [c.verdict for c in told] == [c.expected for c in told]
    assert [c.verdict for c in claims if c.claim.startswith("||A_0||")] == [
        "holds"
    ]  # training may end elsewhere
    assert {c.whose for c in claims} == {"paper", "project"}


ONE_MATRIX = {"B_1": "fails", "B_1 pattern": "fails", "B_0": "holds", "B_0 pattern": "holds"}
SIGNS_DD = torch.diag(torch.tensor([1.0, -1, 1, -1, 0.1], dtype=torch.float64))
MOVES = {
    "one matrix of one seed": (lambda A, B: B[1, 1].copy_(SIGNS_DD), ONE_MATRIX),
    "a little, not down to 0": (lambda A, B: B[0, 0, 0, 1].add_(0.15 * B[0, 0].norm()), {"B_0": "fails"}),
    "no better than descent": (
        lambda A, B: (A.mul_(0.2), B.mul_(0.2)),
        {"beyond": "fails", "understated": "fails"},
    ),
    "layers in another order": (lambda A, B: A.copy_(A[:, [1, 0, 2]]), {"order": "fails"}),
    "a multiple of I, not nearer": (lambda A, B: A[0, 2].copy_(-torch.eye(5)), {"nearer": "fails"}),
    "what batches hide": (lambda A, B: B.mul_(1.2), {"understated": "holds"}),
}


@pytest.mark.parametrize(("move", "found"), MOVES.values(), ids=list(MOVES))
def test_weights_off_s_and_tame_ones_are_seen(trained, law, move, found):
    weights = {name: matrix.clone() for name, matrix in weights_on_s(law).items()}
    move(**weights)
    assert verdicts(records_of(trained, law, weights)).items() >= found.items()


def test_a_curve_that_is_low_must_have_fallen():
    for end, verdict in ((0.01, "holds"), (0.04, "fails")):
        assert _falls("B_0", np.array([[0.03, end]]), [0]).verdict == verdict


def test_the_stored_numbers(trained, law):
    exact = records_of(trained, law, weights_on_s(law))["exact"].weights
    assert np.allclose(exact["a_RL"], A_SCALARS)
    assert np.allclose(exact["beta_RL"], np.multiply(A_SCALARS[:2], B_SCALARS))
    family = InvariantRisk(5, 10, 3, with_b=True)
    beta = [a * b for a, b in zip(A_SCALARS, B_SCALARS, strict=False)]
    assert np.allclose(exact["risk_on_s_R"], family.value(A_SCALARS, beta))
    # on S the weights are their own projection, and both see the same prompts
    assert np.allclose(exact["plain_batch_RK"], exact["plain_projected_batch_RK"], rtol=1e-6)
    assert np.allclose(exact["white_RLDD"], -np.array(A_SCALARS)[:, None, None] * np.eye(5), atol=1e-9)
    assert exact["lower_bound"] <= exact["best_risk"]


def test_tame_weights_cost_on_batches_what_they_cost_exactly(trained, law):
    weights = {name: 0.2 * matrix for name, matrix in weights_on_s(law).items()}
    exact = records_of(trained, law, weights)["exact"].weights
    assert np.allclose(exact["plain_batch_RK"].mean(1), exact["risk_on_s_R"], rtol=0.1)


def test_everything_drawn_is_in_the_table(trained, law):
    records = records_of(trained, law, weights_on_s(law))
    lines = sum(len(axes.lines) for axes in Fig3().draw(records).axes)
    assert lines == len({(row["panel"], row["series"]) for row in Fig3().table(records)}) == 19
    plain = [row for row in Fig3().table(records) if row["panel"] == "g"]
    assert {row["series"] for row in plain} > {"plain training prompts", "risk, projected on S"}
    for figure, matrices in ((Fig4(), 2), (Fig5(), 3)):
        rows = figure.table(records)
        assert len(rows) == 2 * matrices * law.dim**2
        shown = [image.get_array() for axes in figure.draw(records).axes for image in axes.images]
        assert np.allclose(np.ravel(shown), [row["value"] for row in rows if row["seed"] == 0])


ONE_SET, FRESH_SETS = {"steps": 100, "steps_per_batch": 100}, {"steps": 100, "steps_per_batch": 5}


@pytest.mark.parametrize(
    ("train", "end", "verdict"),
    [
        (ONE_SET, 0.995, "holds"),
        (ONE_SET, 0.98, "undecided"),
        (ONE_SET, np.nan, "undecided"),
        (FRESH_SETS, 0.98, "holds"),
    ],
)
def test_a_run_whose_loss_still_falls_decides_nothing_about_trained_weights(train, end, verdict):
    metrics = {"step": [0, 90, 100], "seed": [0, 0, 0], "loss": [5.0, 1.0, end]}
    run = record(run={"seeds": [0]}, config={"train": train}, metrics=metrics)
    claims = [Claim("of weights", {}, "", "holds"), Claim("of S", {}, "", "fails", trained=False)]
    assert [claim.verdict for claim in where_converged(run, claims)] == [verdict, "fails"]
