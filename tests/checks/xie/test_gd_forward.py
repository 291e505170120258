import numpy as np
import pytest

from icl.checks.xie.gd_forward import GDForward
from icl.checks.xie.support import descent_step
from icl.models import LinearTransformer
from icl.random import generator
from tests.checks.asking import Mutant, blinded, holds, seen


@holds(
    GDForward,
    {},
    {"dim": 1, "context": 1, "samples": 5},
    {"dim": 3, "context": 200, "prior_mean": [1, -2, 0.5], "eta": 0.7, "seed": 3},
    {"dim": 4, "prior_mean_norm": 0},
    {"dim": 3, "prior_mean_norm": 1e-2},
    {"dim": 2, "context": 5, "prior_mean_norm": 1e3, "eta": [1e-3, 1e3]},
    {"dim": 12, "context": 3, "samples": 7},
    margin=1000,
    of="max_error",
)
def test_holds(check, finding):
    assert finding.bound.value < 1e-13 + 1e-15 * max(finding.measured["contexts"])  # a few hundred roundings
    parts = ("max_error_tokens", "max_error_gram", "max_error_trained_guess")
    assert finding.measured["max_error"] == max(finding.measured[part] for part in parts)
    assert {1, check.law.context_R[0], 2 * check.dim + 1} == set(finding.measured["contexts"])
    assert ("the step from 0" in finding.control.description) == bool(check.law.mean_RD.any())


def test_the_size_of_a_step_is_that_of_its_terms():
    check, w = GDForward(dim=2, context=3, prior_mean=[1, -2]), np.array([1.0, -2.0])
    prompt = check.law.token_prompts([generator(0, "check")], 1)
    x, y = prompt.context_RBNP[0, 0, :, :2].numpy(), prompt.context_RBNP[0, 0, :, 2].numpy()
    terms = abs(w) + 0.3 * abs(x).T @ (abs(x) @ abs(w) + abs(y)) / 3
    size = descent_step.step_size(prompt, check.law.mean_RD[0], 0.3)
    np.testing.assert_allclose(size, [terms @ abs(prompt.query_RBP[0, 0, :2].numpy())], rtol=1e-13)


def blind(right, prompt, start, eta):
    """Takes every step for one of three lengths, so that a tenth more goes unseen."""
    known = min((0.1, 1.0, 3.0), key=lambda length: abs(length - abs(eta)))
    return right(prompt, start, known if eta > 0 else -known)


test_other_weights_are_seen = seen(
    GDForward,
    Mutant(descent_step, "one_step_gd", lambda right, w, eta: right(w, eta * (1 + 1e-9))),
    Mutant(descent_step, "one_step_gd", lambda right, w, eta: right(0 * w, eta)),
    Mutant(descent_step, "one_step_gd", lambda right, w, eta: tuple(M.mT for M in right(w, eta))),
    Mutant(descent_step, "with_guess", lambda right, prompt, guess: prompt),
    Mutant(descent_step, "one_step_gd", lambda right, w, eta: right(w * float("nan"), eta), "undecided"),
    blinded(descent_step, "step_prediction", blind),
)


@pytest.mark.parametrize("part", ["gram", "tokens", "trained_guess"])
def test_every_part_is_measured_apart(mutate, part):
    if part == "trained_guess":
        mutate(descent_step, "descent_from", lambda right, w, eta: right(w, eta, w * (1 + 1e-9)))
    else:
        off = lambda right, model, prompt: right(model, prompt) * (1 + 1e-9 * (model.path == part))  # noqa: E731
        mutate(LinearTransformer, "predict", off)
    finding = GDForward().measure()
    assert finding.verdict == "fails" and finding.measured[f"max_error_{part}"] > finding.bound.value
    assert part != "trained_guess" or finding.measured["max_error_tokens"] < finding.bound.value
