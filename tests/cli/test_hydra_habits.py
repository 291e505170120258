"""Tests of habits from other Hydra applications: they work, or one line says why not."""

import logging
import os
import sys
from pathlib import Path

import pytest
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra

from tests.cli.conftest import Run, write
from tests.cli.test_multirun import DIVERGES

MANY = """# @package _global_
defaults:
  - ahn/theorem3
  - _self_
hydra:
  mode: MULTIRUN
"""


@pytest.fixture
def many(tmp_path: Path) -> list[str]:
    """Write an experiment that is a multirun by itself."""
    conf = write(tmp_path / "conf", {"experiment/mylab/many.yaml": MANY})
    return ["--config-dir", str(conf), "experiment=mylab/many"]


def test_a_mode_is_as_good_as_a_flag(tiny: Run, many: list[str]) -> None:
    by_flag = tiny("-m", "seed=0,1", "format=json").json
    assert by_flag["jobs"] == 2
    for way in (["hydra.mode=MULTIRUN"], ["++hydra.mode=MULTIRUN"], many, ["-m", "hydra.mode=RUN"]):
        found = tiny(*way, "seed=0,1", "format=json").json
        assert [found[key] for key in ("jobs", "cached", "sweep_csv")] == [2, 2, by_flag["sweep_csv"]], way
    assert tiny(*many, "format=json").json["jobs"] == 1
    assert GlobalHydra.instance().hydra is None


def test_full_errors(tiny: Run, outputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fails = [*DIVERGES[:-1], "optimizer.lr=1e20"]
    failed = tiny(*fails)
    assert (failed.code, failed.out, failed.err.count("\n")) == (4, "", 2)  # what is left out, and the error
    (trace,) = outputs.glob("runs/ahn/theorem3/*/traceback.txt")
    assert "Traceback" in trace.read_text() and "Traceback" not in tiny("-m", *fails).err
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    wrong = tiny("tsk.dim=3")
    assert wrong.code == 2 and "ConfigCompositionException" in wrong.err
    assert wrong.err.splitlines()[-1].startswith("icl: tsk.dim: no such key")
    for found in (tiny(*fails), tiny("-m", *fails)):
        assert found.code == 4 and "Traceback" in found.err


def test_what_is_not_installed_names_its_extra(tiny: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    launchers = ConfigStore.instance().repo["hydra"]["launcher"]
    for name in ("submitit_local", "submitit_slurm"):
        monkeypatch.delitem(launchers, f"{name}.yaml", raising=False)
        found = tiny("-m", "seed=0,1", f"hydra/launcher={name}")
        assert found.code == 2 and f"{name}: is not installed; pip install 'icl[slurm]'" in found.err


def test_what_hydra_shows(tiny: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    none = tiny("--cfg", "job", "-p", "nope")
    assert (none.code, none.out) == (2, "") and "nope" in none.err
    monkeypatch.setattr(logging.root, "handlers", [])  # Hydra adds its own
    monkeypatch.setattr(logging.root, "level", logging.root.level)
    assert "conf" in tiny("--info", "searchpath").out


def test_lists_by_scale_are_resolved(tiny: Run) -> None:
    shown = tiny("--cfg", "job", "--resolve", "-p", "optimizer")
    assert shown.code == 0 and "betas:\n- 0.9\n- 0.99\n" in shown.out


def test_no_logger_at_all(tiny: Run, outputs: Path) -> None:
    assert tiny("~logger", logger=None).code == 0
    assert tiny("-m", "~logger", "seed=0,1", logger=None).code == 0
    assert not (outputs / "wandb").exists()


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


def test_another_option_than_the_experiments(icl: Run) -> None:
    """Choose another option: one line says what is left out; checks typed with it are not."""
    asked = ["experiment=ahn/theorem3", "scale=smoke", "model=full", "optimizer=sgd", "train.steps=2"]
    asked += ["callbacks=none", "seed=0"]
    for _ in range(2):
        found = icl("train", *asked, "train.batch=8", "format=json")
        assert (found.code, found.err.count("\n")) == (0, 1) and found.json["verdicts"] == []
        assert "left out" in found.err and "optimizer.betas" in found.err
        assert "checks ahn/theorem3, ahn/lemma1" in found.err
    assert icl("train", *asked, "checks=[ahn/theorem3]").code == 2


@pytest.mark.parametrize("experiment", ["ahn/theorem3", "xie/heads"])
def test_a_model_without_the_experiments_estimator(icl: Run, experiment: str) -> None:
    """Sample prompts where the model's risk is neither in closed form nor linear in the query."""
    asked = [f"experiment={experiment}", "scale=smoke", "model=lsa", "train.steps=2", "seed=0"]
    found = icl("train", *asked, "callbacks=none", "format=json")
    assert found.code == 0 and "with train.estimator=sampled" in found.err, found.err
    assert icl("train", *asked, "train.estimator=expected").code == 2
