"""Tests of examples/mylab, a package of a user, installed as its README says: found, checked, trained, drawn;
and of what a record may build."""

import subprocess
import sys
from pathlib import Path

import pytest

import icl as package
from icl.config.search_path import ConfigDirs, conf_dir, require_known
from icl.errors import InputError
from tests.commands import Run, assert_refused, write

SOURCE = Path(__file__).parents[2] / "examples" / "mylab"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--target"]
    command = [sys.executable, "-m", "pip", "install", "-q", *options, folder, SOURCE]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture
def mylab(site: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(site))
    return site


def test_all_of_it_runs(mylab: Path, icl: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = icl("list", "format=json").json
    assert {item["id"] for items in listed.values() for item in items if item["paper"] == "mylab"} == {
        "mylab/sign_risk", "mylab/signs", "mylab/by_context"}  # fmt: skip
    found = icl("check", "check=mylab/sign_risk", "check.dim=3", "check.context=12", "format=json").json
    assert found["verdict"] == "holds" and found["control"]["rejected"]

    drawn = icl("figure", "figure=mylab/by_context", "scale=smoke", "format=json", "logger=none")
    assert drawn.code == 0 and Path(drawn.json["files"]["png"]).is_file(), drawn.err
    (claim,) = drawn.json["claims"]
    assert claim["verdict"] == "undecided" and claim["measured"]["worst excess"] > 0  # trained too little
    assert len(drawn.json["runs"]) == 2

    again = icl("train", "experiment=mylab/signs", "scale=smoke", "task.context=5", "format=json").json
    assert again["cached"] and again["run_dir"] in drawn.json["runs"]
    assert again["metrics"]["distance_to_best_step"]["mean"] < 2  # it was at .5 root 5 and more, and fell
    run = package.load_run(again["run_dir"])
    predicted_R = run.model([[1, -1, 1, 1, 1]] * 4, [1.0] * 4, [1, 1, 1, 1, 1])
    assert predicted_R.shape == (2,) and (predicted_R > 0).all()
    monkeypatch.setattr("icl.config.search_path.installed", tuple)
    with pytest.raises(InputError, match="a record builds only classes of icl and of installed packages"):
        package.load_run(again["run_dir"]).law  # noqa: B018


def test_its_model_trains_under_its_law_and_under_a_papers(mylab: Path, icl: Run, outputs: Path) -> None:
    for experiment, layers, least in (("mylab/signs", 1, 20 / 24), ("ahn/theorem3", 2, 0.0)):
        words = ["model=diagonal", f"model.layers={layers}", "scale=smoke", "logger=none", "format=json"]
        found = icl("train", f"experiment={experiment}", *words)
        assert found.code == 0, found.err
        assert all(risk >= least for risk in found.json["metrics"]["exact_risk"]["by_seed"].values())
        run = package.load_run(found.json["run_dir"])
        assert run.law.dim == 5


def test_a_task_that_is_none_and_an_estimator_that_a_law_has_not(
    mylab: Path, icl: Run, outputs: Path
) -> None:
    signs = ("train", "experiment=mylab/signs", "scale=smoke")
    assert_refused(icl(*signs, "train.estimator=tilted"), "use train.estimator=", outputs)
    wrong = icl(*signs, "task._target_=mylab.model.DiagonalA", "~task.context", "+task.layers=1")
    assert_refused(wrong, "must be a task: something with dim and law(seeds)", outputs)


def test_a_package_that_is_broken_is_not_in_the_way(
    tmp_path: Path, tiny: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = {"METADATA": "Metadata-Version: 2.1\nName: lab\nVersion: 1.0\n",
             "entry_points.txt": "[icl.packages]\ngone = no_such_package\nmodule = os.path\n"}  # fmt: skip
    write(tmp_path / "lab-1.0.dist-info", about)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert ConfigDirs.of(None).folders == [conf_dir()] and tiny("train.steps=1").code == 0


@pytest.mark.parametrize("name", ["subprocess.Popen", "iclone.Task", 3, "torch.optim.Adam"])
def test_a_record_builds_nothing_else(name: object, mylab: Path) -> None:
    require_known("task", {"_target_": "mylab.task.Signs", "inner": {"_target_": "icl.models.SparseA"}})
    for node in ({"_target_": name}, {"_target_": "icl.models.SparseA", "inner": {"_target_": name}}):
        with pytest.raises(InputError, match="a record builds only classes of icl"):
            require_known("task", node)
