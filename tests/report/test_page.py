"""Tests of the page as HTML: what is on it, that nothing on it can act, and that it is written whole."""

import errno
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from icl import catalog
from icl.config.search_path import ConfigDirs
from icl.jobs.stored import report_content as report
from icl.report.entries import ReportEntry, paper_of
from icl.report.mathematics import mathml, prose
from icl.report.page import write_report
from icl.runs import atomic
from tests.report.conftest import CLAIMS, HOSTILE, Make, check, content, waiting

ROOT = Path(__file__).parents[2]
VOID = {"meta", "link", "img", "input", "rect"}


class Page(HTMLParser):
    """A parser of elements in order and of the text; each must be closed in turn."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(html)
        assert self.open == []
        self.flat = " ".join(self.text.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {key: value or "" for key, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.text += data

    def all(self, tag: str) -> Iterator[dict[str, str]]:
        return (attributes for name, attributes in self.tags if name == tag)


def page(folder: Path, *entries: ReportEntry, **changes: Any) -> Page:
    told = content(*entries, **changes)
    path = write_report(folder / "report", told)
    assert path == folder / f"report/{told.name}.html"
    return Page(path.read_text())


def text_of(folder: Path, *entries: ReportEntry, **changes: Any) -> str:
    return page(folder, *entries, **changes).flat


def mine(entry: ReportEntry, mark: str = "a" * 12, **changes: Any) -> ReportEntry:
    return replace(entry, is_mine=True, record={**entry.record, "fingerprint": mark}, **changes)


PAPER = paper_of("one", title="A paper", citation="Someone 2020", link="https://example.org/a")
OWN_CLAIM = {"claim": "(a) and (b) agree", "measured": 0.0, "bound": "0", "whose": "project"}
ODD = [
    check(), check("one/b", "fails", expected="holds", claim="Two is one."),
    waiting(id="one/c", state="failed", reason="ZeroDivisionError: no"),
    waiting(id="one/d", state="skipped", reason="no model"),
]  # fmt: skip
NOT_MEASURED, TOO_SHORT = "Nothing has been measured yet.", "training is too short"
SHOWN: dict[str, tuple[Callable[[Make], list[ReportEntry]], dict[str, Any], list[str], list[str]]] = {
    "every statement": (
        lambda figure: [check(), figure()], {"papers": [PAPER]},
        ["Of 3 statements in 1 paper, 2 hold, 1 known false.", "A paper", "Someone 2020",
         "The minimum is at A.", "gradient_norm", "2.1e-16", "Bound: rounding: 64 eps, times all terms",
         "Control, a wrong statement: at twice A. It has 0.5 and is rejected.", "the curve falls",
         "'almost 0'", "¬ known false", "A curve.", "commit 0123456789ab", "A processor",
         "icl check check=one/theorem1 scale=laptop", "icl figure figure=one/fig1",
         "runs/one/first/0123456789ab", "false: 'almost 0'"],
        ["false: the curve falls", "Mine", "Needs attention", "without a result"],
    ),
    "a paper nobody described": (lambda _: [check("mylab/lemma0")], {}, ["mylab"], []),
    "a sentence of this project": (
        lambda figure: [check(), figure(claims=[*CLAIMS, OWN_CLAIM]), check("one/own", origin="icl")], {},
        ["Of 5 statements in 1 paper (2 of them this project's own)", "Statements of this project",
         "(a) and (b) agree Statement of this project", "Misprints, gaps and sharper statements: 1"], [],
    ),
    "what is false": (
        lambda _: [check("one/a", "fails", remarks=["Two is two. The proof divides by 0."])], {},
        ["¬ known false Theorem 1 The minimum is at A. Two is two. gradient_norm"], [],
    ),
    "other than expected": (
        lambda _: ODD, {"mine": [mine(check(verdict="undecided", expected="holds", claim="Mine, open."))]},
        ["1 holds, 1 other than expected.", "✗ fails expected: holds Theorem 1 Two",
         "Needs attention ? undecided",
         "! failed Reference of one/c ZeroDivisionError: no", "expected: holds Theorem 1 Mine, open.",
         "2 without a result", "skipped Reference of one/d no model"], ["! failed Reference of one/d"],
    ),
    "not run": (
        lambda _: [check(), waiting(), waiting("figure", "one/fig2")], {},
        ["2 of 3 checks and figures were not run at laptop scale", "– 2 not run", "2 without a result",
         "not run Reference of one/fig2 icl figure figure=one/fig2"], [],
    ),
    "stale": (
        lambda figure: [check(state="stale", reason="made with other code"), figure()], {},
        ["stale record", "1 of 2 results were made with other code", "Stale: made with other code"], [],
    ),
    "nothing": (lambda _: [], {}, [NOT_MEASURED], []),
    "nothing yet": (lambda _: [waiting()], {}, [NOT_MEASURED], []),
    "undecided": (lambda _: [check(verdict="undecided")], {}, ["? undecided"], [TOO_SHORT]),
    "undecided at smoke": (lambda _: [check(verdict="undecided")], {"scale": "smoke"}, [TOO_SHORT], []),
}  # fmt: skip


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_shown(name: str, tmp_path: Path, figure: Make) -> None:
    entries, changes, parts, absent = SHOWN[name]
    text = text_of(tmp_path, *entries(figure), **changes)
    assert [part for part in parts if part not in text] == []
    assert [part for part in absent if part in text] == []


def test_rows_pictures_and_what_is_folded(tmp_path: Path, figure: Make) -> None:
    html = write_report(tmp_path, content(check(), figure(), check("two/a"), waiting())).read_text()
    found = Page(html)
    rows = [attributes["data-kind"] for _, attributes in found.tags if "data-kind" in attributes]
    assert rows == ["holds", "holds", "known-false", "open", "holds"]
    (picture,) = found.all("img")
    assert (picture["width"], picture["height"]) == ("120", "60")
    assert picture["alt"] == "Figure 1. A curve. 1 holds, 1 known false."
    folded = [a for a in found.all("details") if {"paper", "idle"} & {a.get("class")}]
    assert len(folded) == 3 and not any("open" in attributes for attributes in folded)
    alone = next(a for a in page(tmp_path, check()).all("details") if a.get("class") == "paper")
    assert "open" in alone, "a paper alone is open"


def test_what_the_reader_has_checked_is_first_with_its_settings(tmp_path: Path, figure: Make) -> None:
    said = "Theorem 1 holds at d = 7: it is 0 (exact)."
    tries = {"decided": 20, "holds": 20, "fails": 0, "undecided": 0}
    settings = {"dim": 7, "covariance": None}
    own = mine(check(sentence=said, settings=settings, tries=tries), command="icl check dim=7")
    file = mine(check("BestStep", paper="", claim="My own."), "b" * 12)
    drawn = mine(figure("one/fig1", settings={"layers": 2}), "c" * 12)
    highlight = {
        "title": "A finding", "text": ["It is {one/theorem1 risk}."], "statements": {"one/theorem1": "holds"},
    }  # fmt: skip
    missing = {"title": "Of a figure that is not here", "text": ["It is drawn."], "figure": "one/fig9"}
    papers = [paper_of("one", title="A paper", highlights=[highlight, missing])]
    found = page(tmp_path, check(), figure(), papers=papers, mine=[own, file, drawn])
    text = found.flat
    assert missing["title"] not in text
    assert "Of 4 at settings or in files of your own, 3 hold, 1 known false." in text
    first = text[text.index("Mine: at my own settings") : text.index("What was found")]
    told = (said, "holds at 20 of 20 random settings", "dim 7", "icl check dim=7", "My own.", "layers 2")
    assert [part for part in told if part not in first] == []
    assert "covariance" not in first, "a setting that is not set"
    assert text.index("What was found") < text.index("A finding") < text.index("Paper by paper")


def test_terms_stand_where_they_are_used(tmp_path: Path) -> None:
    about = {"minimum": "where it is least", "S": "a set", "eq. (6)": "the layer"}
    papers = [paper_of("one", "A", terms=[{"name": name, "text": text} for name, text in about.items()])]
    entries = [check("one/a", claim="Minimum on a Set."), check("one/b", claim="On S (S), eq. (6).")]
    html = write_report(tmp_path, content(*entries, papers=papers)).read_text()
    first, second = (part.partition("Control, a")[0] for part in html.split('<div class="evidence">')[1:])
    assert "where it is least" in first and "a set" not in first
    assert "a set" in second and "the layer" in second and "least" not in second


def test_what_comes_from_configs_and_records_cannot_act(tmp_path: Path, figure: Make) -> None:
    bad = HOSTILE
    claim = {"claim": bad, "measured": {bad: [bad], "l": [bad] * 20}, "bound": bad, "verdict": bad}
    claim["notes"] = [bad]
    entries = [
        check(claim=bad, measured={bad: bad}, remarks=[bad], notes=[bad, f"n {bad}"], settings={bad: bad},
              bound={"value": 1.0, "source": bad}, reason=bad, sentence=bad, verdict=bad,
              inputs=[{"key": bad, "path": bad, "shape": [bad], "sha256": bad}],
              control={"description": bad, "measured": bad, "exact": "<b>", "rejected": False}),
        figure(claims=[claim], caption=bad),
        figure(f"one/{bad.replace('/', '')}", reference=bad, command=bad),
        waiting(id=bad, state="failed", reason=bad), waiting(id="one/x", state=bad, reason=bad),
    ]  # fmt: skip
    papers = [
        paper_of(id, title=bad, citation=bad, link=f"{scheme}{bad}")
        for id, scheme in (("one", "javascript:alert(1)//"), ("two", "https://"))
    ]
    entries.append(check("two/a"))
    own = mine(check("two/b", claim=bad, typed=[bad]), command=bad, title=bad)
    told = replace(content(*entries, papers=papers, mine=[own]), provenance={"written": bad})
    write_report(tmp_path / "report", told)
    html = (tmp_path / "report/index.html").read_text()
    found = Page(html)
    assert html.count("<script") == 1 and bad in found.text
    assert not [key for _, attributes in found.tags for key in attributes if key.startswith("on")]
    targets = [a["href"] for a in found.all("a")] + [i["src"] for i in found.all("img")]
    assert not any(target.startswith(("javascript:", "data:")) for target in targets)
    assert len(list(found.all("img"))) == 2


def test_the_policy_allows_our_own_script_and_style_and_nothing_from_elsewhere(
    tmp_path: Path, figure: Make
) -> None:
    html = write_report(tmp_path, content(check(), figure())).read_text()
    found = Page(html)
    (policy,) = (m["content"] for m in found.all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    assert not any({"style", "onclick"} & set(attributes) for _, attributes in found.tags)
    for attributes in [*found.all("img"), *found.all("link")]:
        assert "//" not in attributes.get("src", attributes.get("href", ""))
    for name in ("style.css", "page.js"):
        told = (ROOT / "icl/report" / name).read_text()
        assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|https?://|import\(", told), name


def test_headings_labels_and_links_are_in_order(tmp_path: Path, figure: Make) -> None:
    found = page(tmp_path, check(), figure(), check("two/a"), waiting("figure", "two/fig2"))
    levels = [int(tag[1]) for tag, _ in found.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(deeper <= level + 1 for level, deeper in pairwise(levels))
    ids = [attributes["id"] for _, attributes in found.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for link in found.all("a"):
        target = link["href"]
        assert target[1:] in ids if target[0] == "#" else (tmp_path / "report" / target).is_file(), target
    for name in ("aria-labelledby", "aria-describedby"):
        assert all(attributes[name] in ids for _, attributes in found.tags if name in attributes)
    assert next(iter(found.all("html")))["lang"] == "en"
    assert all(picture["alt"] for picture in found.all("img"))


def test_the_page_is_there_whole_or_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_report(tmp_path, content(check()))
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(atomic.os, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        write_report(tmp_path, content(check("one/other")))
    assert path.read_bytes() == before
    assert {p.name for p in tmp_path.iterdir()} == {"index.html", "laptop.html"}


def test_no_paper_is_named_in_the_code() -> None:
    papers = {path.stem for path in (ROOT / "conf/paper").glob("*.yaml")}
    assert len(papers) >= 4
    for path in [*(ROOT / "icl/report").glob("*.*"), ROOT / "icl/jobs/stored/report_content.py"]:
        words = set(re.findall(r"[a-z]+", path.read_text().lower()))
        assert not words & papers, path


def test_a_page_of_another_scale_replaces_none_and_the_last_is_the_index(tmp_path: Path) -> None:
    full = write_report(tmp_path, content(check(), check("one/b")))
    smoke = write_report(tmp_path, content(check(), scale="smoke"))
    part = write_report(tmp_path, content(check(), only=["one"]))
    assert len({full, smoke, part}) == 3 and all(map(Path.exists, (full, smoke, part)))
    assert (tmp_path / "index.html").read_bytes() == part.read_bytes()


def test_every_shipped_formula_and_text_becomes_mathml() -> None:
    formulas = [entry.formula for entry in catalog.entries("check", ConfigDirs()) if entry.formula]
    assert len(formulas) >= 50
    ids = {entry.paper for group in report.SHOWN for entry in catalog.entries(group, ConfigDirs())}
    papers = [report.paper(id, ConfigDirs()) for id in sorted(ids)]
    texts = [term["text"] for paper in papers for term in paper["terms"]]
    texts += [text for paper in papers for found in paper["highlights"] for text in found["text"]]
    wrong = [latex for latex in formulas if not mathml(latex).startswith("<math")]
    assert not wrong + [text for text in texts if "<code>" in prose(text) or "$" in prose(text)]


def test_a_story_tells_the_numbers_of_the_records_and_leaves_out_what_is_not_there(
    tmp_path: Path, figure: Make
) -> None:
    of_check = "The risk is {one/theorem1 risk} at $d = {one/theorem1 settings.dim}$."
    words = [f"{of_check} It fell from {{one/fig1 from}}.", "Nobody has {one/theorem2 risk}."]
    highlight = {"title": "Half", "text": words, "statements": {"one/theorem1": "holds"}}
    terms = [{"name": "minimum", "text": "where $f$ is least"}]
    paper = paper_of("one", title="A paper", terms=terms, highlights=[highlight])
    text = text_of(tmp_path, check(), figure(), papers=[paper])
    told = text[text.index("What was found") : text.index("Paper by paper")]
    assert "The risk is 0.25 at d=5. It fell from 1." in told and "Nobody" not in told
    alone = text_of(tmp_path, check(), papers=[paper])
    assert "It fell" not in alone and "✓ Theorem 1" in alone
    assert "What was found" not in text_of(tmp_path, figure(), papers=[paper])
    other = check(verdict="fails")
    assert "What was found" not in text_of(tmp_path, other, papers=[paper]), "it came out otherwise"
