"""Copies of figures beside the page."""

from __future__ import annotations

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
    links = drawings.copies(entry, folder)
    assert set(links) == {"png", "pdf", "csv", "md", "json"}
    placed = {extension: folder / unquote(link) for extension, link in links.items()}
    before = {path: path.stat().st_ino for path in placed.values()}
    assert drawings.copies(entry, folder) == links
    assert {path: path.stat().st_ino for path in placed.values()} == before, "unchanged files are not copied"
    assert json.loads(placed["json"].read_text())["document"] == entry.document
    assert entry.document is not None
    source = Path(entry.document["files"]["csv"])
    source.write_text("panel,x,z\n")  # of the same length
    os.utime(source, (1, 1))
    drawings.copies(entry, folder)
    assert placed["csv"].read_text() == "panel,x,z\n"
    assert not list(folder.rglob("*.tmp"))


def test_a_file_that_is_gone_is_not_linked(figure: Make, tmp_path: Path) -> None:
    entry = figure()
    assert entry.document is not None
    Path(entry.document["files"]["pdf"]).unlink()
    assert "pdf" not in drawings.copies(entry, tmp_path / "report")


@pytest.mark.parametrize("id", ["../../escape", "/etc/x", f"one/{HOSTILE}", "a b/c%2e", ".hidden/.."])
def test_no_id_leads_out_of_the_folder(id: str, figure: Make, tmp_path: Path) -> None:
    entry, folder = figure(), tmp_path / "report"
    object.__setattr__(entry, "id", id)
    for link in drawings.copies(entry, folder).values():
        target = (folder / unquote(link)).resolve()
        assert target.is_file() and target.is_relative_to(folder / "figures")
        assert not set(link) & set("<>\"' ")


def test_what_the_page_does_not_show_is_removed(figure: Make, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    kept, gone = drawings.copies(figure(), folder), drawings.copies(figure("two/fig2"), folder)
    drawings.remove_others(folder, [kept])
    assert all((folder / link).is_file() for link in kept.values())
    assert (
        not any((folder / link).exists() for link in gone.values()) and not (folder / "figures/two").exists()
    )
