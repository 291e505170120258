import math

import numpy as np
import pytest

from icl.errors import InputError
from icl.runs.record import load_run
from icl.runs.store import RunStore


@pytest.fixture
def path(tmp_path, begin):
    rng = np.random.default_rng(0)
    weights = {"A": rng.normal(size=(2, 3, 5, 5)), "A_steps": np.float32([[1.5]]), "U": np.eye(5)[None]}
    with begin(RunStore(tmp_path)) as run:
        run.finish(
            metrics=[{"step": 0, "seed": 3, "loss": math.nan}, {"step": 5, "seed": 3, "loss": 0.1 + 0.2}],
            weights=weights,
            summary={"loss": math.nan},
            steps=5,
            seeds=[3],
        )
    return run.path


def test_reads_back_what_was_written(path):
    record = load_run(str(path))
    expected = np.random.default_rng(0).normal(size=(2, 3, 5, 5))
    np.testing.assert_array_equal(record.A, expected, strict=True)
    assert record.weights["A_steps"].dtype == np.float32 and set(record.weights) == {"A", "A_steps", "U"}
    assert math.isnan(record.metrics["loss"][0]) and record.metrics["loss"][1] == 0.1 + 0.2
    assert record.run["metrics"] == {"loss": None}
    assert record.config == {"task": {"dim": 5}} and record.verdicts == []


def test_its_mark_is_of_its_numbers(tmp_path, begin):
    def made(loss, force=True):
        with begin(RunStore(tmp_path), force=force) as run:
            rows = [{"step": 0, "seed": 3, "loss": loss}]
            run.finish(metrics=rows, weights={"A": np.eye(2)}, summary={"loss": loss}, steps=1, seeds=[3])
        return load_run(run.path)

    first, again, other = made(0.5, force=False), made(0.5), made(0.25)
    assert [record.run["attempt"] for record in (first, again, other)] == [1, 2, 3]
    assert first.mark == again.mark != other.mark


def test_an_array_that_is_not_there_is_named_with_those_that_are(path):
    with pytest.raises(InputError, match=r"no array B in weights\.npz; it has A, A_steps, U"):
        _ = load_run(path).B


def test_arrays_are_read_when_asked_for(path):
    record = load_run(path)
    (path / "weights.npz").unlink()
    assert record.metrics["step"] == [0, 5]
    with pytest.raises(FileNotFoundError):
        _ = record.A


def test_a_run_prints_what_it_is(tmp_path, begin, finish, path):
    assert repr(load_run(path)) == f"<ahn/theorem3: 1 seed, d = 5; {path}>"
    config = {"task": {"dim": 1, "context": [4, 8]}, "model": {"layers": 3}}
    with begin(RunStore(tmp_path / "other"), config=config) as run:
        record = finish(run, 0.123456)
    assert repr(record) == f"<ahn/theorem3: 1 seed, 3 layers, d = 1, n = [4, 8], loss 0.1235; {record.path}>"


def test_a_curve_has_the_seeds_in_the_order_of_the_run(tmp_path, begin):
    rows = [
        {
            "step": step,
            "seed": seed,
            "loss": None if (step, seed) == (0, 2) else step + seed / 10,
            "rare": rare,
        }
        for step, rare in ((0, None), (7, 1.5))
        for seed in (1, 2)
    ]
    with begin(RunStore(tmp_path)) as run:
        record = run.finish(metrics=rows, weights={}, summary={}, steps=7, seeds=[2, 1])
    steps, values = record.curve("loss")
    np.testing.assert_array_equal(steps, [0, 7])
    np.testing.assert_array_equal(values, [[np.nan, 7.2], [0.1, 7.1]])
    steps, values = record.curve("rare")
    assert steps.tolist() == [7] and values.tolist() == [[1.5], [1.5]]
    with pytest.raises(InputError, match="metric=los: must be one of loss, rare; did you mean loss"):
        record.curve("los")


def test_what_is_no_run_says_so(tmp_path, path):
    for wrong in (tmp_path / "absent", tmp_path, path / "run.json"):
        with pytest.raises(InputError, match="must be the folder of a finished run"):
            load_run(wrong)
