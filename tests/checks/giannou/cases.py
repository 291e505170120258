"""Settings that several checks must refuse alike, with what the refusal names."""

from __future__ import annotations

NO_REGULARISATION = (0, -1.0, float("nan"))

NO_STEP = (
    ({"width": 0}, "width=0"),
    ({"width": 10**9}, "width"),
    ({"mu": 0.0}, "mu"),
    ({"mu": -0.1}, "mu"),
    ({"dim": 5, "context": 4}, "context=4"),
    ({"inversion": 0}, "inversion=0"),
    ({"steps": 0}, "steps=0"),
)
