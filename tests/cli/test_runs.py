"""Tests of `icl runs`, `icl runs compare` and `icl clean run=A`."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

import icl
from icl.cli import main
from icl.errors import InputError
from icl.jobs.stored.run_list import RunList
from icl.runs import documents
from icl.runs.code import current_digest
from icl.runs.index import INDEX
from icl.runs.lock import Lock
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
        "files": {"config.yaml": {"bytes": len(text), "digest": documents.digest(text)}},
        **more,
    }
    documents.write_record(folder / "run.json", run)
    return folder


def listed(outputs: Path, capsys: pytest.CaptureFixture[str], *args: str) -> list[dict[str, object]]:
    capsys.readouterr()
    assert main(["runs", f"paths.outputs={outputs}", "format=json", *args]) == 0
    found: list[dict[str, object]] = json.loads(capsys.readouterr().out)["runs"]
    return found


def text(outputs: Path, capsys: pytest.CaptureFixture[str], *args: str) -> str:
    capsys.readouterr()
    assert main(["runs", f"paths.outputs={outputs}", *args]) == 0
    return capsys.readouterr().out


def test_runs_are_listed_newest_first_with_what_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, 0, config={"optimizer": {"lr": 0.1}})
    put(tmp_path, 1, config={"optimizer": {"lr": 0.2}}, means={"exact_risk": None, "loss": 0.123456})
    other = put(tmp_path, 2, experiment="mine/other")
    newest, second, first = listed(tmp_path, capsys)
    assert newest["run_dir"] == str(other) and newest["differs"] == {}
    assert (second["differs"], first["differs"]) == ({"optimizer.lr": 0.2}, {"optimizer.lr": 0.1})
    assert (first["name"], first["date"]) == ("mine/first lr=0.1", "2026-01-01T03:04:06+00:00")
    assert second["risk"] == {"metric": "loss", "mean": 0.123456}
    assert first["metrics"] == {"exact_risk": 1.0} and first["stale"] is False
    shown = text(tmp_path, capsys)
    assert shown.index("mine/other") < shown.index("loss 0.1235") < shown.index("mine/first/a1a1a1a1a1a1")


def test_states(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """List runs that failed, were interrupted, run, have no metrics, diverged, or are of other code."""
    failed = put(tmp_path, 0, status="failed", means={}, steps=None)
    (failed / "traceback.txt").write_text("Traceback\n  File x\nValueError: no\n")
    put(tmp_path, 1, status="running", means={}, ended=None)
    put(tmp_path, 2, diverged={"0": 4}, notes=["the loss of seed 0 is no number"], risk=None)
    put(tmp_path, 3, digest="other")
    found = listed(tmp_path, capsys)
    assert [run["status"] for run in found] == ["done", "failed", "interrupted", "failed"]
    assert [run["stale"] for run in found] == [True, False, False, False]
    assert found[3]["why"] == "ValueError: no" and found[1]["why"] == "the loss of seed 0 is no number"
    assert found[2]["date"] == "2026-01-02T03:04:05+00:00", "it has not ended"
    assert found[1]["risk"] is None
    shown = text(tmp_path, capsys)
    assert "done, stale" in shown and "stale: made with other code" in shown and "    ValueError: no" in shown


def test_a_run_that_is_being_made_is_not_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = put(tmp_path, 0, status="running", means={}, ended=None)
    lock = Lock(folder / "lock")
    lock.acquire()
    try:
        assert [run["status"] for run in listed(tmp_path, capsys)] == ["running"]
        assert main(["clean", "run=a1", "yes=true", f"paths.outputs={tmp_path}"]) == 2
        assert "run=a1: is being made" in capsys.readouterr().err and folder.exists()
    finally:
        lock.release()
    assert [run["status"] for run in listed(tmp_path, capsys)] == ["interrupted"], "from the index"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{ torn", "its run.json is damaged"),
        (None, "it has no run.json"),
        ("[]", "its run.json is damaged"),
        ('{"status": "done"}', "its run.json is damaged"),
        ({"status": "done", "metrics": 3}, "its run.json is damaged"),
        ({"metrics": {"loss": {"mean": "x"}}}, "its run.json is damaged"),
        ({"schema": 9}, "it has schema version 9"),
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
    for _ in range(2):  # the second time from the index
        by_print = {run["fingerprint"]: run for run in listed(tmp_path, capsys)}
        damaged = by_print[PRINTS[1]]
        assert damaged["status"] == "damaged" and str(damaged["why"]).startswith(why)
        assert by_print[PRINTS[0]]["status"] == "done"
    text(tmp_path, capsys)


def test_the_index_serves_nothing_that_the_folder_contradicts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [put(tmp_path, number, risk=float(number)) for number in range(3)]
    assert [run["metrics"] for run in listed(tmp_path, capsys)] == [
        {"exact_risk": risk} for risk in (2.0, 1.0, 0.0)
    ]
    shutil.rmtree(folders[2])
    put(tmp_path, 2, risk=5.0)
    shutil.rmtree(folders[1])
    assert [run["metrics"] for run in listed(tmp_path, capsys)] == [{"exact_risk": 5.0}, {"exact_risk": 0.0}]
    (folders[0] / "config.yaml").write_text("name: shorter")
    assert listed(tmp_path, capsys)[1]["why"] == "its config.yaml is damaged (13 of 43 bytes)"
    shutil.copytree(folders[2], tmp_path / "runs/mine/first" / PRINTS[3])
    (copy,) = (run for run in listed(tmp_path, capsys) if run["fingerprint"] == PRINTS[3])
    assert copy["status"] == "damaged" and copy["why"] == f"it is the record of mine/first/{PRINTS[2]}"
    index = tmp_path / INDEX
    index.write_bytes(index.read_bytes().replace(b"5.0", b"0.1"))
    assert listed(tmp_path, capsys)[1]["metrics"] == {"exact_risk": 5.0}, (
        "an index that was edited is not read"
    )
    index.write_text("{}")
    assert len(listed(tmp_path, capsys)) == 3


def test_the_index_is_read_instead_of_the_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, 0)
    before = listed(tmp_path, capsys)
    monkeypatch.setattr("icl.runs.index._summarized", lambda *_: pytest.fail("the run was read again"))
    assert listed(tmp_path, capsys) == before


def test_outputs_that_cannot_be_written_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, 0)

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("icl.runs.atomic.write_bytes", refused)
    assert len(listed(tmp_path, capsys)) == 1 and not (tmp_path / INDEX).exists()
    assert text(tmp_path / "nowhere", capsys) == f"no runs in {tmp_path / 'nowhere/runs'}\n"
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


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ["optimizr.lr=1"],
            "icl: optimizr.lr: no run's config has this key\nicl: did you mean optimizer.lr?",
        ),
        (["scale=big"], "icl: scale=big: must be one of smoke, laptop, paper"),
        (["format=xml"], "icl: format=xml: must be one of text, json"),
        (["first"], "icl: first: icl runs takes KEY=VALUE, or compare A B"),
        (["compare", "a1"], "icl: compare: takes two runs"),
        (["compare", "a1", "zz"], "icl: B=zz: must be the folder of a run in "),
        (["compare", "a", "b2"], "icl: A=a: 2 runs begin so: mine/"),
    ],
)
def test_wrong_input(
    args: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, 0, config={"optimizer": {"lr": 1}})
    put(tmp_path, 1)
    shutil.copytree(tmp_path / "runs/mine/first" / PRINTS[0], tmp_path / "runs/mine/second/aaaaaaaaaaaa")
    assert main(["runs", f"paths.outputs={tmp_path}", *args]) == 2
    assert capsys.readouterr().err.startswith(message)


def test_a_figures_own_runs_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, 0)
    for number in (1, 2):
        put(tmp_path, number, figure="ahn/fig1", config={"optimizer": {"lr": number}})
    assert [run["fingerprint"] for run in listed(tmp_path, capsys)] == [PRINTS[0]]
    shown = text(tmp_path, capsys)
    assert "and 2 that figures made for themselves (all=true): ahn/fig1 (2)" in shown
    assert PRINTS[1] not in shown and PRINTS[1] in text(tmp_path, capsys, "all=true")
    assert [run["figure"] for run in listed(tmp_path, capsys, "all=true")] == ["ahn/fig1", "ahn/fig1", None]
    assert len(listed(tmp_path, capsys, "lr=2")) == 1, "what is asked for is shown"


def test_two_runs_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = put(
        tmp_path, 0, config={"optimizer": {"lr": 0.1, "eps": 1}}, means={"loss": 1.0, "exact_risk": 2.0}
    )
    second = put(tmp_path, 1, experiment="mine/b", config={"optimizer": {"lr": 0.2}}, means={"loss": 3.0})
    words = ["runs", "compare", "a1a1", str(second), f"paths.outputs={tmp_path}"]
    assert main([*words, "format=json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["a"], found["b"]) == (str(first), str(second))
    assert found["differs"] == {
        "optimizer.lr": {"a": 0.1, "b": 0.2},
        "optimizer.eps": {"a": 1, "b": None},
    }
    assert found["metrics"] == {"loss": {"a": 1.0, "b": 3.0}, "exact_risk": {"a": 2.0, "b": None}}
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "optimizer.lr   0.1  0.2" in shown and "exact_risk  2  -" in shown


def test_one_run_is_removed_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = put(tmp_path, 0), put(tmp_path, 1, status="failed")
    clean = ["clean", f"paths.outputs={tmp_path}"]
    assert main([*clean, "run=a1"]) == 0 and first.exists(), "without yes=true and without a terminal"
    assert "nothing removed: pass yes=true" in capsys.readouterr().err
    assert main([*clean, "run=a1", "yes=true", "format=json"]) == 0
    assert json.loads(capsys.readouterr().out)["removed"] == [str(first)]
    assert not first.exists() and second.exists()
    for wrong in ("run=", "run=a1", "run=/etc", "run=../../etc"):
        assert main([*clean, wrong, "yes=true"]) == 2 and second.exists()


def test_runs_in_python(tmp_path: Path) -> None:
    put(tmp_path, 0, config={"optimizer": {"lr": 0.1}})
    put(tmp_path, 1, config={"optimizer": {"lr": 0.2}}, figure="ahn/fig1", digest="other")
    (run,) = icl.runs(tmp_path)
    assert repr(run) == "<mine/first: done, exact_risk 1>" and run.path.name == PRINTS[0]
    found = icl.runs(tmp_path, every=True)
    assert repr(found).splitlines()[:2] == ["2 runs", "<mine/first lr=0.2: done, stale, exact_risk 1>"]
    assert [one.config["optimizer"]["lr"] for one in icl.runs(tmp_path, **{"optimizer.lr": 0.2})] == [0.2]
    assert repr(RunList([run] * 25)).endswith("exact_risk 1>\n... and 5 older runs")
    with pytest.raises(InputError, match="no run's config has this key"):
        icl.runs(tmp_path, nothing=1)
    table = found.to_pandas()
    assert table["optimizer.lr"].tolist() == [0.2, 0.1] and table["exact_risk"].tolist() == [1.0, 1.0]


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
