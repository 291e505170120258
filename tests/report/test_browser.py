"""Tests of the page in a real browser, from disk. Skipped where no Chromium is found
(scripts/chromium.sh).
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from icl.report.content import Paper, ReportEntry, Term
from icl.report.page import write_report
from tests.report.browser import Browser, find
from tests.report.conftest import HOSTILE, Make, check, content, waiting

PROGRAM = find()
pytestmark = [
    pytest.mark.chromium,
    pytest.mark.skipif(PROGRAM is None, reason="no Chromium or Chrome is installed"),
]
LONG = "a_name_without_a_place_to_break_" * 6
TERMS = [Term("minimum", f"where $f$ is least, {LONG}")]
PALE = """(() => {
  const part = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const behind = (e) => {
    const colour = e ? rgb(getComputedStyle(e).backgroundColor) : [255, 255, 255];
    return colour.length < 4 || colour[3] ? colour : behind(e.parentElement);
  };
  const own = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  const shown = [...document.querySelectorAll('body *')].filter((e) => own(e) && e.getClientRects().length);
  return shown.map((e) => {
    const [a, b] = [light(rgb(getComputedStyle(e).color)), light(behind(e))];
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.outerHTML.slice(0, 100)];
  }).filter(([ratio]) => ratio < 4.5);
})()"""
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


@pytest.fixture
def path(tmp_path: Path, figure: Make) -> Path:
    """Write a page with two papers, every state, awkward values and hostile text."""
    wide = check(
        "one/wide", measured={LONG: [1e-16] * 40}, bound={"value": 1.0, "source": LONG},
        remarks=[LONG], notes=[LONG, f"a note {LONG}"],
        control={"description": LONG, "measured": 0.5, "rejected": True}, claim=LONG, command=f"icl {LONG}",
    )  # fmt: skip
    odd_claim = {"claim": LONG, "measured": {LONG: LONG}, "bound": LONG}
    entries = [
        check(), wide, check("one/odd", "fails", expected="holds"),
        check("two/a", "undecided", claim=HOSTILE), figure(caption=HOSTILE), figure("two/fig1", [odd_claim]),
        waiting(reason="not run"), waiting("figure", "two/fig2", state="failed", reason=LONG),
    ]  # fmt: skip
    told = content(
        *entries,
        papers=[Paper("one", "The first paper", "Someone 2020", f"https://example.org/{LONG}", TERMS)],
    )
    return write_report(tmp_path / "report", told)


@contextmanager
def begun_with(tab: Browser, source: str) -> Iterator[None]:
    """Run this script first in every page that is opened in the block."""
    script = tab.call("Page.addScriptToEvaluateOnNewDocument", source=source)["identifier"]
    try:
        yield
    finally:
        tab.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)


def complaints(tab: Browser) -> list[dict[str, Any]]:
    told = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
    told += ("Page.javascriptDialogOpening",)
    return [event for event in tab.events if event.get("method") in told]


def test_it_loads_from_disk_without_errors_or_network(tab: Browser, path: Path) -> None:
    tab.open(path)
    tab.run("document.getElementById('all').click()")
    ratios = tab.run("[...document.images].map((image) => getComputedStyle(image).aspectRatio)")
    assert ratios == ["auto 120 / 60"] * 2, "pictures have their place before they load"
    tab.run("Promise.all([...document.images].map((i) => { i.loading = 'eager'; return i.decode(); }))")
    sent = [event for event in tab.events if event.get("method") == "Network.requestWillBeSent"]
    asked = [event["params"]["request"]["url"] for event in sent]
    assert complaints(tab) == []
    assert len(asked) >= 3 and all(url.startswith(("file://", "data:")) for url in asked), asked
    size = "[i.complete, i.naturalWidth, i.getBoundingClientRect().height > 0]"
    assert tab.run(f"[...document.images].map((i) => {size})") == [[True, 120, True]] * 2


def test_injected_markup_would_not_run_either(tab: Browser, path: Path) -> None:
    """Disable the escaping: the policy stops what it would let through."""
    injected = "<img src=x onerror='window.hit=1'><script>window.hit=2</script>"
    path.write_text(path.read_text().replace("</main>", f"{injected}</main>"))
    tab.open(path)
    assert tab.run("window.hit === undefined")
    tab.wait_for("Log.entryAdded")


def shown(tab: Browser) -> list[str]:
    return tab.run(
        "[...document.querySelectorAll('[data-statement]')].filter((row) => !row.closest('[hidden]'))"
        ".map((row) => row.dataset.kind)"
    )


def test_filters(tab: Browser, path: Path) -> None:
    tab.open(path)
    everything = ["holds", "holds", "fails", "holds", "fails", "undecided", "holds"]
    assert sorted(shown(tab)) == sorted(everything)
    assert tab.run("document.getElementById('count').textContent") == f"{len(everything)} statements"
    assert tab.run("document.querySelector('.lead b').textContent") == str(len(everything))
    for kind, count in {"holds": 4, "fails": 2, "undecided": 1, "unexpected": 1, "open": 0}.items():
        tab.run(f"document.querySelector('[data-show={kind}]').click()")
        assert len(shown(tab)) == count, kind
        assert tab.run("document.querySelector('[aria-pressed=true]').dataset.show") == kind
    assert "0 of 7" in tab.run("document.getElementById('count').textContent")
    tab.run("document.querySelector('[data-show=fails]').click()")
    hidden = "[...document.querySelectorAll('details.figure')].map((part) => part.hidden)"
    assert tab.run(hidden) == [False, True]
    query = tab.run("location.search")
    tab.call("Page.reload")
    tab.run("new Promise((done) => addEventListener('load', done))")
    assert shown(tab) == ["fails", "fails"] and tab.run("location.search") == query, "the URL keeps it"
    follow(tab, "#check-one-theorem1")
    assert len(shown(tab)) == 7, "a link leads to a row that was filtered away"


def follow(tab: Browser, anchor: str) -> None:
    """Go to a place on the page."""
    go = f"location.hash = '{anchor}'"
    tab.run(f"new Promise((done) => {{ addEventListener('hashchange', () => setTimeout(done)); {go}; }})")


def search(tab: Browser, words: str) -> list[list[Any]]:
    """Return the results of a search: where each leads, and how well it fits."""
    tab.run(
        "(() => { const box = document.getElementById('filter'); box.value = "
        f"{json.dumps(words)}; box.dispatchEvent(new Event('input')); }})()"
    )
    each = "[item.querySelector('a').getAttribute('href').slice(1), Number(item.dataset.degree)]"
    return tab.run(f"[...document.querySelectorAll('#results li')].map((item) => {each})")


def test_search_ranks_titles_first_and_the_phrase_before_its_words(
    tab: Browser, tmp_path: Path, figure: Make
) -> None:
    def titled(id: str, title: str, claim: str = "It is so.") -> ReportEntry:
        return replace(check(f"one/{id}", claim=claim, remarks=[], notes=[]), title=title, reference="")

    entries = [
        titled("a", "Lemma 3: on a theorem"), titled("b", "Remark 1: after Theorem 3"),
        titled("c", "Lemma 9", "By Theorem 3.1, of 3 layers."), titled("d", "Theorem 3: critical points"),
        titled("e", "Lemma 8", "At Sigma^-1 as in Theorem 3."), titled("f", "Theorem 31: another"),
        titled("g", "Lemma 7", "Nothing."), replace(figure(), title="Figure 3: theorems"),
    ]  # fmt: skip
    tab.open(write_report(tmp_path / "report", content(*entries)))
    found = search(tab, "  theorem   3 ")
    places = [place.removeprefix("check-one-") for place, _ in found]
    assert places == ["d", "b", "f", "a", "figure-one-fig1", "e", "c"]
    assert [degree for _, degree in found] == sorted(degree for _, degree in found)
    assert "7 found, 5 by title" in tab.run("document.getElementById('found').textContent")
    assert [place for place, _ in search(tab, "sigma^-1")] == ["check-one-e"], "a formula is found as typed"
    assert [place for place, _ in search(tab, "almost 0")] == ["figure-one-fig1-2"]
    assert search(tab, "nowhere at all") == []
    assert tab.run("document.getElementById('found').textContent") == "nothing found"
    assert len(shown(tab)) == 9, "a search hides no row"
    tab.run("document.querySelector('[data-show=fails]').click()")
    assert [place for place, _ in search(tab, "figure")] == ["figure-one-fig1"], "filters narrow it"


def test_the_keyboard_is_enough(tab: Browser, path: Path) -> None:
    tab.open(path)
    tab.key("Tab", 9)
    assert tab.run("document.activeElement.className") == "skip"
    assert tab.run("document.activeElement.getBoundingClientRect().left") >= 0
    for _ in range(40):
        if tab.run("document.activeElement.dataset.show") == "fails":
            break
        tab.key("Tab", 9)
        outline = tab.run("parseFloat(getComputedStyle(document.activeElement).outlineWidth)")
        assert outline >= 1, "focus is visible"
    tab.key("Enter", 13)
    assert shown(tab) == ["fails", "fails"]


def test_light_and_dark(tab: Browser, path: Path) -> None:
    tab.open(path, dark=True)
    dark = tab.run(BACKGROUND)
    tab.open(path)
    light = tab.run(BACKGROUND)
    assert dark != light
    tab.run("document.getElementById('theme').click()")
    assert tab.run(BACKGROUND) == dark and tab.run("document.getElementById('theme').textContent") == "Light"
    assert tab.run("localStorage.getItem('icl-theme')") == "dark", "the choice is stored"
    # Chromium writes the storage of a file with a delay, so the next page's is set before its script runs.
    with begun_with(tab, "localStorage.setItem('icl-theme', 'dark')"):
        tab.open(path)
        assert tab.run(BACKGROUND) == dark, "a stored choice is kept"
        tab.run("document.getElementById('theme').click()")
        assert tab.run(BACKGROUND) == light
    tab.run("localStorage.clear()")


@pytest.mark.parametrize("width", [375, 720, 1280])
def test_the_page_never_scrolls_sideways(tab: Browser, path: Path, width: int) -> None:
    tab.open(path, width=width)
    tab.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert tab.run("document.documentElement.scrollWidth") <= width
    beyond = tab.run(
        "[...document.querySelectorAll('main *')].filter((e) => !e.closest('pre, code, .scroll, .hidden')"
        f" && e.getBoundingClientRect().right > {width} + 0.5).map((e) => e.outerHTML.slice(0, 80))"
    )
    assert beyond == []


@pytest.mark.parametrize("dark", [False, True])
def test_text_is_legible(tab: Browser, path: Path, dark: bool) -> None:
    """Measure WCAG AA: 4.5 to 1, of every element with text of its own against the background it lies on."""
    tab.open(path, dark=dark)
    assert tab.run(PALE) == []


def test_a_page_that_fills_reloads_by_itself_unless_it_is_being_read(tab: Browser, tmp_path: Path) -> None:
    path = write_report(tmp_path / "report", content(check(), waiting()))
    tab.open(path)
    assert "reloads by itself" in tab.run("document.getElementById('reload-hint').textContent")
    # In place of five seconds: the callback is called at once.
    with begun_with(tab, "window.setInterval = (tick) => { window.tick = tick; }"):
        tab.open(path)
        tab.run("document.querySelector('details').open = true; window.mark = 1; window.tick()")
        tab.run("new Promise((done) => setTimeout(done, 100))")
        assert tab.run("window.mark") == 1, "an open evidence is being read"
        write_report(path.parent, content(check(), replace(check("one/next"), state="done")))
        tab.events.clear()
        tab.run("document.querySelector('details').open = false; window.tick()")
        tab.wait_for("Page.loadEventFired")
        assert "2 hold" in tab.run("document.querySelector('.lead').textContent")
        assert tab.run("document.getElementById('reload-hint')") is None
