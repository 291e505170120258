"""metrics.csv: one row per (step, seed), columns fixed from the start, floats that read back bit for bit."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from icl.runs import atomic

Row = Mapping[str, Any]
Table = dict[str, list[Any]]


def write_metrics(path: Path, rows: Iterable[Row], columns: Sequence[str] | None = None) -> None:
    """Write `rows` to a new file. `columns` default to the first row's; what a row lacks, or None, is left
    empty."""
    rows = list(rows)
    names = _columns(rows, columns)
    text = (_line(names) if names else "") + "".join(_format(names, row) for row in rows)
    atomic.write_bytes(path, text.encode())


def read_metrics(path: Path) -> Table:
    """Return the table in a file, as `parse_metrics` does."""
    return parse_metrics(path.read_text(encoding="utf-8"))


def parse_metrics(text: str) -> Table:
    """Columns by name; an empty cell is None, a whole number an int. A line cut short is dropped."""
    text = text[: text.rfind("\n") + 1]
    lines = list(csv.reader(io.StringIO(text, newline="")))
    if not lines:
        return {}
    names, *rows = lines
    return {name: [_parse(row[i]) for row in rows] for i, name in enumerate(names)}


class MetricsWriter:
    """Append rows to a file that can be watched. Made anew on resume from the rows the checkpoint holds,
    which drops what was written after it. `rows` are all rows so far."""

    def __init__(self, path: Path, rows: Iterable[Row] = (), columns: Sequence[str] | None = None) -> None:
        self.path = path
        self.rows: list[Row] = [dict(row) for row in rows]
        self.columns = _columns(self.rows, columns)
        write_metrics(path, self.rows, self.columns)

    def append(self, rows: Iterable[Row]) -> None:
        """Append rows with one write."""
        added: list[Row] = [dict(row) for row in rows]
        names = self.columns or _columns(added, None)
        text = "".join(_format(names, row) for row in added)
        if not self.columns and names:
            text = _line(names) + text
        with open(self.path, "ab", buffering=0) as file:
            file.write(text.encode())
        self.columns = names
        self.rows += added


def _columns(rows: Sequence[Row], columns: Sequence[str] | None) -> list[str]:
    if columns is not None:
        return list(columns)
    return list(rows[0]) if rows else []


def _format(names: Sequence[str], row: Row) -> str:
    unknown = [name for name in row if name not in names]
    if unknown:
        raise ValueError(f"metrics column {unknown[0]}: not among {', '.join(names)}, fixed by the first row")
    return _line([_cell(row.get(name)) for name in names])


def _line(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


def _cell(value: Any) -> str:
    if hasattr(value, "item"):
        value = value.item()
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return repr(int(value) if isinstance(value, int) else float(value))
    raise TypeError(f"metrics hold numbers and words, not {type(value).__name__}")


def _parse(cell: str) -> Any:
    if cell == "":
        return None
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell
