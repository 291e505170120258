"""Means of errors at several dimensions d, extrapolated to infinitely many by a polynomial in 1/d.

C dimensions, O orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

ORDER = 2  # of the polynomial


@dataclass(frozen=True, eq=False)
class Means:
    """Mean errors by dimension, with standard errors."""

    dims: Sequence[int]
    mean_C: np.ndarray
    stderr_C: np.ndarray

    def minus(self, value_C: Sequence[float]) -> Means:
        return replace(self, mean_C=self.mean_C - np.array(value_C))

    def at_infinity(self, order: int = ORDER) -> tuple[float, float]:
        """Return the constant of the polynomial fitted by weighted least squares, and its standard error."""
        weights_OC = np.linalg.pinv(self._design(order) / self.stderr_C[:, None])
        return float(weights_OC[0] @ (self.mean_C / self.stderr_C)), float(np.linalg.norm(weights_OC[0]))

    @property
    def misfit(self) -> float:
        """Return the part of the means that no polynomial of this order describes, in standard errors."""
        design_CO, scaled_C = self._design(ORDER) / self.stderr_C[:, None], self.mean_C / self.stderr_C
        rest_C = scaled_C - design_CO @ np.linalg.lstsq(design_CO, scaled_C)[0]
        free = len(self.dims) - ORDER - 1
        return float(np.sqrt(rest_C @ rest_C / free)) if free else 0.0

    def _design(self, order: int) -> np.ndarray:
        return np.vander(1 / np.array(self.dims), order + 1, increasing=True)
