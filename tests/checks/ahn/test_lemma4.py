import pytest
import torch

from icl.checks import attention
from icl.checks.ahn.lemma4 import Lemma4
from icl.checks.ahn.support import layer_swaps
from icl.random import generator
from tests.checks.asking import Mutant, blinded, held, holds, seen


@holds(
    Lemma4,
    {},
    {"layers": 2, "dim": 3, "context": 4, "eigenvalues": [2, 1, 0.001]},
    {"dim": 1, "context": 1, "layers": 2},
    {"dim": 12, "context": 5, "layers": 4},
    {"dim": 2, "context": 1, "covariance": [[2, 1], [1, 1]]},
    {"layers": 8, "seed": 3},
    {"eigenvalues": [1, 1e-3, 1e-6, 1e-9, 1e-12], "seed": 5, "samples": 100},
    samples=50,
)
def test_holds(check, finding):
    assert finding.measured["max_error"] <= finding.bound.value < 1e-3 * finding.control.measured
    assert finding.measured.get("words_error", 0) < 1e-12


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


def with_one_order(right, *given):
    """With an order that is none: every layer the first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layer_swaps, "transpositions", lambda layers: [[0] * layers])
        return right(*given)


class Bent(layer_swaps.SparseA):
    """Layers off S."""

    def load(self, matrices):
        bent = torch.zeros(3, 5, 5, dtype=torch.float64)
        bent[0, 0, 1] = 1e-3
        order = matrices["A"].diagonal(dim1=-2, dim2=-1).sum(-1)[0].argsort()
        super().load({"A": matrices["A"] + bent[order][None]})


test_every_part_can_fail_and_the_control_must = seen(
    Lemma4,
    *(
        Mutant(layer_swaps, f"on_{part}", with_one_order)
        for part in ("the_polynomial", "predictions", "words")
    ),
    Mutant(layer_swaps, "SparseA", lambda right, *given: Bent(*given)),
    blinded(layer_swaps, "off_s", lambda right, A, seed: A),
    samples=50,
)
