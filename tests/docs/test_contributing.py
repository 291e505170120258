"""Tests of what CONTRIBUTING says of a statement: the file of `icl check new` becomes a check as told."""

from pathlib import Path

import pytest

import icl
from icl.cli import main


def test_the_file_to_begin_with_becomes_a_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "new"]) == 0
    files = {
        "pasted_lab/__init__.py": "",
        "pasted_lab/best_step.py": capsys.readouterr().out,
        "conf/check/ahn/best_step.yaml": "# @package check\n_target_: pasted_lab.best_step.BestStep\n"
        "d: 5\nn: 20\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = icl.check("ahn/best_step", d=7, config_dir=tmp_path / "conf")
    assert found["verdict"] == "holds" and found["control"]["rejected"]
    assert found["meanings"]["risk"].startswith("risk (2) less") and found["exact"]["risk"] == "0"
    assert found["tries"]["holds"] == 20
