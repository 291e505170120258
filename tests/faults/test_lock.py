"""Tests of a lock whose holder is killed or frozen."""

import os
import signal
import time

import pytest

from icl.runs import lock as module
from icl.runs.lock import Lock, is_live

FORK = """
import os, signal, sys
from pathlib import Path
from icl.runs.lock import Lock
lock = Lock(Path(sys.argv[1]))
lock.acquire()
child = os.fork()
if child == 0:
    signal.pause()
    os._exit(0)
print(child, flush=True)
signal.pause()
"""


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_POLL", 0.01)
    return tmp_path / "runs" / "lock"


def test_a_killed_holder_is_succeeded_at_once(path, hold):
    holder = hold(path)
    assert is_live(path)
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert path.exists() and not is_live(path)
    assert Lock(path).acquire(blocking=False)


def test_a_stopped_holder_keeps_it_however_long(path, hold):
    holder = hold(path)
    holder.send_signal(signal.SIGSTOP)
    os.utime(path, (0, 0))
    assert not Lock(path, stale_after=0.01).acquire(blocking=False)
    holder.send_signal(signal.SIGCONT)


def test_a_forked_child_does_not_keep_its_dead_parents_lock(path, spawn):
    parent = spawn(FORK, path)
    child = int(parent.stdout.readline())
    try:
        assert not Lock(path).acquire(blocking=False)
        parent.kill()
        parent.wait()
        while not Lock(path).acquire(blocking=False):
            time.sleep(0.05)
        os.kill(child, 0)
    finally:
        os.kill(child, signal.SIGKILL)
