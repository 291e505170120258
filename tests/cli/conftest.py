"""Fixtures that run `icl ARGS` inside this process and keep what it prints."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig

from icl.cli import main

TINY = [
    "experiment=ahn/theorem3",
    "scale=smoke",
    "checks=[]",
    "train.steps=4",
    "train.batch=8",
    "train.steps_per_batch=2",
    "train.log_every=2",
    "callbacks.gradient.count=0",
]


def tiny_argv(*more: str) -> list[str]:
    """Return the arguments of a `train` of a few steps, with more overrides."""
    chosen = {override.partition("=")[0] for override in more}
    return ["train", *(override for override in TINY if override.partition("=")[0] not in chosen), *more]


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Write texts by their paths in a folder, and return the folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        assert self.out, self.err
        return json.loads(self.out)


Run = Callable[..., Result]


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    return tmp_path / "outputs"


@pytest.fixture
def icl(
    tmp_path: Path, outputs: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Return a function that runs `icl` in an empty working folder, with its own outputs and without W&B."""
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")

    def run(verb: str, *args: str, logger: str | None = "none") -> Result:
        runs_something = verb in ("train", "check", "figure", "reproduce")
        common = [f"paths.outputs={outputs}", *([f"logger={logger}"] if logger and runs_something else [])]
        capfd.readouterr()
        code = main([verb, *args, *common])
        assert not GlobalHydra.instance().is_initialized() and HydraConfig.instance().cfg is None
        return Result(code, *capfd.readouterr())

    return run


@pytest.fixture
def tiny(icl: Run) -> Run:
    """Return a function that runs `icl train` for a few steps, with more overrides."""
    return lambda *more, **options: icl(*tiny_argv(*more), **options)
