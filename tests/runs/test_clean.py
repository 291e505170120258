import os
import shutil
import signal

import pytest

from icl.errors import InputError, Interrupted
from icl.runs import atomic, clean, layout
from icl.runs.clean import find_garbage, remove
from icl.runs.json_records import JsonRecords
from icl.runs.store import RunStore

PRINTS = [f"{i:012x}" for i in range(10)]


@pytest.fixture
def store(outputs):
    return RunStore(outputs)


def current(record, outputs):
    return "d1"


def make(store, finish, number, digest="d1", **options):
    with store.begin("ahn/theorem3", PRINTS[number], {}, digest, **options) as run:
        finish(run)
    return run.path


def stop(store, number, error, digest="d1", save=True, **options):
    begun = store.begin("ahn/theorem3", PRINTS[number], {}, digest, **options)
    with pytest.raises(type(error)), begun as run:
        if save:
            run.save_checkpoint({"step": 1})
        raise error
    return run.path


def found(outputs, digest=current):
    return {entry.path: entry.why.partition(":")[0] for entry in find_garbage(outputs, digest)}


def test_what_counts_stays_and_what_does_not_goes(outputs, store, finish, monkeypatch):
    assert find_garbage(outputs, current) == [] and not outputs.exists()
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
        failed: "failed", barren: "orphaned", orphan: "orphaned", damaged: "stale", foreign: "stale",
    }  # fmt: skip
    by_code = dict.fromkeys([stale, stale_checkpoint, checks.path("ahn/theorem1", PRINTS[1])], "stale")
    assert found(outputs) == whatever_the_code | by_code
    assert found(outputs, lambda *_: None) == whatever_the_code, "nobody knows the current code"
    garbage = find_garbage(outputs, current)
    for entry in garbage:
        files = [path for path in (entry.path, *entry.path.rglob("*")) if path.is_file()]
        assert entry.bytes == sum(file.stat().st_size for file in files) and (files or entry.path == orphan)
    assert set(remove(outputs, garbage)) == {entry.path for entry in garbage}
    assert find_garbage(outputs, current) == []
    assert all(path.is_dir() for path in keep)
    assert store.find("ahn/theorem3", PRINTS[0], "d1") is not None
    assert checks.find("ahn/theorem1", PRINTS[0], "d1") is not None
    with pytest.raises(Interrupted), store.begin("ahn/theorem3", PRINTS[1], {}, "d1") as run:
        assert run.checkpoint == {"step": 1}
        raise Interrupted(signal.SIGTERM)


def test_a_run_at_work_is_never_touched(outputs, store, finish):
    stop(store, 0, ZeroDivisionError())
    garbage = find_garbage(outputs, current)
    with store.begin("ahn/theorem3", PRINTS[0], {}, "d1") as run:
        assert find_garbage(outputs, current) == []
        assert remove(outputs, garbage) == []
        # Even where its files look as they did when found.
        assert remove(outputs, [garbage[0]._replace(stamp=clean._stamp(run.path))]) == []
        finish(run)
    assert remove(outputs, garbage) == [], "changed since it was found"
    assert store.find("ahn/theorem3", PRINTS[0], "d1") is not None


def test_the_record_set_aside(outputs, store, finish):
    path = make(store, finish, 0)
    stop(store, 0, ZeroDivisionError(), force=True)
    assert found(outputs) == {}, "the old record inside still counts"
    assert found(outputs, lambda *_: "d2") == {path: "failed"}
    shutil.copytree(path / "superseded", path.parent / "copy")
    make(store, finish, 0)
    (path.parent / "copy").rename(path / "superseded")
    assert found(outputs) == {path / "superseded": "superseded"}
    remove(outputs, find_garbage(outputs, current))
    assert not (path / "superseded").exists() and store.find("ahn/theorem3", PRINTS[0], "d1") is not None


def test_temporary_files_and_dead_locks(outputs, store, finish):
    path = make(store, finish, 0)
    checks = JsonRecords(outputs, "checks")
    checks.save("ahn/theorem1", PRINTS[0], "d1", {})
    json_path = checks.path("ahn/theorem1", PRINTS[0])
    inside, outside = atomic.temporary(path / "weights.npz"), atomic.temporary(json_path)
    lock = json_path.with_suffix(".lock")
    half_removed = atomic.temporary(path)
    half_removed.mkdir()
    for file in (inside, outside, half_removed / "run.json"):
        file.write_text("half")
    lock.write_text('{"host": "elsewhere", "pid": 1}')
    assert found(outputs) == {inside: "leftover temporary file", half_removed: "leftover temporary file"}
    os.utime(lock, (0, 0))
    assert set(found(outputs)) == {inside, half_removed, outside, lock}
    remove(outputs, find_garbage(outputs, current))
    assert find_garbage(outputs, current) == []
    assert [entry.name for entry in json_path.parent.iterdir()] == [json_path.name]
    with checks.lock("ahn/theorem1", PRINTS[0]):
        outside.write_text("being written")
        assert find_garbage(outputs, current) == []


def test_a_temporary_file_that_somebody_is_done_with_meanwhile(outputs, store, finish, monkeypatch):
    path = make(store, finish, 0).parent / ".being.lock.written.tmp"
    path.write_text("half")
    (entry,) = find_garbage(outputs, current)
    rename = os.rename
    monkeypatch.setattr(os, "rename", lambda *names: path.unlink() or rename(*names))
    assert remove(outputs, [entry]) == [] and find_garbage(outputs, current) == []


def test_nothing_outside_and_nothing_behind_a_link(tmp_path, outputs, store):
    elsewhere = RunStore(tmp_path / "elsewhere")
    victim = stop(elsewhere, 0, ZeroDivisionError())
    stop(store, 1, ZeroDivisionError())
    (store.path("ahn/theorem3", PRINTS[0])).symlink_to(victim)
    (outputs / "runs" / "linked").symlink_to(victim.parent)
    (outputs / "checks").symlink_to(tmp_path / "elsewhere" / "runs")
    inner = store.path("ahn/theorem3", PRINTS[2])
    inner.symlink_to(store.path("ahn/theorem3", PRINTS[1]))
    garbage = find_garbage(outputs, current)
    assert [entry.path.name for entry in garbage] == [PRINTS[1]]
    outside = [victim, outputs / "runs" / ".." / ".." / victim.relative_to(tmp_path)]
    linked = [inner, store.path("ahn/theorem3", PRINTS[0]), outputs / "runs" / "linked" / PRINTS[0]]
    for path in [*outside, *linked, outputs, outputs / "runs", outputs / "runs" / "ahn"]:
        with pytest.raises(InputError, match="must be a record inside"):
            remove(outputs, [*garbage, garbage[0]._replace(path=path)])
    assert store.path("ahn/theorem3", PRINTS[1]).exists(), "refused as a whole"
    remove(outputs, garbage)
    assert (victim / "traceback.txt").exists() and not store.path("ahn/theorem3", PRINTS[1]).exists()


def test_outputs_may_be_a_link_itself(tmp_path, store, outputs):
    stop(store, 0, ZeroDivisionError())
    (tmp_path / "link").symlink_to(outputs)
    garbage = find_garbage(tmp_path / "link", current)
    assert len(remove(tmp_path / "link", garbage)) == 1
    assert list((outputs / "runs").iterdir()) == [], "folders left empty go too"


def test_a_start_during_removal_finds_nothing_rather_than_half(outputs, store, finish, monkeypatch):
    path = stop(store, 0, ZeroDivisionError())
    garbage = find_garbage(outputs, current)
    rmtree = shutil.rmtree

    def start_meanwhile(gone):
        monkeypatch.undo()
        with store.begin("ahn/theorem3", PRINTS[0], {}, "d1") as run:
            assert (run.attempt, run.checkpoint) == (1, None)
            rmtree(gone)
            finish(run)

    monkeypatch.setattr(clean.shutil, "rmtree", start_meanwhile)
    assert remove(outputs, garbage) == [path]
    assert store.find("ahn/theorem3", PRINTS[0], "d1") is not None
