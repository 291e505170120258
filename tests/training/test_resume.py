"""Tests of real processes of `icl train`, killed at arbitrary moments: they end as uninterrupted runs do.

One test starts the command from nothing.
"""

import json
import math
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.processes import Command


def arguments(folder: Path, *more: str) -> list[str]:
    return [
        "train", "experiment=ahn/theorem3", "scale=smoke", "format=json", "logger=none", "checks=[]",
        "seeds=[0,1]", "task.dim=2", "model.layers=2", "train.steps=60", "train.batch=50",
        "train.steps_per_batch=13", "train.log_every=1", "callbacks.checkpoint.seconds=0",
        "callbacks.gradient.samples=64", "trainer.accelerator=cpu", f"paths.outputs={folder}", *more,
    ]  # fmt: skip


def _slowly(rows: float) -> None:
    """Slow training from row `rows` on, so that it cannot have ended when the signal arrives."""
    from icl.training.optimizers import ReplicaOptimizer

    set_rates = ReplicaOptimizer.set_rates

    def step(self: ReplicaOptimizer, number: int) -> None:
        if 2 * number >= rows:  # a row of each seed after every step
            time.sleep(1)
        set_rates(self, number)

    ReplicaOptimizer.set_rates = step  # type: ignore[method-assign]


class Training(Command):
    """An `icl train` and its outputs folder."""

    def __init__(self, folder: Path, *more: str, rows: float = math.inf) -> None:
        self.folder, self.slow_from = folder, rows
        super().__init__(arguments(folder, *more), folder.parent, prepare=partial(_slowly, rows))

    def rows(self) -> int:
        found = list(self.folder.glob("runs/*/*/*/metrics.csv"))
        return found[0].read_bytes().count(b"\n") - 1 if found else 0

    def stop(self, signum: int) -> int:
        """Send the signal once metrics.csv has the rows it slows down from, and return the exit code."""
        self.until(lambda: self.rows() >= self.slow_from)
        self.send(signum)
        return self.end()

    def document(self) -> dict[str, Any]:
        return json.loads(self.out)


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., Training]:
    return lambda *more, name="killed", rows=math.inf: Training(tmp_path / name, *more, rows=rows)


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


def uninterrupted(start: Callable[..., Training], *options: str) -> dict[str, Any]:
    command = start(*options, "callbacks.checkpoint.seconds=1000", name="whole")
    assert command.end() == 0, command.err
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
def test_killed_runs_end_where_uninterrupted_ones_do(start: Callable[..., Training], precision: str) -> None:
    """Stop in the middle of sets (of 2 x 13 rows), each but the first soon after a resume."""
    option = f"trainer.precision={precision}"
    whole = uninterrupted(start, option)
    for rows, (signum, code, left) in zip((21, 42, 63), KILLS[precision], strict=False):
        command = start(option, rows=rows)
        assert command.stop(signum) == code, command.err
        assert status(command.folder) == left
        assert command.out == "" or command.document()["status"] == "interrupted"
    last = start(option)
    assert last.end() == 0, last.err
    resumed = last.document()
    assert resumed["resumed"] and not resumed["cached"] and resumed["status"] == "done"
    assert_identical(whole, resumed)


@pytest.mark.parametrize(
    "options",
    [("train.estimator=sampled",), ("train.estimator=tilted", "train.coordinates=whitened")],
    ids=["sampled", "tilted"],
)
def test_killed_between_checkpoints(start: Callable[..., Training], options: tuple[str, ...]) -> None:
    """Kill before the first checkpoint, which means from the start; then between two: rows after the last
    are made again."""
    whole = uninterrupted(start, *options)
    assert start(*options, "callbacks.checkpoint.seconds=1000", rows=40).stop(signal.SIGKILL) == -9
    assert start(*options, "callbacks.checkpoint.seconds=0.03", rows=70).stop(signal.SIGKILL) == -9
    last = start(*options)
    assert last.end() == 0
    assert_identical(whole, last.document())
    again = start(*options)
    assert again.end() == 0 and again.document()["cached"]
    assert_identical(whole, again.document())


def test_a_nan_exits_4(start: Callable[..., Training]) -> None:
    options = ("train.clip=null", "optimizer.lr=1e30", "train.steps=20")
    command = start(*options)
    assert command.end() == 4
    assert "not finite" in command.err
    (trace,) = command.folder.glob("runs/ahn/theorem3/*/traceback.txt")
    assert "Diverged" in trace.read_text() and status(command.folder) == "failed"


def test_the_command_itself(tmp_path: Path) -> None:
    """Start from nothing, with the interpreter's own start: SIGTERM at an arbitrary row. Nothing slows it
    down, so it is long."""
    long = ("train.steps=1000", "train.log_every=50", "callbacks.gradient.count=0")
    code = "import sys; from icl.cli import main; sys.exit(main())"
    call = [sys.executable, "-c", code, *arguments(tmp_path, *long)]
    with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not list(tmp_path.glob("runs/*/*/*/checkpoints/*.pt")) and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGTERM)
        _, complaint = process.communicate()
    assert process.returncode == 143, complaint
    assert len(complaint.splitlines()) <= 2 and "the same command continues" in complaint
    assert status(tmp_path) == "interrupted"
