"""Tests of which record counts: of today's code, at its own place. Verbs and `icl clean` agree."""

import inspect
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from icl.runs import code
from icl.runs.documents import read_record
from tests.commands import Run, other_code, table_of


def edit(path: Path) -> None:
    path.write_text(f"# a comment\n{path.read_text()}")


def stale(icl: Run) -> list[str]:
    return [Path(entry["path"]).parent.name for entry in icl("clean", "format=json").json["found"]]


def test_records_of_other_code_are_used_where_that_is_asked(icl: Run, tiny: Run, tree: Path) -> None:
    check = ("check", "check=ahn/lemma5", "scale=smoke", "format=json")
    figure = ("figure", "figure=lds/fig3", "scale=smoke", "format=json")
    tiny("format=json")
    icl(*check)
    icl(*figure)
    edit(tree / "random.py")
    edit(tree / "theory/words.py")
    assert tiny("format=json", "stale=use").json["cached"]
    assert icl(*check, "stale=use").json["cached"] and icl(*figure, "stale=use").json["cached"]
    assert not icl(*check).json["cached"] and not tiny("format=json").json["cached"]


def test_clean_keeps_a_verdict_on_a_runs_weights(icl: Run, tiny: Run, tree: Path, outputs: Path) -> None:
    run = tiny("format=json").json["run_dir"]
    check = ("check", "check=ahn/theorem3", "scale=smoke", f"check.weights={run}", "format=json")
    assert not icl(*check).json["cached"]
    assert icl("clean", "yes=true", "format=json").json["found"] == []
    assert icl(*check).json["cached"]
    (record,) = outputs.glob("checks/ahn/theorem3/*.json")
    assert "icl.models.SparseA" in json.loads(record.read_text())["code"], "it can be told without the run"
    edit(tree / "checks/ahn/theorem3.py")
    assert stale(icl) == ["theorem3"]


# What any verb runs through: from the command line to a file, deciding no number on the way.
@pytest.mark.parametrize("verb", ["check", "train"])
def test_what_runs_lies_in_the_rooms_that_count(verb: str, icl: Run, tiny: Run, outputs: Path) -> None:
    """Watch which functions are called: an oracle that knows nothing of imports."""
    ran: set[str] = set()

    def see(frame: Any, event: str, _: Any) -> None:
        # Functions that are written: no module's or class's body, nothing dataclass makes on import.
        written = frame.f_code.co_flags & inspect.CO_OPTIMIZED and frame.f_code.co_filename.endswith(".py")
        if event == "call" and written:
            ran.add(frame.f_globals.get("__name__", ""))

    sys.setprofile(see)
    try:
        result = tiny("train.steps=2") if verb == "train" else icl("check", "check=xie/theorem4")
    finally:
        sys.setprofile(None)
    assert result.code == 0
    pattern = "runs/*/*/*/run.json" if verb == "train" else "checks/*/*/*.json"
    (record,) = map(read_record, outputs.glob(pattern))
    reached = code.reached(record["code"])
    places = {place for module in ran if module.startswith("icl.") for place in code._place(module)}
    assert len(places) > 3 and places <= reached | {code.ICL / "figures"}, places - reached


def test_a_swept_run_of_other_code_has_no_numbers(tiny: Run, icl: Run) -> None:
    swept = ["-m", "seed=0,1", "format=json"]
    document = tiny(*swept).json
    with other_code():
        tiny("seed=1")
    found = icl("sweep", f"sweep={document['sweep']}", "format=json").json
    assert found["states"]["stale"] == 1 and found["done"] == 1
    assert [row["loss"] == "" for row in table_of(document)] == [False, True]
    assert "1 stale" in icl("sweep", f"sweep={document['sweep']}").out
    assert sorted(run["stale"] for run in icl("runs", "format=json").json["runs"]) == [False, True]
    assert tiny(*swept).json["cached"] == 1


def test_records_that_were_moved_are_made_again(icl: Run, tiny: Run, outputs: Path) -> None:
    commands = [("train", [f"seed={k}", "format=json"]) for k in (0, 1)]
    commands += [("check", ["check=ahn/lemma5", f"check.dim={k}", "format=json"]) for k in (2, 3)]

    def made() -> list[dict[str, Any]]:
        return [(tiny(*more) if verb == "train" else icl(verb, *more)).json for verb, more in commands]

    before = made()
    for one, other in (outputs.glob("runs/ahn/theorem3/*"), outputs.glob("checks/ahn/lemma5/*.json")):
        aside = one.with_name("aside")
        for source, target in ((one, aside), (other, one), (aside, other)):
            source.rename(target)
    why = [entry["why"] for entry in icl("clean", "format=json").json["found"]]
    assert len(why) == 4 and all("is the record of" in one or "another place" in one for one in why)
    again = made()
    for first, second in zip(before, again, strict=True):
        numbers = "metrics" if "metrics" in first else "measured"
        assert not second["cached"] and second[numbers] == first[numbers]
    assert all(document["cached"] for document in made())
