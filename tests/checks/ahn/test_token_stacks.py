from dataclasses import replace

import numpy as np
import pytest
import torch

from icl.checks.ahn import theorem3, theorem4
from icl.checks.ahn.support import orbits, token_stacks, trace_words
from icl.checks.ahn.support.critical_set import Point
from icl.checks.ahn.support.settings import CriticalSetSettings
from icl.checks.ahn.theorem3 import Theorem3
from icl.checks.ahn.theorem4 import Theorem4
from icl.checks.token_evidence import affordable_context
from icl.random import generator
from icl.tasks import LinearRegressionLaw
from icl.theory.ahn.invariant_risk import InvariantRisk
from tests.checks.asking import shown

SMALL = {"dim": 3, "context": 6, "eigenvalues": [2, 1, 0.25], "layers": 2, "samples": 1000}


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(theorem4, "BATCH", 1000)


def point_of(dim, context, layers, with_b, eigenvalues=None):
    law = CriticalSetSettings(dim, context, eigenvalues).law
    risk = InvariantRisk(dim, context, layers, with_b)
    rng = generator(0, "control")
    a_L, b_L = rng.uniform(0.3, 0.9, layers), rng.uniform(-0.5, 0.5, layers - 1 if with_b else 0)
    return Point(risk, law, a_L, b_L)


@pytest.mark.parametrize("with_b", [False, True])
@pytest.mark.parametrize("eigenvalues", [[2, 1, 0.25], [1, 1, 1e-8], [1e4, 1, 1e-3]])
def test_attention_off_s_is_the_whitened_path_within_rounding(with_b, eigenvalues):
    point = point_of(3, 7, 3, with_b, eigenvalues)
    off = token_stacks.off_s(point, generator(0, "check"))
    assert not torch.allclose(off[0], off[0].mT, rtol=0.01)
    error = token_stacks.attention_error(off, point.law, generator(0, "check"))
    assert error.value < error.bound  # of the worst prompt, which rounding chooses
    assert error.blind < 0.01
    W = orbits.whitened_prompts(point.law, generator(0, "check"), 50)
    assert (orbits.prompt_risks(off, W[None])[0] < token_stacks._largest_loss(off, W)).all()
    largest = torch.tensor([0.5, 2, 0.1]).double()[:, None, None], None  # in one dimension all of it adds up
    W = W[:, :1, :1]
    torch.testing.assert_close(
        orbits.prompt_risks(largest, W[None])[0], token_stacks._largest_loss(largest, W)
    )


@pytest.mark.parametrize("context", [6, 10**5])
def test_the_gentle_point_has_a_context_that_can_be_drawn(context):
    given = point_of(3, context, 3, True)
    point = token_stacks.gentle(given)
    assert point.risk.context == point.law.context_R[0] == affordable_context(context, 3, 3) <= 1000
    np.testing.assert_allclose(given.scaled(1.1).beta_L, given.beta_L, rtol=1e-14)


def one_token_more(mutate):
    """Change polynomial and words together: nothing but prompts can tell."""
    mutate((theorem3, theorem4), "InvariantRisk", lambda right, d, n, *more, **b: right(d, n + 1, *more, **b))
    mutate(trace_words, "sparse_a_risk", lambda right, A, S, S_w, n: right(A, S, S_w, n + 1))


def transposed(mutate):
    mutate(orbits, "sparse_expected_risk", lambda right, A, *more: right(A.mT, *more))


def another_scale(mutate):
    mutate(LinearRegressionLaw, "covariate_grams", lambda right, law, *more: right(law, *more) * 6 / 7)


@pytest.mark.parametrize("check", [Theorem3, Theorem4])
@pytest.mark.parametrize(
    ("wrong", "of"),
    [(one_token_more, "tokens_z"), (transposed, "attention_error"), (another_scale, "tokens_z")],
)
def test_formulas_gram_paths_and_gram_matrices_are_held_to_prompts(mutate, check, wrong, of):
    wrong(mutate)
    finding = check(**SMALL).measure()
    assert (finding.verdict, finding.bound.of) == ("fails", of) and not shown(finding)


@pytest.mark.parametrize("check", [Theorem3, Theorem4])
def test_prompts_of_another_law_are_seen(check):
    """Compare with prompts too: `task_covariance_error` alone would be an assumption about the law's own
    words."""
    asked = check(**SMALL)
    point = token_stacks.gentle(
        Point(asked.risk, asked.law, np.full(2, 0.6), np.full(int(asked.risk.with_b), 0.4))
    )
    assert [part.verdict for part in token_stacks.numbers_on_tokens(point, generator(0, "check"))] == [
        "holds"
    ] * 3
    root_RDD = asked.law.task_root_RDD * torch.tensor([1, 1, 1.1]).double()
    other = replace(point, law=replace(asked.law, task_root_RDD=root_RDD))
    assert "fails" in [part.verdict for part in token_stacks.numbers_on_tokens(other, generator(0, "check"))]
    asked.law = other.law
    finding = asked.measure()
    assert (finding.verdict, finding.bound.of) == ("fails", "task_covariance_error") and not shown(finding)


def test_undecided_where_the_sample_is_too_small_to_tell(monkeypatch):
    monkeypatch.setattr(token_stacks, "BUDGET", 1)
    monkeypatch.setattr(token_stacks, "LEAST", 50)
    finding = Theorem3(**SMALL).measure()
    assert finding.verdict == "undecided"
    assert finding.bound.of == "tokens_z" and finding.measured["tokens_sees"] > 0.05
