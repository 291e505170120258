"""Tests of one run over several processes: two of them, here, on the CPU, as a user starts them."""

import json
import shutil
import signal
from pathlib import Path

import pytest

import icl as package
from icl.training.processes import World, rank_of, world
from tests.commands import Run, assert_refused
from tests.two_processes import TWO, assert_by_hand, train


@pytest.mark.slow(60)
def test_two_processes_are_one_that_takes_the_mean_and_resumes(witness: Path) -> None:
    """A signal to either process stops both, and the run ends with the bits of one that nobody stopped."""
    first = train(witness).json
    assert_by_hand(first["run_dir"], witness)
    assert train(witness).json["cached"]
    one = package.load_run(first["run_dir"])
    weights = {name: array.tobytes() for name, array in one.weights.items()}
    for rank in (0, 1):
        shutil.rmtree(witness / "outputs")
        for seen in witness.glob("*.pt"):
            seen.unlink()
        (witness / f"stop-{rank}").touch()
        stopped = train(witness)
        assert (stopped.code, stopped.out) == (143, "") and "interrupted" in stopped.err, stopped.err
        assert status(witness) == "interrupted"
        assert not (witness / "4-0.pt").exists() and not (witness / "4-1.pt").exists()
        (witness / f"stop-{rank}").unlink()
        rest = train(witness).json
        assert rest["resumed"] and not rest["cached"]
        assert_by_hand(rest["run_dir"], witness)
        other = package.load_run(rest["run_dir"])
        assert one.metrics == other.metrics
        assert weights == {name: array.tobytes() for name, array in other.weights.items()}


def status(witness: Path) -> str:
    (run_json,) = witness.glob("outputs/runs/*/*/*/run.json")
    return json.loads(run_json.read_text())["status"]


@pytest.mark.slow
def test_two_processes_of_torchrun(witness: Path) -> None:
    """One record, one document, of two processes of which neither has started the other."""
    runner = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    document = train(witness, under=runner).json
    assert document["status"] == "done" and not document["cached"]
    assert_by_hand(document["run_dir"], witness)
    assert train(witness, under=runner).json["cached"]


@pytest.mark.slow
def test_every_process_has_the_callbacks_that_train(witness: Path) -> None:
    """A curriculum and growth, both at every second step."""
    overrides = ["experiment=giannou/lsa", "model.heads=1", "model.layers=3", "callbacks.growth.every=2"]
    overrides += ["callbacks.curriculum.every=2", "callbacks.curriculum.dims=1"]
    document = train(witness, *overrides).json
    assert document["status"] == "done"
    assert_by_hand(document["run_dir"], witness, *overrides)


@pytest.mark.slow
def test_every_process_is_stopped_early_at_the_same_step(witness: Path) -> None:
    """Look after every set of two steps, and stop where the second look finds no gain of a billion."""
    early = ["callbacks=[default,early_stopping]", "callbacks.early_stopping.patience=1"]
    early += ["callbacks.early_stopping.min_delta=1e9"]
    document = train(witness, *early).json
    assert document["steps"] == 4 and not list(witness.glob("5-*.pt"))
    assert_by_hand(document["run_dir"], witness, *early, total=4)


@pytest.mark.slow(60)
def test_a_process_that_is_lost_fails_the_run(witness: Path) -> None:
    """Lose a process in several ways; what remains continues. One that never comes is not waited for:
    Lightning ends the other within seconds."""
    (witness / "absent").touch()
    assert train(witness).code == -signal.SIGKILL
    (witness / "absent").unlink()
    for how in ("fail-1", "die-1", "fail-0"):
        (witness / how).touch()
        failed = train(witness)
        assert failed.code == 4 and failed.out == "", failed.err
        assert ("made to fail" in failed.err) == how.startswith("fail"), failed.err
        assert "another process of this run failed or was ended" in failed.err, failed.err
        assert status(witness) == "failed"
        (witness / how).unlink()
    assert_by_hand(train(witness).json["run_dir"], witness)


TORCHRUN = {"TORCHELASTIC_RUN_ID": "none", "WORLD_SIZE": "2", "RANK": "0", "GROUP_RANK": "0",
            "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}  # fmt: skip
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
