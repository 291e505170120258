import numpy as np

from icl.checks.giannou.corollaryE_2 import CorollaryE2


def test_the_least_size():
    assert np.isfinite(CorollaryE2(samples=1, dim=1, context=1).measure().measured["inverse"])
