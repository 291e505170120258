from icl.runs.metric_kinds import RISKS, kind_of


def test_every_risk_says_what_it_is():
    kinds = {"exact_risk": "exact", "risk_estimate": "sampled", "risk_on_s": "projected"}
    kinds |= {"risk_old": "", "risk_new": ""}  # their errors say it
    assert {name: kind_of(name) for name in RISKS} == kinds
    assert kind_of("loss") == "training" and kind_of("dist_plain") == ""
    # A gradient's norm is exact where its error is zero.
    assert kind_of("gradient_norm", [0.0, 0.0]) == "exact"
    assert kind_of("gradient_norm", [0.0, 1e-3]) == "sampled"
    assert kind_of("risk_old", [0.0]) == "exact" and kind_of("risk_new", [0.0, 1e-3]) == "sampled"
