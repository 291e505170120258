import pytest

from icl.checks import attention
from icl.checks.ahn import lemma5
from icl.checks.ahn.lemma5 import Lemma5
from icl.checks.ahn.support import trace_form
from icl.checks.ahn.support.trace_form import full_model, sparse_model
from icl.models import tokens
from tests.checks.asking import Mutant, blinded, edited, holds, seen


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


test_another_form_or_other_weights_are_seen = seen(
    Lemma5,
    Mutant(trace_form, "trace_form", lambda right, Z: Z[:, -1].square().sum(-1)),
    Mutant(trace_form, "trace_form", lambda right, Z: (1 + 1e-9) * right(Z)),
    # weights outside (11), and a control inside it
    Mutant(lemma5, "sparse_model", lambda right, *given: full_model(*given, last_column=True)),
    blinded(lemma5, "full_model", lambda right, *given, last_column: sparse_model(*given)),
)


test_every_operator_of_attention_over_tokens_is_seen = seen(
    Lemma5,
    *(
        Mutant(tokens, "stack_forward", edited(tokens.stack_forward, *change))
        for change in (
            ("Q_RLHPP[:, None, layer, h].mT", "Q_RLHPP[:, None, layer, h]"),
            ("P_RLHPP[:, None, layer, h].mT", "P_RLHPP[:, None, layer, h]"),
            ("z_RBMP @ Q_RLHPP", "z_RBMP.flip(2) @ Q_RLHPP"),
            ("[..., :keys]", "[..., 1 : keys + 1]"),
            ("z_RBMP[:, :, :keys]", "z_RBMP[:, :, 1 : keys + 1]"),
            ("z_RBMP + (", "("),
            ("update_RBMP / N", "update_RBMP / (N + 1)"),
            ("keys = N if mask", "keys = N + 1 if mask"),
            ("layer in range(P_RLHPP.shape[1])", "layer in range(P_RLHPP.shape[1] - 1)"),
            ("z_RBMP[:, :, -1]", "z_RBMP[:, :, 0]"),
        )
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
