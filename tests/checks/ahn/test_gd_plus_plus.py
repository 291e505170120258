import numpy as np
import torch

from icl.algorithms import GDPlusPlus
from icl.checks import attention
from icl.checks.ahn import gd_plus_plus
from icl.checks.ahn.gd_plus_plus import GdPlusPlus
from icl.random import generator
from tests.checks.asking import Mutant, holds, seen


@holds(
    GdPlusPlus,
    {},
    {"dim": 1, "context": 1, "layers": 1, "samples": 5},
    {"dim": 3, "context": 2, "layers": 4, "seed": 3},
    {"dim": 8, "context": 9, "layers": 2, "samples": 7},
    margin=1000,
)
def test_holds(check, finding):
    pass


def test_the_iteration_is_the_library_s_for_the_query():
    check = GdPlusPlus(dim=3, context=7, layers=3, samples=5)
    prompt = check.law.token_prompts([generator(0, "check")], 5)
    eta, gamma = [0.3, 0.5, 0.7], [0.2, 0.1, 0.4]
    tokens = gd_plus_plus.gd_plus_plus(eta, gamma, attention.tokens_of(prompt))
    predicted = GDPlusPlus(eta, gamma[:-1], 3).predict(prompt)[0]
    np.testing.assert_allclose(-tokens[-1, :, -1, -1], predicted, rtol=1e-11, atol=1e-14)


def labels_alone(right, eta, gamma, Z):
    return torch.cat([Z[:, :-1], right(eta, gamma, Z)[-1, :, -1:]], 1)[None]


test_any_other_iteration_is_seen = seen(
    GdPlusPlus,
    *(
        Mutant(gd_plus_plus, "gd_plus_plus", wrong)
        for wrong in (
            lambda right, eta, gamma, Z: right(eta, -gamma, Z),
            lambda right, eta, gamma, Z: right(eta * (1 + 1e-9), gamma, Z),
            lambda right, *given: right(*given).flip(0),
            labels_alone,
        )
    ),
)
