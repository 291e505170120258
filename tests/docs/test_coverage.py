"""Tests of the coverage tables: a sentence has a check or a figure, with its verdict, or is an impression."""

import re

import pytest

from icl.config.search_path import ConfigDirs
from icl.jobs.stored.catalog import entries
from scripts.pages.render import NUMBER, ROOT

PAGES = {
    path.stem: path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "docs" / "papers").glob("*.md"))
    if "\n## Coverage\n" in path.read_text(encoding="utf-8")
}
HEADER = ["where in the paper", "sentence", "covered by", "verdict"]
COVERED = re.compile(r"`(check|figure)=(\w+/\w+)")
IMPRESSIONS = 8


def rows(paper: str) -> list[list[str]]:
    """Return the cells of the table, its header first."""
    section = PAGES[paper].split("\n## Coverage\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_there_are_tables() -> None:
    assert "lds" in PAGES


@pytest.mark.parametrize("paper", PAGES)
def test_every_row_has_a_verdict_that_exists(paper: str) -> None:
    """The verdict is a mark that renders a verdict or a number of a check or figure that the row names."""
    header, line, *body = rows(paper)
    assert header == HEADER and set("".join(line)) == {"-"}
    for where, sentence, covered, verdict in body:
        assert where and sentence and covered, (where, sentence)
        if verdict == "impression":
            assert re.match(r"impression: \w+ (\S+ ){3}", covered), f"{sentence}: the reason is missing"
            continue
        named = {id for _, id in COVERED.findall(covered)}
        mark = NUMBER.fullmatch(verdict)
        assert mark and mark[1] in named, (sentence, verdict)
        is_word = mark[2].split(".")[-1] == "verdict"
        assert is_word == verdict.startswith("*"), (sentence, verdict)


@pytest.mark.parametrize("paper", PAGES)
def test_every_check_and_figure_of_the_paper_stands_in_its_table(paper: str) -> None:
    named = {id for row in rows(paper)[2:] for _, id in COVERED.findall(row[2])}
    configs = ConfigDirs()
    listed = [entry for group in ("check", "figure") for entry in entries(group, configs)]
    of_paper = {entry.id: entry.origin for entry in listed if entry.paper == paper}
    assert named <= of_paper.keys(), "only what exists"
    assert {id for id, origin in of_paper.items() if origin != "icl"} <= named, "all that the paper says"


def test_few_sentences_are_impressions() -> None:
    assert sum(row[3] == "impression" for paper in PAGES for row in rows(paper)) <= IMPRESSIONS
