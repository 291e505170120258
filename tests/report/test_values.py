"""Measured values as text."""

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icl.report.values import brief, number, pairs

_BACK = str.maketrans("−⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "--0123456789")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.13360842938, "0.1336"), (0.0, "0"), (2.1137e-16, "2.11 × 10⁻¹⁶"), (-1.25e-5, "−1.25 × 10⁻⁵"),
        (689268.9, "689269"), (1.5e12, "1.50 × 10¹²"), (41, "41"), (-3, "−3"),
        (200000, "200000"), (98.197, "98.2"),
    ],
)  # fmt: skip
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text


@settings(deadline=None)
@given(st.floats(-1e300, 1e300))
def test_a_number_reads_back_to_three_digits(value: float) -> None:
    """Against Python's own reading of what is shown."""
    shown = float(number(value).replace(" × 10", "e").translate(_BACK))
    assert math.isclose(shown, value, rel_tol=5.1e-3)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"), (True, "true"), ("L=1 is 3", "L=1 is 3"), ([1.0, [2, None]], "[1, [2, –]]"),
        ({"a": 1, "b": {"c": 0.5}}, "a: 1; b: (c: 0.5)"), ([], "[]"), ({}, ""),
        ([*range(8)], "[0, 1, 2, 3, 4, 5, 6, 7]"), ([*range(1000)], "[0, 1, 2, 3, 4, 5, 6, 7, … (1000)]"),
        ({str(i): 1 for i in range(99)}, "0: 1; 1: 1; 2: 1; 3: 1; 4: 1; 5: 1; 6: 1; 7: 1; … (99)"),
    ],
)  # fmt: skip
def test_anything_has_one_line(value: Any, text: str) -> None:
    assert brief(value) == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(), inner, max_size=12),
    max_leaves=20,
)


@settings(deadline=None, max_examples=40)
@given(JSON)
def test_no_json_value_is_refused(value: Any) -> None:
    assert isinstance(brief(value), str)
    told = pairs(json.loads(json.dumps(value)))
    assert all(isinstance(name, str) and isinstance(text, str) for name, text in told)
