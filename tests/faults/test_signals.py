"""Tests of SIGINT and SIGTERM at each moment of a command: while it starts, trains, ends and is over."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from icl.errors import Interrupted
from icl.jobs.requests.request import SMOKE
from icl.runs import checkpoint
from icl.runs.store import RunStore
from icl.training.interrupts import Interrupts
from icl.training.optimizers import ReplicaOptimizer
from icl.training.stream import PromptStream
from tests.commands import TINY
from tests.faults.stories import SAYS
from tests.plans import assert_identical, train_one
from tests.processes import ICL, ROOT

EXITS = pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
EITHER = pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])


@EXITS
def test_while_it_begins(signum, code, spawn):
    held = "import sys, time, icl.cli as cli, icl.cli.app as app\n"
    held += "app.run = lambda verb, args: print('begun', flush=True) or time.sleep(10**6)\n"
    process = spawn(held + "sys.exit(cli.main())", "list")
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signum)
    assert (process.communicate(), process.returncode) == (("", SAYS), code)


@EXITS
def test_while_it_imports(signum, code, spawn, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    process = spawn(ICL, "train", *TINY, "logger=none")
    while not _catches(process.pid, signum):
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signum)
    assert (process.communicate(), process.returncode) == (("", SAYS), code)
    assert list(tmp_path.iterdir()) == []


def _catches(pid, signum):
    """Return whether process `pid` has a handler of its own for a signal, SIGTERM's being ours."""
    if not Path("/proc/self/status").exists():
        pytest.skip("no /proc on this system")
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    caught = int(next(line.split()[1] for line in lines if line.startswith("SigCgt:")), 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1) and bool(caught >> (signum - 1) & 1)


def test_while_it_trains(spawn, tmp_path, monkeypatch):
    """Start from nothing, with the interpreter's own start. Nothing slows it down, so it is long."""
    monkeypatch.chdir(tmp_path)
    long = ("train.steps=1000", "train.log_every=50", "callbacks.checkpoint.seconds=0", "seeds=[0,1]")
    kept = [override for override in TINY if not override.startswith(("train.steps=", "train.log_every"))]
    process = spawn(ICL, "train", *kept, *long, "logger=none")
    while not list(tmp_path.glob("outputs/runs/*/*/*/checkpoints/*.pt")) and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(signal.SIGTERM)
    assert (process.communicate(), process.returncode) == (("", f"icl: {SMOKE}\n{SAYS}"), 143)
    (path,) = tmp_path.glob("outputs/runs/ahn/theorem3/*/run.json")
    assert json.loads(path.read_text())["status"] == "interrupted"


@EITHER
def test_when_it_is_done(signum, tmp_path):
    late = f"import atexit, os; atexit.register(os.kill, os.getpid(), {int(signum)})\n"
    argv, environment = [sys.executable, "-c", late + ICL], {**os.environ, "PYTHONPATH": str(ROOT)}
    for rest, code in (["list"], 0), (["list", "nope"], 2):
        found = subprocess.run([*argv, *rest], env=environment, cwd=tmp_path, capture_output=True)
        assert found.returncode == code


@EITHER
def test_one_signal_is_noted_and_a_second_stops(signum):
    before = signal.getsignal(signum)
    with pytest.raises(Interrupted) as caught, Interrupts() as interrupts:
        assert interrupts.signum is None
        os.kill(os.getpid(), signum)
        assert interrupts.signum == signum
        os.kill(os.getpid(), signum)
    assert caught.value.signum == signum
    assert signal.getsignal(signum) is before


def test_listening_again_takes_the_signals_back():
    with Interrupts() as interrupts:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        interrupts.listen()
        os.kill(os.getpid(), signal.SIGTERM)
        assert interrupts.signum == signal.SIGTERM


def test_other_threads_take_no_signals():
    """Run in another thread, where signals cannot be set, as joblib's threading backend does."""
    seen = []

    def work():
        with Interrupts() as interrupts:
            interrupts.listen()
            seen.append(interrupts.signum)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [None]


@EITHER
@pytest.mark.parametrize("moment", ["in a step", "while prompts are drawn", "in the last step"])
def test_at_awkward_moments_of_training(make_plan, monkeypatch, signum, moment):
    """Save a checkpoint before Lightning, which leaves without one on SIGTERM. In the last step the run is
    as good as done, and its record is written."""
    whole = train_one(make_plan(name="whole")).record
    set_rates, draw = ReplicaOptimizer.set_rates, PromptStream.draw
    at = {"in a step": 6, "in the last step": 11}.get(moment)

    def step(self, number):
        if number == at:
            os.kill(os.getpid(), signum)
        set_rates(self, number)

    def drawing(self, start):
        if at is None and start == 5:
            os.kill(os.getpid(), signum)
        return draw(self, start)

    monkeypatch.setattr(ReplicaOptimizer, "set_rates", step)
    monkeypatch.setattr(PromptStream, "draw", drawing)
    handlers = [signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGINT)]
    with pytest.raises(Interrupted) as caught:
        train_one(make_plan())
    assert caught.value.signum == signum
    folder = RunStore(make_plan().outputs).path("tests", make_plan().fingerprint)
    if moment == "in the last step":
        assert '"status": "done"' in (folder / "run.json").read_text()
    else:
        assert '"status": "interrupted"' in (folder / "run.json").read_text()
        state = checkpoint.load(checkpoint.candidates(folder / "checkpoints")[0])["state"]
        assert state["step"] == (7 if moment == "in a step" else 1)  # Lightning fetches one set ahead
        monkeypatch.undo()
    record = train_one(make_plan()).record
    assert [signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGINT)] == handlers
    assert record.run["resumed"] == (moment != "in the last step")
    assert_identical(record, whole)
