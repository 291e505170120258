"""What an offline run holds, read back with W&B's own reader; each script has a home of its own."""

from __future__ import annotations

import functools
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from icl.config.compose import compose
from icl.config.logger import LoggerSettings
from icl.config.places import Configs
from icl.errors import InputError
from icl.sinks.wandb_sink import WandbSink

REPOSITORY = Path(__file__).parents[2]
WANDB = Path(sys.executable).with_name("wandb")
SECRET = "5ecret" * 8
ARGUMENT = "seeds=[313373133731]"

PREAMBLE = """
import os, sys
from contextlib import suppress
from pathlib import Path
from icl.config.logger import LoggerSettings
from icl.sinks.wandb_sink import open_sink

outputs, mode = Path(sys.argv[1]), sys.argv[2]

def opened(run_id, **config):
    settings = LoggerSettings(mode=mode, init_timeout=1)
    return open_sink(settings, outputs=outputs, group="group1", job_type="train", run_id=run_id, name="a run",
                     config=config, say=lambda line: print("said:", line, file=sys.stderr), tags=("ahn",))
"""

OFFLINE = """
import joblib
from icl.sinks.heatmaps import heatmap_png
import numpy as np

png = heatmap_png({"$A_0$": np.eye(3)}, "step 2")
key = os.environ["WANDB_API_KEY"]
weights = outputs / "runs" / "weights[1].npz"
weights.parent.mkdir()
weights.write_bytes(b"weights")
with opened("full-1", optimizer={"lr": 0.02}, mail={"password": "hunter2"}, note=f"key {key}") as sink:
    print("spoken 313373133731")
    sink.log(0, {"loss": 3.5, "dist": None, "norm": float("nan"), "mean/risk": 0.125})
    sink.log(0, {"mean_band/risk/low": 0.0})
    sink.log(2, {"loss": np.float32(0.5), "dist": 0.25, "mean/risk": 0.5, "mean_band/risk/low": 0.25})
    sink.images(2, "weights/A", [("step 1", png), ("step 2", png)])
    sink.images(2, "drawing", [("whitened", png)])
    (logger,) = sink.loggers()
    logger.log_metrics({"own": 3.0}, step=1)  # by Lightning, whose count is behind
    logger.log_metrics({"late": 4.0}, step=3)
    sink.config({"commit": "abc", "threads": 1, "api_key": key})
    sink.table("verdicts", ["claim", "measured"], [["falls", 0.04], ["undefined", None], ["word", "x"]])
    sink.model(weights, "ahn-theorem3", "0123456789ab")
    sink.summary({"loss_end": 0.5, "api_key": key})
with suppress(ZeroDivisionError), opened("raises-1") as sink:
    sink.log(0, {"loss": 1.0})
    1 / 0
with opened("next-1") as sink:
    sink.log(0, {"loss": 7.0})
with suppress(KeyboardInterrupt), opened("stopped-1") as sink:
    raise KeyboardInterrupt
with opened("outer-1") as outer, opened("inner-1") as inner:
    outer.log(0, {"loss": 1.5})
    inner.log(0, {"loss": 2.5})
    outer.log(1, {"loss": 1.25})

def job(number):
    with opened(f"job-{number}") as sink:
        sink.log(0, {"loss": float(number)})
        if number == 1:
            raise ValueError("this job fails")

def guarded(number):
    with suppress(ValueError):
        job(number)

joblib.Parallel(n_jobs=2)(joblib.delayed(guarded)(number) for number in (1, 2))
assert not [name for name in os.environ if name in ("WANDB_MODE", "WANDB_CACHE_DIR", "WANDB_DATA_DIR")]
"""


def run_script(
    folder: Path, body: str, mode: str, **environment: str
) -> tuple[Path, subprocess.CompletedProcess[str]]:
    (folder / "home").mkdir(parents=True)
    (folder / "script.py").write_text(PREAMBLE + body)
    clean = {
        key: value for key, value in os.environ.items() if not key.startswith(("WANDB_", "XDG_", "NETRC"))
    }
    clean |= {"HOME": str(folder / "home"), "PYTHONPATH": str(REPOSITORY)} | environment
    outputs = folder / "outputs"
    outputs.mkdir()
    command = [sys.executable, str(folder / "script.py"), str(outputs), mode, ARGUMENT]
    quiet = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL}
    done = subprocess.run(command, env=clean, cwd=folder, timeout=120, check=False, **quiet)
    assert done.returncode == 0, done.stderr
    return outputs, done


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    return run_script(tmp_path_factory.mktemp("offline"), OFFLINE, "offline", WANDB_API_KEY=SECRET)


def log_of(outputs: Path, run_id: str) -> Path:
    (found,) = (outputs / "wandb").glob(f"*run-*-{run_id}/run-{run_id}.wandb")
    return found


@functools.cache
def inspect(log: Path, *flags: str) -> list[dict]:
    command = [str(WANDB), "leet", "inspect", *flags, "--json", str(log)]
    text = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    return [json.loads(text)] if flags else [json.loads(line) for line in text.splitlines()]


def records(log: Path, kind: str) -> list[dict]:
    return [record[kind] for record in inspect(log) if record["type"] == kind]


def curve(log: Path, name: str) -> list[tuple[int, float]]:
    return [
        (item["step"]["num"], item["item"][name]) for item in records(log, "history") if name in item["item"]
    ]


def test_scalars_at_their_steps_and_gaps_left_out(offline):
    log = log_of(offline[0], "full-1")
    assert curve(log, "loss") == [(0, 3.5), (2, 0.5)]
    assert curve(log, "dist") == [(2, 0.25)]
    assert curve(log, "norm") == []


def test_identity(offline):
    (run,) = records(log_of(offline[0], "full-1"), "run")
    expected = {
        "run_id": "full-1",
        "run_group": "group1",
        "job_type": "train",
        "project": "icl",
    }
    assert {key: run.get(key) for key in expected} == expected
    assert run["display_name"] == "a run"
    assert run["tags"] == ["ahn"]
    assert run["config"]["update"]["optimizer"] == {"lr": 0.02}


def test_step_is_the_axis_and_means_have_minima(offline):
    log = log_of(offline[0], "full-1")
    assert [item["item"]["step"] for item in records(log, "history")] == [0, 2, 3]
    assert curve(log, "own") == [(2, 3.0)] and curve(log, "late") == [(3, 4.0)]
    axes = {m.get("name") or m["glob_name"]: m.get("step_metric") for m in records(log, "metric")}
    assert {axes[name] for name in ("loss", "dist", "mean/*", "mean_band/*", "seed/*", "drawing")} == {"step"}
    (summary,) = inspect(log, "--summary")
    assert summary["summary"]["mean/risk"] == {"min": 0.125}
    assert "mean_band/risk/low" not in summary["summary"]


def test_images_table_model_and_summary(offline):
    log = log_of(offline[0], "full-1")
    (summary,) = inspect(log, "--summary")
    gallery = summary["summary"]["weights/A"]
    assert gallery["captions"] == ["step 1", "step 2"]
    assert all((log.parent / "files" / name).is_file() for name in gallery["filenames"])
    image = summary["summary"]["drawing"]
    with Image.open(log.parent / "files" / image["path"]) as picture:
        assert picture.format == "PNG"
        assert picture.size == (image["width"], image["height"])
        assert np.asarray(picture.convert("RGB")).std() > 0
    assert image["caption"] == "whitened"
    table = json.loads((log.parent / "files" / summary["summary"]["verdicts"]["path"]).read_text())
    assert table == {
        "columns": ["claim", "measured"],
        "data": [["falls", 0.04], ["undefined", None], ["word", "x"]],
    }
    (model,) = (record for record in records(log, "artifact") if record["type"] == "model")
    assert (model["name"], model["aliases"]) == ("ahn-theorem3", ["0123456789ab", "latest"])
    (kept,) = model["manifest"]["contents"]
    assert kept["path"] == "weights[1].npz" and Path(kept["local_path"]).read_bytes() == b"weights"
    assert Path(kept["local_path"]).is_relative_to(offline[0] / "wandb"), "would go with the record"
    assert summary["summary"]["loss_end"] == 0.5
    assert (summary["state"], summary["exit_code"]) == ("finished", 0)


def test_no_secret_and_no_argument_is_stored(offline):
    outputs, _ = offline
    (run,) = records(log_of(outputs, "full-1"), "run")
    assert run["config"]["update"]["mail"] == {"password": "<redacted>"}
    assert run["config"]["update"]["note"] == "key <redacted>"
    files = [path for path in (outputs / "wandb").rglob("*") if path.is_file()]
    assert len(files) > 20
    assert not {path.name for path in files} & {"wandb-metadata.json", "requirements.txt", "output.log"}
    for path in files:
        content = path.read_bytes()
        for hidden in (SECRET, "hunter2", "313373133731", "script.py"):
            assert hidden.encode() not in content, (hidden, path)


@pytest.mark.parametrize(
    ("run_id", "exit_code", "losses"),
    [
        ("raises-1", 1, [1.0]),
        ("next-1", 0, [7.0]),
        ("stopped-1", 1, []),
        ("outer-1", 0, [1.5, 1.25]),
        ("inner-1", 0, [2.5]),
        ("job-1", 1, [1.0]),
        ("job-2", 0, [2.0]),
    ],
)
def test_every_run_is_its_own_and_closed(offline, run_id, exit_code, losses):
    log = log_of(offline[0], run_id)
    assert records(log, "exit")[-1].get("exit_code", 0) == exit_code
    assert [loss for _, loss in curve(log, "loss")] == losses
    assert len(records(log, "run")) == 1


def test_writes_only_under_outputs_and_says_nothing(offline):
    outputs, done = offline
    assert (done.stdout, done.stderr) == ("spoken 313373133731\n", "")
    assert {path.name for path in outputs.iterdir()} == {"wandb", "runs"}
    written = {path.name for path in outputs.parent.iterdir()}
    assert written == {"home", "outputs", "script.py"}
    assert not [path for path in (outputs.parent / "home").rglob("*") if "wandb" in path.name]


ONE_AFTER_ANOTHER = """
for number in (1, 2):
    with opened(f"run-{number}") as sink:
        sink.log(0, {"loss": float(number)})
"""


def check_fallback(outputs: Path, done: subprocess.CompletedProcess[str]) -> str:
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("said: ")  # and not printed past whoever listens
    first, second = log_of(outputs, "run-1"), log_of(outputs, "run-2")
    assert f"{first.parent} " in line
    assert "wandb sync" in line
    assert SECRET not in line
    assert curve(first, "loss") == [(0, 1.0)]
    assert curve(second, "loss") == [(0, 2.0)]
    assert not list((outputs / "wandb").glob("run-*"))
    return line


def test_online_without_a_key_goes_offline(tmp_path):
    line = check_fallback(*run_script(tmp_path, ONE_AFTER_ANOTHER, "online"))
    assert "no W&B key" in line


def test_online_without_a_server_goes_offline(tmp_path):
    nowhere = {"WANDB_BASE_URL": "http://127.0.0.1:9", "WANDB_API_KEY": SECRET}
    line = check_fallback(*run_script(tmp_path, ONE_AFTER_ANOTHER, "online", **nowhere))
    assert "http://127.0.0.1:9" in line


def test_none_takes_everything_without_wandb(tmp_path):
    body = """
with opened("null-1") as sink:
    sink.log(0, {"loss": 1.0})
    sink.images(0, "w", [("", b"not even a picture")])
    sink.table("t", ["a"], [[1]])
    sink.model(Path("nowhere"), "m", "1")
    sink.config({"a": 1})
    sink.summary({"a": 1})
assert "wandb" not in sys.modules
"""
    outputs, done = run_script(tmp_path, body, "none")
    assert (done.stdout, done.stderr) == ("", "")
    assert list(outputs.iterdir()) == []


@pytest.fixture
def no_wandb_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WANDB_MODE", "WANDB_PROJECT", "WANDB_ENTITY", "WANDB_SWEEP_ID"):
        monkeypatch.delenv(name, raising=False)


def settings(*overrides: str) -> LoggerSettings:
    return LoggerSettings(**compose(Configs(), "train", overrides).settings["logger"])


def test_wandbs_own_variables_are_respected_and_overridden(
    no_wandb_variables: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = settings()
    assert (found.mode, found.project, found.entity) == ("offline", "icl", None)
    for name, value in (("WANDB_MODE", "online"), ("WANDB_PROJECT", "theirs"), ("WANDB_ENTITY", "lab")):
        monkeypatch.setenv(name, value)
    found = settings()
    assert (found.mode, found.project, found.entity) == ("online", "theirs", "lab")
    found = settings("logger=wandb_offline", "logger.project=mine", "logger.entity=me")
    assert (found.mode, found.project, found.entity) == ("offline", "mine", "me")
    for said, meant in (("disabled", "none"), ("dryrun", "offline"), ("run", "online")):
        monkeypatch.setenv("WANDB_MODE", said)
        assert settings().mode == meant
    assert settings("logger=none").mode == "none"


def test_under_an_agent_online(no_wandb_variables: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_SWEEP_ID", "sweep1")
    assert settings().mode == "online"
    assert settings("logger=none").mode == "none"
    with pytest.raises(InputError, match="whose sweep loses the run"):
        settings("logger=wandb_offline")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("mode", "ofline"),
        ("init_timeout", 0),
        ("init_timeout", math.inf),
        ("project", "a/b"),
        ("project", ""),
    ],
)
def test_settings_are_validated(key, value):
    with pytest.raises(InputError, match=f"logger.{key}={value}"):
        LoggerSettings(**{key: value})


def test_a_step_that_wandb_would_drop_is_refused(tmp_path):
    class Run:
        def log(self, values: dict, step: int) -> None:
            pass

        def define_metric(self, name: str, **options: object) -> None:
            pass

    sink = WandbSink(Run(), tmp_path)
    sink.log(5, {"loss": 1.0})
    sink.log(5, {"dist": 1.0})
    with pytest.raises(AssertionError, match="step 4 after step 5"):
        sink.log(4, {"loss": 1.0})
