from math import prod

from hypothesis import example, given, settings
from hypothesis import strategies as st

from icl.theory.wishart import MAX_RECURSION_DEGREE, product_moment, trace_moment

SIZES = st.integers(1, 9)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 14), SIZES, SIZES)
@example(MAX_RECURSION_DEGREE, 5, 20)
def test_zonal_expansion_equals_recursion(degree, dim, freedom):
    """Reach products of several traces by the recursion, whose first four moments test_definitions.py has."""
    assert trace_moment(degree, dim, freedom) == product_moment([degree], dim, freedom)


def test_one_dimension_is_chi_squared():
    for k in (1, 5, 40, 81):
        assert trace_moment(k, 1, 7) == prod(7 + 2 * j for j in range(k))
