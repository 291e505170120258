"""`icl publish`: a static site whose links lead somewhere, a page for each claim, and the paper's words."""

import hashlib
import json
import re
from collections import Counter
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from icl.cli import main
from icl.config.search_path import ConfigDirs
from icl.errors import InputError
from icl.jobs.stored.catalog import entries
from icl.jobs.stored.publish import PublishRequest, publish
from icl.report.mathematics import prose
from tests.documents import read

LINK = re.compile(r'(?:href|src)="([^"#:]+)(?:#([^"]*))?"')
CELL = re.compile(r"\n---\n<!-- trackio-cell\n(.*)\n-->\n")
CHECKS = ("ahn/theorem1", "xie/theorem2")


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published") / "outputs"
    for check in CHECKS:
        assert main(["check", f"check={check}", f"paths.outputs={folder}", "format=json"]) == 0
    assert main(["check", "check=ahn/theorem1", "check.dim=3", f"paths.outputs={folder}"]) == 0
    assert main(["figure", "figure=giannou/fig10", "scale=smoke", f"paths.outputs={folder}"]) in (0, 1)
    return folder


def broken(site: Path) -> list[str]:
    """Return the links of all pages that lead to no file or to no place of a page."""
    found = []
    for page in site.glob("**/*.html"):
        for link, place in LINK.findall(page.read_text("utf-8")):
            target = page.parent / unescape(link)
            if not target.is_file() or (place and f'id="{place}"' not in target.read_text("utf-8")):
                found.append(f"{page.relative_to(site)}: {link}#{place}")
    return found


def test_a_site_of_what_is_stored(outputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site, line = tmp_path / "site", ["publish", str(tmp_path / "site"), f"paths.outputs={outputs}"]
    assert main([*line, "format=json"]) == 0
    document = read([*line, "format=json"], capsys.readouterr().out)
    claims = json.loads(next(outputs.glob("figures/giannou/fig10/smoke/*.json")).read_text())["document"][
        "claims"
    ]
    assert document["claims"] == len(CHECKS) + 1 + len(claims) and (site / "index.html").is_file()
    assert (site / "archive" / "ro-crate-metadata.json").is_file()
    assert not broken(site)
    for page in ("index.html", "laptop.html"):
        assert (site / page).read_text("utf-8").count('href="claims/index.html"') == 1
    files = json.loads((site / "site.json").read_text())["files"]
    assert sorted(files) == sorted(document["files"])
    for name, digest in files.items():
        assert hashlib.sha256((site / name).read_bytes()).hexdigest() == digest, name

    page = unescape(re.sub("<[^>]*>", "", (site / "claims" / "check-xie-theorem2.html").read_text("utf-8")))
    assert "admits no non-trivial stationary point" in page  # the paper's words
    assert "known false" in page and "Control" in page and "icl check check=xie/theorem2" in page
    record = json.loads(next((outputs / "checks" / "xie" / "theorem2").glob("*.json")).read_text())
    assert record["document"]["control"]["description"][:30] in page

    (other,) = site.glob("claims/check-ahn-theorem1-*.html")
    page = unescape(re.sub("<[^>]*>", "", other.read_text("utf-8")))
    assert "check.dim=3, not in the report" in page and "scale=laptop check.dim=3" in page
    assert "at d = 3" in page and "at d = 5" in (site / "claims" / "check-ahn-theorem1.html").read_text(
        "utf-8"
    )
    drawn = list(site.glob("claims/figure-giannou-fig10-*.html"))
    assert len(drawn) == len(claims)
    for one in drawn:
        text = one.read_text("utf-8")
        assert '<img class="only-light"' in text and "icl figure figure=giannou/fig10 scale=smoke<" in text
    listed = (site / "claims" / "index.html").read_text("utf-8").partition("At other settings")
    assert listed[0].count('href="check-') == len(CHECKS) and listed[2].count("scale=smoke") == len(claims)

    assert not (site / ".trackio").exists()
    assert main([*line, "logbook=true", "format=json"]) == 0
    assert any(name.startswith(".trackio/") for name in json.loads(capsys.readouterr().out)["files"])
    notes = site / ".trackio" / "logbook" / "pages"
    assert re.findall(r"\(#/(\w+)\)", (notes / "index.md").read_text()) == ["ahn", "giannou", "xie"]
    found = [
        json.loads(about)
        for page in notes.glob("*/page.md")
        for about in CELL.findall(page.read_text("utf-8"))
    ]
    assert Counter(cell["type"] for cell in found) == {"markdown": document["claims"], "figure": 1}
    assert len({cell["id"] for cell in found}) == len(found)
    told = (notes / "xie" / "page.md").read_text("utf-8")
    assert "Theorem 2: no critical point in the limit of large C: known false" in told
    assert '> "the in-context learning risk admits' in told and "icl check check=xie/theorem2" in told

    before = {path: path.read_bytes() for path in (site / "claims").iterdir()}
    assert main([*line, "only=[ahn]", "archive=false"]) == 0  # written anew
    assert not (site / "claims" / "check-xie-theorem2.html").exists() and not broken(site)
    assert main(line) == 0
    assert {path: path.read_bytes() for path in (site / "claims").iterdir()} == before


@pytest.mark.parametrize(
    "wrong", ["logbook=yes", "archive=1", "scale=huge", "colour=red", "only=[ahn,nonesuch]"]
)
def test_wrong_settings_write_nothing(
    wrong: str, outputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["publish", str(tmp_path / "site"), wrong, f"paths.outputs={outputs}"]) == 2
    said = capsys.readouterr()
    assert not said.out and wrong.partition("=")[0] in said.err and not (tmp_path / "site").exists()


def test_whose_words_a_statement_is_in() -> None:
    """Require of each check and figure the paper's words with their section, or that it is this project's."""
    configs = ConfigDirs()
    for entry in [*entries("check", configs), *entries("figure", configs)]:
        if entry.origin == "icl":
            assert not entry.quote, entry.id
        elif entry.paper == "lu":
            assert entry.quote.endswith("of the published code; the paper's text was not at hand"), entry.id
        else:
            words = re.fullmatch(r'"(.+)" \(.*(?:Section|Appendix|Theorem|Lemma) [\dA-E].*\)', entry.quote)
            assert words and len(words[1].split()) < 60 and words[1].count("$") % 2 == 0, entry.id
            assert "<code>" not in prose(entry.quote), entry.id  # its LaTeX is read


def test_folders_that_are_no_site_are_left_alone(outputs: Path, tmp_path: Path) -> None:
    def request(folder: Path, *, of: Path = outputs, only: tuple[str, ...] = ()) -> PublishRequest:
        return PublishRequest(folder, of, only, "laptop", False, ConfigDirs())

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("\\end")
    (tmp_path / "file").write_text("")
    for name, said in (("mine", "is not empty"), ("file", "is a file")):
        with pytest.raises(InputError, match=said):
            publish(request(tmp_path / name))
    with pytest.raises(InputError, match="nothing finished"):
        publish(request(tmp_path / "site", of=tmp_path / "none"))
    with pytest.raises(InputError, match="scale=paper: nothing finished"):
        publish(replace(request(tmp_path / "site", only=("giannou",)), scale="paper"))
    with pytest.raises(InputError, match="nonesuch"):
        publish(request(tmp_path / "site", only=("nonesuch",)))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "mine"]
