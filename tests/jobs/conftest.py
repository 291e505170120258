"""Fixtures of the tests of jobs: the outputs folder, and the command beside the package of the same name."""

from pathlib import Path

import pytest

from icl.cli import main
from tests.cli.conftest import Result, Run


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    return tmp_path / "outputs"


@pytest.fixture
def icl_command(outputs: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(verb: str, *args: str) -> Result:
        capfd.readouterr()
        code = main([verb, *args, f"paths.outputs={outputs}", "logger=none"])
        return Result(code, *capfd.readouterr())

    return run
