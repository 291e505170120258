"""Tests of habits from other Hydra applications: they work, or one line says why not."""

import logging
import os
import sys
from pathlib import Path

import pytest
from hydra.core.config_store import ConfigStore

from tests.commands import DIVERGES, Run, assert_refused, write


def test_full_errors(tiny: Run, outputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fails = [*DIVERGES[:-1], "optimizer.lr=1e20"]
    failed = tiny(*fails)
    assert (failed.code, failed.out, failed.err.count("\n")) == (4, "", 3)  # left out, smoke, error
    (trace,) = outputs.glob("runs/ahn/theorem3/*/traceback.txt")
    assert "Traceback" in trace.read_text() and "Traceback" not in tiny("-m", *fails).err
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    wrong = tiny("tsk.dim=3")
    assert wrong.code == 2 and "ConfigCompositionException" in wrong.err
    assert wrong.err.splitlines()[-2].startswith("icl: tsk.dim: no such key")
    for found in (tiny(*fails), tiny("-m", *fails)):
        assert found.code == 4 and "Traceback" in found.err


def test_what_is_not_installed_names_its_extra(tiny: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    launchers = ConfigStore.instance().repo["hydra"]["launcher"]
    for name in ("submitit_local", "submitit_slurm"):
        monkeypatch.delitem(launchers, f"{name}.yaml", raising=False)
        refused = tiny("-m", "seed=0,1", f"hydra/launcher={name}")
        assert_refused(refused, f"{name}: is not installed; pip install 'icl-theory[slurm]'")


def test_what_hydra_shows(tiny: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    none = tiny("--cfg", "job", "-p", "nope")
    assert (none.code, none.out) == (2, "") and "nope" in none.err
    monkeypatch.setattr(logging.root, "handlers", [])  # Hydra adds its own
    monkeypatch.setattr(logging.root, "level", logging.root.level)
    assert "conf" in tiny("--info", "searchpath").out


NESTED = """
from icl.tasks import LinearRegression

class Width:
    def __init__(self, dim): self.dim = dim

class Task(LinearRegression):
    def __init__(self, width, **rest): super().__init__(dim=width.dim, **rest)
"""


def test_a_target_within_a_target(tmp_path: Path, tiny: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"nested_lab.py": NESTED})
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("ICL_PACKAGES", "nested_lab")
    nested = ["task._target_=nested_lab.Task", "~task.dim", "+task.width._target_=nested_lab.Width"]
    found = tiny(*nested, "+task.width.dim=3", "format=json")
    assert found.code == 0, found.err
    assert found.json["metrics"] == tiny("task.dim=3", "format=json").json["metrics"]
    assert "task.width.depth: Width has no such setting" in tiny(*nested, "+task.width.depth=3").err


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
