"""Tests that a command writes below its outputs only: home, temporary and working folder stay as they
were.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import TINY
from tests.processes import ROOT

CACHED = ("MPLCONFIGDIR", "TORCHINDUCTOR_", "TRITON_", "XDG_", "WANDB_")  # places that the tests have chosen
PLACES = ("home", "tmp", "cwd")
TRAIN = ["train", *TINY, "format=json"]
COMMANDS = {  # and the exit code; first what is refused, and leaves nothing
    "refused": ([*TRAIN, "-m", "optimizer.lr=0.1,-1"], 2),
    "list": (["list"], 0),
    "report": (["report", "scale=smoke"], 0),
    "train": ([*TRAIN, "callbacks.heatmaps.count=1", "logger=wandb_offline"], 0),
    "figure": (["figure", "figure=lds/fig3", "scale=smoke", "logger=none"], 0),
}
ONE_AFTER_ANOTHER = """
import json, os, sys
from pathlib import Path
from icl.cli import main
outputs, commands = sys.argv[1], json.loads(sys.argv[2])
for name, (argv, expected) in commands.items():
    os.environ.pop("MPLCONFIGDIR", None)
    assert main([*argv, f"paths.outputs={outputs}"]) == expected, name
    assert Path(outputs).exists() == (name not in ("refused", "list")), name
    cache = os.environ.get("MPLCONFIGDIR", "")
    assert cache.startswith(outputs) == (name != "list"), name
"""


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    for name in PLACES:
        (tmp_path / name).mkdir()
    return tmp_path / "outputs"


@pytest.mark.slow
def test_nothing_is_left_elsewhere(outputs: Path) -> None:
    """Run in a fresh interpreter, whose libraries have yet to make the folders they cache in."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(CACHED)}
    places = {"HOME": str(outputs.with_name("home")), "TMPDIR": str(outputs.with_name("tmp"))}
    done = subprocess.run(
        [sys.executable, "-B", "-c", ONE_AFTER_ANOTHER, str(outputs), json.dumps(COMMANDS)],
        cwd=outputs.with_name("cwd"), env={**kept, **places, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [path for name in PLACES for path in outputs.with_name(name).rglob("*")] == []
    assert {path.name for path in outputs.iterdir()} >= {"runs", "figures", "report", "wandb"}
