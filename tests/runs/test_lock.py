import socket
import threading
from itertools import count

import pytest

from icl.runs import lock as module
from icl.runs.lock import is_live, locked


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_POLL", 0.01)
    return tmp_path / "runs" / "lock"


def is_free(path):
    with locked(path, wait=False) as mine:
        return mine


def test_one_at_a_time_and_nothing_left(path):
    assert not is_live(path) and not path.parent.exists()
    with locked(path) as mine:
        assert mine and is_live(path) and not is_free(path)
    assert not is_live(path) and not path.parent.exists()
    path.parent.mkdir()
    with locked(path), pytest.raises(OSError), locked(type(path)("/proc/nosuch/lock")):
        pass  # nobody can make that folder, so nobody is waited for
    assert list(path.parent.iterdir()) == [], "a folder that was there stays"


def test_waits_for_a_living_process_and_says_so_once(path, hold, monkeypatch):
    holder, said, pauses = hold(path), [], count(1)
    monkeypatch.setattr(
        module.time, "sleep", lambda _: holder.communicate("\n") if next(pauses) == 5 else None
    )
    with locked(path, said.append):
        assert said == [f"waiting for process {holder.pid} on {socket.gethostname()}: {path}"]


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
