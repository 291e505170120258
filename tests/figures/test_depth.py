"""The claims of depth's figures, which other arrays turn."""

import pytest

from tests.figures.bases import base, changed

TURNS = [
    ("depth/fig1", "exact", lambda of: {"shared_at_dim": 0 * of["shared_at_dim"] + 0.3}, 1),
    ("depth/fig1", "exact", lambda of: {"shared_at_dim": 0 * of["shared_at_dim"] + 0.3}, 2),
    ("depth/fig2", "computed", lambda of: {"corrected_KT": of["printed_KT"]}, 1),
    ("depth/fig2", "computed", lambda of: {"slope_T": 0 * of["slope_T"] - 0.375}, 2),
    ("depth/fig3", "computed", lambda of: {"equal_TL": of["free_TL"]}, 0),
    ("depth/fig3", "computed", lambda of: {"free_TL": of["equal_TL"]}, 1),
    ("depth/fig4", "computed", lambda of: {"shared_L": of["separate_L"]}, 0),
    ("depth/fig4", "computed", lambda of: {"separate_L": of["shared_L"]}, 1),
    ("depth/fig4", "computed", lambda of: {"separate_L": of["shared_L"]}, 2),
]


@pytest.mark.parametrize(("id", "record", "change", "claim"), TURNS)
def test_other_arrays_turn_a_claim(id, record, change, claim):
    figure, records = base(id)
    assert figure.claims(records)[claim].verdict == "holds"
    figure, records = changed(id, record, change)
    assert figure.claims(records)[claim].verdict == "fails"
