"""Tests of log-spaced steps."""

import pytest

from icl.errors import InputError
from icl.runs.steps import log_spaced_steps


@pytest.mark.parametrize("total", [1, 2, 5, 100, 30_000])
@pytest.mark.parametrize("count", [1, 2, 8, 50])
def test_log_spaced_steps(total, count):
    steps = log_spaced_steps(total, count)
    assert steps == sorted(set(steps))
    assert steps[-1] == total
    assert len(steps) <= count
    assert count == 1 or steps[0] == 1
    assert all(isinstance(step, int) for step in steps)


def test_log_spaced_steps_double_where_they_can():
    assert log_spaced_steps(1024, 11) == [2**power for power in range(11)]
    with pytest.raises(InputError):
        log_spaced_steps(0, 3)
    with pytest.raises(InputError):
        log_spaced_steps(3, 0)
