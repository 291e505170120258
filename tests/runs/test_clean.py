import signal

import pytest

from icl.errors import Interrupted
from icl.runs import atomic, clean, layout
from icl.runs.clean import find_removable, remove
from icl.runs.json_records import JsonRecords
from icl.runs.record import find_done
from icl.runs.store import RunStore

EMPTY_ZIP = b"PK\5\6" + bytes(18)
PRINTS = [f"{i:012x}" for i in range(10)]


@pytest.fixture
def store(outputs):
    return RunStore(outputs)


@pytest.fixture(autouse=True)
def today(monkeypatch):
    """Let today's code be `d1`, or what a test says."""

    def be(digest):
        monkeypatch.setattr(clean, "current_digest", lambda record, outputs: digest)

    be("d1")
    return be


def make(store, finish, number, digest="d1"):
    with store.begin("ahn/theorem3", PRINTS[number], {}, digest) as run:
        finish(run)
    return run.path


def stop(store, number, error, digest="d1", save=True):
    with pytest.raises(type(error)), store.begin("ahn/theorem3", PRINTS[number], {}, digest) as run:
        if save:
            run.save_checkpoint(lambda path: path.write_bytes(EMPTY_ZIP), 1)
        raise error
    return run.path


def found(outputs):
    return {entry.path: entry.why.partition(":")[0] for entry in find_removable(outputs)}


def test_what_counts_stays_and_what_does_not_goes(outputs, store, finish, monkeypatch, today):
    assert find_removable(outputs) == [] and not outputs.exists()
    keep = [make(store, finish, 0), stop(store, 1, Interrupted(signal.SIGTERM))]
    failed = stop(store, 2, ZeroDivisionError())
    stale = make(store, finish, 3, digest="old")
    stale_checkpoint = stop(store, 4, Interrupted(signal.SIGTERM), digest="old")
    barren = stop(store, 5, Interrupted(signal.SIGTERM), save=False)
    orphan = store.path("ahn/theorem3", PRINTS[6])
    (orphan / "checkpoints").mkdir(parents=True)
    damaged = make(store, finish, 7)
    (damaged / "weights.npz").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(layout, "SCHEMA", 0)
        foreign = make(store, finish, 8)
    checks = JsonRecords(outputs, "checks")
    checks.save("ahn/theorem1", PRINTS[0], "d1", {})
    checks.save("ahn/theorem1", PRINTS[1], "old", {})
    whatever_the_code = {
        failed: "failed", barren: "orphaned", orphan: "orphaned", damaged: "stale", foreign: "orphaned",
    }  # fmt: skip
    by_code = dict.fromkeys([stale, stale_checkpoint, checks.path("ahn/theorem1", PRINTS[1])], "stale")
    assert found(outputs) == whatever_the_code | by_code
    today(None)
    assert found(outputs) == whatever_the_code, "nobody knows the current code"
    today("d1")
    garbage = find_removable(outputs)
    for entry in garbage:
        files = [path for path in (entry.path, *entry.path.rglob("*")) if path.is_file()]
        assert entry.bytes == sum(file.stat().st_size for file in files) and (files or entry.path == orphan)
    assert set(remove(outputs, garbage)) == {entry.path for entry in garbage}
    assert not any(entry.path.exists() for entry in garbage) and all(path.is_dir() for path in keep)
    assert find_removable(outputs) == []
    assert find_done(keep[0], "d1") is not None and checks.find("ahn/theorem1", PRINTS[0], "d1") is not None
    with pytest.raises(Interrupted), store.begin("ahn/theorem3", PRINTS[1], {}, "d1") as run:
        assert list(run.checkpoints) == [1]
        raise Interrupted(signal.SIGTERM)


def test_a_run_at_work_or_made_meanwhile_is_never_touched(outputs, store, finish):
    stop(store, 0, ZeroDivisionError())
    garbage = find_removable(outputs)
    with store.begin("ahn/theorem3", PRINTS[0], {}, "d1") as run:
        assert find_removable(outputs) == [] and remove(outputs, garbage) == []
        finish(run)
    assert remove(outputs, garbage) == []
    assert find_done(store.path("ahn/theorem3", PRINTS[0]), "d1") is not None


def test_temporary_files_where_nobody_is_at_work(outputs, store, finish):
    path = make(store, finish, 0)
    checks = JsonRecords(outputs, "checks")
    checks.save("ahn/theorem1", PRINTS[0], "d1", {})
    json_path = checks.path("ahn/theorem1", PRINTS[0])
    inside, outside = atomic.temporary(path / "weights.npz"), atomic.temporary(json_path)
    for file in (inside, outside):
        file.write_text("half")
    with checks.lock("ahn/theorem1", PRINTS[0]):
        assert found(outputs) == {inside: "leftover temporary file"}
    garbage = find_removable(outputs)
    assert {entry.path for entry in garbage} == {inside, outside}
    inside.unlink()  # its process was at work, and is done
    assert remove(outputs, garbage) == [outside]
    assert [entry.name for entry in json_path.parent.iterdir()] == [json_path.name]


def test_nothing_outside_and_nothing_behind_a_link(tmp_path, outputs, store):
    victim = stop(RunStore(tmp_path / "elsewhere"), 0, ZeroDivisionError())
    own = stop(store, 1, ZeroDivisionError())
    store.path("ahn/theorem3", PRINTS[0]).symlink_to(victim)
    store.path("ahn/theorem3", PRINTS[2]).symlink_to(own)
    (outputs / "runs" / "linked").symlink_to(victim.parent)
    (outputs / "checks").symlink_to(tmp_path / "elsewhere" / "runs")
    (tmp_path / "link").symlink_to(outputs)
    garbage = find_removable(tmp_path / "link")
    assert remove(tmp_path / "link", garbage) == [own]
    assert (victim / "traceback.txt").exists() and not own.exists()
