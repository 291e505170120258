"""Tests of which edit of the code makes which record stale: verbs and `icl clean` agree."""

import inspect
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import icl as package
from icl.runs import code
from icl.runs.documents import read_json
from tests.commands import Run

Edit = Callable[[str, str, str], None]


@pytest.fixture
def edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Edit:
    """Return `edit(file, old, new)`: this process's code as the digest reads it, as if icl had been
    changed so."""
    shutil.copytree(Path(package.__file__).parent, tmp_path / "tree", ignore=shutil.ignore_patterns("*.pyc"))
    monkeypatch.setattr(code, "_digest", code._digest.__wrapped__)

    def look_again() -> None:
        monkeypatch.setattr(code, "_HERE", code.Sources(lambda name: [tmp_path / "tree"]))

    def change(file: str, old: str, new: str) -> None:
        path = tmp_path / "tree" / file
        source = path.read_text() if path.exists() else ""
        assert old in source
        path.write_text(source.replace(old, new, 1))
        look_again()

    look_again()
    return change


def stale(icl: Run) -> list[str]:
    return [Path(entry["path"]).parent.name for entry in icl("clean", "format=json").json["found"]]


def test_a_flipped_sign_in_a_construction(icl: Run, edit: Edit) -> None:
    names = ("gd_forward", "lemma3", "lemma1")
    checks = [("check", f"check=xie/{name}", "scale=smoke", "format=json") for name in names]
    checks.append(("check", "check=ahn/lemma5", "scale=smoke", "format=json"))
    assert not any(icl(*check).json["cached"] for check in checks)
    assert all(icl(*check).json["cached"] for check in checks)
    edit("constructions/xie/initial_guess.py", "return P_PP, Q_PP", "return -P_PP, Q_PP")
    assert sorted(stale(icl)) == sorted(names)
    assert [icl(*check).json["cached"] for check in checks] == [False, False, False, True]
    assert stale(icl) == []


def test_a_run_and_what_does_not_touch_it(icl: Run, tiny: Run, edit: Edit) -> None:
    tiny()
    edit("loggers/wandb_run.py", "from __future__", "# a comment\nfrom __future__")
    edit("cli/train.py", "", "# a comment\n")
    edit("tasks/another.py", "", "from icl.tasks import LinearRegression\n")
    assert stale(icl) == [] and tiny("format=json").json["cached"]
    edit("training/schedules.py", "", "# a comment\n")
    assert stale(icl) == ["theorem3"] and not tiny("format=json").json["cached"]
    assert stale(icl) == []


def test_clean_keeps_a_verdict_on_a_runs_weights(icl: Run, tiny: Run, edit: Edit, outputs: Path) -> None:
    run = tiny("format=json").json["run_dir"]
    check = ("check", "check=ahn/theorem3", "scale=smoke", f"check.weights={run}", "format=json")
    assert not icl(*check).json["cached"]
    assert icl("clean", "yes=true", "format=json").json["found"] == []
    assert icl(*check).json["cached"]
    (record,) = outputs.glob("checks/ahn/theorem3/*.json")
    assert "icl.models.SparseA" in json.loads(record.read_text())["code"], "it can be told without the run"
    edit("checks/ahn/theorem3.py", "", "# a comment\n")
    assert stale(icl) == ["theorem3"]


def test_clean_says_how_large_things_are(icl: Run, tiny: Run, edit: Edit) -> None:
    tiny()
    assert "nothing to clean" in icl("clean").out
    edit("training/schedules.py", "", "# a comment\n")
    shown = icl("clean").out
    assert " in runs" in shown and "in all" in shown and "of " in shown


# What any verb runs through: from the command line to a file, deciding no number on the way.
ON_THE_WAY = (
    "icl.cli",
    "icl.jobs",
    "icl.config",
    "icl.conf",
    "icl.resolver",  # of a value by scale; the config with that value is what names a record
    "icl.runs",
    "icl.digests",
    "icl.errors",
    "icl.text",
    "icl.events",
    "icl.progress",
    "icl.redact",
    "icl.loggers",
    "icl.callbacks",  # that watch; those whose numbers are recorded are in icl.callbacks.metrics
    "icl.training.build",  # trainer, callbacks and optimizer as the config says, or why not
    "icl.training.launch",  # which processes there are; icl.training.distributed has what they do differently
    "icl.training.load",  # law and model as the config says, no more: the config is what names a record
    "icl.training.run",
    "icl.training.threads",
)


@pytest.mark.parametrize("verb", ["check", "train"])
def test_what_runs_lies_in_the_closure(verb: str, icl: Run, tiny: Run, outputs: Path) -> None:
    """Watch which functions are called: an oracle that knows nothing of imports."""
    ran: set[str] = set()

    def see(frame: Any, event: str, _: Any) -> None:
        # Functions that are written: no module's or class's body, nothing dataclass makes on import.
        written = frame.f_code.co_flags & inspect.CO_OPTIMIZED and frame.f_code.co_filename.endswith(".py")
        if event == "call" and written:
            ran.add(frame.f_globals.get("__name__", ""))

    sys.setprofile(see)
    try:
        result = tiny("train.steps=2") if verb == "train" else icl("check", "check=xie/gd_forward")
    finally:
        sys.setprofile(None)
    assert result.code == 0
    pattern = "runs/*/*/*/run.json" if verb == "train" else "checks/*/*/*.json"
    (record,) = map(read_json, outputs.glob(pattern))
    reached = set(code._HERE.closure(record["code"]))
    # icl.verdicts names the metrics of a run; icl.kernel.library says which instructions a processor has.
    on_the_way = (*ON_THE_WAY, "icl.verdicts" if verb == "train" else "icl.kernel.library")
    ours = {module for module in ran if module.startswith("icl.") and not module.startswith(on_the_way)}
    assert len(ours) > 5 and ours <= reached, ours - reached
