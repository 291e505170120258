"""Tests of the copies of figures beside the page."""

import json
import os
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from icl.report import drawings
from tests.report.conftest import HOSTILE, Make, png


def test_png_size(tmp_path: Path) -> None:
    assert drawings.png_size(png(tmp_path / "a.png", 321, 45)) == (321, 45)
    (tmp_path / "b.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    assert drawings.png_size(tmp_path / "b.png") is None
    assert drawings.png_size(tmp_path / "none.png") is None


def test_copies_are_made_once_and_again_when_the_figure_changes(figure: Make, tmp_path: Path) -> None:
    entry, folder = figure(), tmp_path / "report"
    links = drawings.picture(entry, folder, "laptop").files
    assert set(links) == {"png", "pdf", "csv", "md", "json"}
    placed = {extension: folder / unquote(link) for extension, link in links.items()}
    before = {path: path.stat().st_ino for path in placed.values()}
    assert drawings.picture(entry, folder, "laptop").files == links
    assert {path: path.stat().st_ino for path in placed.values()} == before, "unchanged files are not copied"
    assert json.loads(placed["json"].read_text())["document"] == entry.document
    assert entry.document is not None
    source = Path(entry.document["files"]["csv"])
    source.write_text("panel,x,z\n")  # of the same length
    os.utime(source, (1, 1))
    drawings.picture(entry, folder, "laptop")
    assert placed["csv"].read_text() == "panel,x,z\n"
    assert not list(folder.rglob("*.tmp"))
    source.unlink()
    assert "csv" not in drawings.picture(entry, folder, "laptop").files, "gone, and not linked"


@pytest.mark.parametrize("id", ["../../escape", "/etc/x", f"one/{HOSTILE}", "a b/c%2e", ".hidden/.."])
def test_no_id_leads_out_of_the_folder(id: str, figure: Make, tmp_path: Path) -> None:
    entry, folder = figure(), tmp_path / "report"
    object.__setattr__(entry, "id", id)
    for link in drawings.picture(entry, folder, "laptop").links:
        target = (folder / unquote(link)).resolve()
        assert target.is_file() and target.is_relative_to(folder / "files/laptop")
        assert not set(link) & set("<>\"' ")


def test_what_the_page_no_longer_shows_is_removed_and_other_pages_keep_theirs(
    figure: Make, tmp_path: Path
) -> None:
    folder = tmp_path / "report"
    kept, gone = (drawings.picture(entry, folder, "laptop").links for entry in (figure(), figure("two/fig2")))
    other = drawings.picture(figure("two/fig2"), folder, "smoke").links
    drawings.remove_others(folder, "laptop", kept)
    assert all((folder / link).is_file() for link in kept | other)
    assert not any((folder / link).exists() for link in gone)
    assert not (folder / "files/laptop/figure/two").exists()


VECTOR = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="200pt" height="100pt" viewBox="0 0 200 100">'
    '<g id="figure_1"><g id="in-panel-a.1"><defs><path id="glyph" d="M0 0"/></defs>'
    '<path style="stroke: #000000" d="M1 1"/></g>'
    '<g id="in-panel-1.1"><use href="#glyph"/><text fill="#111111">0.5</text></g></g>'
    '<view id="panel-a" viewBox="0.0 0.0 90.0 100.0"/>'
    '<view id="panel-1" viewBox="100.0 -2.5 95.0 100.0"/></svg>'
)


def test_a_drawing_in_both_themes_whole_and_panel_by_panel(figure: Make, tmp_path: Path) -> None:
    entry, folder = figure(vector=VECTOR), tmp_path / "report"
    shown = drawings.picture(entry, folder, "laptop")
    assert shown.whole is not None and shown.whole.size == (200, 100)
    assert set(shown.views) == {"panel-a", "panel-1"}
    second = ElementTree.parse(folder / shown.views["panel-1"].light).getroot()
    assert (second.get("viewBox"), second.get("width")) == ("100.0 -2.5 95.0 100.0", "95.0pt")
    ids = [node.get("id") for node in second.iter()]
    assert "in-panel-1.1" in ids and "in-panel-a.1" not in ids, "only its own panel"
    assert "glyph" in ids, "with what the other defines"
    dark = (folder / shown.whole.dark).read_text()
    assert "#000000" not in dark and "#111111" in dark, "text on a light cell stays dark"
    before = (folder / shown.views["panel-a"].light).stat().st_ino
    assert drawings.picture(entry, folder, "laptop") == shown
    assert (folder / shown.views["panel-a"].light).stat().st_ino == before, "made once"


def test_a_drawing_that_is_torn_does_not_hide_the_picture(figure: Make, tmp_path: Path) -> None:
    shown = drawings.picture(figure(vector=VECTOR[:200]), tmp_path / "report", "laptop")
    assert shown.whole == drawings.Image(shown.files["png"], "", (120, 60)) and not shown.views
