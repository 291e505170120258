import numpy as np

from icl.checks.giannou.support.inexact_newton import guaranteed_decrease


def test_guaranteed_decrease_is_above_a_hundredth_for_every_mu():
    assert min(guaranteed_decrease(mu) for mu in np.geomspace(1e-4, 1e4, 400)) > 0.01
