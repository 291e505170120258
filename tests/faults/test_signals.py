"""Tests of SIGINT and SIGTERM at awkward moments of training."""

import os
import signal

import pytest

from icl.errors import Interrupted
from icl.runs.store import RunStore
from icl.training.optimizers import ReplicaOptimizer
from icl.training.run_signals import Interrupts
from icl.training.stream import PromptStream
from tests.plans import assert_identical, train_one

EITHER = pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])


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
        saved = RunStore(make_plan().outputs).checkpoints("tests", make_plan().fingerprint, "digest")
        assert max(saved) == (7 if moment == "in a step" else 1)  # Lightning fetches one set ahead
        monkeypatch.undo()
    record = train_one(make_plan()).record
    assert [signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGINT)] == handlers
    assert record.run["resumed"] == (moment != "in the last step")
    assert_identical(record, whole)
