"""Tests of `icl archive` and `from=`: what is kept, drawn without training, and refused."""

import hashlib
import shutil
from pathlib import Path

import pytest

from icl.cli import main
from icl.runs import documents
from tests.commands import Run

FIGURE = ["figure", "figure=lds/fig3", "scale=smoke", "format=json"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with `outputs`, in which one figure was drawn, and `kept`, its archive."""
    folder = tmp_path_factory.mktemp("archive")
    outputs = f"paths.outputs={folder / 'outputs'}"
    assert main([*FIGURE, "logger=none", outputs]) == 0
    assert main(["archive", str(folder / "kept"), outputs]) == 0
    return folder


def test_an_archive_has_the_digest_of_every_file_and_is_extended(icl: Run, outputs: Path, made: Path) -> None:
    kept = made / "kept"
    lines = [line.split("  ") for line in (kept / "SHA256SUMS").read_text().splitlines()]
    files = {path.relative_to(kept).as_posix() for path in kept.rglob("*") if path.is_file()}
    assert {name for _, name in lines} == files - {"SHA256SUMS"}
    assert all(hashlib.sha256((kept / name).read_bytes()).hexdigest() == sha256 for sha256, name in lines)
    assert "figures/lds/fig3/smoke/arrays.npz" in files and any("runs/lds/ar/" in name for name in files)
    assert not any("checkpoints" in name or name.startswith("checks") for name in files)
    shutil.copytree(made / "outputs", outputs)
    assert icl("check", "check=ahn/lemma4").code == 0
    argv = ["archive", str(kept), "format=json"]
    (new,) = icl(*argv).json["new"]
    assert new.startswith("checks/ahn/lemma4/") and (kept / new).is_file()
    assert icl(*argv).json["new"] == []


def test_a_figure_is_drawn_from_the_arrays_of_another_folder(icl: Run, outputs: Path, made: Path) -> None:
    drawn = icl(*FIGURE, f"from={made / 'kept'}", "figure.width=3.3", "figure.formats=[svg]")
    assert drawn.code == 0, drawn.err
    before = documents.read_record(made / "kept/figures/lds/fig3/smoke/figure.json")
    assert before is not None and drawn.json["claims"] == before["document"]["claims"]
    assert Path(drawn.json["files"]["svg"]).is_relative_to(outputs) and not (outputs / "runs").exists()


def test_other_settings_have_a_folder_of_their_own(icl: Run, outputs: Path, made: Path) -> None:
    shutil.copytree(made / "outputs", outputs)
    other = "figure.seeds=[7]"
    assert Path(icl(*FIGURE, other).json["files"]["png"]).parents[1] == outputs / "figures/lds/fig3/smoke"
    assert icl(*FIGURE).json["cached"] and icl(*FIGURE, other).json["cached"]
    for asked, is_other in ((other, True), ("force=false", False)):
        found = icl(*FIGURE, asked, f"from={outputs}").json["settings"]["seeds"]
        assert (found == [7]) == is_other


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (
            [*FIGURE, "from=OUTPUTS", "figure.seeds=[8]"],
            "no arrays of lds/fig3 at scale=smoke with",
        ),
        (
            ["figure", "figure=lds/fig6", "scale=smoke", "from=KEPT"],
            "has no arrays of lds/fig6 at scale=smoke",
        ),
        ([*FIGURE, "from=TORN"], "arrays.npz: cannot be read"),
        (["archive", "OUTPUTS"], "must be an empty folder, or one that has SHA256SUMS"),
        (["archive", "FILE"], "must be an empty folder"),
    ],
)
def test_what_cannot_be_drawn_or_kept_is_refused(
    icl: Run, outputs: Path, made: Path, tmp_path: Path, argv: list[str], said: str
) -> None:
    shutil.copytree(made / "outputs", outputs)
    torn = Path(shutil.copytree(made / "kept", tmp_path / "torn"))
    (torn / "figures/lds/fig3/smoke/arrays.npz").write_bytes(b"PK")
    (tmp_path / "file").write_text("")
    places = {"KEPT": made / "kept", "OUTPUTS": outputs, "TORN": torn, "FILE": tmp_path / "file"}
    for name, place in places.items():
        argv = [arg.replace(name, str(place)) for arg in argv]
    refused = icl(*argv)
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1) and said in refused.err
