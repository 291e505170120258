"""Somebody's installed package: `pip install mylab` and nothing else. And what no config may let in."""

from __future__ import annotations

from pathlib import Path

import pytest

from icl.config import packages
from icl.config.places import Configs
from tests.cli.conftest import Run

CODE = '''
from icl.checks.verdict import Bound, Control, Finding
from icl.tasks import LinearRegression


class Wider(LinearRegression):
    """Our law in one more dimension."""

    def __init__(self, dim: int = 2, **rest: object) -> None:
        super().__init__(dim=dim + 1, **rest)


class Sum:
    reference, claim = "nowhere", "1 + 1 = 2."

    def measure(self):
        bound = Bound(0.5, "integers differ by 1 or not at all", of="error", direction="<")
        return Finding("holds", {"error": 1.0 + 1.0 - 2.0}, bound, Control("1 + 1 = 3", 1.0, True))
'''
CHECK = """# @package check
# paper: mylab
# reference: nowhere
_target_: mylab_icl.parts.Sum
expected: holds
"""
EXPERIMENT = """# @package _global_
# paper: mylab
# reference: nowhere
defaults:
  - ahn/theorem3
  - override /task: mylab_wider
  - _self_
name: mylab/wider
checks: []
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on sys.path as pip leaves it: the package, its configs, its dist-info."""
    site = tmp_path / "site"
    for name, text in {
        "mylab_icl/__init__.py": "raise AssertionError('imported for a listing')\n",
        "mylab_icl/conf/task/mylab_wider.yaml": "_target_: mylab_icl.parts.Wider\ndim: 2\ncontext: 7\n",
        "mylab_icl/conf/check/mylab/sum.yaml": CHECK,
        "mylab_icl/conf/experiment/mylab/wider.yaml": EXPERIMENT,
        "mylab_icl/parts.py": CODE,
        "mylab-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: mylab\nVersion: 1.0\n",
        "mylab-1.0.dist-info/entry_points.txt": "[icl.packages]\nmylab = mylab_icl\n",
    }.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    monkeypatch.syspath_prepend(str(site))
    return site


def test_it_is_found_without_being_imported(site: Path, icl: Run) -> None:
    assert packages.conf_of("mylab_icl") == site / "mylab_icl" / "conf"
    listed = icl("list", "format=json").json
    assert "mylab/sum" in [item["id"] for item in listed["checks"]]
    assert "mylab/wider" in [item["id"] for item in listed["experiments"]]


def test_its_checks_tasks_and_experiments_run(site: Path, tiny: Run, icl: Run, tmp_path: Path) -> None:
    (site / "mylab_icl" / "__init__.py").write_text("")
    assert icl("check", "check=mylab/sum", "format=json").json["verdict"] == "holds"
    assert icl("check", "check=mylab/all", "format=json").json["checks"][0]["check"] == "mylab/sum"
    ours = ["experiment=mylab/wider", "train.steps=2", "format=json"]
    found = tiny(*ours).json
    assert Path(found["run_dir"]).is_relative_to(tmp_path / "outputs" / "runs" / "mylab" / "wider")
    both = tiny("-m", *ours, "task.dim=2,3", "seed=0").json
    assert (both["done"], both["failed"]) == (2, 0)
    beside = tmp_path / "conf" / "experiment"  # --config-dir stays, and may build on it
    beside.mkdir(parents=True)
    (beside / "mine.yaml").write_text(EXPERIMENT)
    mine = tiny("--config-dir", str(tmp_path / "conf"), "experiment=mine", *ours[1:]).json
    assert mine["cached"] and mine["run_dir"] == found["run_dir"]


def test_one_that_is_broken_is_not_in_the_way(site: Path, tiny: Run) -> None:
    entries = "[icl.packages]\ngone = no_such_package\nmodule = os.path\n"
    (site / "mylab-1.0.dist-info" / "entry_points.txt").write_text(entries)
    assert Configs.of(None).installed == ()
    assert tiny("train.steps=1").code == 0


@pytest.mark.parametrize("sweep", [[], ["-m", "seed=0,1"]])
def test_no_config_lets_a_package_in(sweep: list[str], tiny: Run, tmp_path: Path) -> None:
    experiment = """# @package _global_
defaults:
  - ahn/theorem3
  - _self_
hydra:
  job:
    env_set:
      ICL_PACKAGES: subprocess
task:
  _target_: subprocess.Popen
"""
    (tmp_path / "conf" / "experiment").mkdir(parents=True)
    (tmp_path / "conf" / "experiment" / "evil.yaml").write_text(experiment)
    found = tiny("--config-dir", str(tmp_path / "conf"), "experiment=evil", *sweep)
    assert (found.code, found.out) == (
        2,
        "",
    ) and "task._target_=subprocess.Popen: must be in one" in found.err


def test_in_a_job_the_environment_lets_nothing_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """What hydra.job.env_set sets comes after the list."""
    from icl.config.multirun import Task

    monkeypatch.setattr("icl.config.multirun.plain_in_job", lambda cfg: cfg)
    monkeypatch.setenv("ICL_PACKAGES", "mylab")
    task = Task(lambda _: packages.allowed())
    monkeypatch.setenv("ICL_PACKAGES", "subprocess")
    assert "subprocess" not in task({}) and "mylab" in task({})
    assert "subprocess" in packages.allowed()
