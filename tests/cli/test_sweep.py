"""Tests of `icl sweep`, the table of a multirun, and what is done again when the command is repeated."""

import csv
import errno
import io
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import icl as package
from tests.commands import DIVERGES, Run, write

HEAD = "# @package _global_\ndefaults:\n  - ahn/theorem3\n  - _self_\n"
GRID = ["-m", "seed=range(2)", "optimizer.lr=0.01,0.02", "format=json"]


def test_status_of_a_sweep(tiny: Run, icl: Run, outputs: Path) -> None:
    document = tiny(*GRID).json
    folder = Path(document["sweep"])
    before = Path(document["sweep_csv"]).read_bytes()
    shutil.rmtree(document["results"][3]["document"]["run_dir"])
    found = icl("sweep", f"sweep={folder}", "format=json")
    assert found.code == 0 and found.json["states"]["done"] == 3 and found.json["states"]["waiting"] == 1
    assert Path(document["sweep_csv"]).read_bytes() != before
    again = tiny(*GRID).json
    assert again["cached"] == 3 and again["sweep"] == str(folder)
    assert Path(document["sweep_csv"]).read_bytes() == before  # of an interrupted sweep as of one left alone
    text = icl("sweep", f"sweep={folder}").out
    assert "4 jobs: 4 done" in text and "best of 2 by exact_risk: lr=" in text
    rows = package.sweep(folder)
    assert len(rows) == 4 and rows[0]["optimizer.lr"] == "0.01" and rows[0]["seed"] == 0
    assert [row["loss"] for row in rows] == [
        float(row["loss"]) for row in csv.DictReader(io.StringIO(before.decode()))
    ]


def test_best_and_failed(tiny: Run, icl: Run) -> None:
    document = tiny("-m", "format=json", *DIVERGES).json
    assert document["best"]["overrides"] == ["optimizer.lr=0.01"]
    (failure,) = document["failures"]
    assert failure["overrides"] == ["optimizer.lr=1e+20"]
    assert failure["error"].startswith("Diverged: ")
    assert (Path(failure["run_dir"]) / "traceback.txt").is_file()
    found = icl("sweep", f"sweep={document['sweep']}")
    assert found.code == 4 and failure["run_dir"] in found.out and "Diverged: the loss of seeds" in found.out


def test_options_that_lie_elsewhere(tiny: Run, tmp_path: Path) -> None:
    for number, place in enumerate("ab", 1):
        write(tmp_path / place, {"experiment/mine.yaml": f"{HEAD}seeds: [{number}]\n"})
        searched = f"hydra.searchpath=[file://{tmp_path / place}]"
        found = tiny(searched, "experiment=mine", "-m", "format=json", "train.steps=1").json
        (result,) = found["results"]
        assert result["document"]["metrics"]["loss"]["by_seed"].keys() == {str(number)}


def test_a_finished_sweep_is_answered_from_outputs_that_take_nothing(
    tiny: Run, icl: Run, outputs: Path
) -> None:
    """Refuse every write below outputs, as a read-only folder does."""
    before = tiny(*GRID).json
    written = []

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        is_write = (
            event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        )
        if written_below and is_write and str(arguments[0]).startswith(written_below[0]):
            written.append(arguments[0])
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), arguments[0])

    written_below = [str(outputs)]
    sys.addaudithook(refuse)
    try:
        again = tiny(*GRID)
        status = icl("sweep", f"sweep={before['sweep']}", "format=json")
    finally:
        written_below.clear()
    assert written == [] and again.code == status.code == 0, again.err
    assert again.json["cached"] == 4 and again.json["summary"] == before["summary"] == status.json["summary"]
