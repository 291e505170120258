"""Tests of wrong input that needs files or a finished run: exit 2, one line, nothing written."""

import errno
import os
import warnings
from pathlib import Path
from zipfile import ZipFile

import pytest

from icl.cli import main
from icl.runs.documents import write_record
from icl.runs.metrics import MetricsWriter
from tests.commands import TINY, Run, assert_refused, contents, write

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


LAUNCHER = {
    "hydra_plugins.icl.launcher.Before": "is no launcher",
    "hydra_plugins.icl.sweeper.Search": "is no launcher",
    "hydra._internal.core_plugins.basic_sweeper.BasicSweeper": "is no launcher",
    "hydra_plugins.icl.launcher.Launcher": "is no launcher",
    "hydra_plugins.icl.launcher.nope": "cannot be imported",
    "hydra_plugins.nope.X": "cannot be imported",
    "hydra_plugins.": "cannot be imported",
    "hydra_plugins..": "cannot be imported",
}
NOT_MEANT = {
    ("model._target_=icl",): "model._target_=icl: cannot be imported",
    ("optimizer=lbfgs", "optimizer.tolerance_grad=-1"): "optimizer.tolerance_grad=-1: must be",
    ("optimizer=lbfgs", "optimizer.history_size=5000000000000000"): "must be an integer from 1 to 10000",
    ("optimizer.weight_decay=inf",): "optimizer.weight_decay=inf: must be a finite number",
    ("+hydra.foo=x",): "hydra.foo: Hydra has no such key",
    ("+hydra.job.foo=x",): "hydra.job.foo: Hydra has no such key",
    ("train.steps_per_batch=1000000000000",): "train.steps_per_batch=1000000000000: must be an integer from",
}


@pytest.mark.parametrize("target", LAUNCHER)
def test_a_launcher_that_is_none(target: str, tiny: Run, outputs: Path) -> None:
    found = tiny("-m", "seed=0,1", f"hydra.launcher._target_={target}")
    assert_refused(found, f"hydra.launcher._target_={target}: {LAUNCHER[target]}", outputs)


@pytest.mark.parametrize("overrides", NOT_MEANT)
def test_what_cannot_be_meant(overrides: tuple[str, ...], tiny: Run, outputs: Path) -> None:
    assert_refused(tiny(*overrides), NOT_MEANT[overrides], outputs)


@pytest.mark.parametrize("sealed", [False, True])
def test_weights_of_a_bare_run(sealed: bool, icl: Run, tmp_path: Path, outputs: Path) -> None:
    """Give a folder with a run.json and nothing beside it."""
    run = {"schema": 1, "status": "done", "experiment": "ahn/theorem3", "fingerprint": "0" * 12}
    write(tmp_path / "bare", {"run.json": "{}"})
    if sealed:
        write_record(tmp_path / "bare" / "run.json", run)
    asked = ("check", "check=ahn/theorem3", "scale=smoke", f"check.weights={tmp_path / 'bare'}")
    assert_refused(icl(*asked), "must be the folder of a finished run", outputs)


def test_aliases_that_stand_for_millions(tiny: Run, tmp_path: Path, outputs: Path) -> None:
    lines = ["a0: &a0 [0, 0, 0, 0, 0, 0, 0, 0, 0]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    text = "# @package _global_\ndefaults: [ahn/theorem3, _self_]\n" + "\n".join(lines) + "\n"
    conf = write(tmp_path / "conf", {"experiment/laughs.yaml": text})
    found = tiny("--config-dir", str(conf), "experiment=laughs")
    assert_refused(found, "stand for more than 100,000 values", outputs)


def test_tiny_is_valid(tiny) -> None:
    assert len(TINY) == len({override.partition("=")[0] for override in TINY})
    assert tiny("train.steps=1").code == 0


LONG = "y" * 5000


@pytest.mark.parametrize(
    "line",
    [f"{T} task.covariance={LONG}.npy", f"{C} check.weights={LONG}",
     f"figure figure=ahn/fig1 from={LONG}", f"list --config-dir={LONG}"],
)  # fmt: skip
def test_a_name_that_no_file_can_have(line: str, icl: Run, outputs: Path) -> None:
    assert_refused(icl(*line.split()), "File name too long", outputs)


def test_a_search_path_without_local_settings_is_no_warning(
    tiny: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where no folder `conf` is
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = tiny("hydra.searchpath=[]")
    assert found.code == 0, found.err


def test_a_disk_that_is_full_at_the_first_metrics_is_named(
    tiny: Run, outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(MetricsWriter, "append", full)
    found = tiny()
    assert found.code == 4 and f"icl: paths.outputs={outputs}: cannot be written (No space" in found.err
