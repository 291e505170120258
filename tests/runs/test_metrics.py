import csv
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icl.runs.metrics import MetricsWriter, read_metrics, write_metrics

CELLS = st.none() | st.integers() | st.floats()
ROWS = st.lists(
    st.fixed_dictionaries({"step": st.integers(0, 10**9), "seed": st.integers(0, 99), "x": CELLS})
)


def bits(value):
    return value.hex() if isinstance(value, float) else value


@settings(deadline=None)
@given(rows=ROWS)
def test_round_trip_is_bit_for_bit(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("m") / "metrics.csv"
    write_metrics(path, rows, ["step", "seed", "x"])
    table = read_metrics(path)
    assert list(table) == ["step", "seed", "x"]
    for name, column in table.items():
        assert [bits(value) for value in column] == [bits(row[name]) for row in rows]
        assert all(type(value) is type(row[name]) for value, row in zip(column, rows, strict=True))


def test_what_lies_in_the_file(tmp_path):
    rows = [{"step": 0, "loss": np.float32(0.1), "note": None}, {"step": np.int64(5), "loss": math.nan}]
    write_metrics(tmp_path / "m.csv", rows)
    assert (tmp_path / "m.csv").read_text() == f"step,loss,note\n0,{float(np.float32(0.1))!r},\n5,nan,\n"


@pytest.mark.parametrize(("rows", "table"), [([], {}), ([{"word": 'a,"b"\nc'}], {"word": ['a,"b"\nc']})])
def test_no_rows_and_words_with_commas_and_quotes(tmp_path, rows, table):
    write_metrics(tmp_path / "m.csv", rows)
    assert read_metrics(tmp_path / "m.csv") == table


def test_columns_are_fixed_by_the_first_row(tmp_path):
    with pytest.raises(ValueError, match="metrics column surprise"):
        write_metrics(tmp_path / "m.csv", [{"step": 0}, {"step": 1, "surprise": 2}])
    assert not (tmp_path / "m.csv").exists()


def test_a_torn_last_line_is_not_a_number(tmp_path):
    path = tmp_path / "m.csv"
    write_metrics(path, [{"step": 0, "loss": 0.125}, {"step": 1, "loss": 0.25}])
    path.write_bytes(path.read_bytes()[:-2])
    assert read_metrics(path) == {"step": [0], "loss": [0.125]}


def test_the_writer_shows_each_row_at_once_and_a_resume_drops_what_came_after(tmp_path):
    path = tmp_path / "m.csv"
    writer = MetricsWriter(path)
    for step in range(4):
        writer.append([{"step": step, "seed": seed, "loss": step + seed / 3} for seed in (0, 1)])
        with open(path, newline="") as file:
            assert len(list(csv.DictReader(file))) == 2 * step + 2
    resumed = MetricsWriter(path, writer.rows[:4])
    resumed.append(writer.rows[4:6])
    losses = [step + seed / 3 for step in range(3) for seed in (0, 1)]
    assert read_metrics(path) == {"step": [0, 0, 1, 1, 2, 2], "seed": [0, 1] * 3, "loss": losses}
    write_metrics(tmp_path / "whole.csv", resumed.rows)
    assert (tmp_path / "whole.csv").read_bytes() == path.read_bytes()


def test_the_writer_refuses_a_late_column_and_writes_nothing_of_it(tmp_path):
    writer = MetricsWriter(tmp_path / "m.csv", columns=["step", "loss"])
    writer.append([{"step": 0}])
    with pytest.raises(ValueError, match="metrics column late"):
        writer.append([{"step": 1}, {"step": 2, "late": 0}])
    assert read_metrics(tmp_path / "m.csv") == {"step": [0], "loss": [None]}
