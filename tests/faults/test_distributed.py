"""Tests of a run over two processes that loses one of them, or is stopped in its first seconds."""

import json
import os
import signal
from pathlib import Path

import pytest

import icl as package
from icl.runs.lock import is_live
from icl.training import launch
from tests.commands import assert_refused, tiny_argv
from tests.processes import Command
from tests.two_processes import SHARED, Forked, assert_by_hand


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
        (Forked, "stop", 143, "interrupted", "interrupted"),
    ],
    ids=["killed at its start", "killed in training", "frozen, and SIGTERM", "SIGTERM"],
)
def test_a_run_that_loses_a_process_or_is_stopped(
    start, harm, code, line, status, tiny, outputs, witness, monkeypatch
):
    """End the run; as many processes then finish it with the numbers of a run left alone."""
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
    for devices in (1, 4) if harm == "stop" else ():
        refused = tiny(*SHARED, f"trainer.devices={devices}")
        assert_refused(refused, "was started with 2 processes")
        assert f"here {devices}" in refused.err
    rest = tiny(*SHARED).json
    assert_by_hand(rest["run_dir"], witness)
    assert (rest["resumed"], rest["cached"]) == (harm == "stop", False)
    if harm == "stop":
        one = package.load_run(rest["run_dir"])
        other = package.load_run(tiny(*SHARED, "force=true").json["run_dir"])
        assert one.metrics == other.metrics
        assert {name: array.tobytes() for name, array in one.weights.items()} == {
            name: array.tobytes() for name, array in other.weights.items()
        }


def _fork_workers() -> None:
    launch.start_other = Forked  # type: ignore[assignment]


@pytest.mark.slow
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("moment", ["lock", "ready", "1-1.pt"])
def test_a_signal_in_the_first_seconds(
    signum: int,
    moment: str,
    outputs: Path,
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
