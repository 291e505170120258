"""Fixture of the tests of jobs."""

import pytest

from icl.cli import main
from tests.commands import Result


@pytest.fixture
def icl_command(outputs, capfd):
    """Return a function that runs `icl` beside the package of the same name, in the process as it is."""

    def run(verb, *args):
        capfd.readouterr()
        code = main([verb, *args, f"paths.outputs={outputs}", "logger=none"])
        return Result(code, *capfd.readouterr(), (verb, *args))

    return run
