"""Tests that a record is served under its own name alone: not where it was moved to, and not unsealed."""

import json
from pathlib import Path

import pytest

from icl.runs.documents import read_record

from .conftest import Run


def swap(one: Path, other: Path) -> None:
    aside = one.with_name("aside")
    for source, target in ((one, aside), (other, one), (aside, other)):
        source.rename(target)


def unseal(path: Path) -> None:
    document = json.loads(path.read_text())
    del document["seal"]
    path.write_text(json.dumps(document))


def test_swapped_runs_are_trained_again(icl: Run, tiny: Run) -> None:
    runs = [tiny("format=json", f"seed={seed}").json for seed in (0, 1)]
    swap(*(Path(run["run_dir"]) for run in runs))
    listed = icl("clean", "format=json").json["found"]
    assert len(listed) == 2 and all("is the record of" in entry["why"] for entry in listed)
    for seed, run in enumerate(runs):
        again = tiny("format=json", f"seed={seed}")
        assert not again.json["cached"] and again.json["metrics"] == run["metrics"]
        assert "is the record of" in again.err


def test_the_verdicts_of_another_run_are_not_its_own(icl: Run, tiny: Run) -> None:
    runs = [tiny("format=json", f"seed={seed}", "checks=[ahn/lemma1]").json for seed in (0, 1)]
    swap(*(Path(run["run_dir"]) / "verdicts.json" for run in runs))
    for seed, run in enumerate(runs):
        again = tiny("format=json", f"seed={seed}", "checks=[ahn/lemma1]").json
        (verdict,), (expected,) = again["verdicts"], run["verdicts"]
        assert again["cached"] and verdict["measured"] == expected["measured"]


def test_swapped_checks_are_measured_again(icl: Run, outputs: Path) -> None:
    asked = [
        ("check", "check=ahn/lemma5", f"check.dim={dim}", "scale=smoke", "format=json") for dim in (2, 3)
    ]
    before = [icl(*words).json for words in asked]
    swap(*(outputs / "checks/ahn/lemma5").glob("*.json"))
    assert "another place" in icl("clean", "format=json").json["found"][0]["why"]
    for words, document in zip(asked, before, strict=True):
        again = icl(*words).json
        assert not again["cached"] and again["measured"] == document["measured"]


@pytest.mark.parametrize("name", ["run.json", "verdicts.json"])
def test_a_run_without_its_seal_is_made_again(tiny: Run, name: str) -> None:
    run = tiny("format=json", "checks=[ahn/lemma1]").json
    path = Path(run["run_dir"]) / name
    unseal(path)
    again = tiny("format=json", "checks=[ahn/lemma1]").json
    assert again["cached"] is (name == "verdicts.json") and again["metrics"] == run["metrics"]
    assert read_record(path) is not None
