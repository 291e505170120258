"""Tests of the docs: read on a forge as on the site, built offline with every link whole, with stored
numbers.
"""

import ast
import importlib
import re
import shlex
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import icl
from icl.cli import VERBS, main
from icl.config.compose import compose
from icl.config.search_path import ConfigDirs
from icl.jobs.stored.catalog import entries, papers
from scripts.pages import papers as tables
from scripts.pages.render import NUMBER, render, rendered
from tests.report.browser import browser, find

ROOT = Path(__file__).parents[2]
CONFIGS = ConfigDirs.of(None)
RECORDS = ROOT / "docs" / "records"
PAGES = sorted(page for page in (ROOT / "docs").rglob("*.md") if RECORDS not in page.parents)
WORDS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]
COMMAND = re.compile(r"^icl (train|check|figure|reproduce|report) [^\n]*$", re.MULTILINE)


SEARCH = """(async () => {
  const word = document.querySelector('.md-search__input');
  const found = () => document.querySelectorAll('.md-search-result__item').length;
  while (!found()) {
    word.focus();
    word.value = 'Toeplitz';
    word.dispatchEvent(new Event('keyup', {bubbles: true}));
    await new Promise((go) => setTimeout(go, 200));
  }
  return found();
})()"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the pages as scripts/docs.sh does."""
    pytest.importorskip("material", reason="mkdocs-material is absent: pip install -e '.[docs]'")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        patch.setattr(sys, "path", [*sys.path])
        config = load_config(str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(folder))
        config.plugins.on_startup(command="build", dirty=False)
        build(config)
    return folder


class Fetched(HTMLParser):
    """A parser that collects what a browser fetches by itself when it opens a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "link" and found.get("rel") not in ("stylesheet", "icon", "preload", "preconnect"):
            return
        names = ("href",) if tag == "link" else () if tag == "a" else ("src", "srcset", "data")
        self.addresses += [found[name] or "" for name in names if name in found]


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        reader = Fetched()
        reader.feed(page.read_text("utf-8"))
        assert reader.addresses, page
        assert not [a for a in reader.addresses if a.startswith(("http:", "https:", "//"))], page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import )[\"']?(https?:)?//", sheet.read_text("utf-8")), sheet


def test_mathematics_and_tables_are_there(site: Path) -> None:
    for path in site.rglob("*.html"):
        text = path.read_text("utf-8")
        assert 'class="arithmatex"' not in text and "merror" not in text, path
    for name, least in (("explanation/setting", 30), ("papers/ahn", 40), ("papers/xie", 40)):
        assert (site / f"{name}.html").read_text("utf-8").count("<math") > least, name
    for paper in papers(CONFIGS):
        page = (site / "papers" / f"{paper}.html").read_text("utf-8")
        assert "{{" not in page
        for group in ("check", "figure"):
            for entry in entries(group, CONFIGS):
                assert entry.paper != paper or f"{group}={entry.id}<" in page, entry.id
    commands = (site / "reference" / "commands.html").read_text("utf-8")
    assert all(f"icl {verb}" in commands for verb in VERBS)
    python = (site / "reference" / "python.html").read_text("utf-8")
    assert all(f'id="{name}"' in python for name in icl.__all__ if not name.startswith("__"))
    own = (site / "howto" / "add.html").read_text("utf-8")
    names = ("SignsLaw", "SignRisk", "ByContext", "DistanceToBestStep")
    assert all(f">{name}</span>" in own for name in names)


def test_records_match_the_checks_and_figures() -> None:
    """Compare; where this fails: `icl reproduce`, then `scripts/docs.sh records`."""
    assert {path.stem for path in (ROOT / "docs" / "records").glob("*.json")} == set(papers(CONFIGS))
    for paper in papers(CONFIGS):
        stored = tables.records(paper)
        for group, plural in (("check", "checks"), ("figure", "figures")):
            there_are = {entry.id for entry in entries(group, CONFIGS) if entry.paper == paper}
            assert set(stored[plural]) == there_are, f"docs/records/{paper}.json"
            for id, item in stored[plural].items():
                commit = "" if "skipped" in item or item["dirty"] else item["commit"]
                assert "skipped" in item or re.fullmatch(r"[0-9a-f]{40}", commit), id


def test_figures_at_the_papers_scale_are_shown_with_what_made_them(site: Path) -> None:
    page = (site / "papers" / "paper-scale.html").read_text("utf-8")
    stored = tables.paper_scale_figures()
    assert stored and not re.findall(r"\{\{", page)
    for id, figure in stored.items():
        assert "changes" not in figure["commit"] and "unknown" not in figure["commit"], id
        assert f"icl figure figure={id} scale=paper" in page and figure["commit"][:10] in page
        assert page.count("Compared with:") >= len(figure["claims"]) > 0
        assert (ROOT / "docs" / "img" / "paper" / f"{id.replace('/', '-')}.png").is_file()


def test_numbers_of_the_readme_are_those_of_the_records() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) < 150 and len(NUMBER.findall(text)) > 5


def test_pages_are_rendered_from_the_records_and_the_code_of_today() -> None:
    """Run `scripts/docs.sh render` where this fails."""
    for path, text in rendered().items():
        assert path.is_file() and path.read_text("utf-8") == text, path.relative_to(ROOT)


def test_pages_read_on_a_forge() -> None:
    """Find no template, no picture or formula in HTML, no command that Markdown takes for an escape or
    that GitHub refuses, and no dollars that GitHub takes for those of a formula."""
    for page in WORDS:
        text, name = page.read_text("utf-8"), page.relative_to(ROOT)
        prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
        assert "{{" not in text and not re.search(r"<(svg|math)\b", prose), name
        displayed = re.findall(r"^\$\$(.*?)\$\$$", prose, re.DOTALL | re.MULTILINE)
        inline = re.sub(r"^\$\$.*?\$\$$", "", prose, flags=re.DOTALL | re.MULTILINE)
        formulas = re.findall(r"(?<=[\s(])\$([^$\n]+)\$(?!\w)", inline)
        assert inline.count("$") == 2 * len(formulas), name
        for formula in (*displayed, *formulas):
            assert not re.search(r"\\[^a-zA-Z]|\*|\\operatorname", formula), f"{name}: {formula}"
        assert not [formula for formula in formulas if formula != formula.strip()], name


def test_the_first_result_is_the_one_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Compare the README and the tutorial with the command, but for rounding, the clock, lines and `...`."""
    monkeypatch.setenv("COLUMNS", "80")
    words = ["check=ahn/theorem1", "check.dim=7", "check.context=13", f"paths.outputs={tmp_path}"]
    assert main(["check", *words]) == 0
    printed = _without_rounding(capsys.readouterr().out)
    for name in ("README.md", "docs/tutorial.md"):
        text = (ROOT / name).read_text("utf-8")
        blocks = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
        shown = next(block for block in blocks if "control" in block)
        parts = [_without_rounding(part) for part in shown.split("...")]
        assert len(shown.splitlines()) > 3 and all(part in printed for part in parts), name
    found = icl.check("ahn/theorem1", dim=7, context=13)
    control = f"{found['control']['measured']:.2f}"
    assert f"a gradient of norm {control} and was rejected" in (ROOT / "README.md").read_text(
        encoding="utf-8"
    )
    assert f"gave {control} for it" in (ROOT / "docs" / "tutorial.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("page", "phrase", "verb", "option", "scale", "key"),
    [
        ("sweeps.md", "it has {:,} and", "train", "experiment=ahn/theorem3", "laptop", "train.steps"),
        ("sweeps.md", "and {:,})", "train", "experiment=ahn/theorem3", "laptop", "train.batch"),
        ("howto/train.md", "set of {}", "train", "experiment=ahn/theorem4_lbfgs", "laptop", "train.batch"),
        ("papers/lds.md", "{} steps on", "figure", "figure=lds/fig1", "laptop", "figure.experiment.steps"),
        ("papers/lds.md", "{} steps of", "figure", "figure=lds/fig1", "paper", "figure.experiment.steps"),
        ("papers/lds.md", "of {} fresh", "train", "experiment=lds/ar", "paper", "train.batch"),
    ],
)  # fmt: skip
def test_budgets_in_the_text_are_those_of_the_configs(
    page: str, phrase: str, verb: str, option: str, scale: str, key: str
) -> None:
    found: Any = compose(CONFIGS, verb, [option, f"scale={scale}"]).settings
    for part in key.split("."):
        found = found[part]
    assert phrase.format(found) in (ROOT / "docs" / page).read_text("utf-8")


def test_the_torch_of_the_tutorial_is_the_pinned_one() -> None:
    pinned = re.search(r"^torch==(\S+)", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE)
    assert pinned is not None
    assert f"torch {pinned[1]}" in (ROOT / "docs" / "tutorial.md").read_text("utf-8")


def _without_rounding(text: str) -> str:
    """Drop line breaks, the values that rounding makes of an exact zero, and seconds."""
    return re.sub(r"[\d.]+e-\d+|[\d.]+ s\b", "#", " ".join(text.split()))


def test_forms_of_a_number() -> None:
    least, most = (
        render(f"0<!-- ahn/fig4 claims.0.measured.Dist.* {form}:.3f -->") for form in ("min", "max")
    )
    assert float(least.partition("<")[0]) < float(most.partition("<")[0])
    signed, unsigned = (
        render(f"(0<!-- giannou/appendixE_1 measured.h_at_sixth {form} -->)") for form in (".4f", "|.4f")
    )
    assert signed.partition("<")[0] == unsigned.partition("<")[0].replace("(", "(-")
    with pytest.raises(KeyError, match="no record has nothing"):
        render("1.0<!-- ahn/theorem3 measured.nothing .1f -->")
    with pytest.raises(ValueError, match="no such table"):
        render("<!-- nothing -->\n<!-- end -->")


def test_tables_say_what_kind_of_number_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    check = next(iter(tables.records("ahn")["checks"].items()))
    measured = {"off": 0.1, "off_stderr": 0.02}
    shown = check[1] | {"measured": measured, "kinds": {"off": "sampled"}, "bound": {
        "value": 0.3, "of": "off", "source": "an interval", "direction": "<"}}  # fmt: skip
    claim = {"claim": "c", "verdict": "holds", "expected": "holds", "measured": 1.0, "bound": "b"}
    figure = {"claims": [claim | {"kind": "exact"}], "commit": "0" * 40, "date": "2026-01-01"}
    timed = {"seconds": 2.0, "machine": "a processor, 2 cores"}
    stored = {"checks": {check[0]: shown | timed}, "figures": {"ahn/fig1": figure | timed}}
    monkeypatch.setattr(tables, "records", lambda paper: stored)
    stored["checks"][check[0]]["sentence"] = "The lemma holds: the share is 0.1 (sampled, ± 0.02)."
    assert "The lemma holds: the share is 0.1 (sampled, ± 0.02)." in tables.statements("ahn")
    del stored["checks"][check[0]]["sentence"]  # as in records from before
    assert "off 0.1 &#60; 0.3 (sampled, ± 0.02)" in tables.statements("ahn")
    assert "| 1 (exact)<br>" in tables.figures("ahn")
    times = tables.times()
    assert (
        "| Ahn et al. 2023 (`ahn`) | 2 s | 2 s |" in times and "*Measured on a processor, 2 cores.*" in times
    )


@pytest.mark.chromium
@pytest.mark.skipif(find() is None, reason="no Chromium or Chrome is installed")
def test_the_search_works_from_the_disk(site: Path, tmp_path: Path) -> None:
    with browser(str(find()), tmp_path) as tab:
        tab.call("Emulation.setFocusEmulationEnabled", enabled=True)
        tab.open(site / "index.html")
        assert tab.run(SEARCH) > 0


def test_commands_in_the_text_are_commands() -> None:
    """Compose each; commands with placeholders (FOLDER, ...) or options of other packages are left out."""
    tried = 0
    for page in WORDS:
        for found in COMMAND.finditer(page.read_text("utf-8").replace("\\\n", "")):
            verb, *words = shlex.split(found[0].partition("&&")[0], comments=True)[1:]
            if re.search(r"=\S*[A-Z]{3}|--help|hparams|isotropic|mylab|=diagonal| \.\.\.( |$)", found[0]):
                continue
            overrides = [word for word in words if word != "-m"]
            swept = {"-m"} & set(words) or any(word.startswith(("hydra/", "cluster=")) for word in words)
            if swept:
                of_hydra = ("hydra", "search", "cluster")
                overrides = [w for w in overrides if not w.startswith(of_hydra) and not {",", "("} & set(w)]
            if verb in ("check", "figure") and any(word.endswith("all") for word in overrides):
                continue
            compose(CONFIGS, verb, overrides)
            tried += 1
    assert tried > 20


def test_links_of_the_readme_lead_somewhere() -> None:
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
            assert target.startswith("https://") or (ROOT / target).exists(), target


def test_scripts_import_what_there_is() -> None:
    """Import what scripts do: they run rarely, so that a renamed function of icl would be noticed late."""
    found = 0
    for path in (ROOT / "scripts").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "icl":
                module = importlib.import_module(node.module or "")
                assert all(hasattr(module, name.name) for name in node.names), (path, node.module)
                found += 1
    assert found > 5
