import contextlib
import errno
import itertools
import json
import os
import signal
import threading

import numpy as np
import pytest
import yaml

from icl.errors import InputError, Interrupted
from icl.redact import HIDDEN
from icl.runs import atomic, documents, layout
from icl.runs.lock import is_live
from icl.runs.record import load_run
from icl.runs.store import RunStore

EXPERIMENT, FINGERPRINT, DIGEST = "ahn/theorem3", "0123456789ab", "d1"


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "outputs")


@pytest.fixture
def path(store):
    return store.path(EXPERIMENT, FINGERPRINT)


@pytest.fixture
def record(store, begin, finish):
    """Return a record that is there already."""
    with begin(store) as run:
        return finish(run)


def find(store, digest=DIGEST):
    return store.find(EXPERIMENT, FINGERPRINT, digest)


def stale(store, digest=DIGEST):
    return store.stale(EXPERIMENT, FINGERPRINT, digest)


def run_json(path):
    return documents.read_json(path / "run.json")


def killed(begin, store, steps=(), **options):
    """Leave what SIGKILL leaves of a session that saved at `steps`, but for its lock."""

    class Killed(BaseException):
        pass

    path = store.path(EXPERIMENT, FINGERPRINT)
    with pytest.raises(Killed), begin(store, **options) as run:
        for step in steps:
            run.save_checkpoint({"step": step})
        before = (path / "run.json").read_bytes()
        attempt = run.attempt
        raise Killed
    (path / "run.json").write_bytes(before)
    (path / "traceback.txt").unlink()
    return attempt


def interrupted(begin, store, *steps, **options):
    with pytest.raises(Interrupted), begin(store, **options) as run:
        for step in steps:
            run.save_checkpoint({"step": step})
        raise Interrupted(signal.SIGTERM)
    return run


@contextlib.contextmanager
def killed_at(is_it, after=False):
    """Raise KeyboardInterrupt before or after the rename that `is_it(number from 1, name)` selects."""
    replace, numbers = os.replace, itertools.count(1)

    def dying(source, target):
        if after:
            replace(source, target)
        if is_it(next(numbers), os.path.basename(target)):
            raise KeyboardInterrupt
        if not after:
            replace(source, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", dying)
        yield


# A run from nothing to done


def test_a_run_from_begin_to_record(store, path, begin, finish):
    assert find(store) is None and stale(store) is None and not store.outputs.exists()
    with begin(store) as run:
        assert (run.cached, run.checkpoint, run.attempt, run.resumed) == (None, None, 1, 0)
        assert run.path == path and is_live(path / "lock")
        assert find(store) is None and stale(store) == "its status is running"
        extras = {"overrides": ["a=1"], "status": "failed", "attempt": 7}  # which do not overrule the store
        record = finish(run, extras=extras, verdicts=[{"verdict": "holds"}])
    found = find(store)
    assert found.path == record.path == path and found.run == record.run == run_json(path)
    assert {entry.name for entry in path.iterdir()} == {
        "config.yaml", "metrics.csv", "weights.npz", "run.json", "verdicts.json"
    }  # fmt: skip
    assert found.run["overrides"] == ["a=1"] and found.verdicts == [{"verdict": "holds"}]
    expected = {
        "schema": layout.SCHEMA, "status": "done", "experiment": EXPERIMENT, "fingerprint": FINGERPRINT,
        "digest": DIGEST, "attempt": 1, "resumed": 0, "steps": 10, "seeds": [0],
        "metrics": {"loss": {"mean": 1.0, "by_seed": {"0": 1.0}}},
    }  # fmt: skip
    assert expected.items() <= found.run.items()
    assert {"git", "versions", "hardware", "threads", "host", "started", "ended", "seconds"} <= set(found.run)


def test_a_second_start_gets_the_record_and_may_not_write(store, path, begin, finish, record):
    before = {entry.name: entry.stat().st_mtime_ns for entry in path.iterdir()}
    with begin(store) as again:
        assert again.cached.run == run_json(path)
        for write in (lambda: finish(again), lambda: again.save_checkpoint({})):
            with pytest.raises(RuntimeError, match="finished"):
                write()
    assert {entry.name: entry.stat().st_mtime_ns for entry in path.iterdir()} == before


def test_secrets_are_not_written(store, path, begin, finish, monkeypatch):
    monkeypatch.setenv("WANDB_API_KEY", "0123456789abcdef")
    config = {"logger": {"api_key": "hunter2hunter2"}, "clip": float("inf")}
    with begin(store, config=config) as run:
        finish(run, extras={"overrides": ["logger.api_key=hunter2hunter2", "0123456789abcdef"]})
    everything = b"".join(entry.read_bytes() for entry in path.iterdir())
    assert b"hunter2" not in everything and b"0123456789abcdef" not in everything
    assert find(store).config == {"logger": {"api_key": HIDDEN}, "clip": float("inf")}


def test_a_block_that_ends_without_finish_is_a_failure(store, begin):
    with pytest.raises(RuntimeError, match="without finish"), begin(store):
        pass
    assert stale(store) == "its status is failed"


# Interrupted, killed, failed


@pytest.mark.parametrize(
    "stop", [Interrupted(signal.SIGTERM), KeyboardInterrupt(), OSError(errno.ENOSPC, "full")]
)
def test_what_is_stopped_continues(store, path, begin, finish, stop):
    with pytest.raises(atomic.DiskFull if isinstance(stop, OSError) else type(stop)), begin(store) as run:
        run.save_checkpoint({"step": 1})
        run.save_checkpoint({"step": 2})
        raise stop
    assert run_json(path)["status"] == "interrupted" and not (path / "traceback.txt").exists()
    assert find(store) is None
    with begin(store) as run:
        assert (run.checkpoint, run.attempt, run.resumed) == ({"step": 2}, 1, 1)
        finish(run)
    assert find(store).run["resumed"] == 1


def test_what_is_killed_continues(store, begin):
    """Continue; before the first checkpoint it is the same attempt from nothing."""
    killed(begin, store)
    run = interrupted(begin, store)
    assert (run.checkpoint, run.attempt, run.resumed) == (None, 1, 0)
    killed(begin, store, [1, 2])
    assert stale(store) == "its status is running"
    for resumed in (1, 2):
        run = interrupted(begin, store)
        assert (run.checkpoint, run.attempt, run.resumed) == ({"step": 2}, 1, resumed)


def test_a_failure_is_never_cached_and_starts_afresh(store, path, begin, finish):
    with pytest.raises(ZeroDivisionError), begin(store) as run:
        run.save_checkpoint({"step": 1})
        1 / 0  # noqa: B018
    assert run_json(path)["status"] == "failed"
    assert "ZeroDivisionError" in (path / "traceback.txt").read_text()
    assert find(store) is None and stale(store) == "its status is failed"
    with begin(store) as run:
        assert (run.cached, run.checkpoint, run.attempt) == (None, None, 2)
        assert not (path / "traceback.txt").exists() and not (path / "checkpoints").exists()
        finish(run)
    assert find(store).run["attempt"] == 2


def test_an_error_after_finish_does_not_undo_it(store, path, begin, finish):
    with pytest.raises(ZeroDivisionError), begin(store) as run:
        finish(run)
        1 / 0  # noqa: B018
    assert find(store) is not None and not (path / "traceback.txt").exists()


def test_seconds_are_summed_over_sessions(store, path, begin, finish, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("icl.runs.store.time.monotonic", lambda: now[0])
    with pytest.raises(Interrupted), begin(store) as run:
        now[0] += 7
        raise Interrupted(signal.SIGTERM)
    assert run_json(path)["seconds"] == 7
    now[0] += 1000
    with pytest.raises(Interrupted), begin(store) as run:
        now[0] += 5
        run.save_checkpoint({"step": 1})
        before = (path / "run.json").read_bytes()
        raise Interrupted(signal.SIGTERM)
    (path / "run.json").write_bytes(before)  # as if killed there: only the checkpoint knows of the 5 seconds
    with begin(store) as run:
        now[0] += 3
        finish(run)
    assert find(store).run["seconds"] == 15


@pytest.mark.parametrize("harm", ["cut short", "one bit", "emptied", "foreign name"])
def test_a_damaged_newest_checkpoint_gives_way_to_the_one_before(store, path, begin, harm):
    interrupted(begin, store, 1, 2, 3)
    checkpoints = sorted((path / "checkpoints").iterdir())
    assert len(checkpoints) == 2
    content = checkpoints[-1].read_bytes()
    flipped = bytes([content[len(content) // 2] ^ 1])
    damaged = {
        "cut short": content[:-1], "emptied": b"", "foreign name": b"x" * 100,
        "one bit": content[: len(content) // 2] + flipped + content[len(content) // 2 + 1 :],
    }  # fmt: skip
    checkpoints[-1].write_bytes(damaged[harm])
    assert interrupted(begin, store).checkpoint == {"step": 2}
    checkpoints[0].unlink()
    assert interrupted(begin, store).checkpoint is None


def test_killed_while_saving_leaves_the_checkpoint_before(store, begin):
    with pytest.raises(KeyboardInterrupt), begin(store) as run:
        run.save_checkpoint({"step": 1})
        with killed_at(lambda number, name: True):
            run.save_checkpoint({"step": 2})
    assert interrupted(begin, store).checkpoint == {"step": 1}


@pytest.mark.parametrize("at", ["metrics.csv", "weights.npz", "verdicts.json", "run.json"])
def test_stopped_at_any_file_of_finish_is_not_done(store, path, begin, finish, at):
    with pytest.raises(KeyboardInterrupt), begin(store) as run:
        run.save_checkpoint({"step": 1})
        with killed_at(lambda number, name: name == at):
            finish(run, verdicts=[])
    assert find(store) is None
    with begin(store) as run:
        assert run.checkpoint == {"step": 1}
        finish(run, 2.0)
    assert find(store).A.max() == 2.0 and find(store).verdicts == []
    assert not (path / "verdicts.json").exists(), "of the attempt that was stopped"


def test_stopped_right_after_the_rename_is_done(store, begin, finish):
    done = killed_at(lambda number, name: name == "run.json", after=True)
    with pytest.raises(KeyboardInterrupt), begin(store) as run, done:
        finish(run)
    assert find(store) is not None


def test_live_metrics_follow_the_checkpoint(store, path, begin):
    with pytest.raises(Interrupted), begin(store) as run:
        live = run.live_metrics()
        live.append([{"step": 0, "loss": 1.0}])
        run.save_checkpoint({"rows": live.rows})
        live.append([{"step": 1, "loss": 0.5}])
        raise Interrupted(signal.SIGTERM)
    assert (path / "metrics.csv").read_text().count("\n") == 3
    with pytest.raises(Interrupted), begin(store) as run:
        run.live_metrics(rows=run.checkpoint["rows"])
        assert (path / "metrics.csv").read_text() == "step,loss\n0,1.0\n"
        raise Interrupted(signal.SIGTERM)


def test_checkpoints_hold_tensors_and_plain_data_only(store, begin):
    torch = pytest.importorskip("torch")
    state = {"w": torch.arange(3.0), "rows": [{"step": 1, "loss": float("nan")}], "rng": (1, "x", None)}
    with pytest.raises(Interrupted), begin(store) as run:
        for odd in (np.float64(1.0), np.zeros(2), {1, 2}, {np.int64(1): 2}, lambda: 0):
            with pytest.raises(
                TypeError, match=r"^checkpoint\.state\.loss\[0\].*: must be a tensor or plain"
            ):
                run.save_checkpoint({"loss": [odd]})
        run.save_checkpoint(state)
        raise Interrupted(signal.SIGTERM)
    saved = interrupted(begin, store).checkpoint
    assert torch.equal(saved["w"], state["w"]) and saved["rng"] == (1, "x", None)
    assert np.isnan(saved["rows"][0]["loss"])


# Other code, other schema, damage


def test_other_code_is_stale_and_redone_as_a_new_attempt(store, begin, finish, record):
    assert find(store, "d2") is None
    assert stale(store, "d2") == "it was made with other code (d1, now d2)"
    with begin(store, digest="d2") as run:
        assert (run.cached, run.attempt) == (None, 2)
        assert find(store) is not None, "the old one is readable meanwhile"
        finish(run, 2.0)
    assert find(store, "d2").A.max() == 2.0 and find(store) is None


def test_other_code_does_not_continue(store, begin):
    interrupted(begin, store, 1)
    run = interrupted(begin, store, digest="d2")
    assert (run.checkpoint, run.attempt) == (None, 2)


def test_other_schema_is_neither_found_nor_continued(store, path, begin, finish, monkeypatch):
    interrupted(begin, store, 1)
    monkeypatch.setattr(layout, "SCHEMA", layout.SCHEMA + 1)
    assert stale(store) == f"it has schema version {layout.SCHEMA - 1}, this is version {layout.SCHEMA}"
    with begin(store) as run:
        assert run.checkpoint is None
        finish(run)
    monkeypatch.setattr(layout, "SCHEMA", layout.SCHEMA + 1)
    assert find(store) is None
    with pytest.raises(InputError, match="schema version"):
        load_run(path)


@pytest.mark.parametrize("file", ["weights.npz", "metrics.csv", "config.yaml"])
@pytest.mark.parametrize("harm", ["gone", "cut short", "one bit flipped"])
def test_a_damaged_record_is_said_and_made_again(store, path, begin, finish, record, file, harm):
    content = (path / file).read_bytes()
    (path / file).unlink()
    if harm == "cut short":
        (path / file).write_bytes(content[:-1])
    elif harm == "one bit flipped":
        (path / file).write_bytes(content[:-3] + bytes([content[-3] ^ 1]) + content[-2:])
    assert find(store) is None and f"its {file} is damaged" in stale(store)
    with pytest.raises(InputError, match="damaged"):
        load_run(path)
    said = []
    with begin(store, notify=said.append) as run:
        assert run.cached is None and run.attempt == 2
        finish(run)
    (line,) = said
    assert str(path) in line and f"its {file} is damaged" in line
    assert find(store) is not None


@pytest.mark.parametrize("harm", ["torn", "a digit"])
def test_a_damaged_run_json_is_no_record(store, path, begin, finish, record, harm):
    text = (path / "run.json").read_text()
    damaged = {"torn": text[:-10], "a digit": text.replace('"steps": 10', '"steps": 11')}[harm]
    assert damaged != text
    (path / "run.json").write_text(damaged)
    assert find(store) is None and stale(store) == "its run.json is damaged"
    with begin(store) as run:
        assert run.cached is None
        finish(run)
    assert find(store) is not None


# Force


def test_force_repeats_and_the_old_record_stays_until_there_is_a_new_one(store, path, begin, finish, record):
    with begin(store, force=True) as run:
        assert (run.cached, run.attempt) == (None, 2)
        old = find(store)
        assert (old.path, old.run["attempt"]) == (path / "superseded", 1)
        assert old.A.max() == 1.0 and old.metrics["loss"][0] == 1.0 and load_run(old.path).run == old.run
        finish(run, 2.0)
    new = find(store)
    assert (new.path, new.run["attempt"], new.A.max()) == (path, 2, 2.0)
    assert not (path / "superseded").exists()


@pytest.mark.parametrize("stop", [killed, lambda b, s, steps, **o: interrupted(b, s, *steps, **o)])
def test_a_forced_attempt_continues_unless_forced_again(store, begin, finish, record, stop):
    stop(begin, store, [5], force=True)
    assert find(store).run["attempt"] == 1
    again = interrupted(begin, store)
    assert (again.cached, again.checkpoint, again.attempt, again.resumed) == (None, {"step": 5}, 2, 1)
    forced = interrupted(begin, store, force=True)
    assert (forced.checkpoint, forced.attempt) == (None, 3)
    assert find(store).run["attempt"] == 1
    with begin(store) as run:
        finish(run, 4.0)
    assert (find(store).run["attempt"], find(store).A.max()) == (3, 4.0)


def test_a_forced_attempt_that_fails_is_not_hidden_by_the_old_record(store, begin, finish, record):
    with pytest.raises(ZeroDivisionError), begin(store, force=True):
        1 / 0  # noqa: B018
    assert find(store).run["attempt"] == 1, "readable"
    with begin(store) as run:
        assert (run.cached, run.attempt) == (None, 3)
        finish(run)


def test_back_to_the_code_of_the_record_set_aside(store, path, begin, record):
    interrupted(begin, store, 1, digest="d2")
    with begin(store) as run:
        assert (run.cached.path, run.cached.run["attempt"]) == (path, 1)
    assert find(store).path == path and find(store).A.max() == 1.0
    left = {"config.yaml", "metrics.csv", "weights.npz", "run.json"}
    assert {entry.name for entry in path.iterdir()} == left


def test_killed_at_any_write_of_a_forced_start_loses_nothing(store, begin, record):
    """Find a done record after a kill at each rename of the start, whichever comes first."""
    done = False
    for last in range(20):
        kill = killed_at(lambda number, name, last=last: number > last)
        with pytest.raises(KeyboardInterrupt), kill, begin(store, force=True):
            done = True
            raise KeyboardInterrupt
        assert find(store) is not None and find(store).A.max() == 1.0
        if done:
            break
    assert done and last > 4


def test_killed_while_going_back_to_the_record_set_aside(store, path, begin, finish, record):
    in_place = killed_at(lambda number, name: number > 2)  # metrics and weights of the other code are
    with pytest.raises(KeyboardInterrupt), begin(store, digest="d2") as run, in_place:
        finish(run, 2.0)
    assert np.load(path / "weights.npz")["A"].max() == 2.0
    for last in range(4):
        kill = killed_at(lambda number, name, last=last: number > last)
        with pytest.raises(KeyboardInterrupt), kill, begin(store):
            pass
        assert find(store).A.max() == 1.0
    with begin(store) as run:
        assert run.cached.path == path and run.cached.A.max() == 1.0


def test_checkpoints_of_an_earlier_attempt_do_not_fit(store, begin, monkeypatch):
    interrupted(begin, store, 1)
    with monkeypatch.context() as patch:
        patch.setattr("icl.runs.store._discard", lambda path: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt), begin(store, force=True):
            pass
    run = interrupted(begin, store)
    assert (run.checkpoint, run.attempt) == (None, 2)


def test_attempts_go_on_counting_after_damage(store, path, begin, record):
    interrupted(begin, store, force=True)
    (path / "run.json").write_text("{torn")
    assert interrupted(begin, store, digest="d2").attempt == 2


# Other processes


def test_a_waiting_start_gets_what_the_other_finished(store, begin, finish):
    holding, said, results = threading.Event(), threading.Event(), []

    def first():
        with begin(store) as run:
            holding.set()
            assert said.wait()
            finish(run, 3.0)

    thread = threading.Thread(target=first)
    thread.start()
    assert holding.wait()
    with begin(store, notify=lambda message: (results.append(message), said.set())) as run:
        assert run.cached.A.max() == 3.0
    thread.join()
    assert len(results) == 1 and f"process {os.getpid()}" in results[0]


def test_who_was_replaced_does_not_write(store, path, begin, finish):
    with pytest.raises(RuntimeError, match="taken this run over"), begin(store) as run:
        (path / "lock").unlink()
        (path / "lock").write_text(json.dumps({"host": "elsewhere", "pid": 1}))
        before = (path / "run.json").read_bytes()
        finish(run)
    assert (path / "run.json").read_bytes() == before and not (path / "traceback.txt").exists()


# What the user can mend


def test_unwritable_outputs_are_one_line(tmp_path, begin):
    (tmp_path / "file").write_text("in the way")
    for outputs in (tmp_path / "file", tmp_path / "file" / "below"):
        with (
            pytest.raises(InputError, match=f"^paths.outputs={outputs}: cannot be written") as caught,
            begin(RunStore(outputs)),
        ):
            pass
        assert "\n" not in str(caught.value)
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_disk_that_fills_up_in_between_is_one_line_and_continues(store, path, begin, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(atomic.Unwritable, match="No space left"), begin(store) as run:
        run.save_checkpoint({"step": 1})
        monkeypatch.setattr(os, "fsync", full)
        run.save_checkpoint({"step": 2})
    monkeypatch.undo()
    assert interrupted(begin, store).checkpoint == {"step": 1}


INSIDE = [(name, FINGERPRINT) for name in ("", "/etc", "../up", "a/../b", "a//b", ".hidden", "a/", "a b")]
INSIDE += [(EXPERIMENT, mark) for mark in ("", "short", "0123456789AB", "../456789ab", "0123456789abc")]


@pytest.mark.parametrize(("experiment", "fingerprint"), INSIDE)
def test_runs_stay_inside(store, experiment, fingerprint):
    with pytest.raises(InputError):
        store.path(experiment, fingerprint)


def test_weights_are_arrays_of_numbers(store, begin):
    with pytest.raises(ValueError, match="named array of numbers"), begin(store) as run:
        run.finish(metrics=[], weights={"A": np.array([None])}, summary={}, steps=0, seeds=[])
    assert find(store) is None


def test_config_is_there_from_the_start_even_after_a_kill_at_once(store, path, begin, finish):
    killed(begin, store)
    (path / "config.yaml").unlink()
    with begin(store, config={"task": {"dim": 3}}) as run:
        assert yaml.safe_load((path / "config.yaml").read_text()) == {"task": {"dim": 3}}
        finish(run)
    assert find(store).config == {"task": {"dim": 3}}


def test_a_run_keeps_who_asked_for_it_first(store, begin, finish, path):
    first, later = ({"overrides": [f"lr={i}", "api_key=hunter2"], "figure": f"fig{i}"} for i in (1, 2))
    killed(begin, store, steps=(1,), origin=first)
    assert run_json(path)["figure"] == "fig1"
    with begin(store, origin=later) as run:
        finish(run)
    found = run_json(path)
    assert (found["figure"], found["overrides"]) == ("fig1", ["lr=1", f"api_key={HIDDEN}"])
    with begin(store, origin=later, force=True) as run:
        finish(run)
    assert run_json(path)["figure"] == "fig2"
