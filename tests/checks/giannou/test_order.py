import pytest

from icl.checks.giannou.order import Order
from icl.checks.giannou.support.newton_steps import steps_by_formula
from icl.errors import InputError


def test_steps_by_hand():
    # kappa = 1: residual 1/2, squared each step: 1/2, 1/4, 1/16, 1/256, 1/65536
    assert steps_by_formula(2, 1.0, 1 / 300) == 4 and steps_by_formula(2, 1.0, 0.6) == 0


@pytest.mark.parametrize("accuracy", [1e-16, 1.0, 2.0])
def test_an_accuracy_that_cannot_be_counted_is_named(accuracy):
    with pytest.raises(InputError, match=r"^check\.accuracy="):
        Order(accuracy=accuracy)
