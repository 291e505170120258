"""Tests of the coverage tables: a sentence has a check or a figure, with its verdict, or is an impression."""

import re

import pytest

from icl.catalog import entries
from icl.config.search_path import ConfigDirs
from icl.verdicts import VERDICTS
from scripts.render import NUMBER, ROOT, records

PAPERS = ("ahn", "giannou", "lds", "xie")
LISTED = {(group, entry.id) for group in ("check", "figure") for entry in entries(group, ConfigDirs())}
NAMED = re.compile(r"`(?:(?:check|figure)=)?(\w+/\w+)")
# false: a check of the right statement says so; see: the claims of several figures differ
WORDS = (*VERDICTS, "false", "skipped", "see", "*impression*")


def rows(paper: str) -> list[list[str]]:
    """Return the cells of the table, its header and the line below it first."""
    page = (ROOT / "docs" / "papers" / f"{paper}.md").read_text(encoding="utf-8")
    section = page.split("\n## Coverage\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def verdicts_of(ids: set[str]) -> set[str]:
    """Return the verdicts in the records of these checks, and of the claims of these figures."""
    found = set()
    for id in ids:
        stored = records(id.partition("/")[0])
        parts = [stored["checks"].get(id, {}), *stored["figures"].get(id, {}).get("claims", [])]
        found |= {part["verdict"] for part in parts if part}
    return found


@pytest.mark.parametrize("paper", PAPERS)
def test_every_row_has_a_verdict_that_exists(paper: str) -> None:
    """Find the verdict in one of the named checks and figures, or in a number of theirs that is rendered."""
    header, line, *body = rows(paper)
    assert header == ["where in the paper", "sentence", "covered by", "verdict"] and set("".join(line)) == {
        "-"
    }
    for where, sentence, covered, verdict in body:
        assert where and sentence, (where, sentence)
        named = {id for id in NAMED.findall(covered) if id.startswith(f"{paper}/")}
        if mark := NUMBER.fullmatch(verdict):
            assert mark[1] in named, (sentence, verdict)
            continue
        assert verdict.startswith(WORDS), (sentence, verdict)
        assert covered or len(verdict) > 20, f"{sentence}: the reason is missing"
        if verdict in VERDICTS and named:  # a part of a check may hold where the check does not
            found = verdicts_of(named)
            assert found and (verdict != "undecided" or verdict in found), (sentence, verdict, named)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_check_that_is_named_exists(paper: str) -> None:
    own = {id.partition("/")[0] for _, id in LISTED}
    named = {id for row in rows(paper)[2:] for cell in row for id in NAMED.findall(cell)}
    assert {id for id in named if id.partition("/")[0] in own} <= {id for _, id in LISTED}


def test_every_check_and_figure_of_lds_stands_in_the_table() -> None:
    named = {id for row in rows("lds")[2:] for id in NAMED.findall(row[2])}
    configs = ConfigDirs()
    of_paper = {
        entry.id for group in ("check", "figure") for entry in entries(group, configs)
        if entry.paper == "lds" and entry.origin != "icl"
    }  # fmt: skip
    assert of_paper <= named
