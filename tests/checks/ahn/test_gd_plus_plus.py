import numpy as np

from icl.algorithms import GDPlusPlus
from icl.checks import attention
from icl.checks.ahn import gd_plus_plus
from icl.checks.ahn.gd_plus_plus import GdPlusPlus
from icl.random import generator


def test_the_iteration_is_the_library_s_for_the_query():
    check = GdPlusPlus(dim=3, context=7, layers=3, samples=5)
    prompt = check.law.token_prompts([generator(0, "check")], 5)
    eta, gamma = [0.3, 0.5, 0.7], [0.2, 0.1, 0.4]
    tokens = gd_plus_plus.gd_plus_plus(eta, gamma, attention.tokens_of(prompt))
    predicted = GDPlusPlus(eta, gamma[:-1], 3).predict(prompt)[0]
    np.testing.assert_allclose(-tokens[-1, :, -1, -1], predicted, rtol=1e-11, atol=1e-14)
