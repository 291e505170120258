"""Tests of where the marks of the ruler lie."""

from itertools import pairwise
from xml.etree import ElementTree

import pytest

from icl.report.ruler import LEFT, RIGHT, WIDTH, Marks, svg
from icl.report.statements import statements
from tests.report.conftest import check, content


def places(marks: Marks) -> dict[str, float]:
    root = ElementTree.fromstring(svg(marks, "holds"))
    found = {node.get("class", "").split()[0]: node.attrib for node in root if node.tag != "text"}
    side, start = found["side"], float(found["side"]["x"])
    at = {"dot": float(found["dot"]["cx"]), "bound": float(found["bound"]["x1"])}
    return at | {"from": start, "to": start + float(side["width"])}


def test_powers_of_ten_are_evenly_spaced() -> None:
    dots = [places(Marks(10.0**power, 1.0, "<", 1e-8))["dot"] for power in (-8, -6, -4, -2)]
    assert len({round(right - left, 1) for left, right in pairwise(dots)}) == 1 and dots[0] == LEFT


@pytest.mark.parametrize(
    ("marks", "inside"),
    [
        (Marks(1e-15, 1e-12, "<", 0.5), True), (Marks(1.0, 1e-12, "<"), False), 
        (Marks(0.0, 1e-12, "<"), True),
        (Marks(0.2, 1e-11, ">"), True), (Marks(0.0, 1e-11, ">"), False), (Marks(-0.004, -0.01, "<"), False),
        (Marks(-1e-13, -1e-9, ">"), True), (Marks(0.0, 0.0, "<"), True), (Marks(1.0, 1.0, "<"), True),
    ],
)  # fmt: skip
def test_the_dot_is_on_the_shaded_side_where_the_claim_puts_it(marks: Marks, inside: bool) -> None:
    at = places(marks)
    assert (at["from"] <= at["dot"] <= at["to"] + 0.05) == inside
    assert LEFT <= at["dot"] <= WIDTH - RIGHT and LEFT <= at["bound"] <= WIDTH - RIGHT


def test_a_control_is_marked_where_it_lies_beyond_the_bound() -> None:
    def marks(**control: object) -> Marks | None:
        told = {"description": "c", "rejected": True, **control}
        return statements(content(check(control=told)))[0].marks

    refuted = statements(content(check(verdict="fails")))[0].marks
    assert refuted == Marks(2.1e-16, 1e-12, ">", 0.5), "the statement would be true on the other side"
    assert marks(measured=0.5) == Marks(2.1e-16, 1e-12, "<", 0.5)
    assert marks(measured=1e-20) == marks(measured=None) == Marks(2.1e-16, 1e-12, "<")
    assert statements(content(check(measured={"gradient_norm": float("nan")})))[0].marks is None
