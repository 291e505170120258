"""Tests of habits from other Hydra applications: they work, or one line says why not."""

import logging
import os
import sys
from pathlib import Path

import pytest

from icl.cli import dispatch
from icl.config.search_path import ConfigDirs
from tests.commands import DIVERGES, Run, assert_refused


def test_full_errors(tiny: Run, outputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fails = [*DIVERGES[:-1], "optimizer.lr=1e20"]
    failed = tiny(*fails)
    assert (failed.code, failed.out, failed.err.count("\n")) == (4, "", 1)
    (trace,) = outputs.glob("runs/ahn/theorem3/*/traceback.txt")
    assert "Traceback" in trace.read_text() and "Traceback" not in tiny("-m", *fails).err
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    wrong = tiny("tsk.dim=3")
    assert wrong.code == 2 and "ConfigCompositionException" in wrong.err
    assert wrong.err.splitlines()[-2].startswith("icl: tsk.dim: no such key")
    for found in (tiny(*fails), tiny("-m", *fails)):
        assert found.code == 4 and "Traceback" in found.err


def test_what_hydra_shows(tiny: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])  # Hydra adds its own
    monkeypatch.setattr(logging.root, "level", logging.root.level)
    none = tiny("--cfg", "job", "-p", "nope")
    assert (none.code, none.out) == (2, "") and "nope" in none.err
    assert "conf" in tiny("--info", "searchpath").out


def test_options_by_glob(icl: Run, outputs: Path) -> None:
    found = icl("check", "-m", "check=glob([ahn/lemma1,ahn/lemma5])", "format=json").json
    assert [result["document"]["check"] for result in found["results"]] == ["ahn/lemma1", "ahn/lemma5"]
    assert_refused(icl("check", "-m", "check=glob(ahn/nope*)"), "no option of check is named so")
    configs = ConfigDirs.of(None)
    every = dispatch._listed("experiment=glob(*)", configs)
    assert every.removeprefix("experiment=").split(",") == configs.options("experiment")


@pytest.mark.parametrize("args", [[], ["format=json"], ["-m", "seed=0,1"], ["--cfg", "job"]])
def test_a_reader_that_leaves_early(tiny: Run, args: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Close the pipe as `icl train ... | head -1` does: the command ends as it would have."""
    read, write = os.pipe()
    os.close(read)
    kept = os.dup(1)
    os.dup2(write, 1)
    with monkeypatch.context() as patch, open(1, "w", closefd=False) as stdout:
        patch.setattr(sys, "stdout", stdout)
        found = tiny(*args)
    os.dup2(kept, 1)
    for number in (write, kept):
        os.close(number)
    assert found.code == 0 and "Traceback" not in found.err
