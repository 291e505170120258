"""Files of a picture in the formats asked for."""

import io
import logging
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from icl.figures.look import FORMATS
from icl.figures.style import rc
from icl.runs.atomic import write_bytes

# Without dates, so that the same picture is the same file.
_METADATA: dict[str, dict[str, Any]] = {"png": {}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}


def write(stem: Path, contents: Mapping[str, bytes]) -> dict[str, Path]:
    """Write contents by extension as STEM.EXTENSION."""
    files = {extension: stem.with_name(f"{stem.name}.{extension}") for extension in contents}
    stem.parent.mkdir(parents=True, exist_ok=True)
    for extension, content in contents.items():
        write_bytes(files[extension], content)
    return files


def render(draw: Callable[[], Figure], formats: Collection[str] = FORMATS) -> dict[str, bytes]:
    """Draw in the look of now, and return the picture's files by extension."""
    logging.getLogger("fontTools").setLevel(logging.ERROR)  # it warns of matplotlib's own fonts
    contents = {}
    with rc_context(rc()):
        figure = draw()
        for extension, metadata in _METADATA.items():
            if extension not in formats:
                continue
            content = io.BytesIO()
            figure.savefig(content, format=extension, metadata=metadata)
            contents[extension] = content.getvalue()
            figure.set_layout_engine(None)  # the first file settles the layout, so that all show the same
    return contents
