import pytest

from icl.checks.xie import lemma3
from icl.checks.xie.lemma3 import Lemma3
from icl.checks.xie.support import blocks
from icl.models import LinearTransformer, LinearTransformerBlock, YqLSA
from icl.theory.quadratic import QuadraticRisk
from tests.checks.asking import Mutant, blinded, holds, seen


@holds(
    Lemma3,
    {},
    {"dim": 1, "context": 1, "hidden": 1, "samples": 5},
    {"dim": 3, "context": 200, "prior_mean": [1, -2, 0.5], "hidden": 2, "seed": 3},
    {"dim": 2, "context": 4, "hidden": 500, "samples": 7},
    {"dim": 4, "prior_mean_norm": 0},
    *({"dim": 3, "prior_mean_norm": norm} for norm in (1e-2, 1e3)),
    {"dim": 5, "prior_mean_norm": 100.0},
    margin=1000,
    of="max_error",
)
def test_holds(check, finding):
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


def scaled(part, factor=1 + 1e-9):
    return lambda right, *given: right(*given) | {part: right(*given)[part] * factor}


def path_off(path):
    def predict(right, model, prompt):
        block = isinstance(model.parametrization, LinearTransformerBlock)
        return right(model, prompt) * (1 + 1e-9 * (block and model.path == path))

    return predict


def columns_turned(right, P, Q, W1, W2):
    return right(P, Q, W1, W2.flip(1))


test_another_block_or_least_risk_is_seen = seen(
    Lemma3,
    *(Mutant(blocks, "block_of_yq_lsa", scaled(part)) for part in ("P", "Q", "W1", "W2")),
    *(Mutant(LinearTransformer, "predict", path_off(path)) for path in ("gram", "tokens")),
    Mutant(lemma3, "isotropic_step", lambda right, *given: right(*given) * (1 + 1e-4)),
    # the least risk without a trained guess
    Mutant(QuadraticRisk, "convex_bound", lambda right, risk, free_direct: right(risk)),
    Mutant(blocks, "block_of_yq_lsa", scaled("Q", float("nan")), "undecided"),
    blinded(lemma3, "wrong_blocks", lambda right, lsa: [blocks.block_of(lsa)]),
)


@pytest.mark.parametrize("wrong", [*(scaled(part) for part in "PQv"), scaled("v", 2.0), columns_turned])
def test_the_converse_is_measured_apart(mutate, wrong):
    mutate(blocks, "yq_lsa_of_block", wrong)
    finding = Lemma3().measure()
    assert (finding.verdict, finding.bound.of) == ("fails", "max_error_converse")
    assert finding.measured["max_error"] < finding.bound.value < finding.measured["max_error_converse"]
