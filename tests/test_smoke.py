"""Every experiment trains and every check runs at scale=smoke, whatever configs are on disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from icl.cli import main
from icl.cli.verdicts import SHARED_CODE
from icl.config import conf_dir


def named(group: str) -> list[str]:
    folder = conf_dir() / group
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.yaml"))


def run(capsys: pytest.CaptureFixture[str], outputs: Path, *args: str) -> dict:
    common = ["scale=smoke", "logger=none", "format=json", f"paths.outputs={outputs}"]
    code = main([*args, *common])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return json.loads(captured.out)


@pytest.mark.parametrize("name", named("experiment"))
def test_experiment(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = run(capsys, tmp_path, "train", f"experiment={name}")
    assert document["status"] == "done" and document["metrics"]["loss"]["mean"] is not None
    assert run(capsys, tmp_path, "train", f"experiment={name}")["cached"]


@pytest.mark.parametrize("name", named("check"))
def test_check(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = run(capsys, tmp_path, "check", f"check={name}")
    assert document["verdict"] == document["expected"] and document["control"]["rejected"]
    assert run(capsys, tmp_path, "check", f"check={name}")["cached"]


def test_what_a_verdict_depends_on_is_there() -> None:
    """A renamed package would otherwise drop out of the digest."""
    assert all((conf_dir().parent / "icl" / name).is_dir() for name in SHARED_CODE)
