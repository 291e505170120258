"""A figure as SVG, panel by panel."""

from __future__ import annotations

import re

import numpy as np

from icl.figures.style import heatmap, panels
from icl.figures.vector import svg


def views(text: str) -> dict[str, list[float]]:
    found = re.findall(r'<view id="([\w-]+)" viewBox="([-\d. ]+)"', text)
    return {name: [float(number) for number in box.split()] for name, box in found}


def test_every_panel_has_a_view_with_what_is_drawn_in_it_and_the_file_is_always_the_same() -> None:
    def drawn() -> str:
        figure, axes = panels(1, 3)
        axes[0, 0].set(title="(a) loss", xlabel="step")
        axes[0, 0].plot([0, 1], [1, 0], color="black")
        image = heatmap(figure, axes[0, 1], np.eye(2), "weights", 1.0)
        figure.colorbar(image, ax=axes[0, 1])
        axes[0, 2].set(title="(b) risk")
        return svg(figure).decode()

    text, found = drawn(), views(drawn())
    assert list(found) == ["panel-a", "panel-2", "panel-b"]
    groups = re.findall(r'<g id="in-([\w-]+)\.(\d)"', text)
    assert groups == [("panel-a", "1"), ("panel-2", "1"), ("panel-b", "1"), ("panel-2", "2")], "with its bar"
    right = [x + width for x, _, width, _ in found.values()]
    left = [x for x, *_ in found.values()]
    assert all(end <= start + 6 for end, start in zip(right, left[1:], strict=False)), "they lie side by side"
    assert text == drawn() and "#111111" in text and "#ffffff" not in text


def test_a_single_panel_needs_no_view() -> None:
    figure, _ = panels(1, 1)
    assert views(svg(figure).decode()) == {}
