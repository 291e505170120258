import numpy as np
import pytest
import torch

from icl.checks import attention
from icl.checks.ahn import lemma5
from icl.checks.ahn.lemma5 import Lemma5
from icl.models import SparseAB, tokens
from icl.random import generator
from tests.checks.asking import Mutant, holds, seen


@holds(
    Lemma5,
    {},
    {"dim": 1, "context": 1, "layers": 1, "samples": 5},
    {"dim": 2, "context": 3, "eigenvalues": [1e4, 1e-4], "layers": 4, "seed": 3},
    {"dim": 4, "context": 9, "eigenvalues": [2, 1, 0.5, 0.1], "layers": 2},
    {"dim": 3, "context": 2, "covariance": [[2, 0.7, 0], [0.7, 1, 0], [0, 0, 3]]},
    {"dim": 8, "context": 3, "samples": 7},
    margin=1000,
)
def test_holds(check, finding):
    assert finding.measured["max_error_outside_11"] < finding.bound.value
    assert finding.measured["risk_eq5"] == pytest.approx(finding.measured["risk_trace_form"], rel=1e-12)


def test_the_forward_pass_and_the_trace_form_by_other_means():
    check = Lemma5(dim=2, context=3, layers=2, samples=4)
    prompt = check.law.token_prompts([generator(0, "check")], 4)
    model = check._sparse(generator(0, "check", 1))
    assert isinstance(model, SparseAB)
    P, Q = (stack.detach() for stack in model.stack())
    Z = torch.cat([prompt.context_RBNP[0], prompt.query_RBP[0][:, None]], 1).mT
    out = attention.every_layer(P[0, :, 0], Q[0, :, 0], Z)[-1]
    query = tokens.stack_forward(P, Q, prompt.context_RBNP, prompt.query_RBP)[0]
    np.testing.assert_allclose(out[:, :, -1], query, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(lemma5.trace_form(out), out[:, -1, -1] ** 2, rtol=1e-14)
    # eq. (57), token by token
    A, B = model.A.detach()[0].numpy(), model.B.detach()[0].numpy()
    X, Y = Z[0, :2].numpy(), Z[0, 2:].numpy()
    for layer in range(2):
        move = sum(np.outer(X[:, i], X[:, i]) for i in range(3)) @ A[layer] @ X / 3
        labels = sum(Y[0, i] * X[:, i] for i in range(3)) @ A[layer] @ X / 3
        X, Y = X + (B[layer] @ move if layer == 0 else 0), Y + labels
    np.testing.assert_allclose(out[0, 2], Y[0], rtol=1e-12)


test_another_form_or_other_weights_are_seen = seen(
    Lemma5,
    Mutant(lemma5, "trace_form", lambda right, Z: Z[:, -1].square().sum(-1)),
    Mutant(lemma5, "trace_form", lambda right, Z: (1 + 1e-9) * right(Z)),
    Mutant(lemma5, "trace_form", lambda right, Z: Z[:, -1, -2].square()),
    # weights outside (11), and a control inside it
    Mutant(Lemma5, "_sparse", lambda right, check, rng: check._full(rng, last_column=True)),
    Mutant(
        Lemma5, "_full", lambda right, check, rng, last_column: check._sparse(rng), "undecided", "control"
    ),
)


def test_without_the_mask_it_fails(monkeypatch):
    def unmasked(P_LPP, Q_LPP, Z):
        for P, Q in zip(P_LPP, Q_LPP, strict=True):
            Z = Z + P @ Z @ (Z.mT @ Q @ Z) / (Z.shape[-1] - 1)
        return Z[None]

    monkeypatch.setattr(attention, "every_layer", unmasked)
    finding = Lemma5().measure()
    assert finding.verdict == "fails"
    # Under (11) labels never enter x, masked or not.
    assert finding.measured["lemma6_x"] == 0
    for part in ("form_error", "lemma6_context_labels", "lemma6_query_label"):
        assert finding.measured[part] > finding.bound.value
