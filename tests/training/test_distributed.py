"""Tests of one run over several processes: two of them, here, on the CPU, as a user starts them."""

import json
import shutil
import signal
from pathlib import Path

import pytest

import icl as package
from icl.training.processes import World, rank_of, world
from tests.commands import Run, assert_refused
from tests.two_processes import SHARED, STEPS, TWO, assert_by_hand, train

TORCHRUN = {"TORCHELASTIC_RUN_ID": "none", "WORLD_SIZE": "2", "RANK": "0", "GROUP_RANK": "0",
            "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}  # fmt: skip
EARLY = [  # with a curriculum and growth, both at every second step
    "experiment=giannou/lsa", "model.heads=1", "model.layers=4", "train.steps=8",
    "callbacks=[default,curriculum,growth,early_stopping]", "callbacks.growth.every=2",
    "callbacks.curriculum.every=2", "callbacks.curriculum.dims=1", "callbacks.early_stopping.patience=2",
    "callbacks.early_stopping.min_delta=1e9",
]  # fmt: skip


@pytest.mark.slow(60)
def test_two_processes_are_one_that_takes_the_mean_and_resumes(
    witness: Path, tiny: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let torchrun start both, or Lightning: one record, one document. Both are stopped early at the same
    step, where a third look finds no gain of a billion; a signal to either process stops both, and the run
    ends with the bits of one that nobody stopped. Both have the callbacks that train."""
    runner = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    first = train(witness, *EARLY, under=runner).json
    assert (first["status"], first["steps"], first["cached"]) == ("done", STEPS, False)
    assert_by_hand(first["run_dir"], witness, *EARLY)
    with monkeypatch.context() as patched:
        for name, value in TORCHRUN.items():
            patched.setenv(name, value)
        assert tiny(*SHARED, *TWO, *EARLY, logger=None).json["cached"]
        patched.setenv("RANK", "1")
        second = tiny(*SHARED, *TWO, *EARLY, logger=None)
        assert (second.code, second.out) == (0, ""), second.err
    one = package.load_run(first["run_dir"])
    weights = {name: array.tobytes() for name, array in one.weights.items()}
    shutil.rmtree(witness / "outputs")
    for seen in witness.glob("*.pt"):
        seen.unlink()
    for rank, step in ((0, 3), (1, 5)):
        (witness / f"stop-{rank}-{step}").touch()
        stopped = train(witness, *EARLY)
        assert (stopped.code, stopped.out) == (143, "") and "interrupted" in stopped.err, stopped.err
        assert status(witness) == "interrupted" and not list(witness.glob(f"{step + 1}-*.pt"))
    rest = train(witness, *EARLY).json
    assert rest["resumed"] and not rest["cached"]
    assert_by_hand(rest["run_dir"], witness, *EARLY)
    other = package.load_run(rest["run_dir"])
    assert one.metrics == other.metrics
    assert weights == {name: array.tobytes() for name, array in other.weights.items()}


def status(witness: Path) -> str:
    (run_json,) = witness.glob("outputs/runs/*/*/*/run.json")
    return json.loads(run_json.read_text())["status"]


@pytest.mark.slow(40)
@pytest.mark.nightly
def test_a_process_that_is_lost_fails_the_run(witness: Path) -> None:
    """Lose either; the other ends the run. One that never comes is not waited for: Lightning ends the other
    within seconds."""
    (witness / "absent").touch()
    assert train(witness).code == -signal.SIGKILL
    (witness / "absent").unlink()
    for how in ("fail-1-3", "fail-0-3"):
        (witness / how).touch()
        failed = train(witness)
        assert failed.code == 4 and failed.out == "" and "made to fail" in failed.err, failed.err
        assert "another process of this run failed or was ended" in failed.err, failed.err
        assert status(witness) == "failed"
        (witness / how).unlink()


UNDER_MULTIRUN = "under -m only hydra/launcher=submitit_slurm starts them"


@pytest.mark.parametrize(
    ("given", "overrides", "said"),
    [
        (TORCHRUN, [], "trainer.devices=1: torchrun has started 2 processes"),
        (TORCHRUN, ["trainer.devices=4"], "need 4 processes, 2 were started"),
        (TORCHRUN, ["-m", "trainer.devices=2"], UNDER_MULTIRUN),
        ({}, ["trainer.num_nodes=2"], "trainer.num_nodes=2: the processes of the other nodes were not"),
        ({}, ["-m", *TWO[:1], "seed=0,1"], UNDER_MULTIRUN),
    ],
)
def test_refused(
    given: dict[str, str],
    overrides: list[str],
    said: str,
    tiny: Run,
    outputs: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert_refused(tiny(*overrides), said, outputs)


def test_processes_that_others_have_started(monkeypatch: pytest.MonkeyPatch) -> None:
    assert world() == World() and rank_of(2, 1) == 0
    given = {"SLURM_STEP_ID": "0", "SLURM_NTASKS": "4", "SLURM_PROCID": "3", "SLURM_NODEID": "1",
             "SLURM_LOCALID": "1", "SLURM_JOB_ID": "71234", "MASTER_ADDR": "10.0.0.1"}  # fmt: skip
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert world() == World(4, 3, "srun")
    assert rank_of(4, 2) == 3 and rank_of(1, 1) == 0  # tasks of srun's may be runs of their own
    with pytest.raises(ValueError, match="need 2 processes, 4 were started"):
        rank_of(2, 1)
    by_torchrun = {"TORCHELASTIC_RUN_ID": "none", "WORLD_SIZE": "8", "RANK": "5", "LOCAL_RANK": "1"}
    with monkeypatch.context() as patched:  # as `srun torchrun` does
        for name, value in by_torchrun.items():
            patched.setenv(name, value)
        assert world() == World(8, 5, "torchrun") and rank_of(8, 2) == 5
    monkeypatch.setenv("SLURM_STEP_ID", str(2**32 - 6))  # an interactive step is a shell
    assert world() == World()
