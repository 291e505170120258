"""The evidence on which Theorems 3 and 4 of ahn rest alike.

At every point of S the gradients are multiples of Sigma and I (directions); at a critical one they are 0.
"""

from __future__ import annotations

from typing import NamedTuple

from icl.checks.ahn.orbits import Deviation
from icl.checks.verdict import Bound, Control, decide


class Evidence(NamedTuple):
    """Directions on S, size of the gradient and the sampled test; the last two with their bounds."""

    directions: Deviation
    gradient: tuple[float, float]
    z: tuple[float, float]

    @property
    def measured(self) -> dict[str, float]:
        return {
            "gradient_norm": self.gradient[0],
            "gradient_norm_stderr": 0.0,
            "gradient_norm_bound": self.gradient[1],
            "off_direction": self.directions.off_direction,
            "derivative_error": self.directions.derivative_error,
            "sampled_z": self.z[0],
            "sampled_z_bound": self.z[1],
        }

    @property
    def verdicts(self) -> list[str]:
        return [self.directions.verdict, decide(*self.gradient), decide(*self.z)]

    @property
    def bound(self) -> Bound:
        return Bound(
            self.directions.bound,
            "rounding, of off_direction and derivative_error: 64 eps cond(Sigma) times the gradient with all "
            f"terms made positive over the gradient; of gradient_norm, at most {self.gradient[1]:.2g}; "
            f"sampled_z at 99.9 % over all components, at most {self.z[1]:.3g}",
        )


def control(off: Deviation | None, at: str, shifted: tuple[float, float]) -> Control:
    """Off S directions must be others; with A a tenth too large the gradient, `shifted`, must not be 0."""
    moved = decide(*shifted) == "fails"
    if off is None:
        text = "gradient norm on S at a tenth too large A (no point is off S at dim 1)"
        return Control(text, shifted[0], moved)
    return Control(
        f"off_direction off S, at {at} with A_0 doubled along one whitened axis; "
        f"also gradient norm {shifted[0]:.2g} on S at a tenth too large A",
        off.off_direction,
        moved and decide(off.share, 1) == "fails",
    )
