"""Tests of the catalog: what is there, by a look into the folders alone."""

from pathlib import Path

import pytest

from icl.config.search_path import ConfigDirs
from icl.jobs.stored.catalog import KINDS, claim_of, has_result, listing
from tests.records import write_sealed as write

CHECK, EXPERIMENT, FIGURE = KINDS


def test_only_finished_records_of_the_very_thing_count(tmp_path: Path) -> None:
    assert not any(has_result(tmp_path, kind, "ahn/fig1") for kind in KINDS)
    write(tmp_path / "checks/ahn/lemma1/0123456789ab.json", document={})
    write(tmp_path / "figures/ahn/fig1/smoke/0123456789ab.json", document={})
    run = write(tmp_path / "runs/ahn/theorem3/0123456789ab/run.json", status="running")
    assert has_result(tmp_path, CHECK, "ahn/lemma1") and not has_result(tmp_path, CHECK, "ahn/lemma")
    assert has_result(tmp_path, FIGURE, "ahn/fig1") and not has_result(tmp_path, CHECK, "ahn")
    assert not has_result(tmp_path, EXPERIMENT, "ahn/theorem3")
    write(run, status="done")
    assert has_result(tmp_path, EXPERIMENT, "ahn/theorem3")
    (tmp_path / "checks/ahn/lemma1/0123456789ab.json").write_text("{ torn")
    assert not has_result(tmp_path, CHECK, "ahn/lemma1")


@pytest.mark.parametrize("done", [True, False])
def test_no_run_is_read_twice(done: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read each run once, with what it superseded, where none is finished; else the first suffices."""
    runs, reads = 300, []
    for number in range(runs):
        status = "done" if done else "failed"
        write(tmp_path / f"runs/ahn/theorem3/{number:012x}/run.json", status=status)
    read = Path.read_bytes

    def counted(path: Path) -> bytes:
        reads.extend([path] if path.name == "run.json" else [])
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", counted)
    document = listing(tmp_path, ConfigDirs())
    assert 0 < len(reads) <= (1 if done else 2 * runs)
    found = {item["id"]: item["done"] for item in document["experiments"]}
    assert found["ahn/theorem3"] is done


def test_a_claim_is_its_own_classes_and_nothing_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "claims_of_a_user.py").write_text(
        "raise RuntimeError\n"
        "class Silent:\n    dim = 1\n\n"
        "class One(\n    Silent,\n):\n    dim = 2\n\n    claim: str = 'one' ' two'\n"
        "class OneMore:\n    claim = (\n        'three'\n    )\n"
        "class Computed:\n    claim = f'{1}'\n"
    )
    claims = {"Silent": "", "One": "one two", "OneMore": "three", "Computed": "", "Missing": ""}
    assert {name: claim_of(f"claims_of_a_user.{name}") for name in claims} == claims
    assert claim_of("no_such_module.One") == "" and claim_of("") == ""
