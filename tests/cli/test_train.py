"""Tests of `icl train`: the JSON document, what is found again and what is logged where."""

import json
from pathlib import Path

import numpy as np
import pytest

from icl.config.compose import compose
from icl.config.search_path import ConfigDirs
from icl.config.session import Session
from icl.figures.training import TrainingSettings
from icl.jobs.requests import train
from tests.commands import Run, logged_to_wandb, tiny_argv

KEYS = {"run_dir", "fingerprint", "status", "cached", "resumed", "steps", "seconds", "metrics", "verdicts"}
METRICS = {"loss", "exact_risk", "dist_preconditioned", "dist_plain"}


def test_the_train_document(tiny: Run, outputs: Path) -> None:
    result = tiny("format=json")
    document = result.json
    assert result.code == 0 and set(document) >= KEYS
    assert Path(document["run_dir"]).is_absolute() and Path(document["run_dir"]).is_relative_to(outputs)
    assert document["status"] == "done" and document["steps"] == 4 and document["seconds"] > 0
    assert (document["cached"], document["resumed"]) == (False, False)
    assert set(document["metrics"]) >= METRICS
    for entry in document["metrics"].values():
        assert set(entry) == {"mean", "by_seed"} and set(entry["by_seed"]) == {"0", "1"}
    assert document["verdicts"] == []
    again, found = (tiny(f"force={force}", "format=json").json for force in ("true", "false"))
    assert (again["cached"], found["cached"]) == (False, True)
    assert document["metrics"] == again["metrics"] == found["metrics"]
    assert json.loads((Path(document["run_dir"]) / "run.json").read_text())["attempt"] == 2


OTHERWISE = {
    "trainer.threads=3": True,
    "trainer.accelerator=cpu": True,
    "callbacks.heatmaps.count=2": True,
    "scale=laptop": False,  # its leaves differ: seeds, samples, steps
    "optimizer.lr=0.01": False,
    "trainer.precision=64-true": False,
    "task.context=21": False,
    "train.log_every=1": True,
    "train.steps=4": True,  # as it is
    "task.tasks=null": True,
    "task.tasks=8": False,
    "task.task_law=sphere": False,
    "seed=3": False,
}


def test_what_makes_another_run(tiny: Run, tmp_path: Path) -> None:
    def identity(*more: str) -> str:
        composed = compose(ConfigDirs(), "train", [*tiny_argv(*more)[1:], "logger=none"])
        return train.parse(composed, Session(Path("/nowhere"))).identity

    assert identity() == tiny("format=json").json["fingerprint"]
    assert {more: identity(more) == identity() for more in OTHERWISE} == OTHERWISE
    assert identity("seed=3") == identity("seeds=[3]") != identity("seeds=[3,4]")
    for name, last in (("one", 5), ("two", 5), ("three", 6)):  # a file counts by its content
        np.save(tmp_path / f"{name}.npy", np.diag([1.0, 2, 3, 4, last]))
    one, two, three = (identity(f"task.covariance={tmp_path}/{n}.npy") for n in ("one", "two", "three"))
    assert one == two != three
    lsa, cut = "experiment=giannou/lsa", "callbacks.curriculum.every=4"
    assert identity(lsa) == identity(lsa, "callbacks.progress.seconds=1") != identity(lsa, cut)
    assert tiny("callbacks.heatmaps.count=2", "format=json").json["cached"]


@pytest.mark.parametrize("scale", ["laptop", "paper"])
@pytest.mark.parametrize("name", ["ahn/theorem3", "xie/heads", "looped/shared"])
def test_a_figure_that_names_the_number_of_steps_asks_for_the_same_run(name: str, scale: str) -> None:
    """Halve the rate as often: the period is a part of the run."""

    def parsed(*more: str) -> train.TrainRequest:
        composed = compose(ConfigDirs(), "train", [f"experiment={name}", f"scale={scale}", *more])
        return train.parse(composed, Session(Path("/nowhere")))

    own = parsed()
    steps = own.config["train"]["steps"]
    named = TrainingSettings(steps=steps).overrides()
    assert named["train.steps"] == steps
    assert parsed(*(f"{key}={value}" for key, value in named.items())).identity == own.identity
    longer = parsed(f"train.steps={5 * steps}").config["optimizer"]["schedule"]["every"]
    assert longer in (400, 5 * own.config["optimizer"]["schedule"]["every"])


def test_verdicts_are_given_kept_and_added_later(tiny: Run) -> None:
    both_speak_of = ("model.layers=1", "task.eigenvalues=[1,1,1,1,1]", "format=json")
    run = tiny("checks=[ahn/theorem1]", *both_speak_of)
    (verdict,) = run.json["verdicts"]
    assert verdict["check"] == "ahn/theorem1" and verdict["verdict"] == verdict["expected"] and run.code == 0
    stored = Path(run.json["run_dir"]) / "run.json"
    assert [v["check"] for v in json.loads(stored.read_text())["verdicts"]] == ["ahn/theorem1"]
    both = tiny("checks=[ahn/theorem3,ahn/theorem1]", *both_speak_of)
    assert both.json["cached"] and both.code == 0  # at smoke undecided is expected
    given = {v["check"]: v["verdict"] for v in both.json["verdicts"]}
    assert given == {"ahn/theorem3": "undecided", "ahn/theorem1": verdict["verdict"]}
    assert {v["check"] for v in json.loads(stored.read_text())["verdicts"]} == {
        "ahn/theorem3",
        "ahn/theorem1",
    }
    assert tiny(*both_speak_of).json["verdicts"] == []  # asked for none


def test_a_seed_that_diverges(tiny: Run, outputs: Path) -> None:
    """Keep the others' numbers and name the bad seed; the run is a failure whenever it is found again."""
    options = ["seeds=[3,4]", "optimizer.lr=[0.01,1e30]", "train.clip=null", "train.steps=12", "format=json"]
    for cached in (False, True):
        found = tiny(*options, "checks=[ahn/theorem3]")
        document = found.json
        assert (found.code, document["status"], document["cached"]) == (4, "failed", cached)
        assert "the loss of seeds [4] is not finite" in document["error"]
        assert document["verdicts"] == []
        by_seed = document["metrics"]["loss"]["by_seed"]
        assert by_seed["3"] > 0 and by_seed["4"] is None
    swept = tiny("-m", *options, "train.batch=8,9")
    assert swept.code == 4 and [r["status"] for r in swept.json["results"]] == ["failed", "failed"]
    assert [r["document"]["cached"] for r in swept.json["results"]] == [True, False]
    shown = tiny(*options[:-1])
    assert shown.code == 4 and "failed: the loss of seeds [4]" in " ".join(shown.out.split())
    tiny(*options, "force=true", logger="wandb_offline")
    assert [code for _, code in logged_to_wandb(outputs)] == [1], "failed there as it is here"
    (log,) = outputs.glob("wandb/offline-run-*/run-*.wandb")
    assert b"the loss of seeds [4] is not finite" in log.read_bytes()


COUNTER = """
import json
import pytorch_lightning as pl

class Counter(pl.Callback):
    def __init__(self, path): self.path, self.steps, self.rows = path, [], 0
    def on_step_end(self, trainer, module, step): self.steps.append((step, trainer.global_step))
    def on_rows(self, trainer, module, rows): self.rows += len(rows)
    def on_fit_end(self, trainer, module): open(self.path, "w").write(json.dumps([self.steps, self.rows]))
"""


def test_a_callback_of_ones_own_and_one_switched_off_change_no_number(
    tiny: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "counting_lab.py").write_text(COUNTER)
    monkeypatch.syspath_prepend(str(tmp_path))
    first = tiny("format=json", "callbacks.gradient.count=2").json
    mine = f"+callbacks.mine={{_target_:counting_lab.Counter,path:{tmp_path / 'calls.json'}}}"
    assert tiny("callbacks.gradient.count=2", mine, "format=json").json["cached"]
    for changed in (mine, "~callbacks.gradient", "callbacks.gradient=null"):
        found = tiny(changed, "force=true", "format=json").json
        assert found["fingerprint"] == first["fingerprint"] and "gradient_norm" not in found["metrics"]
        assert {name: first["metrics"][name] for name in found["metrics"]} == found["metrics"]
    assert json.loads((tmp_path / "calls.json").read_text()) == [[[k, k] for k in range(1, 5)], 6]
