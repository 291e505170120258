"""Tests of the drawing of a construction, from the description that is also printed as text."""

import re
from dataclasses import asdict
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from icl.constructions.giannou import inversion, logistic, regression
from icl.constructions.giannou.describe import describe
from icl.models.giannou.columns import ColumnStack
from icl.report import diagram
from icl.report.page import write_report
from tests.report.conftest import HOSTILE, check, content

STACKS = {
    "lemma4_1": inversion.lemma4_1(3),
    "theorem4_2": regression.theorem4_2(2, 4, 0.5),
    "theorem5_2": logistic.newton_step(2, 5, 0.1, 4, logistic.approximations(0.1, 32, 3.0)),
}


def account(stack: ColumnStack) -> dict[str, Any]:
    return asdict(describe(stack))


def drawn(told: dict[str, Any]) -> ElementTree.Element:
    return ElementTree.fromstring(diagram.svg(told, "a"))


def classed(svg: ElementTree.Element, look: str) -> list[ElementTree.Element]:
    return [e for e in svg.iter() if e.get("class") == look]


def texts(svg: ElementTree.Element, look: str) -> list[str]:
    return [e.text or "" for e in classed(svg, look) if e.tag == "text"]


@pytest.mark.parametrize("stack", STACKS.values(), ids=list(STACKS))
def test_every_block_layer_and_head_is_there(stack: ColumnStack) -> None:
    told = describe(stack)
    svg = drawn(asdict(told))
    bold = texts(svg, "block")
    layers = [layer for part in told.parts for layer in part.layers]
    assert bold[: len(told.rows)] == list(stack.rows.sizes), "a label for each block"
    assert len(classed(svg, "layer")) == len(classed(svg, "panel")) == len(layers)
    assert len(classed(svg, "lane")) == len(stack.rows.sizes)
    assert len(classed(svg, "head")) == sum(len(layer.heads) for layer in layers)
    assert len(classed(svg, "relu")) == sum(layer.relu is not None for layer in layers)
    tooltips = " ".join(e.text or "" for e in svg.iter("title"))
    heads = [head for layer in layers for head in layer.heads]
    assert all(equation in tooltips for head in heads for equation in head.equations)


def test_layers_that_repeat_are_drawn_once() -> None:
    bold = texts(drawn(account(STACKS["theorem4_2"])), "block")[7:]
    assert bold[:5] == ["1", "2–5", "× 4", "6", "7"]
    bold = texts(drawn(account(STACKS["theorem5_2"])), "block")[10:]
    assert bold[4:9] == ["5, 7, … 9", "6, 8, … 10", "× 3", "11", "12"]


def test_cells_say_what_is_read_and_written() -> None:
    """Draw Theorem 4.2's Newton layer: X += -X (R)^T X, then X += X (I)^T I."""
    heads = classed(drawn(account(STACKS["theorem4_2"])), "head")[2:4]
    for head, marks in zip(heads, (["v q", "k"], ["v", "k q"]), strict=True):
        assert [e.text for e in head.iter("text") if "mark" in e.get("class", "")] == marks
        assert [e.get("class") for e in head.iter("rect")] == ["cell written", "cell"]


def test_a_cell_is_on_the_line_of_its_block() -> None:
    svg = drawn(account(STACKS["theorem4_2"]))
    lanes = dict(zip("XRIAtyo", (float(e.get("y1", 0)) for e in classed(svg, "lane")), strict=True))
    assert len(set(lanes.values())) == 7 and list(lanes.values()) == sorted(lanes.values())
    read = classed(svg, "head")[4]  # out += y (A)^T X
    places = {float(e.get("y", 0)) + float(e.get("height", 0)) / 2 for e in read.iter("rect")}
    assert places == {lanes[name] for name in "XAyo"}


def test_text_is_escaped(tmp_path: Path) -> None:
    told = account(STACKS["lemma4_1"])
    told["parts"][0]["layers"][0]["says"] = HOSTILE
    told["rows"] = {HOSTILE: 1, **told["rows"]}
    told["attention"] = HOSTILE
    svg = drawn(told)
    assert HOSTILE in texts(svg, "block") and not list(svg.iter("script"))
    page = write_report(tmp_path, content(check(construction=told, details=[HOSTILE]))).read_text()
    assert '<svg class="construction"' in page and "<script>alert" not in page and "<img src=x" not in page


def test_the_page_draws_both_stacks_of_a_statement_beside_the_words(tmp_path: Path) -> None:
    other = describe(inversion.lemma4_1_one_layer(3), "one <layer>")
    both = describe(STACKS["lemma4_1"], "two layers", other)
    entries = [check(construction=asdict(both), details=both.lines()), check("one/theorem2")]
    page = write_report(tmp_path, content(*entries)).read_text()
    assert page.count('class="construction"') == 2 and "<p>one &lt;layer&gt;</p>" in page
    assert all(line in unescape(page) for line in both.lines()) and "no mask" in page
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(set(ids)) == len(ids)
    assert {f"check-one-theorem1-construction{part}-title" for part in ("", "-other")} <= set(ids)
