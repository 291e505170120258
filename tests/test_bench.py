"""Tests that scripts/bench compares the same work, and runs."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch

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
        pytest.param(
            ("sweep.py", "train.batch=8", "train.steps=10", "--jobs", "1"),
            "64 jobs",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_scripts_run(words: tuple[str, ...], told: str) -> None:
    command = [sys.executable, str(BENCH / words[0]), *words[1:]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and told in done.stdout, done.stderr
