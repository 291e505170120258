"""Tests that the same command ends with the same bytes whatever happened to it."""

import json
import os
from pathlib import Path

import pytest

from tests.faults import stories
from tests.processes import SERVER

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")]


def _tell(base: Path, name: str) -> None:
    (base / "told.json").write_text(json.dumps(stories.tell(base, name)))


@pytest.mark.parametrize("name", stories.TABLE)
def test_the_same_command_ends_with_the_same_bytes_whatever_happened(name: str, tmp_path: Path) -> None:
    """Tell the stories in a process without threads, from which others can be forked."""
    process = SERVER.Process(target=_tell, args=(tmp_path, name))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert json.loads((tmp_path / "told.json").read_text()) == []
