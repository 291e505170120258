"""One run over two processes: a callback that keeps what each has come to, and the same steps by hand."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch

import icl as package
from icl.config.compose import compose
from icl.config.search_path import ConfigDirs
from icl.jobs.requests.parse import parse
from icl.training import launch
from icl.training.estimators import make_estimator
from icl.training.stream import PromptStream
from tests.processes import SERVER

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
