"""Tests by small campaigns of faults and of wrong inputs; `seconds=3600` makes large ones."""

import json
import math
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.faults import campaign, forked, inputs, stories
from tests.processes import SERVER

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")]


def found(module: ModuleType, arguments: list[str], told: Path) -> dict[str, Any]:
    """Return the totals of a campaign in a process without threads, from which others can be forked."""
    process = SERVER.Process(target=_campaign, args=(module.__name__, arguments, told))
    process.start()
    process.join()
    assert process.exitcode == 0, told.read_text()
    return json.loads(told.read_text())


def _campaign(name: str, arguments: list[str], told: Path) -> None:
    forked.LIMIT = inputs.REFUSED_WITHIN = math.inf  # whatever else this machine does
    os.dup2(os.open(told, os.O_WRONLY | os.O_CREAT), 1)
    code = sys.modules[name].main(arguments)
    sys.stdout.flush()
    sys.exit(code)


@pytest.mark.parametrize("name", stories.TABLE)
def test_the_same_command_ends_with_the_same_bytes_whatever_happened(name, tmp_path):
    told = found(campaign, ["table=true", "seconds=inf", f"commands={name}"], tmp_path / "told.json")
    assert told["failures"] == [] and told["stories"] >= len(stories.TABLE[name]) - 1
    assert told["writes"][name] > 10


def test_wrong_input_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    told = found(inputs, ["count=40", "seconds=inf"], tmp_path / "told.json")
    assert told["failures"] == [] and told["inputs"] == 40 and told["codes"]["train: 2"] > 5
