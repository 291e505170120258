"""Tests of the Python functions: records and documents as the command's, and the process as it was before."""

import asyncio
import contextlib
import io
import json
import os
import signal
import sys
import threading
import types
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from flint import ctx
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from markupsafe import escape

import icl
from icl.checks.statement import decided
from icl.config.session import Session
from icl.errors import InputError, Unavailable
from icl.jobs.requests.check import CheckRequest
from icl.notebook import ResultDict
from icl.progress import Event, ItemProgress, Message, StateChanged, WorkItem
from tests.commands import Run

OTHERS = ("PYTEST_", "PYTORCH_", "TORCH")  # set by importing them
TINY: dict[str, Any] = {
    "scale": "smoke",
    "seeds": [0, 1],
    "checks": ["ahn/theorem3"],
    "train.steps": 4,
    "train.batch": 8,
    "train.steps_per_batch": 2,
    "callbacks.gradient.count": 0,
}


@contextlib.contextmanager
def process_left_alone() -> Iterator[None]:
    """Compare what belongs to the process with what it was."""

    def state() -> Any:
        own = {name: value for name, value in os.environ.items() if not name.startswith(OTHERS)}
        return set(own.items()), Path.cwd(), [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]

    before = state()
    yield
    assert state()[0] ^ before[0] == set() and state()[1:] == before[1:]
    assert not GlobalHydra.instance().is_initialized() and HydraConfig.instance().cfg is None


@pytest.fixture
def unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    with process_left_alone():
        yield


def test_a_run_is_that_of_the_command(icl_command: Run, outputs: Path) -> None:
    heard: list[Event] = []
    with process_left_alone():
        first = icl.train("ahn/theorem3", outputs=outputs, on_event=heard.append, **TINY)
    assert (first["status"], first["steps"], first["cached"]) == ("done", 4, False)
    assert [verdict["check"] for verdict in first["verdicts"]] == ["ahn/theorem3"]
    assert any(isinstance(event, ItemProgress) and event.share == 1 for event in heard)
    settings = [f"{key}={json.dumps(value).replace(' ', '')}" for key, value in TINY.items()]
    args = [setting.replace('"', "") for setting in settings]
    found = icl_command("train", "experiment=ahn/theorem3", *args, "format=json").json
    assert found["cached"] and found["metrics"] == first["metrics"]
    run = icl.load_run(first["run_dir"])
    assert run.A.shape == (2, 3, 5, 5) and run.Sigma.shape == run.weights["U"].shape == (2, 5, 5)
    assert run.config["train"]["steps"] == 4 and run.metrics["step"][-1] == 4
    with pytest.raises(ValueError, match=r"no run\.json"):
        icl.load_run(Path(first["run_dir"]).parent)
    assert icl.train("ahn/theorem3", outputs=outputs, **TINY)["cached"]
    assert not icl.train("ahn/theorem3", outputs=outputs, force=True, **TINY)["cached"]


def test_a_check_is_kept_where_a_folder_is_named(unchanged: None, outputs: Path, icl_command: Run) -> None:
    document = icl.check("ahn/lemma1", dim=2, samples=4)
    assert document["verdict"] == "holds" and document["settings"]["dim"] == 2 and not document["cached"]
    assert not outputs.exists() and not Path("outputs").exists()
    kept = icl.check("ahn/lemma1", dim=2, samples=4, outputs=outputs)
    assert kept["measured"] == document["measured"] and not kept["cached"]
    assert icl.check("ahn/lemma1", dim=2, samples=4, outputs=outputs)["cached"]
    found = icl_command("check", "check=ahn/lemma1", "check.dim=2", "check.samples=4", "format=json").json
    assert found == kept | {"cached": True}


def test_metrics_as_a_table(outputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Import pandas only where it is called for."""
    run = icl.load_run(icl.train("ahn/theorem3", outputs=outputs, **TINY)["run_dir"])
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(Unavailable, match=r"pip install 'icl-theory\[notebook\]'"):
        run.to_pandas()
    monkeypatch.setitem(sys.modules, "pandas", types.SimpleNamespace(DataFrame=dict))
    table = run.to_pandas()
    assert set(table["seed"]) == {0, 1} and len(table["loss"]) == len(table["step"]) > 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: icl.check("lemma1"), "did you mean ahn/lemma1"),
        (lambda: icl.check("ahn/lemma1", dm=2), "did you mean check.dim"),
        (lambda: icl.check("ahn/lemma1", dim=0), "check.dim=0: must be"),
        (lambda: icl.train("ahn/theorem3", seeds=[0, 0]), "duplicates"),
        (lambda: icl.figure("ahn/fig1", contxt=3), "contxt"),
        (lambda: icl.reproduce(only=["anh"]), "did you mean ahn?"),
        (lambda: icl.check("ahn/lemma1", config_dir="/nope"), "no such folder"),
    ],
)
def test_wrong_input_is_an_exception_and_leaves_nothing(unchanged: None, call: Any, words: str) -> None:
    with pytest.raises(InputError, match=words.replace("?", r"\?")):
        call()
    assert os.listdir() == []


def test_in_a_running_event_loop_and_in_threads(unchanged: None, outputs: Path) -> None:
    async def notebook() -> ResultDict:
        return icl.train("ahn/theorem3", outputs=outputs, **TINY)

    assert asyncio.run(notebook())["status"] == "done"
    with ThreadPoolExecutor(4) as pool:
        seeds = [pool.submit(icl.check, "ahn/lemma1", samples=4, seed=seed) for seed in range(4)]
        again = pool.submit(icl.train, "ahn/theorem3", outputs=outputs, **TINY)
        assert [found.result()["settings"]["seed"] for found in seeds] == [0, 1, 2, 3]
        assert again.result()["cached"] and threading.active_count() > 1
        meeting = threading.Barrier(2)  # where flint's precision would be the other's
        alone = [pool.submit(decided, lambda m: meeting.wait(0.5)) for _ in range(2)]
        broken = [isinstance(one.exception(), threading.BrokenBarrierError) for one in alone]
        assert all(broken) and ctx.prec == 53


def test_what_is_found_shows_itself_in_a_notebook(outputs: Path) -> None:
    document = icl.check("ahn/lemma1", samples=4)
    html = document._repr_html_()
    assert (
        "holds" in html and "max_error" in html and "0 (exact)" in html and json.loads(json.dumps(document))
    )
    for told in (document["sentence"], document["control"]["description"], *document["meanings"].values()):
        assert escape(told) in html
    assert document["record"] is None and document["inputs"] == [], "nothing is stored and no file given"
    document["claim"], document["verdict"] = "<script>", "fails"
    assert "&lt;script&gt;" in document._repr_html_() and "expected: holds" in document._repr_html_()
    figure = icl.figure("giannou/fig1", outputs=outputs, scale="smoke")
    assert "data:image/png;base64," in figure._repr_html_() and "undecided" in figure._repr_html_()
    run = ResultDict(run_dir="/r", steps=3, metrics={"loss": {"mean": 0.5}}, verdicts=[])
    assert "loss" in run._repr_html_() and "0.5" in run._repr_html_()
    whole = ResultDict(checks=[document], figures=[], skipped=[{"id": "a", "reason": "<b>"}], report="/r")
    assert "a: &lt;b&gt;" in whole._repr_html_() and "&lt;script&gt;" in whole._repr_html_()


def test_reproduce_tells_how_far_it_is(outputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from icl.jobs.execution import run_many as plan

    every, heard = plan.blank_entries, []
    monkeypatch.setattr(
        plan, "blank_entries", lambda *asked: [e for e in every(*asked) if e.id == "ahn/lemma1"]
    )
    document = icl.reproduce(outputs=outputs, scale="smoke", on_event=heard.append)
    assert [check["check"] for check in document["checks"]] == ["ahn/lemma1"]
    assert Path(document["report"]).is_file() and document["failures"] == []
    assert [event.state for event in heard if isinstance(event, StateChanged)] == ["running", "done"]
    assert any(isinstance(event, Message) and "1 to run" in event.text for event in heard)


def test_a_terminal_shows_a_bar_and_nothing_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = io.StringIO()

    def measure(request: Any, session: Session) -> dict[str, Any]:
        session.on_event(ItemProgress(WorkItem("check", request.id), 0.5, "half of it"))
        while seen.isatty() and "half of it" not in seen.getvalue():
            threading.Event().wait(0.01)
        return {}

    monkeypatch.setattr(CheckRequest, "measure", measure)
    monkeypatch.setattr(sys, "stderr", seen)
    assert icl.check("ahn/theorem1", outputs=None) == {} and seen.getvalue() == ""
    monkeypatch.setattr(seen, "isatty", lambda: True)
    icl.check("ahn/theorem1", outputs=None)
    shown = seen.getvalue()
    icl.check("ahn/theorem1", outputs=None, on_event=lambda event: seen.write("the caller's: half of it"))
    assert seen.getvalue() == shown + "the caller's: half of it"
