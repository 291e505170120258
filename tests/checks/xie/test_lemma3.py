from __future__ import annotations

import pytest
import torch

from icl.checks.xie import lemma3
from icl.checks.xie.lemma3 import Lemma3
from icl.models import LinearTransformer, LinearTransformerBlock, YqLSA
from icl.random import generator
from icl.theory.quadratic import QuadraticRisk

SETTINGS = [
    {},
    {"dim": 1, "context": 1, "hidden": 1, "samples": 5},
    {"dim": 3, "context": 200, "prior_mean": [1, -2, 0.5], "hidden": 2, "seed": 3},
    {"dim": 2, "context": 4, "hidden": 500, "samples": 7},
    {"dim": 4, "prior_mean_norm": 0},
    {"dim": 5, "prior_mean_norm": 100.0},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_holds_and_rejects_its_control(settings):
    check = Lemma3(**settings)
    finding = check.measure()
    assert finding.verdict == "holds"
    assert finding.control.rejected and finding.control.measured > 1000 * finding.bound.value
    measured = finding.measured
    assert measured["max_error_converse"] <= finding.bound.value
    assert measured["hidden_needed"] == measured["rank_needed"] == 1
    assert measured["rank_of_given_block"] == min(check.hidden, check.dim + 1)
    D, C = check.dim, check.context
    for name in ("least_risk", "risk_yq_lsa", "risk_block"):
        assert measured[name] == pytest.approx(D * (D + 1) / (C + D + 1), rel=1e-6)


def random_models(dim, hidden):
    lsa, block = YqLSA(dim, 1, init_std=1.0), LinearTransformerBlock(dim, 1, hidden, init_std=1.0)
    for model in (lsa, block):
        model.initialise([7])
    return lsa, block


def test_both_ways_have_equal_risks():
    check = Lemma3(dim=3, context=5)
    lsa, block = random_models(3, 2)
    risk = lemma3.ExactRisk(check.law)
    assert risk.value(lemma3.block_of(lsa)) == pytest.approx(risk.value(lsa), rel=1e-12)
    assert risk.value(lemma3.lsa_of(block)) == pytest.approx(risk.value(block), rel=1e-12)
    assert risk.value(lemma3.lsa_of(lemma3.block_of(lsa))) == pytest.approx(risk.value(lsa), rel=1e-12)


@pytest.mark.parametrize("part", ["P", "Q", "W1", "W2"])
def test_another_block_fails(monkeypatch, part):
    right = lemma3.block_of_yq_lsa
    monkeypatch.setattr(
        lemma3, "block_of_yq_lsa", lambda *args: right(*args) | {part: right(*args)[part] * (1 + 1e-9)}
    )
    assert Lemma3().measure().verdict == "fails"


@pytest.mark.parametrize("part", ["P", "Q", "v"])
def test_another_converse_fails(monkeypatch, part):
    right = lemma3.yq_lsa_of_block
    monkeypatch.setattr(
        lemma3, "yq_lsa_of_block", lambda *args: right(*args) | {part: right(*args)[part] * (1 + 1e-9)}
    )
    finding = Lemma3().measure()
    assert finding.verdict == "fails"
    assert finding.measured["max_error"] < finding.bound.value < finding.measured["max_error_converse"]


def test_the_converse_needs_the_last_column_of_w2(monkeypatch):
    right = lemma3.yq_lsa_of_block
    monkeypatch.setattr(lemma3, "yq_lsa_of_block", lambda P, Q, W1, W2: right(P, Q, W1, W2.flip(1)))
    assert Lemma3().measure().verdict == "fails"


def test_unequal_least_risks_fail(monkeypatch):
    right = lemma3.isotropic_step
    monkeypatch.setattr(lemma3, "isotropic_step", lambda *args: right(*args) * (1 + 1e-4))
    finding = Lemma3().measure()
    assert finding.verdict == "fails" and finding.measured["max_error"] < finding.bound.value
    monkeypatch.undo()
    bound = QuadraticRisk.convex_bound
    monkeypatch.setattr(QuadraticRisk, "convex_bound", lambda self, free_direct: bound(self))
    assert Lemma3().measure().verdict == "fails"  # the least risk without a trained guess


@pytest.mark.parametrize("path", ["gram", "tokens"])
def test_a_wrong_path_fails(monkeypatch, path):
    right = LinearTransformer.predict

    def predict(self, prompt):
        wrong = self.path == path and isinstance(self.parametrization, LinearTransformerBlock)
        return right(self, prompt) * (1 + 1e-9 * wrong)

    monkeypatch.setattr(LinearTransformer, "predict", predict)
    assert Lemma3().measure().verdict == "fails"


def test_a_control_that_is_the_statement_leaves_it_undecided(monkeypatch):
    monkeypatch.setattr(lemma3, "wrong_blocks", lambda lsa: [lemma3.block_of(lsa)])
    finding = Lemma3().measure()
    assert not finding.control.rejected and finding.verdict == "undecided"


def test_every_wrong_block_is_rejected():
    check = Lemma3()
    lsa, _ = random_models(10, 1)
    prompt = check.law.token_prompts([generator(0, "check")], 8)
    for wrong in lemma3.wrong_blocks(lsa):
        assert lemma3.error(lsa, wrong, prompt) > 1e-4
    assert lemma3.error(lsa, lemma3.block_of(lsa), prompt) < 1e-15


def test_nan_is_undecided(monkeypatch):
    right = lemma3.block_of_yq_lsa
    nan = torch.tensor(float("nan"))
    monkeypatch.setattr(
        lemma3, "block_of_yq_lsa", lambda *args: right(*args) | {"Q": nan * right(*args)["Q"]}
    )
    assert Lemma3().measure().verdict == "undecided"
