"""Tests of `icl runs`."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

import icl
from icl.cli import main
from icl.digests import digest
from icl.errors import InputError
from icl.runs import documents
from icl.runs.code import current_digest
from tests.commands import Run

CODE = ["icl.text.brief"]
PRINTS = ("a1" * 6, "b2" * 6, "c3" * 6, "d4" * 6)


def put(
    outputs: Path,
    number: int,
    *,
    experiment: str = "mine/first",
    risk: float | None = 1.0,
    means: dict[str, float | None] | None = None,
    config: dict[str, object] | None = None,
    **more: Any,
) -> Path:
    """Write a run as the store does; `number` is its place, and its day."""
    folder = outputs / "runs" / experiment / PRINTS[number]
    folder.mkdir(parents=True)
    text = yaml.safe_dump({"name": experiment, "task": {"dim": 1}, "seeds": [0], **(config or {})}).encode()
    (folder / "config.yaml").write_bytes(text)
    means = {"exact_risk": risk} if means is None else means
    run = {
        "schema": 1,
        "status": "done",
        "experiment": experiment,
        "fingerprint": PRINTS[number],
        "digest": current_digest({"code": CODE}, outputs),
        "code": CODE,
        "attempt": 1,
        "started": f"2026-01-0{number + 1}T03:04:05+00:00",
        "ended": f"2026-01-0{number + 1}T03:04:06+00:00",
        "steps": 10,
        "seeds": [0],
        "metrics": {name: {"mean": mean, "by_seed": {"0": mean}} for name, mean in means.items()},
        "files": {"config.yaml": {"bytes": len(text), "digest": digest(text)}},
        **more,
    }
    documents.write_record(folder / "run.json", run)
    return folder


def listed(outputs: Path, capsys: pytest.CaptureFixture[str], *args: str) -> list[dict[str, object]]:
    capsys.readouterr()
    code = main(["runs", f"paths.outputs={outputs}", "format=json", *args])
    found: list[dict[str, object]] = json.loads(capsys.readouterr().out)["runs"]
    assert code == (0 if found or not args else 1), "nothing of what is asked for is an answer of its own"
    return found


def text(outputs: Path, capsys: pytest.CaptureFixture[str], *args: str) -> str:
    capsys.readouterr()
    assert main(["runs", f"paths.outputs={outputs}", *args]) == 0
    return capsys.readouterr().out


def test_runs_are_listed_newest_first_with_what_was_typed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, 0, overrides=["experiment=mine/first", "optimizer.lr=0.1", "logger=none"])
    put(tmp_path, 1, means={"exact_risk": None, "loss": 0.123456})
    other = put(tmp_path, 2, experiment="mine/other")
    newest, second, first = listed(tmp_path, capsys)
    assert newest["run_dir"] == str(other)
    assert (first["name"], first["date"]) == ("mine/first lr=0.1", "2026-01-01T03:04:06+00:00")
    assert second["metrics"] == {"exact_risk": None, "loss": 0.123456} and first["stale"] is False
    shown = text(tmp_path, capsys)
    assert shown.index("mine/other") < shown.index("loss 0.1235") < shown.index("mine/first lr=0.1")
    assert "a1a1a1a1a1a1" in shown and max(map(len, shown.splitlines()[1:])) <= 80


def test_a_run_is_one_line_without_the_words_that_all_share(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, lr in enumerate((0.1, 0.02)):
        long = f"train.clip={'9' * 40}" if number else "seed=4"
        put(tmp_path, number, overrides=["scale=smoke", f"optimizer.lr={lr}", long])
    shown = text(tmp_path, capsys)
    assert "all: mine/first scale=smoke" in shown
    (first,) = [row for row in shown.splitlines() if PRINTS[0] in row]
    (second,) = [row for row in shown.splitlines() if PRINTS[1] in row]
    assert "lr=0.1 seed=4 " in first and "lr=0.02 clip=999" in second and len(second) <= 80


def test_states(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """List runs that failed, were interrupted, run, have no metrics, diverged, or are of other code."""
    put(tmp_path, 0, status="failed", means={}, steps=None, error="ValueError: no")
    put(tmp_path, 1, status="running", means={}, ended=None)
    put(tmp_path, 2, diverged={"0": 4}, notes=["the loss of seed 0 is no number"], risk=None)
    put(tmp_path, 3, digest="other")
    found = listed(tmp_path, capsys)
    assert [run["status"] for run in found] == ["done", "failed", "interrupted", "failed"]
    assert [run["stale"] for run in found] == [True, False, False, False]
    assert found[3]["why"] == "ValueError: no" and found[1]["why"] == "the loss of seed 0 is no number"
    assert found[2]["date"] == "2026-01-02T03:04:05+00:00", "it has not ended"
    shown = text(tmp_path, capsys)
    assert " stale " in shown and "stale: made with other code" in shown and "ValueError: no" in shown


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{ torn", "its run.json is damaged"),
        (None, "it has no run.json"),
        ({"metrics": {"loss": {"mean": "x"}}}, "its run.json is damaged"),
        ({"schema": 9}, "its run.json is damaged or of another version"),
    ],
)
def test_a_damaged_run_hides_no_other(
    content: str | dict[str, object] | None, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, 0)
    folder = put(tmp_path, 1, **(content if isinstance(content, dict) else {}))
    if not isinstance(content, dict):
        (folder / "config.yaml").write_text("a: [")
        (folder / "run.json").unlink()
    if isinstance(content, str):
        (folder / "run.json").write_text(content)
    by_print = {run["fingerprint"]: run for run in listed(tmp_path, capsys)}
    damaged = by_print[PRINTS[1]]
    assert damaged["status"] == "damaged" and str(damaged["why"]).startswith(why)
    assert by_print[PRINTS[0]]["status"] == "done"
    text(tmp_path, capsys)


def test_what_the_folder_contradicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [put(tmp_path, number) for number in range(2)]
    (folders[0] / "config.yaml").write_text("name: shorter")
    assert listed(tmp_path, capsys)[1]["why"] == "its config.yaml is damaged (13 of 43 bytes)"
    shutil.copytree(folders[1], tmp_path / "runs/mine/first" / PRINTS[3])
    (copy,) = (run for run in listed(tmp_path, capsys) if run["fingerprint"] == PRINTS[3])
    assert copy["status"] == "damaged" and copy["why"] == f"it is the record of mine/first/{PRINTS[1]}"
    assert text(tmp_path / "nowhere", capsys) == f"no runs found in {tmp_path / 'nowhere/runs'}\n"
    assert main(["runs", "sort=loss", f"paths.outputs={tmp_path / 'nowhere'}"]) == 1
    assert not (tmp_path / "nowhere").exists()


def test_filters_by_stored_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    optimizers = ({"lr": 0.02}, {"lr": 0.05, "betas": [0.9, 0.99]}, {"lr": 1.0, "schedule": {"every": 7}})
    for number, optimizer in enumerate(optimizers):
        config = {"scale": "smoke" if number else "laptop", "optimizer": optimizer, "seeds": [number]}
        put(tmp_path, number, config=config, seeds=[number], choices={"optimizer": f"mine{number}"})

    def chosen(*args: str) -> list[object]:
        return [run["fingerprint"] for run in listed(tmp_path, capsys, *args)]

    first, second, third = PRINTS[:3]
    assert chosen("optimizer.lr=2e-2") == chosen("lr=.02") == [first]
    assert chosen("optimizer.betas=[0.9,0.99]") == [second]
    assert chosen("every=7", "scale=smoke") == [third] and chosen("every=7", "scale=laptop") == []
    assert chosen("seed=1") == chosen("seeds=[1]") == [second]
    assert chosen("d=1") == [third, second, first] and chosen("optimizer=mine2") == [third]
    assert chosen("status=failed") == [] and chosen("optimizer.lr=1") == [third]
    assert chosen("lr=1,.02") == [third, first] and chosen("optimizer.betas=[0.9,0.99],[1]") == [second]


def test_conditions_and_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, risk in enumerate((0.3, None, 0.1, 0.2)):
        put(tmp_path, number, risk=risk)
    a, _, c, d = PRINTS

    def chosen(*args: str) -> list[object]:
        return [run["fingerprint"] for run in listed(tmp_path, capsys, *args)]

    assert chosen("sort=exact_risk") == [c, d, a] and chosen("sort=exact_risk", "limit=1") == [c]
    assert chosen("exact_risk<0.2") == [c] and chosen("exact_risk<=0.2", "exact_risk>.1") == [d]
    assert chosen("limit=2") == [d, c], "the newest"
    put(tmp_path, 1, experiment="mine/other", means={"loss": 0.7, "exact_risk": 5.0})
    assert "0.7 " in text(tmp_path, capsys, "sort=loss"), "the metric that they are sorted by"


def test_a_figures_own_runs_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, 0)
    for number in (1, 2):
        put(tmp_path, number, figure="ahn/fig1", config={"optimizer": {"lr": number}})
    assert [run["fingerprint"] for run in listed(tmp_path, capsys)] == [PRINTS[0]]
    shown = text(tmp_path, capsys)
    assert "and 2 that figures made for themselves (status=done lists them)" in shown
    assert PRINTS[1] not in shown and PRINTS[1] in text(tmp_path, capsys, "status=done")
    every = listed(tmp_path, capsys, "status=done")
    assert [run["figure"] for run in every] == ["ahn/fig1", "ahn/fig1", None]
    assert len(listed(tmp_path, capsys, "lr=2")) == 1, "what is asked for is shown"


def test_runs_in_python(tmp_path: Path) -> None:
    put(tmp_path, 0, config={"optimizer": {"lr": 0.1}})
    put(tmp_path, 1, config={"optimizer": {"lr": 0.2}}, overrides=["optimizer.lr=0.2"], digest="other")
    second, first = icl.list_runs(tmp_path)
    assert repr(first) == "<mine/first: done, exact_risk 1>" and first.path.name == PRINTS[0]
    assert repr(second) == "<mine/first lr=0.2: done, stale, exact_risk 1>"
    assert [one.config["optimizer"]["lr"] for one in icl.list_runs(tmp_path, **{"optimizer.lr": 0.2})] == [
        0.2
    ]
    with pytest.raises(InputError, match="no run's config has this key"):
        icl.list_runs(tmp_path, nothing=1)


def test_a_run_keeps_what_was_typed(tiny: Run, outputs: Path) -> None:
    typed = ["optimizer.lr=0.02", 'callbacks.heatmaps.which=["mlflow://me:hunter2hunter2@db.local"]']
    made = tiny("format=json", "callbacks.heatmaps.count=0", *typed).json
    run = json.loads((Path(made["run_dir"]) / "run.json").read_text())
    assert "optimizer.lr=0.02" in run["overrides"] and "experiment=ahn/theorem3" in run["overrides"]
    assert "hunter2" not in str(run) and "<redacted>" in str(run["overrides"])
    assert (run["choices"]["optimizer"], run["choices"]["experiment"]) == ("adam", "ahn/theorem3")
    assert "hydra/launcher" not in run["choices"] and run["figure"] == ""
    swept = tiny("-m", "seed=7", "format=json").json
    run = json.loads((Path(swept["results"][0]["document"]["run_dir"]) / "run.json").read_text())
    assert "seed=7" in run["overrides"] and run["choices"]["model"] == "sparse_a"


def test_checks_at_settings_that_were_typed(icl: Run) -> None:
    for more in ([], ["check.dim=3", "tries=0"], ["check.dim=4", "tries=0"]):
        assert icl("check", "ahn/lemma1", *more).code == 0
    (item,) = icl("list", "ahn/lemma1", "format=json").json["checks"]
    assert [one["typed"] for one in item["results"]] == ["dim=4 tries=0", "dim=3 tries=0", ""]
    text, whole = " ".join(icl("list", "check=ahn/lemma1").out.split()), icl("list", "ahn").out
    assert "✓ holds dim=4 tries=0 /" in text and "as shipped" in text and item["statement"] in text
    assert "(at 3 settings)" in whole and "xie/theorem1" not in whole
