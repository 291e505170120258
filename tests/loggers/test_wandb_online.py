"""Tests online, with a server on the loopback: what arrives there, and what becomes of a run whose server
dies, refuses, or was asked for by an agent of a sweep. Skipped where the client's protocol has moved on.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tests.commands import TINY
from tests.loggers.loopback import Loopback
from tests.loggers.wandb_file import records
from tests.processes import Command

REPOSITORY = Path(__file__).parents[2]
WANDB = Path(sys.executable).with_name("wandb")

PREAMBLE = """
import os, sys
from contextlib import suppress
from pathlib import Path
import icl.loggers.wandb_run as module
from icl.config.logger import LoggerSettings
from icl.loggers.safe import SafeLogger

module.FINISH_TIMEOUT = module.AGENTS_FINISH_TIMEOUT = float(os.environ.get("FINISH_WITHIN", 3600))
init_timeout = float(os.environ.get("BEGIN_WITHIN", 3600))
outputs = Path(sys.argv[1])

def opened(run_id, **config):
    settings = LoggerSettings(mode=sys.argv[2], init_timeout=init_timeout)
    return module.open_wandb(settings, outputs=outputs, group="group1", job_type="train", run_id=run_id,
                            name="a run", config=config,
                            notify=lambda line: print(line, flush=True), tags=("ahn",))
"""
RUN = """
import io
from PIL import Image

Image.linear_gradient("L").save(picture := io.BytesIO(), "PNG")
weights = outputs / "weights.npz"
weights.write_bytes(b"weights")
with opened("run-1", lr=0.02) as sink:
    for step in range(3):
        sink.log_metrics({"mean/loss": 1 / (step + 1)}, step)
    sink.images(2, "weights/A", [("step 2", picture.getvalue())])
    sink.table("verdicts", ["claim", "verdict"], [["falls", "holds"]])
    sink.log_hyperparams({"commit": "abc"})
    sink.model(weights, "ahn-theorem3", "0123456789ab")
    sink.summary({"loss": 0.5})
with suppress(ZeroDivisionError), opened("run-2"):
    1 / 0
with opened("figure-1") as sink:
    sink.uses(weights, "ahn-theorem3", "0123456789ab")
with opened("run-1") as sink:  # continued, or told again: from its start
    for step in range(4):
        sink.log_metrics({"mean/loss": 1 / (step + 1)}, step)
"""


AGENT = """
with SafeLogger(opened("ours"), "x", print, strict=True) as sink:
    sink.log_metrics({"loss": 1.0}, 0)
"""
OF_AN_AGENT = {"WANDB_SWEEP_ID": "sweep1", "WANDB_RUN_ID": "theirs"}
OF_AN_AGENT |= {"WANDB_PROJECT": "lab", "WANDB_ENTITY": "me"}
IN_VAIN = {"FINISH_WITHIN": "2"}  # of a server that does not answer; others are waited for however long


def apart(folder: Path) -> dict[str, str]:
    """Return an environment with a home of its own, for which W&B has kept nothing."""
    (folder / "home").mkdir(parents=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WANDB_", "XDG_"))}
    return kept | {"HOME": str(folder / "home"), "PYTHONPATH": str(REPOSITORY)}


@contextmanager
def script(
    folder: Path, body: str, mode: str = "online", **environment: str
) -> Iterator[subprocess.Popen[str]]:
    """Start a process that has W&B to itself, with a home and an outputs folder of its own."""
    outputs, kept = folder / "outputs", apart(folder) | environment
    outputs.mkdir()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-c", PREAMBLE + body, str(outputs), mode]
    with subprocess.Popen(command, env=kept, cwd=folder, text=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.kill()


def said_by(process: subprocess.Popen[str], told: str | None = None, code: int = 0) -> str:
    """Return the process's stdout, and with a `code` other than 0 its stderr; the other is empty."""
    said, errors = process.communicate(told)
    assert (process.returncode, said if code else errors) == (code, ""), (said, errors)
    return errors if code else said


def uploaded_by(line: str, folder: Path) -> Loopback:
    """Return what a server has got once the command that `line` names has been run."""
    command = line.partition("upload with: ")[2].partition(" (")[0]
    program, *arguments = shlex.split(command)
    assert program == "wandb"
    with Loopback() as server:
        environment = os.environ | server.environment | {"HOME": str(folder / "home")}
        subprocess.run([WANDB, *arguments], env=environment, cwd=folder, check=True)
        return server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    """Return a server to which two runs were logged."""
    with (
        Loopback() as server,
        script(tmp_path_factory.mktemp("online"), RUN, **server.environment) as process,
    ):
        said, errors = process.communicate()
        if server.unknown:
            pytest.skip(f"the client asks what the server on the loopback does not know: {server.unknown[0]}")
        assert (process.returncode, said) == (0, ""), errors
        yield server


def test_history_config_and_summary_arrive(server: Loopback) -> None:
    """Send each row once, however often it is logged."""
    run = server.runs["run-1"]
    assert [(row["_step"], row["step"], row["mean/loss"]) for row in run.rows] == [
        (step, step, 1 / (step + 1)) for step in range(4)
    ]
    assert run.config == {"lr": 0.02, "commit": "abc"}
    assert run.summary["loss"] == 0.5 and run.summary["mean/loss"] == {"min": 0.25, "last": 0.25}
    expected = {"project": "icl", "groupName": "group1", "jobType": "train", "tags": ["ahn"]}
    assert {name: run.identity[name] for name in expected} == expected
    assert run.identity["program"] == "icl"  # and not a path


def test_pictures_and_tables_arrive(server: Loopback) -> None:
    run = server.runs["run-1"]
    assert run.files[run.summary["weights/A"]["path"]].startswith(b"\x89PNG")
    assert b'["falls","holds"]' in run.files[run.summary["verdicts"]["path"]].replace(b" ", b"")


def test_weights_arrive_as_a_model(server: Loopback) -> None:
    (model,) = (artifact for artifact in server.artifacts if artifact.type == "model")
    assert (model.name, set(model.aliases)) == ("ahn-theorem3", {"0123456789ab", "latest"})
    assert model.committed and model.files["weights.npz"] == b"weights"


def test_a_figures_run_uses_the_model_of_the_run_that_made_it(server: Loopback) -> None:
    """Use the lineage as W&B draws it."""
    (model,) = (artifact for artifact in server.artifacts if artifact.type == "model")
    assert (model.made_by, model.used_by) == ("run-1", ["figure-1"])


def test_exit_states_arrive(server: Loopback) -> None:
    assert [server.runs[name].exit_code for name in ("run-1", "run-2")] == [0, 1]


@pytest.mark.slow
def test_a_server_that_dies_midway(tmp_path: Path) -> None:
    """Let the server die: the run continues, its copy on disk is whole, one line says so, and the printed
    command uploads it."""
    body = """
with opened("run-1") as sink:
    sink.log_metrics({"loss": 1.0}, 0)
    input()
    sink.log_metrics({"loss": 0.5}, 1)
    sink.table("verdicts", ["claim"], [["falls"]])
    weights = outputs / "weights.npz"
    weights.write_bytes(b"weights")
    sink.model(weights, "ahn-theorem3", "0123456789ab")
    sink.summary({"loss": 0.5})
with opened("run-2") as sink:
    sink.log_metrics({"loss": 7.0}, 0)
"""
    with Loopback() as server, script(tmp_path, body, **server.environment, **IN_VAIN) as process:
        server.wait_for(lambda: "run-1" in server.runs, process)
        server.die()
        (line,) = said_by(process, "\n").splitlines()
    (log,) = (tmp_path / "outputs" / "wandb").glob("run-*-run-1/run-run-1.wandb")
    steps = [record.history.step.num for record in records(log) if record.HasField("history")]
    assert steps == [0, 1]
    uploaded = uploaded_by(line, tmp_path)
    run = uploaded.runs["run-1"]
    assert [row["loss"] for row in run.rows] == [1.0, 0.5]
    assert (run.summary["loss"], run.exit_code) == (0.5, 0)
    assert b"falls" in run.files[run.summary["verdicts"]["path"]]
    (model,) = (artifact for artifact in uploaded.artifacts if artifact.type == "model")
    assert model.committed and model.files["weights.npz"] == b"weights"
    # The next run has not waited for the server again.
    assert list((tmp_path / "outputs" / "wandb").glob("offline-run-*-run-2"))


@pytest.mark.slow
def test_under_an_agent_a_server_that_dies_is_an_error(tmp_path: Path) -> None:
    body = AGENT.replace("sink.log", "input(); sink.log")
    told = OF_AN_AGENT | IN_VAIN
    with Loopback() as server, script(tmp_path, body, "auto", **server.environment, **told) as process:
        server.wait_for(lambda: "theirs" in server.runs, process)
        server.die()
        assert "W&B did not take all data within 2 s" in said_by(process, "\n", code=1)


def test_a_server_that_refuses_runs(tmp_path: Path) -> None:
    body = """
for name in ("run-1", "run-2"):
    with opened(name) as sink:
        sink.log_metrics({"loss": 1.0}, 0)
"""
    with Loopback("UpsertBucket") as server, script(tmp_path, body, **server.environment) as process:
        (line,) = said_by(process).splitlines()
    assert "permission denied" in line
    assert [row["loss"] for row in uploaded_by(line, tmp_path).runs["run-1"].rows] == [1.0]


@pytest.mark.slow
def test_a_server_that_takes_no_files_is_waited_for_once(tmp_path: Path) -> None:
    """Wait once, also in processes that the first one starts."""
    body = """
import subprocess
with opened(f"run-{len(sys.argv)}") as sink:
    sink.log_metrics({"loss": 1.0}, 0)
    sink.table("verdicts", ["claim"], [["falls"]])
if len(sys.argv) == 3:
    sys.exit(subprocess.run([*sys.orig_argv, "again"]).returncode)
"""
    with Loopback("storage") as server, script(tmp_path, body, **server.environment, **IN_VAIN) as process:
        (line,) = said_by(process).splitlines()
    assert "did not take all data within 2 s" in line
    uploaded = uploaded_by(line, tmp_path).runs["run-3"]
    assert b"falls" in uploaded.files[uploaded.summary["verdicts"]["path"]]
    assert list((tmp_path / "outputs" / "wandb").glob("offline-run-*-run-4"))


def test_two_copies_on_disk_are_uploaded_at_their_own_steps(tmp_path: Path) -> None:
    """Upload the copies of a run that was interrupted and continued."""
    body = """
for steps in (2, 4):
    with opened("run-1") as sink:
        for step in range(steps):
            sink.log_metrics({"loss": 1 / (step + 1)}, step)
    import time; time.sleep(1.1)  # a folder's name is a second
"""
    with script(tmp_path, body, "offline") as process:
        process.communicate()
    folders = sorted((tmp_path / "outputs" / "wandb").glob("offline-run-*"))
    assert len(folders) == 2
    sync = f"upload with: {shlex.join(['wandb', 'sync', *map(str, folders)])} ("
    rows = uploaded_by(sync, tmp_path).runs["run-1"].rows
    assert {(row["_step"], row["loss"]) for row in rows} == {(step, 1 / (step + 1)) for step in range(4)}


def test_lineage_of_runs_uploaded_later(tmp_path: Path) -> None:
    """Upload what an offline run used, which is on disk; a model that was never logged arrives with it."""
    body = """
weights = outputs / "weights.npz"
for name in ("told", "untold"):
    weights.write_bytes(name.encode())
    if name == "told":
        with opened("run-1") as sink:
            sink.model(weights, name, "0123456789ab")
    with opened(f"figure-{name}") as sink:
        sink.uses(weights, name, "0123456789ab")
weights.unlink()
"""
    with script(tmp_path, body, "offline") as process:
        assert said_by(process) == ""
    wandb = tmp_path / "outputs" / "wandb"
    (first,), others = wandb.glob("offline-run-*-run-1"), wandb.glob("offline-run-*-figure-*")
    for folder in (first, *others):
        server = uploaded_by(f"upload with: {shlex.join(['wandb', 'sync', str(folder)])} (", tmp_path)
        (artifact,) = server.artifacts
        assert artifact.committed and artifact.files["weights.npz"] == artifact.name.encode()
        assert artifact.used_by == [name for name in server.runs if name != "run-1"]


def test_under_an_agent_the_run_is_the_agents(tmp_path: Path) -> None:
    with (
        Loopback() as server,
        script(tmp_path, AGENT, "auto", **server.environment, **OF_AN_AGENT) as process,
    ):
        assert said_by(process) == ""
    (run,) = server.runs.values()
    assert (run.identity["name"], run.identity["sweep"]) == ("theirs", "sweep1")
    assert (run.identity["project"], run.identity["entity"]) == ("lab", "me")
    assert [row["loss"] for row in run.rows] == [1.0] and run.exit_code == 0


def test_under_an_agent_a_lost_connection_is_an_error(tmp_path: Path) -> None:
    nowhere = {"WANDB_BASE_URL": "http://127.0.0.1:9", "WANDB_API_KEY": "f" * 40, "BEGIN_WITHIN": "5"}
    with script(tmp_path, AGENT, "auto", **nowhere, **OF_AN_AGENT) as process:
        assert "CommError" in said_by(process, code=1)
    assert not list((tmp_path / "outputs" / "wandb").glob("offline-run-*"))


@pytest.mark.slow
def test_the_sweep_of_the_example(tmp_path: Path) -> None:
    """Train by the command that an agent makes of it, as the agent's run and with the metric of the sweep."""
    from wandb.sdk.launch.sweeps.utils import create_sweep_command_args

    sweep = yaml.safe_load((REPOSITORY / "examples" / "wandb_sweep.yaml").read_text())
    lr = sweep["parameters"]["optimizer.lr"]
    chosen = {"optimizer.lr": lr["min"], "train.clip": sweep["parameters"]["train.clip"]["values"][0]}
    assert set(chosen) == set(sweep["parameters"]) and lr["min"] < lr["max"]
    macros = create_sweep_command_args({"args": {name: {"value": v} for name, v in chosen.items()}})
    env, program, *arguments = sweep["command"]
    assert (env, program, arguments[-1]) == ("${env}", "icl", "${args_no_hyphens}")
    tiny = [arg for arg in TINY if not arg.startswith("experiment=")]
    tiny += ["callbacks.heatmaps.count=2", f"paths.outputs={tmp_path / 'outputs'}"]
    with Loopback() as server:
        environment = apart(tmp_path) | server.environment | OF_AN_AGENT
        command = Command([*arguments[:-1], *macros["args_no_hyphens"], *tiny], tmp_path, environment)
        assert command.end() == 0, command.err
    (run,) = server.runs.values()
    assert (run.identity["name"], run.exit_code) == ("theirs", 0)
    assert run.summary[sweep["metric"]["name"]] > 0
    assert (run.config["optimizer"]["lr"], run.config["train"]["clip"]) == (0.001, 0.003)
    assert {"commit", "dirty", "versions", "device", "threads"} <= set(run.config)
    rows = {name: row[name] for row in run.rows for name in row}
    assert {"mean/loss", "mean_band/loss/low", "mean_band/loss/high", "seed/0/loss", "step"} <= set(rows)
    gallery = rows["weights/A"]
    assert gallery["captions"] == [f"A, mean of 2 seeds, step {step}" for step in (1, 4)]
    assert set(gallery["filenames"]) <= set(run.files)
    (model,) = (artifact for artifact in server.artifacts if artifact.type == "model")
    assert model.name == "ahn-theorem3" and "weights.npz" in model.files
