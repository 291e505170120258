"""Tests of `icl sweep`, the table of a multirun, and what is done again when the command is repeated."""

import shutil
from pathlib import Path

from tests.commands import DIVERGES, Run, table_of

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
    rows = table_of(document)
    assert len(rows) == 4 and rows[0]["optimizer.lr"] == "0.01" and rows[0]["seed"] == "0"
    assert all(float(row["loss"]) > 0 for row in rows)


def test_best_and_failed(tiny: Run, icl: Run) -> None:
    document = tiny("-m", "format=json", *DIVERGES).json
    assert document["best"]["overrides"] == ["optimizer.lr=0.01"]
    (failure,) = document["failures"]
    assert failure["overrides"] == ["optimizer.lr=1e+20"]
    assert failure["error"].startswith("Diverged: ")
    assert (Path(failure["run_dir"]) / "traceback.txt").is_file()
    found = icl("sweep", f"sweep={document['sweep']}")
    assert found.code == 4 and failure["run_dir"] in found.out and "Diverged: the loss of seeds" in found.out
