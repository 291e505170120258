"""What people bring along from other Hydra applications: it works, or one line says why not."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import pytest
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra

from tests.cli.conftest import Run

MANY = """# @package _global_
defaults:
  - ahn/theorem3
  - _self_
hydra:
  mode: MULTIRUN
"""


@pytest.fixture
def many(tmp_path: Path) -> list[str]:
    """An experiment that is a multirun by itself."""
    folder = tmp_path / "conf" / "experiment" / "mylab"
    folder.mkdir(parents=True)
    (folder / "many.yaml").write_text(MANY)
    return ["--config-dir", str(tmp_path / "conf"), "experiment=mylab/many"]


def test_a_mode_is_as_good_as_a_flag(tiny: Run, many: list[str]) -> None:
    by_flag = tiny("-m", "seed=0,1", "format=json").json
    assert by_flag["jobs"] == 2
    for way in (["hydra.mode=MULTIRUN"], ["++hydra.mode=MULTIRUN"], many, ["-m", "hydra.mode=RUN"]):
        found = tiny(*way, "seed=0,1", "format=json").json
        assert [found[key] for key in ("jobs", "cached", "sweep_csv")] == [2, 2, by_flag["sweep_csv"]], way
    assert tiny(*many, "format=json").json["jobs"] == 1
    refused = tiny("hydra.mode=RUN", "seed=0,1")
    assert refused.code == 2 and "several values need -m" in refused.err
    assert GlobalHydra.instance().hydra is None


def test_full_errors(tiny: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    fails = ["optimizer=sgd", "~optimizer.betas", "train.clip=null", "train.steps=20", "optimizer.lr=1e20"]
    assert tiny("tsk.dim=3").err.count("\n") == 1 and "Traceback" not in tiny("-m", *fails).err
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    wrong = tiny("tsk.dim=3")
    assert wrong.code == 2 and "ConfigCompositionException" in wrong.err
    assert wrong.err.splitlines()[-1].startswith("icl: tsk.dim: no such key")
    for found in (tiny(*fails), tiny("-m", *fails)):
        assert found.code == 4 and "Traceback" in found.err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["-cp", "/tmp"], "--config-path: the configs of icl stay where they are; --config-dir"),
        (["-cn", "other"], "--config-name: the verb names the config"),
        (["--experimental-rerun", "job.pickle"], "--experimental-rerun: would run what a pickle says"),
        (["-m", "--cfg", "job"], "--multirun and --cfg: only one of them"),
        (["--run", "--info", "config"], "--run and --info: only one of them"),
        (["--resolve"], "--resolve: only beside --cfg"),
        (["--package", "task"], "--package: only beside --cfg"),
        (["-m", "seed=0,1", "hydra/launcher=joblb"], "no such launcher is installed; did you mean joblib?"),
        (["-m", "seed=0,1", "hydra/sweeper=nope"], "no such sweeper is installed (one of: basic"),
        (["-m", "hydra.launcher.n_jobs=1,2", "hydra/launcher=joblib"], "Sweeping over Hydra's configuration"),
        (["+model._partial_=true"], "model._partial_: leave it out; icl builds the parts itself"),
        (["+optimizer._partial_=true"], "optimizer._partial_: leave it out"),
        (["+optimizer.schedule._args_=[1]"], "optimizer.schedule._args_: leave it out"),
        (["+model.inner._target_=os.system"], "model.inner._target_=os.system: must be in one of icl"),
        (["+model.inner._target_=icl.models.SparseA"], "model.inner.dim: missing"),
    ],
)
def test_one_line_says_why_not(tiny: Run, outputs: Path, args: list[str], said: str) -> None:
    found = tiny(*args)
    assert (found.code, found.out) == (2, "") and said in found.err and found.err.count("\n") == 1
    assert not outputs.exists()


def test_what_is_not_installed_names_its_extra(tiny: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    launchers = ConfigStore.instance().repo["hydra"]["launcher"]
    for name in ("submitit_local", "submitit_slurm"):
        monkeypatch.delitem(launchers, f"{name}.yaml", raising=False)
        found = tiny("-m", "seed=0,1", f"hydra/launcher={name}")
        assert found.code == 2 and f"{name}: is not installed; pip install 'icl[slurm]'" in found.err


def test_what_hydra_shows(tiny: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = tiny("--cfg", "job", "-p", "train")
    assert shown.code == 0 and "steps: 4" in shown.out
    none = tiny("--cfg", "job", "-p", "nope")
    assert (none.code, none.out) == (2, "") and "nope" in none.err
    monkeypatch.setattr(logging.root, "handlers", [])  # Hydra adds its own
    monkeypatch.setattr(logging.root, "level", logging.root.level)
    assert "conf" in tiny("--info", "searchpath").out


def test_no_logger_at_all(tiny: Run, outputs: Path) -> None:
    assert tiny("~logger", logger=None).code == 0
    assert tiny("-m", "~logger", "seed=0,1", logger=None).code == 0
    assert not (outputs / "wandb").exists()


def test_a_target_within_a_target(tmp_path: Path, tiny: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    code = """
        from icl.tasks import LinearRegression

        class Width:
            def __init__(self, dim): self.dim = dim

        class Task(LinearRegression):
            def __init__(self, width, **rest): super().__init__(dim=width.dim, **rest)
        """
    lines = [line[8:] for line in code.splitlines()]
    (tmp_path / "nested_lab.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("ICL_PACKAGES", "nested_lab")
    nested = ["task._target_=nested_lab.Task", "~task.dim", "+task.width._target_=nested_lab.Width"]
    found = tiny(*nested, "+task.width.dim=3", "format=json")
    assert found.code == 0, found.err
    assert found.json["metrics"] == tiny("task.dim=3", "format=json").json["metrics"]
    assert "task.width.depth: Width has no such setting" in tiny(*nested, "+task.width.depth=3").err


@pytest.mark.parametrize("args", [[], ["format=json"], ["-m", "seed=0,1"], ["--cfg", "job"]])
def test_a_reader_that_leaves_early(tiny: Run, args: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """`icl train ... | head -1`: it ends as it would have."""
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
