"""Tests of wrong input that needs files or a finished run: exit 2, one line, nothing written."""

from pathlib import Path
from zipfile import ZipFile

import pytest

from icl.cli import main
from tests.commands import Run, assert_refused, contents, write

T, C = "train experiment=ahn/theorem3 scale=smoke", "check check=ahn/theorem1 scale=smoke"


def test_files_that_claim_to_be_huge(places: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Refuse the files without unpacking them."""

    def header(*shape: int) -> bytes:
        text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
        return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()

    (places / "huge.npy").write_bytes(header(10**6, 10**9))
    with ZipFile(places / "bomb.npz", "w") as bomb:
        bomb.writestr("A.npy", header(100, 5, 200_000))
        bomb.filelist[0].file_size = 100 * 5 * 200_000 * 8
    before = contents(places)
    for line, said in {
        f"{T} task.covariance={places}/huge.npy": "huge.npy: not a readable .npy array",
        f"{C} check.covariance={places}/huge.npy": "huge.npy: not a readable .npy array",
        f"check check=giannou/theorem4_2 check.design={places}/huge.npy": "not a readable .npy array",
        f"{C} check.weights={places}/bomb.npz": "not a readable .npz file (unpacks to 763 MiB, 512 at most)",
    }.items():
        assert main(line.split()) == 2
        out, err = capfd.readouterr()
        assert (out, err.count("\n")) == ("", 1) and said in err, err
    assert contents(places) == before


def test_weights_of_a_folder_that_is_no_run(icl: Run, tmp_path: Path, outputs: Path) -> None:
    write(tmp_path / "bare", {"run.json": "{}"})
    asked = ("check", "check=ahn/theorem3", "scale=smoke", f"check.weights={tmp_path / 'bare'}")
    assert_refused(icl(*asked), "must be the folder of a finished run", outputs)


def test_no_secret_of_the_environment_is_said(
    tiny: Run, monkeypatch: pytest.MonkeyPatch, outputs: Path
) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "hush-hush-4-hush")
    for override in ("task.dim=${oc.env:SERVICE_TOKEN}", "name=${oc.env:SERVICE_TOKEN}"):
        for sweep in ([], ["-m", "seed=0,1"]):
            found = tiny(override, *sweep)
            assert found.code == 2 and "hush" not in found.err, found.err
            assert not outputs.exists()
