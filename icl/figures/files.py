"""Files of a picture; as SVG, a page can show it whole or panel by panel, and in its own colours."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from icl.figures.style import rc
from icl.look import FORMATS
from icl.runs.atomic import write_bytes

_METADATA: dict[str, dict[str, Any]] = {"png": {}, "pdf": {"CreationDate": None}}
_SVG: Any = {"svg.fonttype": "path", "svg.hashsalt": "icl"}  # the reader need not have our fonts
_LETTER = re.compile(r"\((\w)\)")
_MARGIN = 3.0  # points around a panel


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
        return contents | ({"svg": svg(figure)} if "svg" in formats else {})


def svg(figure: Figure) -> bytes:
    """Return the drawing without background, with a <view> for each panel: `panel-a` where its title begins
    with (a), else `panel-1`, and `legend` for the figure's own. What is drawn in panel a are the groups
    whose ids begin with `in-panel-a.`."""
    figure.draw_without_rendering()  # lays it out
    height, views = figure.get_figheight() * 72, []
    for name, drawn in _parts(figure).items():
        for number, artist in enumerate(drawn, 1):
            artist.set_gid(f"in-{name}.{number}")
        boxes = [box for artist in drawn if (box := artist.get_tightbbox()) is not None]
        box = Bbox(np.asarray(Bbox.union(boxes)) * 72 / figure.dpi).padded(_MARGIN)
        place = f"{box.x0:.1f} {height - box.y1:.1f} {box.width:.1f} {box.height:.1f}"
        views.append(f'<view id="{name}" viewBox="{place}"/>')
    content = io.StringIO()
    with rc_context(_SVG):
        figure.savefig(content, format="svg", transparent=True, metadata={"Date": None})
    return content.getvalue().replace("</svg>", f"{''.join(views)}</svg>").encode()


def _parts(figure: Figure) -> dict[str, list[Artist]]:
    """Return the axes of each panel, with its colour bars, and the legends; nothing of a single panel."""
    axes = [one for one in figure.axes if one.get_visible()]
    bars = [one for one in axes if one.get_label() == "<colorbar>"]
    names: dict[Any, str] = {}
    for one in axes:
        if one not in bars:
            letter = _LETTER.match(one.get_title() or one.get_title(loc="left"))
            names[one] = f"panel-{letter[1]}" if letter else f"panel-{len(names) + 1}"
    if len(names) < 2:
        return {}
    found: dict[str, list[Artist]] = {}
    for one, name in names.items():  # two axes may make one panel
        found.setdefault(name, []).append(one)
    for bar in bars:
        nearest = min(names, key=lambda one: float(np.abs(np.asarray(one.bbox) - bar.bbox).sum()))
        found[names[nearest]].append(bar)
    return found | ({"legend": [*figure.legends]} if figure.legends else {})
