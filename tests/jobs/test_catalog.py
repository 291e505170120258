"""Tests of the catalog: what is there, by a look into the folders alone."""

from pathlib import Path

from icl.catalog import RECORDS, listing, stored
from icl.config.search_path import ConfigDirs
from tests.records import write_sealed as write

CHECK, EXPERIMENT, FIGURE = RECORDS
JUDGED = ("verdict", "expected")


def test_only_finished_records_of_the_very_thing_count(tmp_path: Path) -> None:
    def found(group: str, id: str) -> list[str] | None:
        """Return the verdicts of what was stored last."""
        newest = next(stored(tmp_path, group, id), None)
        return newest and [one["verdict"] for one in newest[1].get("claims", [newest[1]]) if "verdict" in one]

    assert not any(found(group, "ahn/fig1") for group in RECORDS)
    check = write(
        tmp_path / "checks/ahn/lemma1/0123456789ab.json", document={"verdict": "holds", "expected": "holds"}
    )
    claims = [dict.fromkeys(JUDGED, one) for one in ("holds", "fails")]
    write(tmp_path / "figures/ahn/fig1/smoke/figure.json", document={"claims": claims})
    run = write(tmp_path / "runs/ahn/theorem3/0123456789ab/run.json", status="running")
    assert found(CHECK, "ahn/lemma1") == ["holds"] and found(CHECK, "ahn/lemma") is None
    assert found(FIGURE, "ahn/fig1") == ["holds", "fails"] and found(CHECK, "ahn") is None
    assert found(EXPERIMENT, "ahn/theorem3") is None
    write(run, status="done")
    assert found(EXPERIMENT, "ahn/theorem3") == []
    (lemma,) = [item for item in listing(tmp_path, ConfigDirs())["checks"] if item["id"] == "ahn/lemma1"]
    assert lemma["done"] is True and "forward pass" in str(lemma["statement"])
    check.write_text("{ torn")
    assert found(CHECK, "ahn/lemma1") is None
