"""The three verdicts, and how those of several parts make one. Shared by checks and figures."""

from __future__ import annotations

from collections.abc import Sequence

VERDICTS = ("holds", "fails", "undecided")


def joint(verdicts: Sequence[str]) -> str:
    """Of several parts: one that fails decides; else one that is undecided."""
    return next((verdict for verdict in ("fails", "undecided") if verdict in verdicts), "holds")
