"""Tests of jobs in one process, joblib's or submitit's, that are interrupted or whose time is over."""

import json
import os
import signal

import pytest

from tests.commands import tiny_argv
from tests.processes import ROOT, Command, jobs_are_forked

HELD = """
import os, time

class Held:
    # Slow until a file says go, so that no run can end before it is interrupted; a file says that it began.
    def rate(self, base, step):
        if step and not os.path.exists(os.environ["HELD_GO"]):
            open(os.environ["HELD_GO"] + f"-wanted-{os.getpid()}", "w").close()
            time.sleep(0.05)
        return base
"""


def held_in(folder, monkeypatch):
    """Return overrides of a run that is slow until `folder` has a file go, and a command's environment."""
    (folder / "held_lab.py").write_text(HELD)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("HELD_GO", str(folder / "go"))
    held = ["schedule=constant", "schedule._target_=held_lab.Held", "train.steps=200"]
    return held, {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)])}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("launcher", "signum", "code", "seeds", "begun"),
    [
        ("basic", signal.SIGINT, 130, "0,1", 1),
        ("joblib", signal.SIGTERM, 143, "0,1", 2),
    ],
)
def test_interrupted_and_continued(launcher, signum, code, seeds, begun, tiny, outputs, monkeypatch):
    held, environment = held_in(outputs.parent, monkeypatch)
    argv = tiny_argv(*held, "-m", f"seed={seeds}", "format=json")
    launched = [f"hydra/launcher={launcher}", "logger=none", f"paths.outputs={outputs}"]
    launched += ["hydra.launcher.n_jobs=2"] if launcher == "joblib" else []
    command = Command([*argv, *launched], outputs.parent, environment, jobs_are_forked)
    folder = outputs / "runs" / "ahn" / "theorem3"
    command.until(lambda: len(list(outputs.parent.glob("go-wanted-*"))) == begun)
    command.send(signum)
    ended = command.end()
    assert (ended, command.out) == (code, ""), command.err
    assert "interrupted; the same command continues" in command.err and "Traceback" not in command.err
    states = [json.loads(p.read_text())["status"] for p in folder.glob("*/run.json")]
    assert set(states) == {"interrupted"}
    (outputs.parent / "go").touch()
    again = tiny(*argv[1:])
    assert again.code == 0 and again.json["done"] == len(seeds.split(","))
    assert sum(found["document"]["resumed"] for found in again.json["results"]) == len(states)


@pytest.mark.slow
@pytest.mark.nightly
def test_a_job_whose_time_is_over_is_queued_again(outputs, monkeypatch):
    pytest.importorskip("submitit", reason="the slurm extra is not installed")
    held, environment = held_in(outputs.parent, monkeypatch)
    argv = tiny_argv(*held, "-m", "seed=0", "format=json", "hydra/launcher=submitit_local")
    command = Command([*argv, "logger=none", f"paths.outputs={outputs}"], outputs.parent, environment)
    begun = "go-wanted-*"
    command.until(lambda: len(list(outputs.parent.glob(begun))) == 1)
    (first,) = outputs.parent.glob(begun)
    job = int(first.name.rpartition("-")[2])
    os.kill(job, signal.SIGTERM)  # Slurm's before that signal: passed over
    os.kill(job, signal.SIGUSR2)
    command.until(lambda: len(list(outputs.parent.glob(begun))) == 2)  # another process goes on
    (outputs.parent / "go").touch()
    assert command.end() == 0, command.err
    (result,) = json.loads(command.out)["results"]
    assert result["document"]["resumed"]
