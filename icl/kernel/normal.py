"""Normal numbers by Box and Muller's formula, which is three times as fast compiled."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from icl.kernel.library import instruction_sets, instructions, library

Array = npt.NDArray[np.float64]


def standard_normal(rng: np.random.Generator, shape: Sequence[int]) -> Array:
    """Return independent normal numbers made of uniform ones of 53 bits. They are the same with and without
    the compiled kernel but for rounding."""
    size = math.prod(shape)
    uniform_2H = rng.random((2, (size + 1) // 2))
    to_normal(uniform_2H, instructions())
    return uniform_2H.reshape(-1)[:size].reshape(tuple(shape))


def to_normal(uniform_2H: Array, chosen: str | None) -> None:
    """Replace each column's two uniform numbers by two normal ones, by an instruction set of the kernel or,
    with None, by NumPy."""
    if chosen is not None:
        first, second = (row_H.ctypes.data for row_H in uniform_2H)
        of = instruction_sets().index(chosen)
        library().icl_kernel_normals(of, first, second, uniform_2H.shape[1])
        return
    radius_H = np.sqrt(-2 * np.log(1 - uniform_2H[0]))
    angle_H = 2 * np.pi * uniform_2H[1]
    uniform_2H[:] = radius_H * np.cos(angle_H), radius_H * np.sin(angle_H)
