import numpy as np
import pytest

from icl.checks.xie.gd_forward import GDForward
from icl.checks.xie.support import descent_step
from icl.models import LinearTransformer
from icl.random import generator


def test_the_size_of_a_step_is_that_of_its_terms():
    check, w = GDForward(dim=2, context=3, prior_mean=[1, -2]), np.array([1.0, -2.0])
    prompt = check.law.token_prompts([generator(0, "check")], 1)
    x, y = prompt.context_RBNP[0, 0, :, :2].numpy(), prompt.context_RBNP[0, 0, :, 2].numpy()
    terms = abs(w) + 0.3 * abs(x).T @ (abs(x) @ abs(w) + abs(y)) / 3
    size = descent_step.step_size(prompt, check.law.mean_RD[0], 0.3)
    np.testing.assert_allclose(size, [terms @ abs(prompt.query_RBP[0, 0, :2].numpy())], rtol=1e-13)


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
