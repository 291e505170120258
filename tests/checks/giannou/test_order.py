import pytest

from icl.checks.giannou import order
from icl.checks.giannou.order import Order
from icl.checks.giannou.support import newton_steps
from icl.checks.giannou.support.newton_steps import exact_identity, steps_by_formula
from icl.errors import InputError
from tests.checks.asking import Mutant, blinded, holds, seen

ITERATION = order, newton_steps


@holds(
    Order,
    *({"order": k} for k in (2, 3, 4, 5)),
    *({"order": 2, "samples": 4} | other for other in ({"dim": 1}, {"condition": 1}, {"dim": 30})),
    {"order": 2, "samples": 4, "condition": 1e4, "steps": 30},
    margin=1000,
)
def test_holds(check, finding):
    steps = finding.measured["steps_by_condition"]
    assert len(steps["conditions"]) == len(steps["steps"]) and steps["steps"] == sorted(steps["steps"])
    assert exact_identity(check.order, 1)


test_another_iteration_is_seen = seen(
    Order,
    # the control is an iteration of order k + 1: this one is it
    blinded(ITERATION, "newton_iteration", lambda right, A, X, k, t: right(A, X, k + 1, t)),
    Mutant(
        ITERATION, "newton_iteration", lambda right, A, X, k, t: right(A, X, k + 2, t), settings={"order": 2}
    ),
    Mutant(ITERATION, "newton_iteration", lambda right, *given: [Y * (1 + 1e-9) for Y in right(*given)]),
    Mutant(newton_steps, "comb", lambda right, n, m: 1),
    order=3,
)


def test_steps_by_hand():
    # kappa = 1: residual 1/2, squared each step: 1/2, 1/4, 1/16, 1/256, 1/65536
    assert steps_by_formula(2, 1.0, 1 / 300) == 4 and steps_by_formula(2, 1.0, 0.6) == 0


@pytest.mark.parametrize("accuracy", [1e-16, 1.0, 2.0])
def test_an_accuracy_that_cannot_be_counted_is_named(accuracy):
    with pytest.raises(InputError, match=r"^check\.accuracy="):
        Order(accuracy=accuracy)
