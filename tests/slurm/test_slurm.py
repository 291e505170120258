"""Tests on Slurm itself: two nodes of it on this machine, which tests/slurm/start.sh starts.

tests/slurm/start.sh FOLDER && ICL_SLURM=FOLDER python -m pytest -m slurm
"""

import json
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import icl as package
from tests.commands import Run, tiny_argv
from tests.two_processes import run

ROOT = Path(__file__).parents[2]
FOLDER = os.environ.get("ICL_SLURM")
pytestmark = [
    pytest.mark.slurm,
    pytest.mark.slow,
    pytest.mark.skipif(FOLDER is None, reason="no Slurm: tests/slurm/start.sh FOLDER, then ICL_SLURM=FOLDER"),
]
JOB = ["-m", "hydra/launcher=submitit_slurm", "hydra.launcher.mem_gb=1", "format=json"]
JOB += ["hydra.launcher.setup=['export MASTER_ADDR=127.0.0.1']"]
NODES = ["trainer.num_nodes=2", "hydra.launcher.nodes=2"]
SHORT = [f"hydra.launcher.{key}" for key in ("timeout_min=2", "signal_delay_s=20", "max_num_timeout=5")]
DOUBLE = ["trainer.precision=64-true", "trainer.accelerator=cpu"]
HELD = """
import os, time

class Held:
    # Told slowly until a file says go, so that its time is over before it is.
    def rate(self, base, step):
        if step and not os.path.exists(os.environ["HELD_GO"]): time.sleep(0.05)
        return base
"""


@pytest.fixture(autouse=True)
def slurm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "held_lab.py").write_text(HELD)
    shown = subprocess.run(
        ["bash", "-c", f". '{FOLDER}/environment' && env -0"], capture_output=True, text=True, check=True
    ).stdout
    for name, _, value in (line.partition("=") for line in shown.split("\0") if line):
        if name in ("PATH", "LD_LIBRARY_PATH", "SLURM_CONF"):
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(tmp_path)]))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("HELD_GO", str(tmp_path / "go"))


def records(outputs: Path) -> dict[str, Any]:
    return {path.parent.name: package.load_run(path.parent) for path in outputs.glob("runs/*/*/*/run.json")}


def assert_same(first: Path, second: Path) -> None:
    ones, others = records(first), records(second)
    assert ones and list(ones) == list(others)
    for name, one in ones.items():
        assert one.metrics == others[name].metrics
        for key, array in one.weights.items():
            assert np.array_equal(array, others[name].weights[key])


def test_an_array(tiny: Run, outputs: Path) -> None:
    found = tiny(*JOB, *DOUBLE, "seed=range(3)").json
    assert found["done"] == 3 and found["cached"] == 0
    assert {path.name for path in outputs.glob("sweeps/*/*")} == {".submitit", "sweep.csv", "sweep.json"}
    jobs = subprocess.run(
        ["scontrol", "-o", "show", "jobs"], capture_output=True, text=True, check=True
    ).stdout
    assert sum("ArrayTaskId=" in line for line in jobs.splitlines()) >= 3
    outputs.rename(elsewhere := outputs.with_name("elsewhere"))
    tiny("-m", *DOUBLE, "seed=range(3)")
    assert_same(elsewhere, outputs)


def two_processes_here(outputs: Path, *more: str) -> None:
    done = run(outputs.parent, [*tiny_argv(*DOUBLE, *more), "logger=none", f"paths.outputs={outputs}"])
    assert done.code == 0, done.err


def test_one_run_on_two_nodes(tiny: Run, outputs: Path) -> None:
    found = tiny(*JOB, *DOUBLE, *NODES).json
    assert found["done"] == 1
    outputs.rename(elsewhere := outputs.with_name("elsewhere"))
    two_processes_here(outputs, "trainer.devices=2")  # the same prompts
    assert_same(elsewhere, outputs)


@pytest.mark.parametrize("of", [["seed=0,1"], ["seed=0", *NODES]], ids=["array", "two nodes"])
def test_its_time_is_over(of: list[str], tiny: Run, outputs: Path, tmp_path: Path) -> None:
    """Save, queue again, and end as if it had had the time."""
    held = ["schedule=constant", "schedule._target_=held_lab.Held", "train.steps=3000",
            "train.steps_per_batch=100", "train.log_every=100",
            "callbacks.checkpoint.seconds=1000"]  # fmt: skip
    over = threading.Event()

    def let_go() -> None:
        while not over.is_set():
            states = [json.loads(path.read_text())["status"] for path in outputs.glob("runs/*/*/*/run.json")]
            if states and set(states) == {"interrupted"} and len(states) == len(of[0].split(",")):
                (tmp_path / "go").touch()
            time.sleep(0.2)

    watching = threading.Thread(target=let_go)
    watching.start()
    try:
        found = tiny(*JOB, *DOUBLE, *held, *of, *SHORT).json
    finally:
        over.set()
        watching.join()
    assert (tmp_path / "go").exists() and found["failed"] == 0
    assert all(result["document"]["resumed"] for result in found["results"])
    outputs.rename(elsewhere := outputs.with_name("elsewhere"))
    if len(of) == 1:
        tiny("-m", *DOUBLE, *held, *of)
    else:
        two_processes_here(outputs, *held, "trainer.devices=2", of[0])
    assert_same(elsewhere, outputs)
