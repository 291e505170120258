"""Tests that scripts/bench compares the same work, and runs."""

import importlib
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from icl.kernel import library
from tests.commands import Run

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


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what runs a script here, and has the module that times."""

    def run(name: str, *words: str) -> None:
        monkeypatch.setattr(sys, "argv", [name, *words])
        runpy.run_path(str(BENCH / name), run_name="__main__")

    monkeypatch.syspath_prepend(str(BENCH))
    run.timing = importlib.import_module("timing")  # type: ignore[attr-defined]
    return run


@needs_kernel
def test_kernels_are_timed(bench: Any, capsys: pytest.CaptureFixture[str]) -> None:
    bench("kernel.py", "--batch", "40", "--repeats", "1", "--only", "eq. (11)")
    assert "eq. (11), expected" in capsys.readouterr().out


@needs_kernel
def test_a_training_is_timed_with_both(
    bench: Any, icl: Run, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    train = lambda *words: (icl(*words, "format=json").json, (1.0, 1.0))  # noqa: E731
    monkeypatch.setattr(bench.timing, "icl", train)
    bench("train.py", "experiment=ahn/theorem3", "scale=smoke", "train.steps=4", "--repeats", "1")
    assert "exact_risk: eager" in capfd.readouterr().out


def test_a_command_is_timed(bench: Any, tmp_path: Path) -> None:
    document, seconds = bench.timing.icl("list")
    assert document["checks"] and min(seconds) > 0
    with pytest.raises(SystemExit, match="exit code 2"):
        bench.timing.icl_in(str(tmp_path), "list", "nothing=1")


def test_a_sweep_is_compared_with_as_many_jobs(
    bench: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Stand in for `icl train -m`: a job takes 2 s of wall and 3 s of CPU beyond 10 and 20 s of starting."""
    taken = iter([(6.8, 13.0), (12.0, 23.0), (20.0, 35.0)])  # all together, one job, five jobs
    monkeypatch.setattr(bench.timing, "icl_in", lambda *words: ({"failed": 0}, next(taken)))
    bench("sweep.py", "train.steps=5")
    wall, cpu = capsys.readouterr().out.splitlines()
    assert "wall: 20.3 times as fast; vectorized 6.8 s, basic 138.0 s (2.00 s a job)" in wall
    assert "CPU: 16.3 times as fast; vectorized 13.0 s, basic 212.0 s (3.00 s a job)" in cpu
