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


NOT_MEANT = {
    ("model._target_=icl",): "model._target_=icl: cannot be imported",
    ("optimizer=lbfgs", "optimizer.tolerance_grad=-1"): "optimizer.tolerance_grad=-1: must be",
    ("optimizer.weight_decay=inf",): "optimizer.weight_decay=inf: must be a finite number",
    ("train.steps_per_batch=1000000000000",): "train.steps_per_batch=1000000000000: must be an integer from",
}


@pytest.mark.parametrize("overrides", NOT_MEANT)
def test_what_cannot_be_meant(overrides: tuple[str, ...], tiny: Run, outputs: Path) -> None:
    assert_refused(tiny(*overrides), NOT_MEANT[overrides], outputs)


def test_weights_of_a_folder_that_is_no_run(icl: Run, tmp_path: Path, outputs: Path) -> None:
    write(tmp_path / "bare", {"run.json": "{}"})
    asked = ("check", "check=ahn/theorem3", "scale=smoke", f"check.weights={tmp_path / 'bare'}")
    assert_refused(icl(*asked), "must be the folder of a finished run", outputs)


LONG = "y" * 5000


@pytest.mark.parametrize(
    "line",
    [f"{T} task.covariance={LONG}.npy", f"{C} check.weights={LONG}",
     f"figure figure=ahn/fig1 from={LONG}", f"list --config-dir={LONG}"],
)  # fmt: skip
def test_a_name_that_no_file_can_have(line: str, icl: Run, outputs: Path) -> None:
    assert_refused(icl(*line.split()), "File name too long", outputs)


def test_no_secret_of_the_environment_is_said(
    tiny: Run, monkeypatch: pytest.MonkeyPatch, outputs: Path
) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "hush-hush-4-hush")
    for override in ("task.dim=${oc.env:SERVICE_TOKEN}", "name=${oc.env:SERVICE_TOKEN}"):
        for sweep in ([], ["-m", "seed=0,1"]):
            found = tiny(override, *sweep)
            assert found.code == 2 and "hush" not in found.err, found.err
            assert not outputs.exists()
