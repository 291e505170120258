"""A construction drawn: blocks of rows as lines, layers from left to right, what each head reads and writes.

From the account that `icl check` also tells as text. Colours are the page's, by class; nothing runs.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

Column = tuple[str, str, str, Mapping[str, str], Sequence[str]]
LETTERS = {"value": "v", "key": "k", "query": "q"}
LEGEND = (
    "Each line is a block of rows, and each column is a head of the layer named above it. v, k and q mark "
    "the blocks that the head reads as values, keys and queries. A filled cell is written to. A dashed "
    "column is a ReLU layer, which reads the blocks marked r."
)
LANE, HEAD, CELL, GAP = 26, 40, 32, 14  # between lines, columns, width of a cell, between layers
LINE, LETTER, LETTERS_A_LINE, LEAST = 13, 7, 17, 108  # height and width of text, width of a layer


def svg(account: Mapping[str, Any], name: str) -> str:
    """One <svg>; `name` makes the ids of its title and description its own."""
    drawing = _Drawing(account)
    drawing.root.set("aria-labelledby", f"{name}-title {name}-desc")
    parts, rows = account["parts"], account["rows"]
    layers = sum(part["times"] * len(part["layers"]) for part in parts)
    drawing.add("title", "The construction, layer by layer", id=f"{name}-title")
    drawing.add(
        "desc",
        f"{layers} layer{'s' if layers != 1 else ''} over {len(rows)} blocks of rows: {', '.join(rows)}. "
        f"{account['attention']}. The text after the diagram has the same content.",
        id=f"{name}-desc",
    )
    drawing.draw()
    return ElementTree.tostring(drawing.root, encoding="unicode")


class _Drawing:
    def __init__(self, account: Mapping[str, Any]) -> None:
        self.account, self.rows = account, list(account["rows"])
        said = [_lines(layer["says"]) for part in account["parts"] for layer in part["layers"]]
        self.top = (1 + max(map(len, said), default=0)) * LINE + 12
        self.left = 10 + LETTER * max(len(f"{name} {size}") for name, size in account["rows"].items())
        self.names = 4 + LETTER * max(map(len, self.rows))
        self.bottom = self.top + LANE * len(self.rows)
        relus = any(layer["relu"] for part in account["parts"] for layer in part["layers"])
        self.height = self.bottom + (2 if relus else 1) * LINE + 4
        self.root = ElementTree.Element("svg", {"class": "construction", "role": "img"})

    def draw(self) -> None:
        self.panels, lanes = self.add("g"), self.add("g")  # behind all else, in this order
        x = self.left + GAP
        for part in self.account["parts"]:
            x = self._part(part, x)
        for name, size in self.account["rows"].items():
            y = self._lane(name)
            self.add("line", None, lanes, "lane", x1=self.left, x2=x - GAP - 1, y1=y, y2=y)
            label = self._text(name, 2, y + 4, lanes, "block")
            self.add("tspan", f" {size}", label, "quiet")
        size = {"viewBox": f"0 0 {x - GAP} {self.height}", "width": x - GAP, "height": self.height}
        for key, value in size.items():
            self.root.set(key, str(value))

    def _part(self, part: Mapping[str, Any], x: int) -> int:
        """Draws the layers from x on; where the next begin."""
        start, count = x, len(part["layers"])
        for number, layer in enumerate(part["layers"], part["first"]):
            last = number + count * (part["times"] - 1)
            between = "–" if count == 1 else f", {number + count}, … "
            x = self._layer(layer, str(number) if last == number else f"{number}{between}{last}", x)
        if part["times"] > 1:
            y, end = self.top - 4, x - GAP
            self.add("path", None, None, "again", d=f"M{start} {y + 5}V{y}H{end}V{y + 5}")
            self._text(f"× {part['times']}", end, LINE - 2, None, "block", "end")
        return x

    def _layer(self, layer: Mapping[str, Any], number: str, x: int) -> int:
        columns = list(_columns(layer))
        width = max(LEAST, self.names + HEAD * len(columns))
        group = self.add("g", None, None, "layer")
        self.add("rect", None, self.panels, "panel", x=x - 5, y=0, width=width + 4, height=self.height)
        self._text(number, x, LINE - 2, group, "block")
        for line, text in enumerate(_lines(layer["says"]), 2):
            self._text(text, x, LINE * line - 2, group, "quiet")
        touched = {block for _, _, _, marks, written in columns for block in (*marks, *written)}
        for block in (
            name for name in self.rows if name in touched
        ):  # again beside the cells: a wide drawing is scrolled
            self._text(block, x, self._lane(block) - 3, group, "quiet")
        middle = x + self.names + (width - self.names - HEAD * len(columns)) / 2 + HEAD / 2 - 3
        for index, (name, below, words, marks, written) in enumerate(columns):
            column = self.add("g", None, group, "relu" if name == "relu" else "head")
            self.add("title", f"layer {number}, {words}", column)
            self._column(marks, written, middle + HEAD * index, column)
            for line, text in enumerate([name, below], 1):
                self._text(
                    text, middle + HEAD * index, self.bottom + LINE * line - 4, column, "quiet", "middle"
                )
        return x + width + GAP

    def _column(
        self, marks: Mapping[str, str], written: Sequence[str], x: float, into: ElementTree.Element
    ) -> None:
        """One head or ReLU layer: a cell on the line of each block that it touches."""
        touched = [name for name in self.rows if name in marks or name in written]
        ys = [self._lane(name) for name in touched]
        if len(ys) > 1:
            self.add("line", None, into, "wire", x1=x, x2=x, y1=ys[0], y2=ys[-1])
        for name, y in zip(touched, ys, strict=True):
            kind = "cell written" if name in written else "cell"
            box = {"x": x - CELL / 2, "y": y - 8, "width": CELL, "height": 16, "rx": 3}
            self.add("rect", None, into, kind, **box)
            if name in marks:
                self._text(marks[name], x, y + 4, into, kind.replace("cell", "mark"), "middle")

    def _lane(self, name: str) -> int:
        return self.top + LANE // 2 + LANE * self.rows.index(name)

    def _text(
        self,
        text: str,
        x: float,
        y: float,
        into: ElementTree.Element | None,
        look: str,
        anchor: str = "start",
    ) -> ElementTree.Element:
        return self.add("text", text, into, look, x=x, y=y, **{"text-anchor": anchor})

    def add(
        self,
        tag: str,
        text: str | None = None,
        into: ElementTree.Element | None = None,
        look: str = "",
        **attributes: object,
    ) -> ElementTree.Element:
        element = ElementTree.SubElement(self.root if into is None else into, tag)
        for key, value in ({"class": look} if look else {}).items() | attributes.items():
            element.set(key, f"{value:g}" if isinstance(value, float) else str(value))
        element.text = text
        return element


def _columns(layer: Mapping[str, Any]) -> Iterator[Column]:
    """(name, what is below, in words, block -> letters, blocks written to) of each head, then of the ReLU."""
    for number, head in enumerate(layer["heads"], 1):
        marks: dict[str, str] = {}
        for role, letter in LETTERS.items():
            for block in head[role]:
                marks[block] = f"{marks.get(block, '')} {letter}".strip()
        yield f"h{number}", "", f"head {number}: {'; '.join(head['equations'])}", marks, head["writes"]
    if (relu := layer["relu"]) is not None:
        marks = dict.fromkeys(relu["reads"], "r")
        words = f"relu: {', '.join(relu['writes'])} from {', '.join(relu['reads'])}"
        yield "relu", f"{relu['neurons']}", f"{words} with {relu['neurons']} neurons", marks, relu["writes"]


def _lines(says: str) -> list[str]:
    return textwrap.wrap(says.replace("<-", "←"), LETTERS_A_LINE)
