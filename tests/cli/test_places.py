"""Whatever a command makes is below its outputs: home, temporary and working folder stay as they were."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.cli.conftest import TINY

ROOT = Path(__file__).parents[2]
CACHED = ("MPLCONFIGDIR", "TORCHINDUCTOR_", "TRITON_", "XDG_", "WANDB_")  # places that the tests have chosen
PLACES = ("home", "tmp", "cwd")
FIGURE = ["figure", "figure=lds/fig3", "scale=smoke", "format=json"]
TRAIN = ["train", *TINY, "format=json"]


class Place:
    """Where commands run, each in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.outputs = folder, folder / "outputs"
        for name in PLACES:
            (folder / name).mkdir()

    def icl(self, *argv: str, before: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        env = {name: value for name, value in os.environ.items() if not name.startswith(CACHED)}
        env |= {
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "tmp"),
            "PYTHONPATH": str(ROOT),
        }
        env["PYTHONDONTWRITEBYTECODE"] = "1"
        script = "import sys; from icl.cli import main; sys.exit(main())"
        command = [*before, sys.executable, "-c", script, *argv, f"paths.outputs={self.outputs}"]
        return subprocess.run(
            command, cwd=self.folder / "cwd", env=env, capture_output=True, text=True, check=False
        )

    @property
    def elsewhere(self) -> list[Path]:
        return [path for name in PLACES for path in (self.folder / name).rglob("*")]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "argv",
    [
        [*TRAIN, "logger=wandb_offline"],
        [*FIGURE, "logger=wandb_offline"],
        ["report", "scale=smoke"],
        ["list"],
    ],
    ids=["train", "figure", "report", "list"],
)
def test_nothing_is_left_elsewhere(argv: list[str], place: Place) -> None:
    done = place.icl(*argv)
    assert done.returncode == 0, done.stderr
    assert place.elsewhere == []
    assert place.outputs.exists() == (argv != ["list"])


def test_what_is_done_is_said_where_nothing_can_be_written(place: Place) -> None:
    """Read-only outputs, as of an archive."""
    first = place.icl(*TRAIN, "logger=none")
    with read_only(place.outputs) as wrapped:
        again = place.icl(*TRAIN, "logger=none", before=wrapped)
        refused = place.icl(*TRAIN, "logger=none", "force=true", before=wrapped)
    assert again.returncode == 0, again.stderr
    told = [json.loads(one.stdout) for one in (first, again)]
    assert told[1]["cached"] and told[0]["run_dir"] == told[1]["run_dir"]
    assert refused.returncode == 2 and f"paths.outputs={place.outputs}: cannot be written" in refused.stderr


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[list[str]]:
    """What to put before a command to which `folder` is: for root, who may write anywhere, a mount."""
    if os.geteuid() == 0:
        bind = f"mount --bind {folder} {folder} && mount -o remount,ro,bind {folder}"
        wrapped = ["unshare", "-m", "sh", "-c", f'{bind} && exec "$@"', "sh"]
        if subprocess.run([*wrapped, "true"], capture_output=True, check=False).returncode != 0:
            pytest.skip("root, and no right to mount")
        yield wrapped
        return
    inside = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    for path in inside:
        path.chmod(0o500)
    yield []
    for path in inside:
        path.chmod(0o700)
