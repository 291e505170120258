"""A figure as SVG that a page can show whole or panel by panel, and in its own colours."""

from __future__ import annotations

import hashlib
import io
import re
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

_LETTER = re.compile(r"\((\w)\)")
_CLIP = re.compile(r'<clipPath id="(p[0-9a-f]{10})">(.*?)</clipPath>', re.DOTALL)
_RC: Any = {"svg.fonttype": "path", "svg.hashsalt": "icl"}  # the reader need not have our fonts
_MARGIN = 3.0  # points around a panel


def svg(figure: Figure) -> bytes:
    """Without background. A <view> for each panel, `panel-a` where its title begins with (a), else `panel-1`;
    what is drawn in it are the groups whose ids begin with `in-panel-a.`."""
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()  # lays it out
    boxes, content = panels(figure), io.StringIO()
    for name, (_, drawn) in boxes.items():
        for number, axes in enumerate(drawn, 1):
            axes.set_gid(f"in-{name}.{number}")
    with rc_context(_RC):
        figure.savefig(content, format="svg", transparent=True, metadata={"Date": None})
    height = figure.get_figheight() * 72
    views = "".join(
        f'<view id="{name}" viewBox="{box.x0:.1f} {height - box.y1:.1f} {box.width:.1f} {box.height:.1f}"/>'
        for name, (box, _) in boxes.items()
    )
    return _stable_clip_ids(content.getvalue()).replace("</svg>", f"{views}</svg>").encode()


def _stable_clip_ids(svg: str) -> str:
    """Name each clip path by a digest of what is written of it.

    Matplotlib's digest is of unrounded numbers, whose last bits the layout leaves to the order of a set.
    """
    for name, path in _CLIP.findall(svg):
        svg = svg.replace(name, f"p{hashlib.sha256(path.encode()).hexdigest()[:10]}")
    return svg


def panels(figure: Figure) -> dict[str, tuple[Bbox, list[Axes]]]:
    """Return each panel's box in points, with labels and colour bar; nothing where there is only one."""
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    boxes = {axes: axes.get_tightbbox(renderer) for axes in figure.axes if axes.get_visible()}
    known = {axes: box for axes, box in boxes.items() if box is not None}
    bars = [axes for axes in known if axes.get_label() == "<colorbar>"]
    parents = {axes: [axes] for axes in known if axes not in bars}
    if len(parents) < 2:
        return {}
    for bar in bars:
        parents[min(parents, key=lambda axes: _distance(known[axes], known[bar]))].append(bar)
    named: dict[str, tuple[Bbox, list[Axes]]] = {}
    for number, (axes, drawn) in enumerate(parents.items(), 1):
        letter = _LETTER.match(axes.get_title() or axes.get_title(loc="left"))
        name = f"panel-{letter[1]}" if letter else f"panel-{number}"
        box = Bbox.union([known[part] for part in drawn])
        box = Bbox(np.asarray(box) * 72 / figure.dpi).padded(_MARGIN)
        before, with_them = named.get(name, (box, []))  # two axes may make one panel
        named[name] = Bbox.union([before, box]), [*with_them, *drawn]
    return named


def _distance(one: Bbox, other: Bbox) -> float:
    """Between their centres, squared."""
    return float(((np.asarray(one) - np.asarray(other)).sum(0) ** 2).sum())
