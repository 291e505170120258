from __future__ import annotations

import numpy as np

from icl.figures.curves import Curve, Level, draw_panels, matrix_rows, metric, table
from icl.figures.style import entry_text, log_axis, off_identity, panels
from tests.records import record


def test_the_table_has_what_is_drawn() -> None:
    curve = Curve("a", "blue", "#0072B2", np.array([0, 5]), np.array([[1.0, 4.0], [3.0, 0.0]]))
    level = Level("a", "exact", 0.25)
    _, axes = panels(1, 1)
    draw_panels({"a": axes[0, 0]}, [curve, level])
    rows = table([curve, level])
    assert rows[0] == {"panel": "a", "series": "blue", "x": 0, "y": 2.0, "low": 1.0, "high": 3.0}
    assert [row["y"] for row in rows] == [2.0, 2.0, 0.25]
    lines = {line.get_label(): line.get_ydata() for line in axes[0, 0].lines}
    assert np.array_equal(lines["blue"], [2.0, 2.0])
    assert set(lines["exact"]) == {0.25}


def test_a_metric_is_read_where_every_seed_has_a_value() -> None:
    columns = {"step": [0, 0, 1, 1, 2, 2], "seed": [4, 3] * 3, "loss": [1.0, 2.0, None, 5.0, 3.0, 4.0]}
    run = record(run={"seeds": [3, 4]}, metrics=columns)
    steps_T, loss_ST = metric(run, "loss")
    assert steps_T.tolist() == [0, 2]
    assert loss_ST.tolist() == [[2.0, 4.0], [1.0, 3.0]]


def test_a_matrix_has_a_row_for_every_entry_of_every_seed() -> None:
    M_SIJ = np.arange(8.0).reshape(2, 2, 2)
    rows = matrix_rows("A0", M_SIJ, [7, 9])
    assert len(rows) == 8
    assert rows[6] == {"panel": "A0", "seed": 9, "row": 1, "column": 0, "value": 6.0}


def test_off_identity_is_the_largest_entry_beside_a_multiple_of_the_identity() -> None:
    M_DD = np.array([[2.0, 0.3], [-0.5, 2.0]])
    assert np.isclose(off_identity(M_DD), 0.25)
    assert np.isclose(off_identity(-M_DD), 0.25)
    assert off_identity(np.stack([np.eye(3), 5 * np.eye(3)])).tolist() == [0.0, 0.0]


def test_a_log_axis_over_little_has_plain_numbers() -> None:
    _, axes = panels(1, 1)
    axes[0, 0].plot([0, 1], [0.13, 5])
    log_axis(axes[0, 0])
    axes[0, 0].figure.canvas.draw()
    labels = {label.get_text() for label in axes[0, 0].get_yticklabels()}
    assert {"0.2", "0.5", "1"} <= labels


def test_entries_are_short_and_right() -> None:
    entries = {
        10.05: "10.1",
        -12.6: "-12.6",
        1.234: "1.23",
        0.5: ".50",
        -0.07: "-.07",
        0.004: "0",
        100.0: "100.0",
    }
    assert {entry: entry_text(entry) for entry in entries} == entries
