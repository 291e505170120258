"""Tests of the page as HTML: what is on it, that nothing on it can act, and that it is written whole."""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from icl.config.search_path import ConfigDirs
from icl.jobs.stored import catalog, report
from icl.report.content import Highlight, Paper, ReportEntry, Term
from icl.report.mathematics import mathml, prose
from icl.report.page import write_report
from icl.runs import atomic
from tests.report.conftest import CLAIMS, HOSTILE, Make, check, content, waiting

ROOT = Path(__file__).parents[2]
VOID = {"meta", "link", "img", "input", "rect"}


class Page(HTMLParser):
    """A parser of elements in order, the text of each, and whether all were closed in turn."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {key: value or "" for key, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {key: value or "" for key, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.text += data

    @property
    def flat(self) -> str:
        """Return the text, with single spaces."""
        return " ".join(self.text.split())

    def all(self, tag: str) -> Iterator[dict[str, str]]:
        return (attributes for name, attributes in self.tags if name == tag)


def page(folder: Path, *entries: ReportEntry, **changes: Any) -> Page:
    told = content(*entries, **changes)
    path = write_report(folder / "report", told)
    assert path == folder / f"report/{told.name}.html"
    return Page(path.read_text())


def text_of(folder: Path, *entries: ReportEntry, **changes: Any) -> str:
    return page(folder, *entries, **changes).flat


def test_every_statement_is_on_the_page(tmp_path: Path, figure: Make) -> None:
    paper = Paper("one", "A paper", "Someone 2020", "https://example.org/a")
    found = page(tmp_path, check(), figure(), papers=[paper])
    text = found.flat
    assert "mylab" in text_of(tmp_path, check("mylab/lemma0")), "a paper nobody described goes by its id"
    for part in (
        "Of 3 statements on 1 paper, 2 hold and 1 is known false.",
        "A paper", "Someone 2020", "The minimum is at A.", "gradient_norm", "2.10 × 10⁻¹⁶",
        "rounding: 64 ε, times all terms", "rejected",
        "at twice A", "the curve falls", "'almost 0'", "A curve.",
        "commit 0123456789ab", "A processor",
        "icl check check=one/theorem1 scale=laptop", "icl figure figure=one/fig1", "train.steps",
    ):  # fmt: skip
        assert part in text, part
    rows = [attributes for _, attributes in found.tags if "data-statement" in attributes]
    assert [row["data-kind"] for row in rows] == ["holds", "holds", "fails"]
    (picture,) = found.all("img")
    assert (picture["width"], picture["height"]) == ("120", "60")
    assert "A curve." in picture["alt"] and "1 holds and 1 is known false." in picture["alt"]


def test_the_projects_own_sentences_are_told_from_the_papers(tmp_path: Path, figure: Make) -> None:
    own = {"claim": "(a) and (b) agree", "measured": 0.0, "bound": "0", "whose": "project"}
    text = text_of(tmp_path, check(), figure(claims=[*CLAIMS, own]))
    assert "Of 4 statements on 1 paper (1 of them this project's own)" in text
    _, _, after = text.partition("(a) and (b) agree")
    assert after.lstrip().startswith("Statement of this project")
    text = text_of(tmp_path, check(), replace(check("one/own", claim="Own."), origin="icl"))
    paper, _, ours = text.partition("Statements of this project")
    assert "The minimum is at A." in paper and "Own." not in paper and "Own." in ours
    study = replace(check("two/own", claim="Own."), origin="icl")
    assert "Of 2 statements on 1 paper and 1 study of this project" in text_of(tmp_path, check(), study)
    _, _, misprints = text.partition("Misprints, gaps and sharper statements")
    assert misprints.lstrip().startswith("· 1"), "a remark on a statement of our own is none"


def test_what_is_false_says_so_in_words_where_it_is_listed(tmp_path: Path, figure: Make) -> None:
    untrue = check("one/a", "fails", claim="Two is one.", remarks=["Two is two. The proof divides by 0."])
    html = write_report(tmp_path / "report", content(untrue, figure())).read_text()
    lines = [Page(part.partition("</summary>")[0]).flat for part in html.split("<summary>")[1:3]]
    summary, other = (" ".join(line.split()) for line in lines)
    assert summary == "✗ known false Theorem 1 Two is one. Two is two."
    assert "divides" not in other
    later = check("one/b", "fails", remarks=["The proof divides by 0.", "It is so. It is false for x > 1."])
    assert (
        "It is false for x &gt; 1.</span></span></summary>"
        in write_report(tmp_path, content(later)).read_text()
    )
    (claim,) = re.findall(r'<li class="claim-row"[^>]*data-kind="fails".*?<details>', html, re.DOTALL)
    assert "0.1336" in claim, "a claim without a remark says what was measured"


def test_what_is_not_as_expected_needs_attention(tmp_path: Path) -> None:
    odd = check("one/b", "fails", expected="holds", claim="Two is one.")
    failed = waiting(id="one/c", state="failed", reason="ZeroDivisionError: no")
    skipped = waiting(id="one/d", state="skipped", reason="no model")
    text = text_of(tmp_path, check(), odd, failed, skipped)
    alarm = text.split("Needs attention")[-1].split("Open a line")[0]
    assert "no model" in text and "no model" not in alarm
    for part in ("Two is one.", "expected: holds", "ZeroDivisionError: no"):
        assert part in alarm, part
    assert "1 holds and 1 fails; 1 other than expected." in text
    assert text.count("✗ known false") == 1, "a verdict that nobody expected is not known: the legend's only"
    assert "Needs attention" not in page(tmp_path, check()).text


def test_states(tmp_path: Path, figure: Make) -> None:
    live = page(tmp_path, check(), waiting(), waiting("figure", "one/fig9", state="running"))
    assert "1 of 3 checks and figures done" in live.flat and "Reload it" in live.text
    assert any("data-live" in attributes for attributes in live.all("body"))
    rows = [attributes for _, attributes in live.tags if "data-kind" in attributes]
    assert [row["data-kind"] for row in rows] == ["holds", "open", "open"]
    quiet = page(tmp_path, check(), waiting(reason="not run"))
    assert not any("data-live" in attributes for attributes in quiet.all("body"))
    assert "– not run" in quiet.flat and "no result at this scale" in quiet.text
    stale = page(tmp_path, replace(check(), state="stale", reason="made with other code"), figure())
    assert "stale record" in stale.text and "1 of 2 results were made with other code" in stale.text
    assert "Nothing has been measured yet." in text_of(tmp_path, waiting())
    assert "Nothing has been measured yet." in text_of(tmp_path)
    undecided = check(verdict="undecided")
    for scale in ("smoke", "laptop"):
        told = text_of(tmp_path, undecided, scale=scale)
        assert ("training is too short" in told) == (scale == "smoke"), "which explains it"


def test_what_comes_from_configs_and_records_cannot_act(tmp_path: Path, figure: Make) -> None:
    bad = HOSTILE
    claim = {"claim": bad, "measured": {bad: [bad], "l": [bad] * 20}, "bound": bad, "verdict": bad}
    claim["notes"] = [bad]
    entries = [
        check(claim=bad, measured={bad: bad}, remarks=[bad], notes=[bad, f"n {bad}"], settings={bad: bad},
              bound={"value": 1.0, "source": bad}, reason=bad,
              control={"description": bad, "measured": bad, "rejected": False}),
        figure(claims=[claim], caption=bad),
        figure(f"one/{bad.replace('/', '')}", reference=bad, command=bad),
        waiting(id=bad, state="failed", reason=bad), waiting(id="one/x", state=bad, reason=bad),
    ]  # fmt: skip
    papers = [Paper("one", bad, bad, f"javascript:alert(1)//{bad}"), Paper("two", bad, bad, f"https://{bad}")]
    entries.append(check("two/a"))
    told = content(*entries, papers=papers, written=bad)
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
        raise OSError("no space left")

    monkeypatch.setattr(atomic.os, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        write_report(tmp_path, content(check("one/other")))
    assert path.read_bytes() == before
    assert {p.name for p in tmp_path.iterdir()} == {"index.html", "laptop.html", "files"}


def test_a_module_of_the_report_needs_no_torch_and_jinja_only_to_write() -> None:
    script = (
        "import sys, icl.report.page\n"
        "assert not {'jinja2', 'torch', 'numpy', 'matplotlib', 'hydra'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)


def test_no_paper_is_named_in_the_code() -> None:
    papers = {path.stem for path in (ROOT / "conf/paper").glob("*.yaml")}
    assert len(papers) >= 4
    for path in [*(ROOT / "icl/report").glob("*.*"), ROOT / "icl/jobs/stored/report.py"]:
        words = set(re.findall(r"[a-z]+", path.read_text().lower()))
        assert not words & papers, path


def test_a_page_of_another_scale_replaces_none_and_the_fullest_is_the_index(tmp_path: Path) -> None:
    full = write_report(tmp_path, content(check(), check("one/b")))
    smoke = write_report(tmp_path, content(check(), scale="smoke"))
    part = write_report(tmp_path, content(check(), only=["one"]))
    assert len({full, smoke, part}) == 3
    assert (tmp_path / "index.html").read_bytes() == full.read_bytes(), "the one that has decided most"
    for path in (full, smoke, part):
        links = {link["href"] for link in Page(path.read_text()).all("a")}
        assert {"laptop.html", "smoke.html", "laptop-one.html"} <= links


def test_every_shipped_formula_and_text_becomes_mathml() -> None:
    formulas = [entry.formula for entry in catalog.entries("check", ConfigDirs()) if entry.formula]
    assert len(formulas) >= 50
    papers = report.papers(catalog.papers(ConfigDirs()), ConfigDirs())
    texts = [term.text for paper in papers for term in paper.terms]
    texts += [text for paper in papers for highlight in paper.highlights for text in highlight.text]
    wrong = [latex for latex in formulas if not mathml(latex).startswith("<math")]
    assert not wrong + [text for text in texts if "<code>" in prose(text) or "$" in prose(text)]


def test_a_story_tells_the_numbers_of_the_records_and_leaves_out_what_is_not_there(
    tmp_path: Path, figure: Make
) -> None:
    of_check = "The risk is {one/theorem1 risk} at $d = {one/theorem1 settings.dim}$."
    words = [f"{of_check} It fell from {{one/fig1 from}}.", "Nobody has {one/theorem2 risk}."]
    highlight = Highlight("Half", words, {"one/theorem1": "holds"})
    terms = [Term("minimum", "where $f$ is least", "the least")]
    paper = Paper("one", "A paper", terms=terms, highlights=[highlight])
    text = text_of(tmp_path, check(), figure(), papers=[paper])
    told = text[text.index("What was found") : text.index("Theorems, lemmas")]
    assert "The risk is 0.25 at d=5. It fell from 1." in told and "Nobody" not in told
    alone = text_of(tmp_path, check(), papers=[paper])
    assert "It fell" not in alone and "✓ Theorem 1" in alone
    assert "What was found" not in text_of(tmp_path, figure(), papers=[paper])
    other = check(verdict="fails")
    assert "What was found" not in text_of(tmp_path, other, papers=[paper]), "it came out otherwise"
