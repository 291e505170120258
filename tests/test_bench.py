"""Tests that scripts/bench compares the same work, and runs."""

import importlib
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser

from icl.kernel import library

BENCH = Path(__file__).parents[1] / "scripts" / "bench"
needs_kernel = pytest.mark.skipif(library.why_none() is not None, reason=f"no kernel: {library.why_none()}")


@needs_kernel
def test_both_take_the_same_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    script = runpy.run_path(str(BENCH / "kernel.py"))
    for case in script["CASES"]:
        steps = [script["EnsembleStep"](case, by, torch.float64, 40) for by in ("eager", "kernel")]
        for step in steps:
            for _ in range(3):
                step.take()
        for eager, kernel in zip(*(step.model.parameters() for step in steps), strict=True):
            torch.testing.assert_close(kernel, eager, rtol=1e-9, atol=1e-12)


@needs_kernel
@pytest.mark.parametrize(
    "words, told",
    [
        (("kernel.py", "--batch", "40", "--repeats", "1", "--only", "eq. (11)"), "eq. (11), expected"),
        (("train.py", "experiment=ahn/theorem3", "scale=smoke", "--repeats", "1"), "exact_risk: eager"),
    ],
)
def test_the_scripts_run(words: tuple[str, ...], told: str) -> None:
    command = [sys.executable, str(BENCH / words[0]), *words[1:]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and told in done.stdout, done.stderr


def jobs_of(words: tuple[str, ...]) -> int:
    overrides = OverridesParser.create().parse_overrides([word for word in words if "=" in word])
    return len(BasicSweeper.split_arguments(overrides, None)[0])


def test_a_sweep_is_compared_with_as_many_jobs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Stand in for `icl train -m`: a job takes 2 s of wall and 3 s of CPU beyond 10 and 20 s of starting."""
    monkeypatch.syspath_prepend(str(BENCH))
    timing = importlib.import_module("timing")
    asked = []

    def train(folder: str, *words: str) -> tuple[dict, tuple[float, float]]:
        asked.append(words)
        jobs = jobs_of(words)
        vectorized = "hydra/launcher=vectorized" in words
        return {"failed": 0}, (6.8, 13.0) if vectorized else (10.0 + 2 * jobs, 20.0 + 3 * jobs)

    monkeypatch.setattr(timing, "icl_in", train)
    monkeypatch.setattr(sys, "argv", ["sweep.py", "train.steps=5"])
    runpy.run_path(str(BENCH / "sweep.py"), run_name="__main__")
    assert [jobs_of(words) for words in asked] == [64, 1, 5]
    assert all(words[-1] == "train.steps=5" for words in asked)
    wall, cpu = capsys.readouterr().out.splitlines()
    assert "wall: 20.3 times as fast; vectorized 6.8 s, basic 138.0 s (2.00 s a job)" in wall
    assert "CPU: 16.3 times as fast; vectorized 13.0 s, basic 212.0 s (3.00 s a job)" in cpu
