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
    cells = [(0, 1, 1.1, None), (0, 2, None, None), (7, 1, 8.1, 1.5), (7, 2, 9.1, 1.5)]
    rows = [dict(zip(("step", "seed", "loss", "rare"), row, strict=True)) for row in cells]
    with begin(RunStore(tmp_path / "outputs")) as run:
        run.finish(metrics=rows, weights=weights, summary={"loss": math.nan}, steps=7, seeds=[2, 1])
    return run.path


def test_reads_back_what_was_written(path):
    record = load_run(str(path))
    expected = np.random.default_rng(0).normal(size=(2, 3, 5, 5))
    np.testing.assert_array_equal(record.A, expected, strict=True)
    assert record.weights["A_steps"].dtype == np.float32 and set(record.weights) == {"A", "A_steps", "U"}
    assert record.metrics["loss"] == [1.1, None, 8.1, 9.1] and record.run["metrics"] == {"loss": None}
    assert record.config == {"task": {"dim": 5}} and record.verdicts == []
    assert repr(record) == f"<ahn/theorem3: 2 seeds; {path}>"
    with pytest.raises(InputError, match=r"no array B in weights\.npz; it has A, A_steps, U"):
        _ = record.B


def test_a_curve_has_the_seeds_in_the_order_of_the_run(path):
    steps, values = load_run(path).curve("loss")
    np.testing.assert_array_equal(steps, [0, 7])
    np.testing.assert_array_equal(values, [[np.nan, 9.1], [1.1, 8.1]])
    assert load_run(path).curve("rare")[0].tolist() == [7]
    with pytest.raises(InputError, match="metric=los: must be one of loss, rare; did you mean loss"):
        load_run(path).curve("los")


def test_its_mark_is_of_its_numbers(tmp_path, begin, finish):
    def made(value, force=True):
        with begin(RunStore(tmp_path), force=force) as run:
            finish(run, value)
        return load_run(run.path)

    first, again, other = made(0.5, force=False), made(0.5), made(0.25)
    assert [record.run["attempt"] for record in (first, again, other)] == [1, 2, 3]
    assert first.content_id == again.content_id != other.content_id


def test_verdicts_are_added_unless_the_run_was_made_again(path, tmp_path, begin, finish):
    record = load_run(path)
    assert record.with_verdicts([1]).verdicts == load_run(path).verdicts == [1]
    with begin(RunStore(tmp_path / "outputs"), force=True) as run:
        finish(run)
    assert record.with_verdicts([2]).verdicts == [2] and load_run(path).verdicts == []


@pytest.mark.parametrize("name", ["weights.npz", "config.yaml", "run.json"])
def test_no_link_is_followed(path, tmp_path, name):
    (path / name).rename(tmp_path / "elsewhere")
    (path / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="damaged"):
        load_run(path)


def test_what_is_no_run_says_so_and_a_copy_may_have_any_name_but_that_of_another(tmp_path, path):
    for wrong in (tmp_path / "absent", tmp_path, path / "run.json"):
        with pytest.raises(InputError, match="must be the folder of a finished run"):
            load_run(wrong)
    assert load_run(path.rename(tmp_path / "copy")).run["experiment"] == "ahn/theorem3"
    with pytest.raises(InputError, match="it is the record of ahn/theorem3/0123456789ab"):
        load_run((tmp_path / "copy").rename(tmp_path / ("f" * 12)))
