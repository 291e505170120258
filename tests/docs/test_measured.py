"""Tables of benchmarks and campaigns leave nothing out of what was measured."""

import json
import re

import pytest

from tests.docs.test_site import ROOT, hook

RECORDS = ROOT / "docs" / "records"


def test_every_harm_and_every_failure_of_the_campaign_is_told() -> None:
    measured = hook("measured")
    campaign = json.loads((RECORDS / "campaign" / "faults.json").read_text(encoding="utf-8"))
    assert {story.partition(": ")[2] for story in campaign["tried"]} == set(measured._HARMS)
    page = measured.on_page_markdown("{{ faults }}")
    told = sum(int(count) for count in re.findall(r"^\| .* \| (\d+) \|$", page, re.MULTILINE))
    assert told == campaign["stories"]
    assert all(failure in page for failure in campaign["failures"])


def test_every_exit_of_the_generated_inputs_is_told() -> None:
    campaign = json.loads((RECORDS / "campaign" / "inputs.json").read_text(encoding="utf-8"))
    page = hook("measured").on_page_markdown("{{ inputs }}")
    told = sum(map(int, re.findall(r"exit code \d: (\d+)", page)))
    assert told + len(campaign["failures"]) == campaign["inputs"]
    assert all(text in page for text in (*campaign["failures"], *campaign["reasons"]))


@pytest.mark.parametrize("name", [path.stem for path in sorted((RECORDS / "bench").glob("*.json"))])
def test_every_row_of_a_benchmark_is_told(name: str) -> None:
    document = json.loads((RECORDS / "bench" / f"{name}.json").read_text(encoding="utf-8"))
    page = hook("measured").on_page_markdown(f"before {{{{ bench {name} }}}} after")
    assert page.startswith("before | ") and page.endswith(".* after")
    assert all(f"| {row['name']} | " in page for row in document["rows"])
    assert f"`icl bench bench={name}`" in page and document["machine"]["torch"] in page


def test_a_missed_target_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = hook("measured")
    row = {"name": "a list", "seconds": 2.0, "peak_mb": 10.0, "target": "under 1 s", "met": False}
    machine = {"cpu": "a processor", "cores": 2, "threads": 1, "torch": "2"}
    document = {"bench": "store", "rows": [row], "machine": machine}
    monkeypatch.setattr(measured, "stored", lambda folder, name: document)
    assert "| a list | 2 | 10 MB | under 1 s | **missed** |" in measured.on_page_markdown("{{ bench store }}")
