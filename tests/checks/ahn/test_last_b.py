import torch

from icl.checks import attention
from icl.checks.ahn import last_b
from icl.checks.ahn.last_b import LastB
from tests.checks.asking import Mutant, holds, seen


@holds(
    LastB,
    {},
    {"dim": 1, "context": 1, "layers": 2, "samples": 5},
    {"dim": 2, "context": 3, "eigenvalues": [1e4, 1e-4], "layers": 4, "seed": 3},
    {"dim": 3, "context": 2, "covariance": [[2, 0.7, 0], [0.7, 1, 0], [0, 0, 3]]},
    margin=1000,
)
def test_holds(check, finding):
    assert finding.measured["change_of_covariates"] > 1000 * finding.bound.value


def covariates_first(right, P_LPP, Q_LPP, Z_BPM):
    """The last B comes before the labels are read."""
    moved = right(P_LPP, Q_LPP, Z_BPM)[-1]
    labels = torch.cat([moved[:, :-1], Z_BPM[:, -1:]], 1)
    return right(P_LPP[-1:], Q_LPP[-1:], labels)


test_attention_of_another_form_or_an_earlier_b_is_seen = seen(
    LastB,
    Mutant(attention, "every_layer", covariates_first),
    Mutant(last_b, "sparse_stack", lambda right, A, B: right(A, B.flip(1))),
)


def test_a_change_downwards_is_a_change():
    A_LDD = torch.full((2, 1, 1), 0.1).double()
    for seed in range(8):
        assert LastB(dim=1, context=1, layers=2, samples=1, seed=seed)._change(A_LDD, A_LDD, 2 * A_LDD) > 0
