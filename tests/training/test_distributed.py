"""Tests of one run over several processes: two of them, here, on the CPU."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

import icl as package
from icl.cli import main
from icl.config.compose import compose
from icl.config.search_path import ConfigDirs
from icl.jobs.requests.parse import parse
from icl.runs.lock import is_live
from icl.training import launch
from icl.training.estimators import make_estimator
from icl.training.launch import detect_environment, launched_externally
from icl.training.stream import PromptStream
from tests.cli.conftest import TINY, Run, icl, outputs, tiny, tiny_argv  # noqa: F401  fixtures
from tests.processes import SERVER, Command

LAB = """
import os, signal
import pytorch_lightning as pl
import torch

class Witness(pl.Callback):
    # In every process: what it has come to, and, where a file asks for it, an end.
    def on_step_end(self, trainer, module, step):
        here, rank = HERE, trainer.global_rank
        assert trainer.world_size == 2 and trainer.is_global_zero == (rank == 0)
        torch.save(module.trained["A"].detach().clone(), f"{here}/{step}-{rank}.pt")
        if step == 3 and os.path.exists(f"{here}/stop") and rank == 0: os.kill(os.getpid(), signal.SIGTERM)
        if step == 3 and os.path.exists(f"{here}/die") and rank == 1: os.kill(os.getpid(), signal.SIGKILL)
        if step == 3 and os.path.exists(f"{here}/freeze"):
            os.kill(os.getpid(), signal.SIGSTOP if rank == 1 else signal.SIGTERM)
        if step == 3 and os.path.exists(f"{here}/fail") and rank == 1: raise ValueError("made to fail")
"""
STEPS, RATE = 6, 0.05


class Forked:
    """A worker as launch.start_other starts it, without the seconds that imports take."""

    def __init__(self, rank: int, share: launch.Share) -> None:
        self._process = SERVER.Process(target=_take_part, args=(dict(os.environ), sys.path, rank, share))
        self._process.daemon = True
        self._process.start()
        self.pid = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()

    def wait(self) -> int:
        self._process.join()
        return self._process.exitcode or 0


def _take_part(environment: dict[str, str], path: list[str], rank: int, share: launch.Share) -> None:
    os.environ.update(environment)
    sys.path[:] = path
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    if ready := environment.get("WITNESS_READY"):
        Path(ready).touch()
    launch.take_part(rank, share)


SHARED = [
    "trainer.devices=2", "trainer.precision=64-true", "optimizer=sgd", "~optimizer.betas",
    f"optimizer.lr={RATE}", "train.clip=null", f"train.steps={STEPS}", "train.steps_per_batch=2",
    "train.batch=8", "train.log_every=1", "trainer.accelerator=cpu", "format=json",
    "+callbacks.mine._target_=witness_lab.Witness",
]  # fmt: skip


@pytest.fixture
def witness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "witness_lab.py").write_text(f"HERE = {str(tmp_path)!r}\n{LAB}")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "witness_lab", raising=False)  # another test's
    monkeypatch.setenv("ICL_PACKAGES", "witness_lab")
    return tmp_path


def by_hand(run_dir: str) -> list[torch.Tensor]:
    """Return weights after each step, where a gradient is the mean of those of the two shares."""
    record: Any = package.load_run(run_dir)
    config = record.config
    overrides = ["experiment=ahn/theorem3", "scale=smoke", "trainer.precision=64-true", "logger=none"]
    request: Any = parse("train", compose(ConfigDirs(), "train", overrides), ConfigDirs())[0]
    law, model, seeds = request.parts.law, request.parts.model, tuple(config["seeds"])
    assert tuple(request.seeds) == seeds
    model.parametrization.initialise(seeds, torch.float64)
    estimator = make_estimator(config["train"]["estimator"], model, law)
    streams = [PromptStream(estimator, seeds, 8, 2, STEPS, 0, torch.float64, (rank, 2)) for rank in (0, 1)]
    weight = model.parametrization.A
    found = []
    for step in range(STEPS):
        draws = [stream.draw(step - step % 2) for stream in streams]
        losses = [estimator.risk(model, draw).sum() for draw in draws]
        (gradient,) = torch.autograd.grad(sum(losses) / 2, weight)
        with torch.no_grad():
            weight -= RATE * gradient
        found.append(weight.detach().clone())
    return found


def assert_by_hand(run_dir: str, witness: Path) -> None:
    for step, wanted in enumerate(by_hand(run_dir), 1):
        first, second = (torch.load(witness / f"{step}-{rank}.pt") for rank in (0, 1))
        assert torch.equal(first, second)
        torch.testing.assert_close(first, wanted, rtol=1e-12, atol=1e-15)


@pytest.mark.slow
def test_two_processes(
    tiny: Run,  # noqa: F811
    outputs: Path,  # noqa: F811
    witness: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fork, which costs seconds less; the last is an interpreter of its own, as for a user."""
    own_interpreter = launch.start_other
    monkeypatch.setattr(launch, "start_other", Forked)
    whole = tiny(*SHARED).json
    assert_by_hand(whole["run_dir"], witness)
    assert tiny(*SHARED).json["cached"]
    detect_environment = outputs.rename(outputs.with_name("whole"))

    (witness / "stop").touch()
    stopped = tiny(*SHARED)
    assert (stopped.code, stopped.out) == (143, "") and "interrupted" in stopped.err
    (witness / "stop").unlink()
    (run_json,) = outputs.glob("runs/*/*/*/run.json")
    assert json.loads(run_json.read_text())["status"] == "interrupted"
    for devices, begun in (("1", "here 1"), ("4", "here 4")):
        refused = tiny(*SHARED, f"trainer.devices={devices}")
        assert (refused.code, refused.out) == (2, "")
        assert "was started with 2 processes" in refused.err and begun in refused.err
    rest = tiny(*SHARED).json
    assert rest["resumed"] and not rest["cached"]
    one, other = (
        package.load_run(rest["run_dir"]),
        package.load_run(detect_environment / Path(rest["run_dir"]).relative_to(outputs)),
    )
    assert one.metrics == other.metrics
    for name, array in one.weights.items():
        assert np.array_equal(array, other.weights[name])

    monkeypatch.setattr(launch, "start_other", own_interpreter)
    (witness / "fail").touch()
    failed = tiny(*SHARED, "force=true")
    assert failed.code == 4 and "another process of this run failed or was ended" in failed.err
    assert "ValueError: made to fail" in failed.err


class KilledAtStart(Forked):
    def __init__(self, rank: int, share: launch.Share) -> None:
        super().__init__(rank, share)
        self.kill()


def assert_resumable(folder: Path) -> None:
    """Assert that no process holds the run's lock, and that the run can be resumed or made again."""
    for path in folder.glob("runs/*/*/*/run.json"):
        assert not is_live(path.with_name("lock"))
        assert json.loads(path.read_text())["status"] != "done"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "harm", "code", "line", "status"),
    [
        (KilledAtStart, None, 4, "another process of this run ended before training", "failed"),
        (Forked, "die", 4, "another process of this run failed or was ended", "failed"),
        (Forked, "freeze", 143, "interrupted", "interrupted"),
    ],
    ids=["killed at its start", "killed in training", "frozen, and SIGTERM"],
)
def test_a_worker_that_is_lost(
    start: type[Forked],
    harm: str | None,
    code: int,
    line: str,
    status: str,
    tiny: Run,  # noqa: F811
    outputs: Path,  # noqa: F811
    witness: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Lose a worker: the run ends, and the same command then finishes it with the numbers of one left
    alone."""
    monkeypatch.setattr(launch, "start_other", start)
    monkeypatch.setattr(launch, "_SHUTDOWN_SECONDS", 0.0)
    if harm is not None:
        (witness / harm).touch()
    ended = tiny(*SHARED)
    assert (ended.code, ended.out) == (code, "") and line in ended.err, ended.err
    (run_json,) = outputs.glob("runs/*/*/*/run.json")
    assert json.loads(run_json.read_text())["status"] == status
    assert_resumable(outputs)
    monkeypatch.setattr(launch, "start_other", Forked)
    if harm is not None:
        (witness / harm).unlink()
    assert_by_hand(tiny(*SHARED).json["run_dir"], witness)


def _fork_workers() -> None:
    launch.start_other = Forked  # type: ignore[assignment]


@pytest.mark.slow
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("moment", ["lock", "ready", "1-1.pt"])
def test_a_signal_in_the_first_seconds(
    signum: int,
    moment: str,
    outputs: Path,  # noqa: F811
    witness: Path,
) -> None:
    """Send signals as soon as the run is locked, its worker is ready, or the worker has taken a step."""
    argv = [*tiny_argv(*SHARED), "logger=none", f"paths.outputs={outputs}"]
    environment = {**os.environ, "PYTHONPATH": str(witness), "WITNESS_READY": str(witness / "ready")}
    command = Command(argv, witness, environment, _fork_workers)
    pattern = "outputs/runs/*/*/*/lock" if moment == "lock" else moment
    command.until(lambda: list(witness.glob(pattern)))
    command.send(signum)
    assert command.end() == 128 + signum and command.err.count("interrupted") == 1, command.err
    assert_resumable(outputs)
    again = Command(argv, witness, environment, _fork_workers)
    assert again.end() == 0, again.err
    assert_by_hand(json.loads(again.out)["run_dir"], witness)


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
def test_two_processes_of_torchrun(outputs: Path, witness: Path) -> None:  # noqa: F811
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
        (["trainer.devices=4"], "make 4 processes, and here are 2"),
        (["-m", "trainer.devices=2"], "-m: torchrun starts the processes of one run"),
    ],
)
def test_refused_of_torchrun(
    overrides: list[str],
    said: str,
    tiny: Run,  # noqa: F811
    outputs: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {"TORCHELASTIC_RUN_ID": "none", "WORLD_SIZE": "2", "RANK": "1", "GROUP_RANK": "0",
             "LOCAL_RANK": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}  # fmt: skip
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    refused = tiny(*overrides)
    assert (refused.code, refused.out) == (2, "") and said in refused.err, refused.err
    assert len(refused.err.splitlines()) == 1 and not outputs.exists()


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["trainer.devices=3"], "train.batch=8: must be a multiple of the 3 processes"),
        (["trainer.devices=2", "train.estimator=tilted"], "train.estimator=tilted: says of a whole draw"),
        (
            ["trainer.devices=2", "train.estimator=population", "train.batch=null"],
            "train.batch=None: must be a mul",
        ),
        (["trainer.devices=2", "optimizer=lbfgs", "~optimizer.betas", "train.clip=null"], "L-BFGS searches"),
        (["trainer.num_nodes=2"], "the processes of the other nodes were not started"),
        (["trainer.strategy=ddp_spawn"], "trainer.strategy=ddp_spawn: must be one of auto, ddp"),
        (["-m", "trainer.num_nodes=2"], "hydra/launcher=basic has one node; use cluster=slurm"),
        (
            ["-m", "trainer.devices=2", "hydra/launcher=vectorized"],
            "hydra/launcher=vectorized trains in one process",
        ),
        (["-m", "hydra/launcher=vectorized", "cluster=local"], "vectorized trains all jobs in this process"),
        (
            ["-m", "hydra/launcher=submitit_local", "hydra.launcher.tasks_per_node=2"],
            "tasks_per_node: must be 1",
        ),
    ],
)
def test_refused(overrides: list[str], said: str, tiny: Run, outputs: Path) -> None:  # noqa: F811
    refused = tiny(*overrides)
    assert (refused.code, refused.out) == (2, "") and said in refused.err, refused.err
    assert len(refused.err.splitlines()) == 1 and not outputs.exists()


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
    with pytest.raises(ValueError, match="make 2 processes, and here are 4"):
        launched_externally(2, 1)
    by_torchrun = {"TORCHELASTIC_RUN_ID": "none", "WORLD_SIZE": "8", "RANK": "5", "GROUP_RANK": "1",
                   "LOCAL_RANK": "1", "MASTER_ADDR": "10.0.0.2", "MASTER_PORT": "29500"}  # fmt: skip
    with monkeypatch.context() as patched:  # as `srun torchrun` does
        for name, value in by_torchrun.items():
            patched.setenv(name, value)
        assert detect_environment() == (8, 5, 1, 1, "10.0.0.2:29500") and launched_externally(8, 2)
    monkeypatch.setenv("SLURM_STEP_ID", str(2**32 - 6))  # an interactive step is a shell
    assert detect_environment() is None
