import hashlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl.errors import InputError
from icl.runs.fingerprint import fingerprint

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(st.text(), VALUES, max_size=4)


def disguised(value):
    """Return the same value: key order reversed, lists as tuples, whole floats for ints, numpy for Python."""
    if isinstance(value, dict):
        return {key: disguised(value[key]) for key in reversed(value)}
    if isinstance(value, list):
        return tuple(disguised(entry) for entry in value)
    if isinstance(value, bool):
        return np.bool_(value)
    if isinstance(value, int):
        return float(value) if abs(value) < 2**53 else value
    return np.float64(value) if isinstance(value, float) else value


@given(DOCUMENTS)
def test_disguise_does_not_matter(document):
    assert fingerprint(document) == fingerprint(disguised(document))


@given(DOCUMENTS, st.floats(allow_nan=False, allow_infinity=False))
def test_every_bit_of_a_float_counts(document, value):
    moved = math.nextafter(value, math.inf)
    assert fingerprint({"d": document, "x": value}) != fingerprint({"d": document, "x": moved})


def test_form_and_value_stay_what_they_were():
    # Written down by hand: a change of the canonical form would orphan every stored run.
    form = b'{"A":[[1,0],[0,1]],"lr":0.02,"seeds":[0,1],"task":{"dim":5}}'
    document = {"task": {"dim": 5.0}, "seeds": (0, np.int64(1)), "lr": np.float64(0.02), "A": np.eye(2)}
    assert fingerprint(document) == hashlib.sha256(form).hexdigest()[:12]


def test_other_values_have_other_fingerprints():
    distinct = [True, 1, "1", None, "None", math.inf, -math.inf, "Infinity", 0.5, [], {}, [[]], [1], {"a": 1}]
    assert len({fingerprint({"x": value}) for value in distinct}) == len(distinct)
    assert fingerprint({"x": -0.0}) == fingerprint({"x": 0})


@pytest.mark.parametrize("nan", [math.nan, np.float32("nan"), [1.0, math.nan], np.array([math.nan])])
def test_nan_is_refused_by_name(nan):
    with pytest.raises(InputError, match=r"optimizer\.lr.*=nan"):
        fingerprint({"optimizer": {"lr": nan}})


@pytest.mark.parametrize("odd", [object(), {1: 2}, {"a", "b"}, 1j])
def test_what_has_no_canonical_form_is_refused(odd):
    with pytest.raises(TypeError):
        fingerprint({"x": odd})
