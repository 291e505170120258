"""Tests of the page in a real browser, from disk; skipped where there is none (scripts/chromium.sh)."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from icl.report.entries import paper_of
from icl.report.page import write_report
from tests.report.browser import Browser
from tests.report.conftest import HOSTILE, Make, check, content, waiting

pytestmark = pytest.mark.chromium
LONG = "a_name_without_a_place_to_break_" * 6
TERMS = [{"name": "minimum", "text": f"where $f$ is least, {LONG}"}]
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
COMPLAINTS = (
    "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded", "Page.javascriptDialogOpening",
)  # fmt: skip
OPEN_ALL = "document.querySelectorAll('details').forEach((d) => { d.open = true; })"
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
        waiting(), waiting("figure", "two/fig2", state="failed", reason=LONG),
    ]  # fmt: skip
    paper = paper_of(
        "one",
        title="The first paper",
        citation="Someone 2020",
        link=f"https://example.org/{LONG}",
        terms=TERMS,
    )
    own = replace(wide, is_mine=True, record={"fingerprint": "a" * 12}, title=LONG)
    return write_report(tmp_path / "report", content(*entries, papers=[paper], mine=[own]))


def test_it_loads_from_disk_without_errors_or_network(tab: Browser, path: Path) -> None:
    tab.open(path)
    tab.run("document.getElementById('all').click()")
    ratios = tab.run("[...document.images].map((image) => getComputedStyle(image).aspectRatio)")
    assert ratios == ["auto 120 / 60"] * 2, "pictures have their place before they load"
    tab.run("Promise.all([...document.images].map((i) => { i.loading = 'eager'; return i.decode(); }))")
    sent = [event for event in tab.events if event.get("method") == "Network.requestWillBeSent"]
    asked = [event["params"]["request"]["url"] for event in sent]
    assert [event for event in tab.events if event.get("method") in COMPLAINTS] == []
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


def rows(tab: Browser, what: str) -> list[str]:
    """Return this of every row that is shown and has a verdict."""
    every = "[...document.querySelectorAll('[data-kind]:not([data-kind=open])')]"
    return tab.run(f"{every}.filter((row) => !row.closest('[hidden]')).map((row) => row.{what})")


def test_filters(tab: Browser, path: Path) -> None:
    tab.open(path)
    everything = ["holds", "fails", "holds", "holds", "holds", "known-false", "undecided", "holds"]
    count = "document.getElementById('count').textContent"
    opened = "[...document.querySelectorAll('details.paper, details.figure')].map((p) => [p.open, p.hidden])"
    assert rows(tab, "dataset.kind") == everything and tab.run(count) == "8 statements"
    assert tab.run(opened) == [[False, False]] * 4, "papers are folded"
    for kind, found in {"holds": 5, "undecided": 1, "unexpected": 1, "known-false": 1}.items():
        tab.run(f"document.querySelector('[data-show={kind}]').click()")
        assert len(rows(tab, "id")) == found, kind
        assert tab.run("document.querySelector('[aria-pressed=true]').dataset.show") == kind
    assert tab.run(count) == "1 of 8 statements"
    assert tab.run(opened) == [[True, False], [False, False], [False, True], [False, True]], "its paper opens"
    query = tab.run("location.search")
    tab.events.clear()
    tab.call("Page.reload")
    tab.wait_for("Page.loadEventFired")
    assert rows(tab, "dataset.kind") == ["known-false"] and tab.run("location.search") == query, (
        "the URL has it"
    )
    go = "addEventListener('hashchange', () => setTimeout(done)); location.hash = '#check-two-a'"
    tab.run(f"new Promise((done) => {{ {go}; }})")
    assert len(rows(tab, "id")) == 8, "a link leads to a row that was filtered away"
    assert tab.run("document.getElementById('check-two-a').open"), "and opens it"


def test_words_are_searched(tab: Browser, tmp_path: Path, figure: Make) -> None:
    told = {"c": ("Lemma 9", "The risk, of 2 layers."), "d": ("Theorem 3: critical points", "So."),
            "e": ("Lemma 8", "At Sigma^-1 as in Theorem 3.")}  # fmt: skip
    entries = [
        check(f"one/{id}", claim=claim, remarks=[], notes=[], title=title, reference="")
        for id, (title, claim) in told.items()
    ]
    tab.open(write_report(tmp_path / "report", content(*entries, figure(title="Figure 3: the risk"))))
    for words, found in {
        "  theorem   3 ": ["d", "e"], "LAYERS risk": ["c"],
        "almost 0": ["figure-one-fig1-2"], "figure 3": ["figure-one-fig1-1", "figure-one-fig1-2"],
        "no such": [],
    }.items():  # fmt: skip
        typed = f"box.value = {json.dumps(words)}; box.dispatchEvent(new Event('input'))"
        tab.run(f"(() => {{ const box = document.getElementById('filter'); {typed}; }})()")
        assert [id.removeprefix("check-one-") for id in rows(tab, "id")] == found, words


def test_the_keyboard_is_enough(tab: Browser, path: Path) -> None:
    tab.open(path)
    tab.key("Tab", 9)
    assert tab.run("document.activeElement.className") == "skip"
    assert tab.run("document.activeElement.getBoundingClientRect().left") >= 0
    for _ in range(40):
        if tab.run("document.activeElement.dataset.show") == "known-false":
            break
        tab.key("Tab", 9)
        outline = tab.run("parseFloat(getComputedStyle(document.activeElement).outlineWidth)")
        assert outline >= 1, "focus is visible"
    tab.key("Enter", 13)
    assert rows(tab, "dataset.kind") == ["known-false"]


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
    before = {"source": "localStorage.setItem('icl-theme', 'dark')"}
    script = tab.call("Page.addScriptToEvaluateOnNewDocument", **before)["identifier"]
    tab.open(path)
    tab.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
    assert tab.run(BACKGROUND) == dark, "a stored choice is kept"
    tab.run("document.getElementById('theme').click()")
    assert tab.run(BACKGROUND) == light
    tab.run("localStorage.clear()")


@pytest.mark.parametrize("width", [375, 400, 1280])
def test_the_page_never_scrolls_sideways(tab: Browser, path: Path, width: int) -> None:
    tab.open(path, width=width)
    tab.run(OPEN_ALL)
    assert tab.run("document.documentElement.scrollWidth") <= width
    inside = "!e.closest('code, .scroll') && e.getBoundingClientRect().right"
    beyond = f"[...document.querySelectorAll('main *')].filter((e) => {inside} > {width} + 0.5)"
    assert tab.run(f"{beyond}.map((e) => e.outerHTML.slice(0, 80))") == []


@pytest.mark.parametrize("dark", [False, True])
def test_text_is_legible(tab: Browser, path: Path, dark: bool) -> None:
    """Measure WCAG AA: 4.5 to 1, of every element with text of its own against the background it lies on."""
    tab.open(path, dark=dark)
    tab.run(OPEN_ALL)
    assert tab.run(PALE) == []


def test_it_is_read_without_a_script(tab: Browser, path: Path) -> None:
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    tab.open(path)
    tab.call("Emulation.setScriptExecutionDisabled", value=False)
    seen = "[...document.querySelectorAll('.js, #mine, details.paper > summary')]"
    seen = tab.run(f"{seen}.filter((e) => e.getClientRects().length).map((e) => e.localName)")
    assert seen == ["h2", "summary", "summary"], (
        "what is mine and both papers, and nothing that needs a script"
    )
