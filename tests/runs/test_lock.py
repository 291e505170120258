import os
import signal
import socket
import threading
from itertools import count

import pytest

from icl.runs import lock as module
from icl.runs.lock import is_live, locked

# Waits for a common start, then counts up a file, each time under the lock and with a pause inside.
COUNT = """
import sys, time
from pathlib import Path
from icl.runs import lock as module
path, counter = Path(sys.argv[1]), Path(sys.argv[2])
module._POLL = 0.002
print("ready", flush=True)
sys.stdin.readline()
for _ in range(25):
    with module.locked(path, lambda _: None):
        value = int(counter.read_text())
        time.sleep(0.001)
        counter.write_text(str(value + 1))
"""


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_POLL", 0.01)
    return tmp_path / "runs" / "lock"


def is_free(path):
    with locked(path, wait=False) as mine:
        return mine


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_one_at_a_time_and_nothing_left(path):
    assert not is_live(path) and not path.parent.exists()
    with locked(path) as mine:
        assert mine and is_live(path) and not is_free(path)
    assert not is_live(path) and list(path.parent.iterdir()) == []


def test_waits_for_a_living_process_and_says_so_once(path, hold, monkeypatch):
    holder, said, pauses = hold(path), [], count(1)
    monkeypatch.setattr(
        module.time, "sleep", lambda _: holder.communicate("\n") if next(pauses) == 5 else None
    )
    with locked(path, said.append):
        assert said == [f"waiting for process {holder.pid} on {socket.gethostname()}: {path}"]


@pytest.mark.parametrize("start", ["nobody", "dead holder"])
def test_among_many_exactly_one_wins_every_time(path, tmp_path, spawn, hold, start):
    if start == "dead holder":
        kill(hold(path))
        assert path.exists() and not is_live(path)
    counter = tmp_path / "counter"
    counter.write_text("0")
    racers = [spawn(COUNT, path, counter) for _ in range(4)]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("\n")
        racer.stdin.flush()
    for racer in racers:
        assert racer.wait() == 0, racer.stderr.read()
    assert counter.read_text() == "100"
    assert list(path.parent.iterdir()) == []


def test_a_stopped_holder_keeps_it_however_long(path, hold):
    holder = hold(path)
    holder.send_signal(signal.SIGSTOP)
    os.utime(path, (0, 0))
    assert is_live(path) and not is_free(path)
    holder.send_signal(signal.SIGCONT)


def test_the_folder_may_vanish_while_waiting(path, hold):
    hold(path)
    waiting, taken = threading.Event(), threading.Event()

    def wait():
        with locked(path, lambda _: waiting.set()):
            assert is_live(path)
            taken.set()

    threading.Thread(target=wait, daemon=True).start()
    assert waiting.wait()
    path.parent.rename(path.parent.with_name("gone"))
    assert taken.wait()
