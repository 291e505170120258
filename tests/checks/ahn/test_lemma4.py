import pytest

from icl.checks import attention
from icl.checks.ahn.lemma4 import Lemma4
from icl.random import generator
from tests.checks.asking import held


@pytest.mark.parametrize(
    ("context", "samples", "count"), [(20_000, 200, 1), (300, 300, 220), (300, 100, 100)]
)
def test_attention_over_all_tokens_is_asked_of_what_fits_in_memory(context, samples, count):
    check = Lemma4(layers=2, dim=3, context=context, samples=samples)
    prompt, notes = attention.affordable_prompts(check.whitened, samples, generator(0, "check"))
    _, B, N, _ = prompt.context_RBNP.shape
    assert count == B and B * (N + 1) ** 2 <= attention.MAX_SCORES
    assert bool(notes) == ((context, samples) != (N, B))


def test_a_long_context_holds():
    finding = held(Lemma4(layers=2, dim=3, context=20_000, samples=200))
    assert "at context 4471" in finding.notes[0]
