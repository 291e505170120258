"""Tests of what an offline run holds, its summary as W&B reads it; each script has a home of its own."""

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from icl.config.compose import compose
from icl.config.logger import PRIVATE, LoggerSettings
from icl.config.search_path import ConfigDirs
from icl.errors import InputError
from icl.loggers.wandb_run import WandbRun
from tests.loggers.wandb_file import records

REPOSITORY = Path(__file__).parents[2]
WANDB = Path(sys.executable).with_name("wandb")
SECRET = "5ecret" * 8
ARGUMENT = "seeds=[313373133731]"

PREAMBLE = """
import os, sys
from contextlib import suppress
from pathlib import Path
from icl.config.logger import LoggerSettings
from icl.loggers.wandb_run import open_wandb

outputs, mode = Path(sys.argv[1]), sys.argv[2]

own = {}

def opened(run_id, **config):
    settings = LoggerSettings(mode=mode, init_timeout=1, **own)
    return open_wandb(settings, outputs=outputs, group="group1", job_type="train", run_id=run_id,
                      name="a run", config=config, tags=("ahn",),
                      notify=lambda line: print("said:", line, file=sys.stderr))
"""

OFFLINE = """
import io
import numpy as np
from PIL import Image

Image.linear_gradient("L").save(picture := io.BytesIO(), "PNG")
png = picture.getvalue()
key = os.environ["WANDB_API_KEY"]
weights = outputs / "runs" / "weights[1].npz"
weights.parent.mkdir()
weights.write_bytes(b"weights")
with opened("full-1", optimizer={"lr": 0.02}, mail={"password": "hunter2"}, note=f"key {key}") as sink:
    print("spoken 313373133731")
    sink.log_metrics({"loss": 3.5, "dist": None, "norm": float("nan"), "mean/risk": 0.125}, 0)
    sink.log_metrics({"mean_band/risk/low": 0.0}, 0)
    sink.log_metrics({"loss": np.float32(0.5), "dist": 0.25, "mean/risk": 0.5, "mean_band/risk/low": 0.25}, 2)
    sink.images(2, "weights/A", [("step 1", png), ("step 2", png)])
    sink.images(2, "drawing", [("whitened", png)])
    sink.log_hyperparams({"commit": "abc", "threads": 1, "api_key": key})
    sink.table("verdicts", ["claim", "measured"], [["falls", 0.04], ["undefined", None], ["word", "x"]])
    sink.model(weights, "ahn-theorem3", "0123456789ab")
    sink.uses(weights, "other-run", "0123456789ab")
    sink.summary({"loss_end": 0.5, "api_key": key})
with suppress(ZeroDivisionError), opened("raises-1") as sink:
    sink.log_metrics({"loss": 1.0}, 0)
    1 / 0
with opened("next-1") as sink:
    sink.log_metrics({"loss": 7.0}, 0)
with suppress(KeyboardInterrupt), opened("stopped-1") as sink:
    raise KeyboardInterrupt
with opened("outer-1") as outer, opened("inner-1") as inner:
    outer.log_metrics({"loss": 1.5}, 0)
    inner.log_metrics({"loss": 2.5}, 0)
    outer.log_metrics({"loss": 1.25}, 1)
own |= {"name": "mine", "group": "study", "job_type": "probe", "notes": f"with {key}", "tags": "try, ahn,2"}
on = {"console": "wrap", "disable_git": False, "x_disable_stats": False, "x_disable_machine_info": False}
repository = Path.home() / "repository"
git = f"git -C {repository} -c user.name=me -c user.email=me@there"
assert os.system(f"git init -q {repository} && {git} commit -q --allow-empty -m first") == 0
own["settings"] = {"x_disable_meta": False, "git_root": str(repository), **on}
with opened("own-1") as sink:
    print("spoken again")
    for name, value in own["settings"].items():
        assert getattr(sink.run.settings, name) == value, name

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
    done = subprocess.run(command, env=clean, cwd=folder, check=False, **quiet)
    assert done.returncode == 0, done.stderr
    return outputs, done


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    return run_script(tmp_path_factory.mktemp("offline"), OFFLINE, "offline", WANDB_API_KEY=SECRET)


def log_of(outputs: Path, run_id: str) -> Path:
    (found,) = (outputs / "wandb").glob(f"*run-*-{run_id}/run-{run_id}.wandb")
    return found


def summary_of(log: Path) -> dict:
    """Return the summary by W&B's own reader."""
    command = [str(WANDB), "leet", "inspect", "--summary", "--json", str(log)]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def told(log: Path, kind: str) -> list[Any]:
    return [getattr(record, kind) for record in records(log) if record.HasField(kind)]


def values(items: Iterable[Any]) -> dict[str, Any]:
    return {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}


def curve(log: Path, name: str) -> list[tuple[int, float]]:
    rows = [(row.step.num, values(row.item)) for row in told(log, "history")]
    return [(step, row[name]) for step, row in rows if name in row]


def test_scalars_at_their_steps_and_gaps_left_out(offline):
    log = log_of(offline[0], "full-1")
    assert curve(log, "loss") == [(0, 3.5), (2, 0.5)]
    assert curve(log, "dist") == [(2, 0.25)]
    assert curve(log, "norm") == []


def test_identity(offline):
    (run,) = told(log_of(offline[0], "full-1"), "run")
    said = (run.run_id, run.run_group, run.job_type, run.project, run.display_name, list(run.tags))
    assert said == ("full-1", "group1", "train", "icl", "a run", ["ahn"])
    config = values(run.config.update)
    assert config["optimizer"] == {"lr": 0.02}
    assert config["mail"] == {"password": "<redacted>"} and config["note"] == "key <redacted>"


def test_step_is_the_axis_and_means_have_minima(offline):
    log = log_of(offline[0], "full-1")
    assert [values(row.item)["step"] for row in told(log, "history")] == [0, 2]
    axes = {metric.name or metric.glob_name: metric.step_metric for metric in told(log, "metric")}
    assert {axes[name] for name in ("loss", "dist", "mean/*", "mean_band/*", "seed/*", "drawing")} == {"step"}


def test_images_table_model_and_summary(offline):
    log = log_of(offline[0], "full-1")
    summary = summary_of(log)
    assert summary["summary"]["mean/risk"] == {"min": 0.125, "last": 0.5}
    assert "mean_band/risk/low" not in summary["summary"]
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
    model, used = (artifact for artifact in told(log, "artifact") if artifact.type == "model")
    assert (model.user_created, model.use_after_commit) == (False, False), "would be nobody's output"
    assert (used.name, used.user_created, used.use_after_commit) == ("other-run", True, True)
    assert used.manifest.contents[0].digest == model.manifest.contents[0].digest
    assert (model.name, list(model.aliases)) == ("ahn-theorem3", ["0123456789ab", "latest"])
    (kept,) = model.manifest.contents
    assert kept.path == "weights[1].npz" and Path(kept.local_path).read_bytes() == b"weights"
    assert Path(kept.local_path).is_relative_to(offline[0] / "wandb"), "would go with the record"
    assert summary["summary"]["loss_end"] == 0.5
    assert (summary["state"], summary["exit_code"]) == ("finished", 0)


def test_no_secret_and_no_argument_is_stored(offline):
    outputs, _ = offline
    files = [path for path in (outputs / "wandb").rglob("*") if path.is_file()]
    assert len(files) > 20
    for path in files:
        content = path.read_bytes()
        hidden = (
            (SECRET, "hunter2") if "own-1" in str(path) else (SECRET, "hunter2", "313373133731", "script.py")
        )
        for text in hidden:
            assert text.encode() not in content, (text, path)


def test_what_wandb_collects_by_itself_is_off(offline):
    for log in (offline[0] / "wandb").glob("*/run-*.wandb"):
        if "own-1" in log.name:
            continue
        files = {path.name for path in log.parent.rglob("*")}
        assert not files & {"wandb-metadata.json", "requirements.txt", "output.log"}
        for kind in ("environment", "stats", "output_raw"):
            assert told(log, kind) == [], (kind, log)
        assert not any(run.HasField("git") for run in told(log, "run"))


def test_settings_turn_it_on_again(offline):
    """Set what W&B reads at times of its own, in a short run perhaps never (metrics and metadata of the
    machine): the script tests that they are set."""
    log = log_of(offline[0], "own-1")
    assert "spoken again" in "".join(line.line for line in told(log, "output_raw"))
    (run,) = told(log, "run")
    assert len(run.git.commit) == 40


def test_names_of_the_users_own(offline):
    (run,) = told(log_of(offline[0], "own-1"), "run")
    said = (run.display_name, run.run_group, run.job_type, run.notes, list(run.tags))
    assert said == ("mine", "study", "probe", "with <redacted>", ["ahn", "try", "2"])


@pytest.mark.parametrize(
    ("run_id", "exit_code", "losses"),
    [
        ("raises-1", 1, [1.0]),
        ("next-1", 0, [7.0]),
        ("stopped-1", 1, []),
        ("outer-1", 0, [1.5, 1.25]),
        ("inner-1", 0, [2.5]),
    ],
)
def test_every_run_is_its_own_and_closed(offline, run_id, exit_code, losses):
    log = log_of(offline[0], run_id)
    assert told(log, "exit")[-1].exit_code == exit_code
    assert [loss for _, loss in curve(log, "loss")] == losses
    assert len(told(log, "run")) == 1


def test_writes_only_under_outputs_and_says_nothing(offline):
    outputs, done = offline
    assert (done.stdout, done.stderr) == ("spoken 313373133731\nspoken again\n", "")
    assert {path.name for path in outputs.iterdir()} == {"wandb", "runs"}
    written = {path.name for path in outputs.parent.iterdir()}
    assert written == {"home", "outputs", "script.py"}
    assert not [path for path in (outputs.parent / "home").rglob("*") if "wandb" in path.name]


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({}, "no W&B key"),
        ({"WANDB_BASE_URL": "http://127.0.0.1:9", "WANDB_API_KEY": SECRET}, "http://127.0.0.1:9"),
    ],
    ids=["without a key", "without a server"],
)
def test_online_goes_offline(tmp_path, environment, why):
    body = """
for number in (1, 2):
    with opened(f"run-{number}") as sink:
        sink.log_metrics({"loss": float(number)}, 0)
"""
    outputs, done = run_script(tmp_path, body, "online", **environment)
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("said: ") and why in line  # and not printed past whoever listens
    first, second = log_of(outputs, "run-1"), log_of(outputs, "run-2")
    assert f"{first.parent} " in line and "wandb sync" in line and SECRET not in line
    assert curve(first, "loss") == [(0, 1.0)] and curve(second, "loss") == [(0, 2.0)]
    assert not list((outputs / "wandb").glob("run-*"))


def test_none_opens_nothing(tmp_path):
    body = """
with opened("null-1") as sink:
    assert sink is None
assert "wandb" not in sys.modules
"""
    outputs, done = run_script(tmp_path, body, "none")
    assert (done.stdout, done.stderr) == ("", "")
    assert list(outputs.iterdir()) == []


@pytest.fixture
def no_wandb_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)


def settings(*overrides: str) -> LoggerSettings:
    return LoggerSettings(**compose(ConfigDirs(), "train", overrides).settings["logger"])


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


def test_names_and_tags_are_wandbs_variables_or_given(
    no_wandb_variables: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told() -> tuple[object, ...]:
        return found.name, found.group, found.job_type, found.notes, found.tags

    found = settings()
    assert told() == (None, None, None, None, ())
    for name in ("NAME", "RUN_GROUP", "JOB_TYPE", "NOTES", "TAGS"):
        monkeypatch.setenv(f"WANDB_{name}", "")
    found = settings()
    assert told() == (None, None, None, None, ())
    for name in ("NAME", "RUN_GROUP", "JOB_TYPE", "NOTES"):
        monkeypatch.setenv(f"WANDB_{name}", f"my {name}: [1, 2")
    monkeypatch.setenv("WANDB_TAGS", "a,b c,a,,3")
    found = settings()
    names = [f"my {name}: [1, 2" for name in ("NAME", "RUN_GROUP", "JOB_TYPE", "NOTES")]
    assert told() == (*names, ("a", "b c", "3"))
    given = [f"logger.{name}={name[0]}" for name in ("name", "group", "job_type", "notes")]
    found = settings("logger=wandb_offline", *given, "logger.tags=[x,y]")
    assert told() == ("n", "g", "j", "n", ("x", "y"))


def test_what_is_off_is_so_in_the_config(no_wandb_variables: None) -> None:
    shown = compose(ConfigDirs(), "train", []).settings["logger"]["settings"]
    assert shown == PRIVATE and settings().settings == PRIVATE
    found = settings("logger.settings.x_disable_stats=false", "logger.settings.console=wrap")
    assert found.settings == PRIVATE | {"x_disable_stats": False, "console": "wrap"}
    found = settings("+logger.settings.x_stats_sampling_interval=2")
    assert found.settings == PRIVATE | {"x_stats_sampling_interval": 2}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"x_disable_stat": False}, "x_disable_stat: no such setting; did you mean x_disable_stats"),
        ({"console": "loud"}, "console=loud: Input should be"),
        ({"run_name": "x"}, "run_name: logger.name sets it"),
        ({"run_id": "x"}, "run_id: icl sets it"),
        ({"api_key": SECRET}, "api_key: WANDB_API_KEY sets it"),
        ({"x_stats_sampling_interval": "soon"}, "x_stats_sampling_interval=soon: Input should be"),
    ],
)  # fmt: skip
def test_wandbs_settings_are_validated(given: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"logger.settings.{why}")) as refused:
        LoggerSettings(mode="offline", settings=given)
    assert SECRET not in str(refused.value)


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
        ("name", 3),
        ("tags", 3),
        ("tags", [1]),
        ("settings", 3),
    ],
)
def test_settings_are_validated(key, value):
    with pytest.raises(InputError, match=re.escape(f"logger.{key}={value}")):
        LoggerSettings(**{key: value})


def test_a_step_that_wandb_would_drop_is_refused(tmp_path):
    logged = []

    class Run:
        settings = SimpleNamespace(sync_dir="")

        def log(self, values: dict, step: int) -> None:
            logged.append((step, values))

        def define_metric(self, name: str, **options: object) -> None:
            pass

    sink = WandbRun(Run(), tmp_path)
    sink.log_metrics({"loss": 1.0}, 5)
    sink.log_metrics({"dist": 1.0}, 5)
    with pytest.raises(AssertionError, match="step 4 after step 5"):
        sink.log_metrics({"loss": 1.0}, 4)
    logger = sink.lightning_logger()
    logger.log_metrics({"own": 3.0}, step=4)  # by Lightning, whose count is behind
    logger.log_metrics({"late": 4.0}, step=6)
    assert logged[2:] == [(5, {"step": 5, "own": 3.0}), (6, {"step": 6, "late": 4.0})]
