from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icl.theory.wishart import MAX_RECURSION_DEGREE, product_moment, trace_moment

SIZES = st.integers(1, 9)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 14), SIZES, SIZES)
def test_zonal_expansion_equals_recursion(degree, dim, freedom):
    assert trace_moment(degree, dim, freedom) == product_moment([degree], dim, freedom)


def test_zonal_expansion_equals_recursion_at_the_highest_common_degree():
    k = MAX_RECURSION_DEGREE
    assert trace_moment(k, 5, 20) == product_moment([k], 5, 20)


def pairings(ends):
    if not ends:
        yield []
    for place in range(1, len(ends)):
        for rest in pairings(ends[1:place] + ends[place + 1 :]):
            yield [(ends[0], ends[place]), *rest]


def classes(links, size):
    label = list(range(size))
    for i, j in links:
        label = [label[i] if entry == label[j] else entry for entry in label]
    return len(set(label))


def by_enumeration(partition, d, n):
    """Return moments of W = X X^T, X i.i.d.: every pairing of the 2k factors X_{row, token}; free rows and
    tokens counted."""
    k = sum(partition)
    following, start = {}, 0
    for part in partition:
        for j in range(part):
            following[start + j] = start + (j + 1) % part
        start += part
    trace_links = [(2 * j + 1, 2 * following[j]) for j in range(k)]
    total = 0
    for pairing in pairings(list(range(2 * k))):
        rows = classes(trace_links + pairing, 2 * k)
        tokens = classes([(i // 2, j // 2) for i, j in pairing], k)
        total += d**rows * n**tokens
    return total


@pytest.mark.parametrize(
    "partition", [[1], [2], [1, 1], [3], [2, 1], [4], [2, 2], [3, 1], [2, 1, 1], [5], [3, 2], [2, 2, 1]]
)
def test_recursion_against_enumeration_of_pairings(partition):
    for d, n in [(2, 3), (3, 5)]:
        assert product_moment(partition, d, n) == by_enumeration(partition, d, n)


def test_one_dimension_is_chi_squared():
    for k in (1, 5, 40, 81):
        assert trace_moment(k, 1, 7) == prod(7 + 2 * j for j in range(k))


def test_tr_w_to_the_zero_is_d():
    assert product_moment([2, 0, 0], 3, 4) == 9 * product_moment([2], 3, 4)
    assert product_moment([], 3, 4) == 1
