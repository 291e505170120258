"""Tests that validation, failures and the table at the end are the same under every sweeper and launcher."""

import importlib.util
import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hydra._internal.core_plugins.basic_launcher import BasicLauncher
from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from hydra.experimental.callback import Callback
from hydra.plugins.sweeper import Sweeper

from icl.jobs.execution import multirun
from icl.jobs.execution.hydra_multirun import Multirun
from tests.cli.test_check import theirs, written  # noqa: F401  fixtures
from tests.commands import DIVERGES, Run, assert_refused, write


class Search(Sweeper):
    """A sweeper that asks for batches of what it is given, and wants numbers, as Optuna's does."""

    told: list[Any]

    def __init__(self, batches: list[list[str]], give_up: bool) -> None:
        self.batches, self.give_up = batches, give_up
        Search.told = []

    def setup(self, *, hydra_context: Any, task_function: Any, config: Any) -> None:
        self.folder = config.hydra.sweep
        self.launcher = Plugins.instance().instantiate_launcher(hydra_context, task_function, config)

    def sweep(self, arguments: list[str]) -> None:
        first = 0
        for batch in self.batches:
            returns = self.launcher.launch([(*arguments, job) for job in batch], initial_job_idx=first)
            first += len(returns)
            for job_return in returns:
                try:
                    Search.told.append(float(job_return.return_value))
                except Exception as error:
                    Search.told.append(error)
                    if self.give_up:
                        raise
        Path(self.folder.dir, "best.json").write_text(json.dumps(arguments))


@pytest.fixture
def search(tiny: Run, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Run:
    """Return a function that runs `icl train` with a sweeper that asks for these batches."""
    Plugins.instance()  # looks at what is installed before ours is added
    module = ModuleType("hydra_plugins.of_a_test")
    module.Search = Search  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(Search, "__module__", module.__name__)
    monkeypatch.setitem(Plugins.instance().class_name_to_class, f"{module.__name__}.Search", Search)
    names = ConfigStore.instance().repo["hydra"]["sweeper"]

    def run(batches: list[list[str]], *args: str, give_up: bool = False) -> Any:
        node = {"_target_": f"{module.__name__}.Search", "batches": batches, "give_up": give_up}
        ConfigStore.instance().store(group="hydra/sweeper", name="of_a_test", node=node)
        return tiny("-m", "hydra/sweeper=of_a_test", "train.steps=2", *args)

    request.addfinalizer(lambda: names.pop("of_a_test.yaml", None))
    return run


def test_a_search_is_told_the_metric(search: Run, outputs: Path) -> None:
    batches = [["optimizer.lr=0.01", "optimizer.lr=0.02"], ["optimizer.lr=0.04"]]
    found = search(batches, "optimized_metric=exact_risk", "format=json")
    document = found.json
    assert [document[key] for key in ("jobs", "done", "failed")] == [3, 3, 0]
    means = {row["overrides"][0]: row["mean"] for row in document["summary"] if row["metric"] == "exact_risk"}
    assert Search.told == [means[job] for batch in batches for job in batch] and len(set(Search.told)) == 3
    folder = Path(document["sweep_csv"]).parent
    assert {path.name for path in folder.iterdir()} == {"sweep.csv", "sweep.json", "best.json"}
    assert list(Path.cwd().iterdir()) == []
    again = search(batches, "optimized_metric=exact_risk", "format=json", "verbose=true").json
    assert again["cached"] == 3 and again["sweep_csv"] == document["sweep_csv"]
    other = search(batches, "optimized_metric=loss", "format=json").json
    assert other["cached"] == 3 and other["sweep_csv"] != document["sweep_csv"]
    assert Search.told != [means[job] for batch in batches for job in batch]


@pytest.mark.parametrize("give_up", [False, True])
def test_a_trial_that_fails(search: Run, give_up: bool) -> None:
    batches = [["optimizer.lr=0.01", "optimizer.lr=1e20"], ["optimizer.lr=0.02"]]
    found = search(batches, *DIVERGES[:3], "optimized_metric=loss", "format=json", give_up=give_up)
    assert found.code == 4 and found.json["failed"] == 1
    assert found.json["jobs"] == (2 if give_up else 3)
    assert isinstance(Search.told[1], multirun.JobFailed) and "Diverged" in str(Search.told[1])
    assert isinstance(Search.told[0], float)


def test_an_unusable_trial(search: Run, outputs: Path) -> None:
    asked = ["optimized_metric=loss", "format=json"]
    assert_refused(search([["task.dim=3", "task.dim=0"]], *asked), "task.dim=0: must be", outputs)
    later = search([["task.dim=3"], ["task.dim=0", "task.dim=2"]], *asked)
    assert later.code == 4
    assert [result["status"] for result in later.json["results"]] == ["done", "failed", "done"]
    assert isinstance(Search.told[1], Exception) and isinstance(Search.told[2], float)


def test_a_search_for_nothing(search: Run, outputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multirun, "OPTIMISERS", ("of_a_test",))
    assert_refused(search([["seed=0"]]), "needs optimized_metric=exact_risk", outputs)
    unknown = search([["seed=0"]], "optimized_metric=exact_rsk", "format=json")
    assert unknown.code == 4 and "did you mean exact_risk?" in unknown.json["results"][0]["error"]


@pytest.mark.slow
def test_a_failing_job_of_submitit(
    icl: Run,
    theirs: tuple[str, str],  # noqa: F811
    outputs: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    swept = ["check=mine/bad,mine/good", "hydra/launcher=submitit_local", "format=json"]
    found = icl("check", "-m", *theirs, *swept)
    assert found.code == 4
    assert [found.json[key] for key in ("jobs", "done", "failed")] == [2, 1, 1]
    assert "ZeroDivisionError" in found.json["results"][0]["error"]
    assert {path.name for path in outputs.glob("sweeps/*/*")} == {"sweep.csv", "sweep.json"}
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize("log", [None, "worker.log"])
def test_a_launcher_that_dies(
    log: str | None, tiny: Run, outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keep what the launcher has written; what it has not leaves no trace."""

    def launch(self: BasicLauncher, *_: Any) -> Any:
        if log is not None:
            Path(self.config.hydra.sweep.dir, log).touch()
        raise RuntimeError("a worker was killed")

    launcher = Plugins.instance().class_name_to_class[f"{BasicLauncher.__module__}.BasicLauncher"]
    monkeypatch.setattr(launcher, "launch", launch)
    found = tiny("-m", "seed=0,1")
    assert (found.code, found.out) == (4, "") and "RuntimeError: a worker was killed" in found.err
    left = [path.name for path in outputs.glob("sweeps/*/.launcher-*/**/*") if path.is_file()]
    assert left == ([] if log is None else [log])
    assert len(list(outputs.glob("sweeps/*/.launcher-*"))) == len(left)


def test_batches_of_a_grid(tiny: Run, outputs: Path) -> None:
    one_by_one = ["-m", "hydra/sweeper=basic", "hydra.sweeper.max_batch_size=1", "format=json"]
    found = tiny(*one_by_one, "seed=0", *DIVERGES)
    assert found.code == 4 and found.json["failed"] == 1 and found.json["done"] == 1
    assert not list(outputs.rglob("multirun.yaml")) and list(Path.cwd().iterdir()) == []


def test_what_is_done_is_not_launched(tiny: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no worker, and queue nothing on a cluster, for a run that is there."""
    launched: list[list[str]] = []
    launch = Multirun._launched

    def watched(self: Multirun, jobs: list[list[str]], *rest: Any) -> Any:
        launched.extend(jobs)
        return launch(self, jobs, *rest)

    monkeypatch.setattr(Multirun, "_launched", watched)
    swept = ["-m", "hydra.sweeper.max_batch_size=2", "train.steps=2", "format=json"]
    first = tiny(*swept, "seed=1").json
    more = tiny(*swept, "seed=0,1,2").json
    assert [job[-3] for job in launched] == ["seed=1", "seed=0", "seed=2"]
    assert [result["document"]["cached"] for result in more["results"]] == [False, True, False]
    assert more["results"][1]["document"]["run_dir"] == first["results"][0]["document"]["run_dir"]
    assert tiny(*swept, "seed=0,1,2").json["cached"] == 3 and len(launched) == 3


class Witness(Callback):
    seen: list[str] = []  # noqa: RUF012

    def on_multirun_start(self, config: Any, **_: Any) -> None:
        Witness.seen.append("start")

    def on_job_end(self, config: Any, job_return: Any, **_: Any) -> None:
        Witness.seen.append(job_return.return_value["status"])

    def on_multirun_end(self, config: Any, **_: Any) -> None:
        Witness.seen.append("end")


EXPERIMENT = """# @package _global_
defaults:
  - ahn/theorem3
  - _self_
hydra:
  mode: MULTIRUN
  sweeper:
    params:
      seed: range(2)
"""


def test_a_grid_and_a_callback_in_a_file(tiny: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = write(tmp_path / "conf", {"experiment/two.yaml": EXPERIMENT})
    module = ModuleType("witness_lab")
    module.Witness = Witness  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "witness_lab", module)
    args = ["--config-dir", str(conf), "experiment=two", "train.steps=2", "format=json"]
    callback = "+hydra.callbacks.mine._target_=witness_lab.Witness"
    assert_refused(tiny(*args, callback), "witness_lab.Witness: must be in one of icl")
    monkeypatch.setenv("ICL_PACKAGES", "witness_lab")
    assert tiny(*args, callback).json["jobs"] == 2
    assert Witness.seen == ["start", "done", "done", "end"]


def test_logging_is_refused_for_one_job_of_several(tiny: Run, tmp_path: Path, outputs: Path) -> None:
    """Refuse logging of one job, which Hydra sets up for each job by that job's own config."""
    logs = EXPERIMENT[: EXPERIMENT.index("hydra:")] + "hydra: {job_logging: {root: {handlers: []}}}\n"
    conf = write(tmp_path / "conf", {"experiment/logs.yaml": logs})
    refused = tiny("-m", "--config-dir", str(conf), "experiment=ahn/theorem3,logs")
    assert_refused(refused, "hydra.job_logging: leave it at none", outputs)


def test_a_search_in_a_file(tiny: Run) -> None:
    pytest.importorskip("optuna", reason="optuna")
    args = ["hparams_search=optuna", "search.trials=3", "train.steps=2", "seed=0", "format=json"]
    found = tiny(*args)
    assert found.code == 0, found.err
    assert found.json["jobs"] == 3 and tiny(*args).json["cached"] == 3
    swept = {override.partition("=")[0] for job in found.json["results"] for override in job["overrides"]}
    assert {"optimizer.lr", "train.clip"} <= swept


def test_the_sweeper_that_needs_an_old_optuna(tiny: Run, outputs: Path) -> None:
    if importlib.util.find_spec("hydra_plugins.hydra_optuna_sweeper"):
        pytest.skip("hydra-optuna-sweeper is here")
    refused = tiny("-m", "hydra/sweeper=optuna", "optimizer.lr=0.1,0.2")
    assert_refused(refused, "hydra/sweeper=search search.method=bayes does its work", outputs)
