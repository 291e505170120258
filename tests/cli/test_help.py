"""Tests of `icl --help` and `icl VERB --help`: a screen each, whose examples run."""

import shlex
from pathlib import Path

import pytest

from icl.cli import main
from icl.cli.help import VERBS


@pytest.mark.parametrize("args", [[], *([verb] for verb in VERBS)], ids=" ".join)
def test_it_fits_a_screen(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*args, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 80, (len(lines), max(lines, key=len))
    assert all(f"  {one}" in lines for verb in args for one in VERBS[verb] if one.startswith("icl "))


@pytest.mark.slow(60)
@pytest.mark.nightly
def test_its_examples_run(places: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Run them one after another in one folder, as they are printed: a sweep is shown after it was made."""
    for lines in VERBS.values():
        for example in (line for line in lines if line.startswith("icl ")):
            code = main(shlex.split(example)[1:])
            out, err = capfd.readouterr()
            assert code == 0 and out, (example, code, err)
