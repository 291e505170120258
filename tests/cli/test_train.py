"""Tests of `icl train`: the JSON document, what is found again and what is logged where."""

import json
from pathlib import Path

import numpy as np
import pytest

from icl.config.compose import compose
from icl.config.search_path import ConfigDirs
from icl.config.session import Session
from icl.jobs.requests import train
from icl.loggers import wandb_run
from tests.commands import TINY, Run, logged_to_wandb

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
    "verbose=true": True,
    "trainer.threads=3": True,
    "trainer.accelerator=cpu": True,
    "callbacks.heatmaps.count=2": True,
    "scale=laptop": False,  # its leaves differ: seeds, samples, steps
    "optimizer.lr=0.01": False,
    "trainer.precision=64-true": False,
    "task.context=21": False,
    "task.tasks=null": True,
    "task.tasks=8": False,
    "task.task_law=sphere": False,
    "seed=3": False,
}


def test_what_makes_another_run(tiny: Run, tmp_path: Path) -> None:
    def identity(*more: str) -> str:
        composed = compose(ConfigDirs(), "train", [*TINY, "logger=none", *more])
        return train.parse(composed, Session(Path("/nowhere"))).identity

    assert identity() == tiny("format=json").json["fingerprint"]
    assert {more: identity(more) == identity() for more in OTHERWISE} == OTHERWISE
    assert identity("seed=3") == identity("seeds=[3]") != identity("seeds=[3,4]")
    for name, last in (("one", 5), ("two", 5), ("three", 6)):  # a file counts by its content
        np.save(tmp_path / f"{name}.npy", np.diag([1.0, 2, 3, 4, last]))
    one, two, three = (identity(f"task.covariance={tmp_path}/{n}.npy") for n in ("one", "two", "three"))
    assert one == two != three
    older = compose(ConfigDirs(), "train", [*TINY, "logger=none"])  # of before there were finitely many tasks
    for name in train.LATER:
        del older.settings["task"][name]
    assert train.parse(older, Session(Path("/nowhere"))).identity == identity()
    assert tiny("verbose=true", "callbacks.heatmaps.count=2", "format=json").json["cached"]


def test_verdicts_are_given_kept_and_added_later(tiny: Run) -> None:
    run = tiny("checks=[ahn/lemma1]", "format=json")
    (verdict,) = run.json["verdicts"]
    assert verdict["check"] == "ahn/lemma1" and verdict["verdict"] == verdict["expected"] and run.code == 0
    stored = Path(run.json["run_dir"]) / "verdicts.json"
    assert [v["check"] for v in json.loads(stored.read_text())["verdicts"]] == ["ahn/lemma1"]
    both = tiny("checks=[ahn/theorem3,ahn/lemma1]", "format=json")
    assert both.json["cached"] and both.code == 0  # at smoke undecided is expected
    given = {v["check"]: v["verdict"] for v in both.json["verdicts"]}
    assert given == {"ahn/theorem3": "undecided", "ahn/lemma1": verdict["verdict"]}
    assert {v["check"] for v in json.loads(stored.read_text())["verdicts"]} == {"ahn/theorem3", "ahn/lemma1"}
    stored.write_text(stored.read_text().replace("lemma1", "lemma2", 1))
    again = tiny("checks=[ahn/theorem3,ahn/lemma1]", "format=json")
    assert f"{stored}: is damaged" in again.err
    assert {v["check"]: v["verdict"] for v in again.json["verdicts"]} == given
    assert tiny("format=json").json["verdicts"] == []  # asked for none


def test_the_table_has_numbers_at_any_width(tiny: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Print ten seeds, which do not fit 80 columns: their extremes do. Nothing is cut off."""
    for columns, shown in (("80", "lowest"), ("200", "seed 9")):
        monkeypatch.setenv("COLUMNS", columns)
        text = tiny("seeds=[0,1,2,3,4,5,6,7,8,9]").out
        assert shown in text and "…" not in text and "dist_preconditioned" in text
        assert max(map(len, text.split("run: ")[0].splitlines())) <= int(columns)


def test_wandb_is_told_once_and_again_when_asked_elsewhere(
    tiny: Run, outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = wandb_run._finish

    def broken(*args: object) -> bool:
        finish(*args)  # type: ignore[arg-type]
        raise OSError("made to fail")

    def told() -> int:
        return len(list((outputs / "wandb").glob("offline-run-*")))

    tiny()
    assert not (outputs / "wandb").exists()
    with monkeypatch.context() as patched:
        patched.setattr(wandb_run, "_finish", broken)
        unfinished = tiny(logger="wandb_offline")
    assert (unfinished.code, told()) == (0, 1) and "W&B has failed (OSError: made to fail)" in unfinished.err
    for expected, more in ((2, []), (2, []), (3, ["logger.project=other"]), (4, ["checks=[ahn/lemma1]"])):
        assert tiny(*more, logger="wandb_offline").code == 0
        assert told() == expected, more


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
    swept = tiny("-m", *options, "train.log_every=2,3")
    assert swept.code == 4 and [r["status"] for r in swept.json["results"]] == ["failed", "failed"]
    assert [r["document"]["cached"] for r in swept.json["results"]] == [True, False]
    shown = tiny(*options[:-1])
    assert shown.code == 4 and "failed: the loss of seeds [4]" in " ".join(shown.out.split())
    for again in ("force=false", "force=true"):  # told from its record, and as it is trained
        tiny(*options, again, logger="wandb_offline")
    assert [code for _, code in logged_to_wandb(outputs)] == [1, 1], "failed there as it is here"
    logs = [path.read_bytes() for path in outputs.glob("wandb/offline-run-*/run-*.wandb")]
    assert all(b"the loss of seeds [4] is not finite" in log for log in logs)
