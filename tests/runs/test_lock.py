import json
import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from icl.runs import lock as module
from icl.runs.lock import Lock, is_live

START = """
import os, sys, time
from pathlib import Path
from icl.runs import lock as module
from icl.runs.lock import Lock
path = Path(sys.argv[1])
"""
# Waits for a common start, then counts up a file, each time under the lock and with a pause inside.
COUNT = """
module._POLL, counter = 0.002, Path(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[3])):
    with Lock(path):
        value = int(counter.read_text())
        time.sleep(0.001)
        counter.write_text(str(value + 1))
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs" / "lock"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(module, "_POLL", 0.01)
    monkeypatch.setattr(module, "_SETTLE", 0.2)


def claim(path, **holder):
    """Write a lock file as a holder that is gone, or lives elsewhere, would leave it."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(holder))


def age(path, seconds):
    then = time.time() - seconds
    os.utime(path, (then, then))


def stale(path):
    """Write the lock of a holder elsewhere whose heartbeat has stopped."""
    claim(path, host="elsewhere", pid=1, started=None)
    age(path, 90)


def dead_pid(spawn):
    process = spawn("pass")
    process.wait()
    return process.pid


def test_one_at_a_time_and_nothing_left(path):
    with Lock(path) as first:
        assert first.is_held() and is_live(path)
        assert not Lock(path).acquire(blocking=False)
        holder = json.loads(path.read_text())
        assert (holder["host"], holder["pid"]) == (socket.gethostname(), os.getpid())
        assert module._is_flocked(path), "whatever the file says"
    assert list(path.parent.iterdir()) == []
    assert Lock(path).acquire(blocking=False)


def test_waits_for_a_living_process_and_says_so_once(path, hold, monkeypatch):
    holder, said = hold(path), []
    pauses = count(1)

    def pause(_):
        if next(pauses) == 5:
            holder.communicate("\n")

    monkeypatch.setattr(module.time, "sleep", pause)
    mine = Lock(path)
    mine.acquire(said.append)
    assert said == [f"waiting for process {holder.pid} on {socket.gethostname()}: {path}"]
    assert mine.is_held(), "the other's release must not remove what is no longer its own"
    mine.release()
    assert not path.exists()


@pytest.mark.parametrize("start", ["nobody", "dead holder"])
def test_among_many_exactly_one_wins_every_time(path, tmp_path, spawn, start):
    if start == "dead holder":
        claim(path, host=socket.gethostname(), pid=dead_pid(spawn), started="before")
    counter = tmp_path / "counter"
    counter.write_text("0")
    racers = [spawn(START + COUNT, path, counter, 25) for _ in range(4)]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("\n")
        racer.stdin.flush()
    for racer in racers:
        assert racer.wait() == 0, racer.stderr.read()
    assert counter.read_text() == "100"
    assert list(path.parent.iterdir()) == []


def test_a_pid_used_again_is_not_the_holder(path, hold):
    other = hold(path.with_name("another"))
    claim(path, host=socket.gethostname(), pid=other.pid, started="another boot 1")
    assert not is_live(path)
    claim(path, host=socket.gethostname(), pid=other.pid, started=module._start_of(other.pid))
    assert is_live(path), "no flock to see, as on a file system without, but the very process lives"
    assert not Lock(path).acquire(blocking=False)


def test_without_flock_the_process_named_decides(path, spawn, monkeypatch):
    def unsupported(*_):
        raise OSError(95, "not supported")

    monkeypatch.setattr(module.fcntl, "flock", unsupported)
    with Lock(path):
        assert not Lock(path).acquire(blocking=False)
        assert is_live(path)
    claim(path, host=socket.gethostname(), pid=dead_pid(spawn), started="before")
    assert Lock(path).acquire(blocking=False)


def test_another_host_is_alive_while_its_heart_beats(path):
    claim(path, host="elsewhere", pid=1, started=None)
    age(path, 30)
    assert is_live(path, stale_after=60) and not Lock(path, stale_after=60).acquire(blocking=False)
    age(path, 90)
    assert not is_live(path, stale_after=60)
    assert Lock(path, stale_after=60).acquire(blocking=False)


def test_two_hosts_without_common_flock_that_see_the_same_stale_lock(path, monkeypatch):
    """Replace it on both hosts before either's pause is over; then only the one whose file is there has
    it."""
    monkeypatch.setattr(module.fcntl, "flock", lambda *_: None)
    stale(path)
    together, replace = threading.Barrier(2), os.replace

    def replace_together(*names):
        together.wait()
        replace(*names)
        together.wait()

    monkeypatch.setattr(os, "replace", replace_together)
    locks = [Lock(path), Lock(path)]
    with ThreadPoolExecutor(2) as threads:
        won = list(threads.map(lambda lock: lock.acquire(blocking=False), locks))
    assert sorted(won) == [False, True]
    assert [lock.is_held() for lock in locks] == won


def test_who_looks_at_a_stale_lock_while_another_replaces_it_loses(path, monkeypatch):
    stale(path)
    flock, other = module._flock, Lock(path)

    def overtaken(descriptor):
        if module._same_file(descriptor, path):  # opened, and not locked yet
            monkeypatch.setattr(module, "_flock", flock)
            assert other.acquire(blocking=False)
        return flock(descriptor)

    monkeypatch.setattr(module, "_is_flocked", lambda _: False)
    monkeypatch.setattr(module, "_flock", overtaken)
    assert not Lock(path).acquire(blocking=False)
    assert other.is_held()
    other.release()


def test_who_looks_at_a_stale_lock_while_another_looks_too_loses(path, monkeypatch):
    stale(path)
    monkeypatch.setattr(module, "_is_flocked", lambda _: False)
    with open(path, "r+b") as other:
        assert module._flock(other.fileno())
        assert not Lock(path).acquire(blocking=False)
    assert Lock(path).acquire(blocking=False)


def test_a_link_that_was_made_though_the_answer_was_lost(path, monkeypatch):
    """Answer as NFS does, whose client asks again and hears that the link is there. No process waits for
    itself."""
    link = os.link

    def twice(*args):
        link(*args)
        link(*args)

    with monkeypatch.context() as patched:
        patched.setattr(os, "link", twice)
        lock = Lock(path)
        assert lock.acquire(blocking=False) and lock.is_held()
    assert not Lock(path).acquire(blocking=False)
    lock.release()
    assert list(path.parent.iterdir()) == []


def test_the_heart_beats(path):
    with Lock(path, heartbeat=0.02):
        age(path, 1000)
        while time.time() - path.stat().st_mtime > 100:
            time.sleep(0.01)


def test_who_lost_the_lock_knows_and_leaves_the_new_one_alone(path):
    mine = Lock(path)
    mine.acquire()
    path.unlink()
    claim(path, host="elsewhere", pid=1, started=None)
    assert not mine.is_held()
    mine.release()
    assert json.loads(path.read_text())["host"] == "elsewhere"


def test_garbage_in_the_file_is_a_holder_until_it_is_old(path):
    path.parent.mkdir()
    path.write_text("{torn")
    assert not Lock(path).acquire(blocking=False)
    age(path, 90)
    assert Lock(path).acquire(blocking=False)


def test_the_folder_may_vanish_while_waiting(path, hold):
    hold(path)
    waiting, taken = threading.Event(), threading.Event()
    mine = Lock(path)
    wait = threading.Thread(target=lambda: (mine.acquire(lambda _: waiting.set()), taken.set()), daemon=True)
    wait.start()
    assert waiting.wait()
    path.parent.rename(path.parent.with_name("gone"))
    assert taken.wait()
    assert mine.is_held() and Path(path).exists()
    mine.release()
