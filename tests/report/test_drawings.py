"""Tests of the copies of figures beside the page."""

import json
import os
from pathlib import Path
from urllib.parse import unquote

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
    assert set(links) == {"png", "pdf", "json"}
    placed = {extension: folder / unquote(link) for extension, link in links.items()}
    before = {path: path.stat().st_ino for path in placed.values()}
    assert drawings.picture(entry, folder, "laptop").files == links
    assert {path: path.stat().st_ino for path in placed.values()} == before, "unchanged files are not copied"
    assert json.loads(placed["json"].read_text())["document"] == entry.document
    assert entry.document is not None
    source = Path(entry.document["files"]["pdf"])
    source.write_text("%PDF-1.5")  # of the same length
    os.utime(source, (1, 1))
    drawings.picture(entry, folder, "laptop")
    assert placed["pdf"].read_text() == "%PDF-1.5"
    assert not list(folder.rglob("*.tmp"))
    source.unlink()
    assert "pdf" not in drawings.picture(entry, folder, "laptop").files, "gone, and not linked"


@pytest.mark.parametrize("id", ["../../escape", "/etc/x", f"one/{HOSTILE}", "a b/c%2e", ".hidden/.."])
def test_no_id_leads_out_of_the_folder(id: str, figure: Make, tmp_path: Path) -> None:
    entry, folder = figure(), tmp_path / "report"
    object.__setattr__(entry, "id", id)
    for link in drawings.picture(entry, folder, "laptop").files.values():
        target = (folder / unquote(link)).resolve()
        assert target.is_file() and target.is_relative_to(folder / "files/laptop")
        assert not set(link) & set("<>\"' ")


def test_what_the_page_no_longer_shows_is_removed_and_other_pages_keep_theirs(
    figure: Make, tmp_path: Path
) -> None:
    folder = tmp_path / "report"
    kept, gone = (
        drawings.picture(entry, folder, "laptop").files.values() for entry in (figure(), figure("two/fig2"))
    )
    other = drawings.picture(figure("two/fig2"), folder, "smoke").files.values()
    drawings.remove_others(folder, "laptop", kept)
    assert all((folder / link).is_file() for link in (*kept, *other))
    assert not any((folder / link).exists() for link in gone)
    assert not (folder / "files/laptop/figure/two").exists()
