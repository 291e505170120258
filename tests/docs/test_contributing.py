"""Tests of the check that CONTRIBUTING shows, as it is printed, in a package of its own."""

import re
from pathlib import Path

import pytest

import icl

TEXT = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_check_to_paste(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = dict(re.findall(r"`(\S+)`:\n\n```\w+\n(.*?)```", TEXT, re.DOTALL))
    config = blocks["conf/check/ahn/isotropic.yaml"]
    code, test = blocks["icl/checks/ahn/isotropic.py"], blocks["tests/checks/ahn/test_isotropic.py"]
    assert sum(bool(line.strip()) for line in (config + code).splitlines()) < 39
    ours = {
        "pasted_lab/__init__.py": "",
        "pasted_lab/isotropic.py": code,
        "conf/check/ahn/isotropic.yaml": config,
    }
    for name, text in ours.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text.replace("icl.checks.ahn.isotropic", "pasted_lab.isotropic"))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("ICL_PACKAGES", "pasted_lab")
    found = icl.check("ahn/isotropic", dim=7, config_dir=tmp_path / "conf")
    assert found["verdict"] == "holds" and found["control"]["rejected"]
    space: dict[str, object] = {}
    exec(test.replace("icl.checks.ahn", "pasted_lab"), space)
    space["test_it_holds_and_sees_a_wrong_step"]()  # type: ignore[operator]
