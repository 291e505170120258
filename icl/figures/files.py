"""A drawing as files: every figure is saved here, a paper's and a sweep's alike."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from icl.figures.style import RC
from icl.figures.vector import svg

_METADATA: dict[str, dict[str, Any]] = {"png": {}, "pdf": {"CreationDate": None}}


def rendered(draw: Callable[[], Figure]) -> dict[str, bytes]:
    """Draw in the project's style, and return the picture's files by extension."""
    logging.getLogger("fontTools").setLevel(logging.ERROR)  # it warns of matplotlib's own fonts
    contents = {}
    with rc_context(RC):
        drawing = draw()
        for extension, metadata in _METADATA.items():
            content = io.BytesIO()
            drawing.savefig(content, format=extension, metadata=metadata)
            contents[extension] = content.getvalue()
            drawing.set_layout_engine(None)  # the first file settles the layout, so that all show the same
        return {**contents, "svg": svg(drawing)}
