from __future__ import annotations

from icl.runs.code import ANSWERED, COMPUTED, TRAINED, current_digests
from icl.runs.fingerprint import code_digest


def test_each_kind_of_record_has_a_digest_of_its_own() -> None:
    assert current_digests() == {code_digest(TRAINED), code_digest(COMPUTED), code_digest(ANSWERED)}
    assert len(current_digests()) == 3


def test_what_costs_hours_depends_on_the_code_that_asks_and_no_other() -> None:
    assert set(TRAINED) < set(COMPUTED)
    assert ANSWERED == ("experiments/xie/language",), (
        "any other code would throw a language model's answers away"
    )
