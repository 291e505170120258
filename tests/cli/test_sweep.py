"""Tests of `icl sweep`, the table of a multirun, and what is done again when the command is repeated."""

import csv
import errno
import importlib.util
import io
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import icl as package
from icl.cli.sweep import Watch
from icl.config import session
from icl.config.compose import Composer, forget
from icl.config.search_path import ConfigDirs
from icl.errors import Unavailable
from icl.jobs.execution import multirun
from icl.jobs.execution.multirun import Sweep
from icl.runs.sweeps import read_sweep
from tests.commands import DIVERGES, Run, write

HEAD = "# @package _global_\ndefaults:\n  - ahn/theorem3\n  - _self_\n"
GRID = ["-m", "seed=range(2)", "optimizer.lr=0.01,0.02", "format=json"]


def test_status_of_a_sweep(tiny: Run, icl: Run, outputs: Path) -> None:
    document = tiny(*GRID).json
    folder = Path(document["sweep"])
    before = Path(document["sweep_csv"]).read_bytes()
    shutil.rmtree(document["results"][3]["document"]["run_dir"])
    found = icl("sweep", f"sweep={folder}", "format=json")
    assert found.code == 0 and found.json["states"]["done"] == 3 and found.json["states"]["waiting"] == 1
    assert Path(document["sweep_csv"]).read_bytes() != before
    again = tiny(*GRID).json
    assert again["cached"] == 3 and again["sweep"] == str(folder)
    assert Path(document["sweep_csv"]).read_bytes() == before  # of an interrupted sweep as of one left alone
    text = icl("sweep", f"sweep={folder}").out
    assert "4 jobs: 4 done" in text and "best: optimizer.lr=" in text
    rows = package.sweep(folder)
    assert len(rows) == 4 and rows[0]["optimizer.lr"] == "0.01" and rows[0]["seed"] == 0
    assert [row["loss"] for row in rows] == [
        float(row["loss"]) for row in csv.DictReader(io.StringIO(before.decode()))
    ]
    if importlib.util.find_spec("pandas") is None:
        with pytest.raises(Unavailable, match=r"pip install 'icl\[notebook\]'"):
            rows.to_pandas()
    else:
        assert list(rows.to_pandas()["loss"]) == [row["loss"] for row in rows]


def test_best_and_failed(tiny: Run, icl: Run) -> None:
    document = tiny("-m", "format=json", *DIVERGES).json
    assert document["best"]["overrides"] == ["optimizer.lr=0.01"]
    (failure,) = document["failures"]
    assert failure["overrides"] == ["optimizer.lr=1e+20"]
    assert failure["error"].startswith("icl.training.module.Div")
    assert (Path(failure["run_dir"]) / "traceback.txt").is_file()
    found = icl("sweep", f"sweep={document['sweep']}")
    assert found.code == 4 and failure["run_dir"] in found.out and "Diverged: the loss of seeds" in found.out
    stored = read_sweep(document["sweep"])  # and while it runs
    sweep = Sweep("train", ConfigDirs())
    sweep.outputs, sweep.fingerprint, sweep.jobs = stored.outputs, stored.folder.name, list(stored.jobs)
    console = Console(width=100, file=io.StringIO(), record=True)
    console.print(Watch(sweep).table())
    shown = console.export_text()
    assert "1 done  1 failed" in shown and "optimizer.lr=1e+20" in shown and "Diverged" in shown


def test_one_composition_for_values(tiny: Run, monkeypatch: pytest.MonkeyPatch, outputs: Path) -> None:
    """Find the runs of a launcher, which composes each job."""
    swept = ["-m", "seed=0", "train.clip=null,0.1", "model=sparse_a,sparse_ab",
             "optimizer.betas=[0.9,0.99]", "train.steps=1", "format=json"]  # fmt: skip
    first = tiny(*swept).json
    assert first["jobs"] == first["done"] == 4
    composed: list[object] = []
    load = Composer.compose_options
    watched = lambda *args, **more: composed.append(args) or load(*args, **more)  # noqa: E731
    monkeypatch.setattr(Composer, "compose_options", watched)
    forget()
    assert tiny(*swept).json["cached"] == 4 and len(composed) == 3  # the sweep's own, and of each model one
    for value in ("{lr:0.01}", "{lr:0.02}"):  # merged, so that each starts from the config
        assert tiny("-m", f"optimizer={value}", "seed=0,1").code == 0


def test_of_very_many_jobs_little_is_kept(tiny: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compose the check once for all of the jobs."""
    composed: list[str] = []
    compose = session.compose
    monkeypatch.setattr(session, "compose", lambda *args: composed.append(args[1]) or compose(*args))
    swept = ["-m", "seed=0,1", "checks=[ahn/theorem3]", "hydra/launcher=vectorized", "format=json"]
    whole = tiny(*swept)
    assert composed == ["check"]
    monkeypatch.setattr(multirun, "MANY", 1)
    brief = tiny(*swept)
    assert brief.code == whole.code and brief.json["cached"] == 2
    for short, full in zip(brief.json["results"], whole.json["results"], strict=True):
        assert full["document"]["metrics"] and full["document"]["verdicts"]
        assert short["document"] == {
            k: v for k, v in full["document"].items() if k not in ("metrics", "verdicts", "warnings")
        } | {"cached": True, "seconds": short["document"]["seconds"]}
        assert short["exit_code"] == full["exit_code"]
    assert brief.json["summary"] == whole.json["summary"]


def test_values_that_speak_of_hydra(tiny: Run, tmp_path: Path) -> None:
    named = f"{HEAD}name: mylab/${{hydra:job.override_dirname}}\n"
    conf = write(tmp_path / "conf", {"experiment/named.yaml": named})
    args = ["--config-dir", str(conf), "experiment=named", "-m", "seed=0,1", "format=json"]
    others = "experiment,scale,checks,train.steps,train.batch,train.steps_per_batch,train.log_every"
    others += ",callbacks.gradient.count,format,paths.outputs,logger"
    exclude = f"hydra.job.config.override_dirname.exclude_keys=[{others}]"
    document = tiny(*args, exclude, "hydra.job.config.override_dirname.kv_sep=-").json
    assert [Path(r["document"]["run_dir"]).parent.name for r in document["results"]] == ["seed-0", "seed-1"]


def test_options_that_lie_elsewhere(tiny: Run, tmp_path: Path) -> None:
    for number, place in enumerate("ab", 1):
        write(tmp_path / place, {"experiment/mine.yaml": f"{HEAD}seeds: [{number}]\n"})
        searched = f"hydra.searchpath=[file://{tmp_path / place}]"
        found = tiny(searched, "experiment=mine", "-m", "format=json", "train.steps=1").json
        (result,) = found["results"]
        assert result["document"]["metrics"]["loss"]["by_seed"].keys() == {str(number)}


def test_a_finished_sweep_is_answered_from_outputs_that_take_nothing(
    tiny: Run, icl: Run, outputs: Path
) -> None:
    """Refuse every write below outputs, as a read-only folder does."""
    before = tiny(*GRID).json
    written = []

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        is_write = (
            event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        )
        if written_below and is_write and str(arguments[0]).startswith(written_below[0]):
            written.append(arguments[0])
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), arguments[0])

    written_below = [str(outputs)]
    sys.addaudithook(refuse)
    try:
        again = tiny(*GRID)
        status = icl("sweep", f"sweep={before['sweep']}", "format=json")
    finally:
        written_below.clear()
    assert written == [] and again.code == status.code == 0, again.err
    assert again.json["cached"] == 4 and again.json["summary"] == before["summary"] == status.json["summary"]
