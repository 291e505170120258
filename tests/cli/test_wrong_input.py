"""Tests of wrong input that needs files or a finished run: exit 2, one line, nothing written."""

from pathlib import Path
from zipfile import ZipFile

import pytest

from icl.cli import main
from tests.commands import TINY, contents

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
        f"check check=giannou/ridge scale=smoke check.design={places}/huge.npy": "not a readable .npy array",
        f"{C} check.weights={places}/bomb.npz": "bomb.npz: unpacks to 763 MiB, 512 at most",
    }.items():
        assert main(line.split()) == 2
        out, err = capfd.readouterr()
        assert (out, err.count("\n")) == ("", 1) and said in err, err
    assert contents(places) == before


def test_tiny_is_valid(tiny) -> None:
    assert len(TINY) == len({override.partition("=")[0] for override in TINY})
    assert tiny("train.steps=1").code == 0
