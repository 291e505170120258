"""Tests of README and docs: numbers are those of the records, links lead somewhere, formulas are read."""

import json
import re
from pathlib import Path

import pytest

from icl.report.entries import ReportEntry
from icl.report.highlights import value_of
from scripts.render import NUMBER, RECORDS, ROOT, pages, render

WORDS = [ROOT / "CONTRIBUTING.md", *pages()]


def names(group: str) -> set[str]:
    folder = ROOT / "conf" / group
    return {path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.yaml")}


def test_numbers_are_those_of_the_records() -> None:
    """Run `python scripts/render.py` where this fails."""
    assert len(NUMBER.findall((ROOT / "README.md").read_text("utf-8"))) > 5
    assert [path for path in pages() if render(path.read_text("utf-8")) != path.read_text("utf-8")] == []


def test_records_are_those_of_the_checks_and_figures() -> None:
    """Run `icl reproduce` and scripts/records.py where this fails."""
    stored = [json.loads(path.read_text("utf-8")) for path in RECORDS.glob("*.json")]
    for group in ("check", "figure"):
        assert {id for paper in stored for id in paper[f"{group}s"]} == names(group)


def test_highlights_name_numbers_that_there_are() -> None:
    """A sentence whose number is not found is left out of the report."""
    stored = [json.loads(path.read_text("utf-8")) for path in RECORDS.glob("*.json")]
    records = {id: record for paper in stored for of in paper.values() for id, record in of.items()}
    for path in (ROOT / "conf" / "paper").glob("*.yaml"):
        for id, name in re.findall(r"\{(\w+/\w+) ([^{}]+)\}", path.read_text("utf-8")):
            entry = ReportEntry("", id, "", "", "", document=records[id])
            assert value_of(entry, name) is not None, f"{path.name}: {id} {name}"


def test_forms_of_a_number() -> None:
    mark = "0<!-- ahn/fig4 claims.0.measured.B_0.* {}:.3f -->"
    least, most = (render(mark.format(form)).partition("<")[0] for form in ("min", "max"))
    assert float(least) < float(most)
    with pytest.raises(KeyError, match="no record has nothing"):
        render("1.0<!-- ahn/theorem3 measured.nothing .1f -->")


@pytest.mark.parametrize("page", WORDS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_reads_on_a_forge(page: Path) -> None:
    """Find no HTML formula, no command that Markdown or GitHub misreads, no stray dollar."""
    text = page.read_text("utf-8")
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    assert "{{" not in text and not re.search(r"<(svg|math)\b", prose)
    displayed = re.findall(r"^\$\$(.*?)\$\$$", prose, re.DOTALL | re.MULTILINE)
    inline = re.sub(r"^\$\$.*?\$\$$", "", prose, flags=re.DOTALL | re.MULTILINE)
    formulas = re.findall(r"(?<=[\s(])\$([^$\n]+)\$(?!\w)", inline)
    assert inline.count("$") == 2 * len(formulas)
    assert not [f for f in (*displayed, *formulas) if re.search(r"\\[^a-zA-Z]|\*|\\operatorname", f)]
    assert not [formula for formula in formulas if formula != formula.strip()]


@pytest.mark.parametrize("page", WORDS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), target


def test_the_torch_of_the_tutorial_is_the_pinned_one() -> None:
    pinned = re.search(r"^torch==(\S+)", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE)
    assert pinned and f"torch {pinned[1]}" in (ROOT / "docs" / "tutorial.md").read_text("utf-8")
