from icl.checks.giannou.lemmaB_8 import LemmaB8
from tests.checks.asking import holds, seen
from tests.checks.giannou.losses import wrong_losses


@holds(LemmaB8, *({"mu": mu} for mu in (1e-3, 0.1, 10.0)), samples=100, verdict="fails")
def test_lemma_b8_is_off_by_a_factor_of_two(check, finding):
    assert 1.99 < finding.measured["lambda_over_printed_bound"] <= 2 + 1e-9
    for name in ("gradient_over_bound", "hessian_over_bound", "lambda_lower_bound_over_lambda"):
        assert finding.measured[name] <= 1 + 1e-12


test_a_wrong_loss_refutes_nothing = seen(LemmaB8, *wrong_losses("step_off", "undecided"), samples=20)
