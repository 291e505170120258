"""The claims of depth's figures, which other arrays turn."""

import pytest

from tests.figures.bases import base, changed

TURNS = [
    ("depth/fig1", "exact", lambda of: {"shared_at_dim": 0 * of["shared_at_dim"] + 0.3}, 1, "fails"),
    ("depth/fig1", "exact", lambda of: {"shared_at_dim": 0 * of["shared_at_dim"] + 0.3}, 2, "fails"),
    ("depth/fig2", "computed", lambda of: {"corrected_speed_KT": of["printed_speed_KT"]}, 1, "fails"),
    ("depth/fig2", "computed", lambda of: {"late": of["late"] - [0.01, 0]}, 2, "undecided"),
    ("depth/fig3", "computed", lambda of: {"equal_TL": of["free_TL"]}, 0, "undecided"),
    ("depth/fig3", "computed", lambda of: {"free_TL": of["equal_TL"]}, 1, "undecided"),
    ("depth/fig4", "computed", lambda of: {"shared_L": of["separate_L"]}, 0, "undecided"),
    ("depth/fig4", "computed", lambda of: {"separate_L": of["shared_L"]}, 1, "undecided"),
    ("depth/fig4", "computed", lambda of: {"separate_L": of["shared_L"] * 1.1}, 2, "fails"),
]


@pytest.mark.parametrize(("id", "record", "change", "claim", "verdict"), TURNS)
def test_other_arrays_turn_a_claim(id, record, change, claim, verdict):
    figure, records = base(id)
    assert figure.claims(records)[claim].verdict == "holds"
    figure, records = changed(id, record, change)
    assert figure.claims(records)[claim].verdict == verdict
