import pytest

from icl.checks.xie.lemma3 import Lemma3
from icl.checks.xie.support import blocks
from icl.models import LinearTransformerBlock, YqLSA


def random_models(dim, hidden):
    lsa, block = YqLSA(dim, 1, init_std=1.0), LinearTransformerBlock(dim, 1, hidden, init_std=1.0)
    for model in (lsa, block):
        model.initialise([7])
    return lsa, block


def scaled(part, factor=1 + 1e-9):
    return lambda right, *given: right(*given) | {part: right(*given)[part] * factor}


def columns_turned(right, P, Q, W1, W2):
    return right(P, Q, W1, W2.flip(1))


@pytest.mark.parametrize("wrong", [*(scaled(part) for part in "PQv"), scaled("v", 2.0), columns_turned])
def test_the_converse_is_measured_apart(mutate, wrong):
    mutate(blocks, "yq_lsa_of_block", wrong)
    finding = Lemma3().measure()
    assert (finding.verdict, finding.bound.of) == ("fails", "max_error_converse")
    assert finding.measured["max_error"] < finding.bound.value < finding.measured["max_error_converse"]
