from icl.checks import attention
from icl.checks.ahn.lemma5 import Lemma5


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
