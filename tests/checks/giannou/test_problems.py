from __future__ import annotations

from dataclasses import fields

import pytest

from icl.checks.giannou.corollaryE_2 import CorollaryE2
from icl.checks.giannou.lemmaB_8 import LemmaB8
from icl.checks.giannou.lemmaB_9 import LemmaB9
from icl.checks.giannou.lemmaB_10 import LemmaB10
from icl.checks.giannou.proposition3_3 import Proposition3_3
from icl.checks.giannou.ridge import Ridge
from icl.checks.giannou.theorem4_2 import Theorem4_2
from icl.checks.giannou.theorem5_1 import Theorem5_1
from icl.checks.giannou.theorem5_2 import Theorem5_2
from icl.checks.giannou.theorem5_4 import Theorem5_4
from icl.errors import InputError

LOGISTIC = (CorollaryE2, LemmaB8, LemmaB9, LemmaB10, Theorem5_1, Theorem5_2, Theorem5_4)
LINEAR = (Theorem4_2, Ridge)
COUNTS = {check: {"dim", "samples", "steps"} for check in LOGISTIC}
COUNTS |= {check: {"dim", "samples"} for check in LINEAR}  # no step is Newton's start


@pytest.mark.parametrize("mu", [0, 1e-5])
@pytest.mark.parametrize("check", [*LOGISTIC, Proposition3_3])
def test_refuses_too_little_regularisation(check, mu):
    with pytest.raises(InputError, match=rf"check\.mu={mu}"):
        check(mu=mu)


@pytest.mark.parametrize("check", [*LOGISTIC, *LINEAR])
def test_refuses_fewer_points_than_dimensions(check):
    with pytest.raises(InputError, match=r"check\.context=4: must be at least check\.dim=5"):
        check(dim=5, context=4)


@pytest.mark.parametrize(
    "check, setting",
    [(check, field.name) for check in COUNTS for field in fields(check) if field.name in COUNTS[check]],
)
def test_refuses_nothing_to_do(check, setting):
    with pytest.raises(InputError, match=rf"check\.{setting}=0"):
        check(**{setting: 0})


@pytest.mark.parametrize("check", [Theorem5_1, Theorem5_2])
@pytest.mark.parametrize("setting, value", [("width", 0), ("width", 10**9), ("inversion", 0)])
def test_refuses_steps_that_nobody_can_build(check, setting, value):
    with pytest.raises(InputError, match=rf"check\.{setting}={value}"):
        check(**{setting: value})
