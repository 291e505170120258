"""Real processes of `icl train`, killed at arbitrary moments: the end state is that of an uninterrupted run.

Processes are forked from a server that has imported everything once, which makes a dozen of them cheap; one
test starts the command from nothing.
"""

from __future__ import annotations

import contextlib
import json
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["icl.cli.verbs", "icl.jobs.train", "icl.training.job"])


def arguments(folder: Path, *more: str) -> list[str]:
    return [
        "train", "experiment=ahn/theorem3", "scale=smoke", "format=json", "logger=none", "checks=[]",
        "seeds=[0,1]", "task.dim=2", "model.layers=2", "train.steps=60", "train.batch=50",
        "train.steps_per_batch=13", "train.log_every=1", "callbacks.checkpoint.seconds=0",
        "callbacks.gradient.samples=64", "trainer.accelerator=cpu", f"paths.outputs={folder}", *more,
    ]  # fmt: skip


def _icl(args: list[str], stdout: str, stderr: str, rows: float) -> None:
    """From row `rows` on it hardly moves, so that it cannot have ended when the signal arrives."""
    from icl.cli import main
    from icl.training.optimizers import ReplicaOptimizer

    set_rates = ReplicaOptimizer.set_rates

    def step(self: ReplicaOptimizer, number: int) -> None:
        if 2 * number >= rows:  # a row of each seed after every step
            time.sleep(1)
        set_rates(self, number)

    ReplicaOptimizer.set_rates = step  # type: ignore[method-assign]
    for number, name in ((1, stdout), (2, stderr)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    sys.exit(main(args))


class Command:
    """One `icl train`, its output and its run directory."""

    def __init__(self, folder: Path, *more: str, rows: float = math.inf) -> None:
        self.folder, self.slow_from = folder, rows
        self.out, self.err = folder.parent / f"{folder.name}.out", folder.parent / f"{folder.name}.err"
        self.process = SERVER.Process(
            target=_icl, args=(arguments(folder, *more), str(self.out), str(self.err), rows)
        )
        self.process.start()

    def rows(self) -> int:
        found = list(self.folder.glob("runs/*/*/*/metrics.csv"))
        return found[0].read_bytes().count(b"\n") - 1 if found else 0

    def send(self, signum: int) -> int:
        """Sends the signal once metrics.csv has the rows it slows down from; the exit code."""
        while self.rows() < self.slow_from and self.process.is_alive():
            time.sleep(0.001)
        assert self.process.is_alive(), f"ended before row {self.slow_from}: {self.err.read_text()}"
        os.kill(self.process.pid, signum)
        return self.end()

    def end(self) -> int:
        self.process.join()
        return self.process.exitcode

    def document(self) -> dict[str, Any]:
        return json.loads(self.out.read_text())


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Command]]:
    started: list[Command] = []

    def begin(*more: str, name: str = "killed", rows: float = math.inf) -> Command:
        started.append(Command(tmp_path / name, *more, rows=rows))
        return started[-1]

    yield begin
    for command in started:
        with contextlib.suppress(ValueError):
            command.process.kill()
            command.process.join()


def status(folder: Path) -> str:
    (path,) = folder.glob("runs/ahn/theorem3/*/run.json")
    return json.loads(path.read_text())["status"]


def assert_identical(one: dict[str, Any], other: dict[str, Any]) -> None:
    folders = Path(one["run_dir"]), Path(other["run_dir"])
    with np.load(folders[0] / "weights.npz") as a, np.load(folders[1] / "weights.npz") as b:
        assert set(a.files) == set(b.files) and "A" in a.files
        for name in a.files:
            assert a[name].tobytes() == b[name].tobytes(), name
    assert (folders[0] / "metrics.csv").read_bytes() == (folders[1] / "metrics.csv").read_bytes()
    assert one["metrics"] == other["metrics"] and one["fingerprint"] == other["fingerprint"]


def uninterrupted(start: Callable[..., Command], *options: str) -> dict[str, Any]:
    command = start(*options, "callbacks.checkpoint.seconds=1000", name="whole")
    assert command.end() == 0, command.err.read_text()
    document = command.document()
    assert document["status"] == "done" and not document["resumed"] and document["steps"] >= 60
    return document


KILLS = {
    "32-true": [
        (signal.SIGKILL, -9, "running"),
        (signal.SIGTERM, 143, "interrupted"),
        (signal.SIGINT, 130, "interrupted"),
    ],
    "64-true": [(signal.SIGKILL, -9, "running"), (signal.SIGKILL, -9, "running")],
}


@pytest.mark.parametrize("precision", KILLS)
def test_killed_runs_end_where_uninterrupted_ones_do(start: Callable[..., Command], precision: str) -> None:
    """Stops in the middle of sets (of 2 x 13 rows), each but the first soon after a resume."""
    option = f"trainer.precision={precision}"
    whole = uninterrupted(start, option)
    for rows, (signum, code, left) in zip((21, 42, 63), KILLS[precision], strict=False):
        command = start(option, rows=rows)
        assert command.send(signum) == code, command.err.read_text()
        assert status(command.folder) == left
        assert command.out.read_text() == "" or command.document()["status"] == "interrupted"
    last = start(option)
    assert last.end() == 0, last.err.read_text()
    resumed = last.document()
    assert resumed["resumed"] and not resumed["cached"] and resumed["status"] == "done"
    assert_identical(whole, resumed)


@pytest.mark.parametrize(
    "options",
    [("train.estimator=sampled",), ("train.estimator=tilted", "train.coordinates=whitened")],
    ids=["sampled", "tilted"],
)
def test_killed_between_checkpoints(start: Callable[..., Command], options: tuple[str, ...]) -> None:
    """Before the first, which means from the start; then between two: rows after the last are made again."""
    whole = uninterrupted(start, *options)
    assert start(*options, "callbacks.checkpoint.seconds=1000", rows=40).send(signal.SIGKILL) == -9
    assert start(*options, "callbacks.checkpoint.seconds=0.03", rows=70).send(signal.SIGKILL) == -9
    last = start(*options)
    assert last.end() == 0
    assert_identical(whole, last.document())
    again = start(*options)
    assert again.end() == 0 and again.document()["cached"]
    assert_identical(whole, again.document())


def test_a_nan_exits_4(start: Callable[..., Command]) -> None:
    options = ("train.clip=null", "optimizer.lr=1e30", "train.steps=20")
    command = start(*options)
    assert command.end() == 4
    assert "not finite" in command.err.read_text()
    (trace,) = command.folder.glob("runs/ahn/theorem3/*/traceback.txt")
    assert "Diverged" in trace.read_text() and status(command.folder) == "failed"


def test_the_command_itself(start: Callable[..., Command], tmp_path: Path) -> None:
    """From nothing, with the interpreter's own start: SIGTERM at an arbitrary row, then to the end. Nothing
    slows it down, so it is long."""
    long = ("train.steps=1500", "train.log_every=50", "callbacks.gradient.count=0")
    code = "import sys; from icl.cli import main; sys.exit(main())"
    call = [sys.executable, "-c", code, *arguments(tmp_path / "killed", *long)]
    with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not list((tmp_path / "killed").glob("runs/*/*/*/checkpoints/*.pt")) and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGTERM)
        _, complaint = process.communicate()
    assert process.returncode == 143, complaint
    assert len(complaint.splitlines()) <= 2 and "the same command continues" in complaint
    assert status(tmp_path / "killed") == "interrupted"
    whole, last = uninterrupted(start, *long), start(*long)
    assert last.end() == 0
    assert last.document()["resumed"]
    assert_identical(whole, last.document())
