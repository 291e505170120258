"""One run over two processes, as a user starts it: commands, a callback that keeps what each has come to, and
the same steps by hand."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

import icl as package
from icl.callbacks import Growth
from icl.config.compose import compose
from icl.config.search_path import ConfigDirs
from icl.jobs.requests.parse import parse
from icl.training.estimators import make_estimator
from icl.training.stream import PromptStream
from tests.commands import Result, tiny_argv
from tests.processes import ROOT, Command

# The file that torchrun runs, and Lightning for each further process: it holds a pipe open until it ends.
COMMAND = """
import os, sys
os.open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "alive"), os.O_WRONLY)
os.fsync = lambda descriptor: None
from icl.cli import main
if __name__ == "__main__": sys.exit(main())
"""
LAB = """
import os, signal
import pytorch_lightning as pl
import torch

if os.environ.get("LOCAL_RANK") == "1" and os.path.exists(f"{HERE}/absent"): os._exit(7)

class Witness(pl.Callback):
    # In every process: what it has come to, and, where a file asks for it, an end.
    def on_step_end(self, trainer, module, step):
        here, rank = HERE, trainer.global_rank
        assert trainer.world_size == 2 and trainer.is_global_zero == (rank == 0)
        assert trainer.global_step == step
        torch.save({k: M.detach().clone() for k, M in module.trained.items()}, f"{here}/{step}-{rank}.pt")
        if os.path.exists(f"{here}/stop-{rank}-{step}"): os.kill(os.getpid(), signal.SIGTERM)
        if os.path.exists(f"{here}/fail-{rank}-{step}"): raise ValueError("made to fail")
"""
STEPS, RATE, BATCH, PER_SET = 6, 0.05, 8, 2
SHARED = [
    "trainer.precision=64-true", "trainer.accelerator=cpu", "optimizer=sgd", "~optimizer.betas",
    "~optimizer.momentum", "~optimizer.weight_decay", f"optimizer.lr={RATE}", "schedule=constant",
    "train.clip=null", f"train.steps={STEPS}", f"train.steps_per_batch={PER_SET}", f"train.batch={BATCH}",
    "train.log_every=1", "logger=none", "format=json",
]  # fmt: skip
TWO = ["trainer.devices=2", "+callbacks.mine._target_=witness_lab.Witness"]


def train(witness: Path, *more: str, under: Sequence[str] = ()) -> Result:
    """Run `icl train` with two processes in the folder of the witness."""
    return run(witness, tiny_argv(*SHARED, *TWO, *more), under)


def run(folder: Path, argv: Sequence[str], under: Sequence[str] = ()) -> Result:
    """Run `icl ARGV` in a folder, where that is a file, and wait for all its processes."""
    (folder / "icl").write_text(COMMAND)
    environment = {name: value for name, value in os.environ.items() if name != "LOCAL_RANK"}
    environment |= {"PYTHONPATH": f"{ROOT}{os.pathsep}{folder}", "OMP_NUM_THREADS": "1"}
    if not (folder / "alive").exists():
        os.mkfifo(folder / "alive")
    with open(os.open(folder / "alive", os.O_RDONLY | os.O_NONBLOCK), "rb") as alive:
        if under:
            words = [sys.executable, *under, str(folder / "icl"), *argv]
            done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
            return Result(done.returncode, done.stdout, done.stderr, tuple(argv))
        command = Command(argv, folder, environment)
        code = command.end()
        os.set_blocking(alive.fileno(), True)
        alive.read()
        return Result(code, command.out, command.err, tuple(argv))


def by_hand(overrides: Sequence[str], total: int = STEPS) -> list[dict[str, torch.Tensor]]:
    """Return weights after each step, where a gradient is the mean of those of the two shares."""
    composed = compose(ConfigDirs(), "train", [*tiny_argv(*SHARED, *overrides)[1:]])
    request: Any = parse("train", composed, ConfigDirs())[0]
    law, model, seeds = request.components.law, request.components.model, tuple(request.seeds)
    callbacks = request.components.callbacks
    stages = [callback.stage_law for callback in callbacks]
    growth = next((callback for callback in callbacks if isinstance(callback, Growth)), None)
    family = model.parametrization
    family.initialise(seeds, torch.float64)
    weights = family.matrices()
    first = {name: M.detach().clone() for name, M in weights.items()}
    depth = family.layers if growth is None or growth.every is None else growth.first
    by_layer = {name: M for name, M in weights.items() if M.shape[1] == family.layers > 1}
    with torch.no_grad():
        for M in by_layer.values():
            M[:, depth:] = 0
    estimator = make_estimator(request.components.train.estimator, model, law)
    streams = [
        PromptStream(estimator, seeds, request.components.train, torch.float64, 0, (rank, 2), stages=stages)
        for rank in (0, 1)
    ]
    found = []
    for step in range(total):
        draws = [stream.draw(step - step % PER_SET) for stream in streams]
        used = model.on(family.first(depth)) if growth is not None else model
        losses = [estimator.risk(used, draw).sum() for draw in draws]
        gradients = torch.autograd.grad(sum(losses) / 2, list(weights.values()))
        with torch.no_grad():
            for M, gradient in zip(weights.values(), gradients, strict=True):
                M -= request.components.optimizer.options["lr"] * gradient
            grows = growth is not None and growth.every and (step + 1) % growth.every == 0
            if grows and depth < family.layers:
                depth += 1
                for name, M in by_layer.items():
                    M[:, depth - 1] = first[name][:, depth - 1]
        found.append({name: M.detach().clone() for name, M in weights.items()})
    return found


def assert_by_hand(run_dir: str, witness: Path, *overrides: str, total: int = STEPS) -> None:
    """Compare both processes at each step, and the record at the end, with the steps by hand."""
    wanted = by_hand(overrides, total)
    for step, weights in enumerate(wanted, 1):
        ranks = [torch.load(witness / f"{step}-{rank}.pt") for rank in (0, 1)]
        for name, expected in weights.items():
            first, second = (rank[name] for rank in ranks)
            assert torch.equal(first, second), (step, name)
            torch.testing.assert_close(first, expected, rtol=1e-12, atol=1e-14)
    record = package.load_run(run_dir)
    for name, expected in wanted[-1].items():
        torch.testing.assert_close(torch.from_numpy(record.weights[name]), expected, rtol=1e-12, atol=1e-14)
