"""Normal numbers by the kernel and by NumPy: the same but for rounding, and normal."""

import numpy as np
import pytest
from scipy import stats

from icl.kernel import library, normal
from icl.kernel.normal import standard_normal, to_normal
from icl.random import generator

SETS = library.instruction_sets() if library.why_none() is None else ()
EDGES = [0.0, 2.0**-53, 0.125, 0.25, 0.5, 0.75, 0.875, 1 - 2.0**-53]


@pytest.mark.parametrize("chosen", SETS)
@pytest.mark.parametrize("columns", [*range(1, 18), 5000])
def test_the_kernel_agrees_with_numpy(chosen: str, columns: int) -> None:
    uniform = np.concatenate([generator(0, "check").random((2, columns)), [[9.0], [9.0]]], axis=1)
    edges = np.stack(np.meshgrid(EDGES, EDGES)).reshape(2, -1)
    for given in (uniform[:, :columns].copy(), edges):
        found, expected = given.copy(), given.copy()
        to_normal(found, chosen)
        to_normal(expected, None)
        radius = np.hypot(*expected)
        assert (np.abs(found - expected) <= 2e-15 * radius).all()


@pytest.mark.parametrize("chosen", [None, *SETS])
def test_they_are_normal_and_independent(chosen: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normal, "instructions", lambda: chosen)
    drawn = standard_normal(generator(1, "check"), (2, 100_000))
    for numbers in (drawn[0], drawn[1], (drawn[0] + drawn[1]) / 2**0.5, (drawn[0] - drawn[1]) / 2**0.5):
        assert stats.kstest(numbers, "norm").pvalue > 1e-4
    assert stats.kstest((drawn**2).sum(0) / 2, "expon").pvalue > 1e-4


@pytest.mark.parametrize("shape", [(), (1,), (7,), (2, 3, 5), (0,), (4, 0)])
def test_shapes(shape: tuple[int, ...]) -> None:
    drawn = standard_normal(generator(0, "check"), shape)
    assert drawn.shape == shape and drawn.flags.c_contiguous
    again = standard_normal(generator(0, "check"), shape)
    assert np.array_equal(drawn, again)
