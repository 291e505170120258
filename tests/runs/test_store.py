import errno
import os
import signal
import threading
import zipfile

import pytest

from icl.errors import InputError, Interrupted
from icl.redact import HIDDEN
from icl.runs import atomic, documents, layout
from icl.runs.lock import is_live
from icl.runs.record import find_done, invalid_reason, load_run
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
    return find_done(store.path(EXPERIMENT, FINGERPRINT), digest)


def stale(store, digest=DIGEST):
    folder = store.path(EXPERIMENT, FINGERPRINT)
    return invalid_reason(folder, documents.read_record(folder / "run.json"), digest)


def run_json(path):
    return documents.read_record(path / "run.json")


def save(run, step):
    def write(path):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("data", f"after {step}")

    run.save_checkpoint(write, step)


def newest(run):
    """Return the step from which a run continues, whose file is whole."""
    if not run.checkpoints:
        return None
    step, path = next(iter(run.checkpoints.items()))
    assert zipfile.ZipFile(path).read("data").decode() == f"after {step}"
    return step


def killed(begin, store, steps=(), **options):
    """Leave what SIGKILL leaves of a session that saved at `steps`, but for its lock."""

    class Killed(BaseException):
        pass

    path = store.path(EXPERIMENT, FINGERPRINT)
    with pytest.raises(Killed), begin(store, **options) as run:
        for step in steps:
            save(run, step)
        before = (path / "run.json").read_bytes()
        attempt = run.attempt
        raise Killed
    (path / "run.json").write_bytes(before)
    (path / "traceback.txt").unlink()
    return attempt


def interrupted(begin, store, *steps, **options):
    with pytest.raises(Interrupted), begin(store, **options) as run:
        for step in steps:
            save(run, step)
        raise Interrupted(signal.SIGTERM)
    return run


# A run from nothing to done


def test_a_run_from_begin_to_record(store, path, begin, finish):
    assert find(store) is None and not store.outputs.exists()
    with begin(store) as run:
        assert (run.cached, run.checkpoints, run.attempt, run.resumed) == (None, {}, 1, 0)
        assert run.path == path and is_live(path / "lock")
        assert find(store) is None and stale(store) == "its status is running"
        extras = {"overrides": ["a=1"], "status": "failed", "attempt": 7}  # which do not overrule the store
        record = finish(run, extras=extras, verdicts=[{"verdict": "holds"}])
    found = find(store)
    assert found.path == record.path == path and found.run == record.run == run_json(path)
    assert {entry.name for entry in path.iterdir()} == {
        "config.yaml", "metrics.csv", "weights.npz", "run.json"
    }  # fmt: skip
    assert found.run["overrides"] == ["a=1"] and found.verdicts == [{"verdict": "holds"}]
    expected = {
        "schema": layout.SCHEMA, "status": "done", "experiment": EXPERIMENT, "fingerprint": FINGERPRINT,
        "digest": DIGEST, "attempt": 1, "resumed": 0, "steps": 10, "seeds": [0],
        "metrics": {"loss": {"mean": 1.0, "by_seed": {"0": 1.0}}},
    }  # fmt: skip
    assert expected.items() <= found.run.items()
    assert {"git", "versions", "hardware", "threads", "started", "ended", "seconds"} <= set(found.run)


def test_a_second_start_gets_the_record(store, path, begin, record):
    before = {entry.name: entry.stat().st_mtime_ns for entry in path.iterdir()}
    with begin(store) as again:
        assert again.cached.run == run_json(path)
    assert {entry.name: entry.stat().st_mtime_ns for entry in path.iterdir()} == before


def test_secrets_are_not_written(store, path, begin, finish, monkeypatch):
    monkeypatch.setenv("WANDB_API_KEY", "0123456789abcdef")
    config = {"logger": {"api_key": "hunter2hunter2"}, "clip": float("inf")}
    with begin(store, config=config) as run:
        finish(run, extras={"overrides": ["logger.api_key=hunter2hunter2", "0123456789abcdef"]})
    everything = b"".join(entry.read_bytes() for entry in path.iterdir())
    assert b"hunter2" not in everything and b"0123456789abcdef" not in everything
    assert find(store).config == {"logger": {"api_key": HIDDEN}, "clip": float("inf")}


# Interrupted, killed, failed


@pytest.mark.parametrize(
    "stop", [Interrupted(signal.SIGTERM), KeyboardInterrupt(), OSError(errno.ENOSPC, "full")]
)
def test_what_is_stopped_continues(store, path, begin, finish, stop):
    with pytest.raises(atomic.DiskFull if isinstance(stop, OSError) else type(stop)), begin(store) as run:
        save(run, 1)
        save(run, 2)
        raise stop
    assert run_json(path)["status"] == "interrupted" and find(store) is None
    with begin(store) as run:
        assert (newest(run), run.attempt, run.resumed) == (2, 1, 1)
        finish(run)
    assert find(store).run["resumed"] == 1


def test_a_failure_is_never_cached_and_starts_afresh(store, path, begin, finish):
    with pytest.raises(ZeroDivisionError), begin(store) as run:
        save(run, 1)
        1 / 0  # noqa: B018
    assert run_json(path)["error"] == "ZeroDivisionError: division by zero"
    assert "ZeroDivisionError" in (path / "traceback.txt").read_text()
    assert find(store) is None and stale(store) == "its status is failed"
    with begin(store) as run:
        assert (run.cached, newest(run), run.attempt) == (None, None, 2)
        assert not (path / "traceback.txt").exists() and not (path / "checkpoints").exists()
        finish(run)
    assert find(store).run["attempt"] == 2


@pytest.mark.parametrize("harm", ["cut short", "one bit"])
def test_a_damaged_newest_checkpoint_gives_way_to_the_one_before(store, path, begin, harm):
    interrupted(begin, store, 1, 2, 3)
    checkpoints = sorted((path / "checkpoints").iterdir())
    assert len(checkpoints) == 2
    content = checkpoints[-1].read_bytes()
    checkpoints[-1].write_bytes(content[:-1] if harm == "cut short" else content.replace(b"after", b"After"))
    assert newest(interrupted(begin, store)) == 2
    checkpoints[0].unlink()
    assert newest(interrupted(begin, store)) is None


# Other code, other schema, damage


def test_other_code_is_stale_and_redone_as_a_new_attempt(store, begin, finish, record):
    assert find(store, "d2") is None
    assert stale(store, "d2") == "it was made with other code (d1, now d2)"
    with begin(store, digest="d2") as run:
        assert (run.cached, run.attempt) == (None, 2)
        finish(run, 2.0)
    assert find(store, "d2").A.max() == 2.0 and find(store) is None


def test_other_code_or_schema_does_not_continue(store, path, begin, finish, monkeypatch):
    interrupted(begin, store, 1)
    run = interrupted(begin, store, digest="d2")
    assert (newest(run), run.attempt) == (None, 2)
    interrupted(begin, store, 1, digest="d2")
    monkeypatch.setattr(layout, "SCHEMA", layout.SCHEMA + 1)
    with begin(store, digest="d2") as run:
        assert newest(run) is None
        finish(run)
    monkeypatch.setattr(layout, "SCHEMA", layout.SCHEMA + 1)
    assert find(store, "d2") is None
    with pytest.raises(InputError, match="another version"):
        load_run(path)


@pytest.mark.parametrize(
    ("file", "harm"),
    [
        ("weights.npz", "one bit"),
        ("metrics.csv", "cut short"),
        ("config.yaml", "gone"),
        ("run.json", "one bit"),
    ],
)
def test_a_damaged_record_is_said_and_made_again(store, path, begin, finish, record, file, harm):
    content = (path / file).read_bytes()
    (path / file).unlink()
    if harm == "cut short":
        (path / file).write_bytes(content[:-1])
    elif harm == "one bit":
        (path / file).write_bytes(content[:-3] + bytes([content[-3] ^ 1]) + content[-2:])
    assert find(store) is None and f"its {file} is damaged" in stale(store)
    with pytest.raises(InputError, match="damaged"):
        load_run(path)
    said = []
    with begin(store, notify=said.append) as run:
        assert run.cached is None
        finish(run)
    (line,) = said
    assert str(path) in line and f"its {file} is damaged" in line
    assert find(store) is not None


# Force


@pytest.mark.parametrize("stop", [killed, lambda b, s, steps, **o: interrupted(b, s, *steps, **o)])
def test_a_forced_attempt_continues_unless_forced_again(store, begin, finish, record, stop):
    stop(begin, store, [5], force=True)
    assert find(store) is None
    again = interrupted(begin, store)
    assert (again.cached, newest(again), again.attempt, again.resumed) == (None, 5, 2, 1)
    forced = interrupted(begin, store, force=True)
    assert (newest(forced), forced.attempt) == (None, 3)
    with begin(store) as run:
        finish(run, 4.0)
    assert (find(store).run["attempt"], find(store).A.max()) == (3, 4.0)


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


INSIDE = [(name, FINGERPRINT) for name in ("", "/etc", "../up", "a/../b", "a//b", ".hidden", "a/", "a b")]
INSIDE += [(EXPERIMENT, mark) for mark in ("", "short", "0123456789AB", "../456789ab", "0123456789abc")]


@pytest.mark.parametrize(("experiment", "fingerprint"), INSIDE)
def test_runs_stay_inside(store, experiment, fingerprint):
    with pytest.raises(InputError):
        store.path(experiment, fingerprint)


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
