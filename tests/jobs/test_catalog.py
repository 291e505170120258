"""What is here, by a look into the folders alone."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from icl.config.places import Configs
from icl.jobs.catalog import KINDS, has_result, listing
from icl.runs.layout import SCHEMA

CHECK, EXPERIMENT, FIGURE = KINDS


def write(path: Path, **document: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"schema": SCHEMA, **document}))
    return path


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
def test_ten_thousand_runs_are_listed_in_a_second(done: bool, tmp_path: Path) -> None:
    """None of them finished is the worst: each is looked at. In time of this process alone."""
    for number in range(10_000):
        status = "done" if done else "failed"
        write(tmp_path / f"runs/ahn/theorem3/{number:012x}/run.json", status=status)
    begun = time.process_time()
    document = listing(tmp_path, Configs())
    assert time.process_time() - begun < 1.0
    found = {item["id"]: item["done"] for item in document["experiments"]}
    assert found["ahn/theorem3"] is done
