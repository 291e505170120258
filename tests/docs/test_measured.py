"""Tests that tables of benchmarks and campaigns leave nothing out of what was measured."""

import json
import re

import pytest

from icl.cli.schema import DOCUMENTS
from scripts.pages import measured
from scripts.pages.measured import RECORDS
from scripts.pages.render import render
from tests.documents import fits


def test_every_harm_and_every_failure_of_the_campaigns_is_shown() -> None:
    campaigns = json.loads((RECORDS / "campaign" / "faults.json").read_text(encoding="utf-8"))
    page = measured.faults()
    for place, campaign in enumerate(campaigns, 1):
        assert {story.partition(": ")[2] for story in campaign["tried"]} <= set(measured.HARMS)
        assert sum(column(page, harm, place) for harm in measured.HARMS.values()) == campaign["stories"]
        assert column(page, "did not end as required", place) == len(campaign["failures"])
        assert all(failure in page for failure in campaign["failures"])


def test_every_exit_of_the_generated_inputs_is_shown() -> None:
    campaigns = json.loads((RECORDS / "campaign" / "inputs.json").read_text(encoding="utf-8"))
    page = measured.inputs()
    for place, campaign in enumerate(campaigns, 1):
        rows = [measured.MUCH, *(f"exit code {code}" for code in range(5))]
        told = sum(column(page, row, place) for row in rows)
        assert told + column(page, "did not end as required", place) == campaign["inputs"]
        assert all(text in page for text in (*campaign["failures"], *campaign["reasons"]))


def column(page: str, row: str, place: int) -> int:
    """Return a number of the table, 0 where it has no such row."""
    found = re.search(rf"^\| {re.escape(row)} \| (.+) \|$", page, re.MULTILINE)
    return int(found[1].split(" | ")[place - 1]) if found else 0


@pytest.mark.parametrize("name", [path.stem for path in sorted((RECORDS / "bench").glob("*.json"))])
def test_every_row_of_a_benchmark_is_shown(name: str) -> None:
    """Look for each row's name; of the training benchmark the page shows the kernel's rows alone."""
    document = json.loads((RECORDS / "bench" / f"{name}.json").read_text(encoding="utf-8"))
    assert fits(DOCUMENTS["bench"], document)
    page = render(f"before\n\n<!-- bench {name} -->\nold\n<!-- end -->\n\nafter")
    assert page.startswith(f"before\n\n<!-- bench {name} -->\n\n| ") and "old" not in page
    assert page.endswith(".*\n\n<!-- end -->\n\nafter")
    of_kernel = [row for row in document["rows"] if "share_of_rate" in row]
    assert all(f"| {row['name']} | " in page for row in of_kernel or document["rows"])
    assert f"`icl bench bench={name}`" in page and document["machine"]["torch"] in page


def test_a_missed_target_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"name": "a list", "seconds": 2.0, "peak_mb": 10.0, "target": "under 1 s", "met": False}
    machine = {"cpu": "a processor", "cores": 2, "threads": 1, "torch": "2"}
    document = {"bench": "store", "rows": [row], "machine": machine}
    monkeypatch.setattr(measured, "stored", lambda folder, name: document)
    assert "| a list | 2 | 10 MB | under 1 s | **missed** |" in measured.bench("store")
