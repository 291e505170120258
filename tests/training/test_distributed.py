"""Tests of one run over several processes: two of them, here, on the CPU."""

import json
import os
import sys
from pathlib import Path

import pytest
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from icl.cli import main
from icl.training import launch
from icl.training.launch import detect_environment, launched_externally
from tests.commands import TINY, Run, assert_refused
from tests.processes import SERVER
from tests.two_processes import SHARED, Forked, assert_by_hand


@pytest.mark.slow
def test_two_processes(
    tiny: Run,
    outputs: Path,
    witness: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fork, which costs seconds less; the last is an interpreter of its own, as for a user."""
    own_interpreter = launch.start_other
    monkeypatch.setattr(launch, "start_other", Forked)
    whole = tiny(*SHARED).json
    assert_by_hand(whole["run_dir"], witness)
    assert tiny(*SHARED).json["cached"]

    monkeypatch.setattr(launch, "start_other", own_interpreter)
    (witness / "fail").touch()
    failed = tiny(*SHARED, "force=true")
    assert failed.code == 4 and "another process of this run failed or was ended" in failed.err
    assert "ValueError: made to fail" in failed.err


def _torchrun(argv: list[str], out: str) -> None:
    """Start as `torchrun --standalone --nproc-per-node=2` does, with forked processes."""
    os.environ["ICL_PACKAGES"] = "witness_lab"
    os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT), 1)
    where = {"rdzv_backend": "c10d", "rdzv_endpoint": "localhost:0", "run_id": "tests"}
    elastic_launch(LaunchConfig(1, 1, 2, start_method="fork", **where), _command)(argv)


def _command(argv: list[str]) -> None:
    assert main(argv) == 0
    sys.stdout.flush()


@pytest.mark.slow
def test_two_processes_of_torchrun(outputs: Path, witness: Path) -> None:
    """Compare with two processes of which the first has started the other: one record, one document."""
    argv = ["train", *TINY, *SHARED, "logger=none", f"paths.outputs={outputs}"]
    process = SERVER.Process(target=_torchrun, args=(argv, str(witness / "out")))
    process.start()
    process.join()
    assert process.exitcode == 0
    document = json.loads((witness / "out").read_text())
    assert document["status"] == "done" and not document["cached"]
    assert_by_hand(document["run_dir"], witness)


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ([], "trainer.devices=1: torchrun has started 2 processes"),
        (["trainer.devices=4"], "need 4 processes, 2 were started"),
        (["-m", "trainer.devices=2"], "-m: torchrun starts the processes of one run"),
    ],
)
def test_refused_of_torchrun(
    overrides: list[str],
    said: str,
    tiny: Run,
    outputs: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {"TORCHELASTIC_RUN_ID": "none", "WORLD_SIZE": "2", "RANK": "1", "GROUP_RANK": "0",
             "LOCAL_RANK": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}  # fmt: skip
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert_refused(tiny(*overrides), said, outputs)


def test_places_that_somebody_else_gave(monkeypatch: pytest.MonkeyPatch) -> None:
    assert detect_environment() is None and not launched_externally(2, 1)
    given = {"SLURM_STEP_ID": "0", "SLURM_NTASKS": "4", "SLURM_PROCID": "3", "SLURM_NODEID": "1",
             "SLURM_LOCALID": "1", "SLURM_JOB_ID": "71234", "MASTER_ADDR": "10.0.0.1"}  # fmt: skip
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert detect_environment() == (4, 3, 1, 1, "10.0.0.1:16234")
    assert launched_externally(4, 2) and not launched_externally(
        1, 1
    )  # tasks of srun's may be runs of their own
    with pytest.raises(ValueError, match="need 2 processes, 4 were started"):
        launched_externally(2, 1)
    by_torchrun = {"TORCHELASTIC_RUN_ID": "none", "WORLD_SIZE": "8", "RANK": "5", "GROUP_RANK": "1",
                   "LOCAL_RANK": "1", "MASTER_ADDR": "10.0.0.2", "MASTER_PORT": "29500"}  # fmt: skip
    with monkeypatch.context() as patched:  # as `srun torchrun` does
        for name, value in by_torchrun.items():
            patched.setenv(name, value)
        assert detect_environment() == (8, 5, 1, 1, "10.0.0.2:29500") and launched_externally(8, 2)
    monkeypatch.setenv("SLURM_STEP_ID", str(2**32 - 6))  # an interactive step is a shell
    assert detect_environment() is None
