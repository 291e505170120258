"""Tests of limits read from source: they refuse what the classes refuse, in the same words, without torch."""

import subprocess
import sys
from pathlib import Path

import pytest

from icl.config import ConfigDirs, instantiate
from icl.config.compose import compose
from icl.errors import InputError
from icl.jobs.requests.limits import limits_of, validate_limits

WRONG = (0, -1, -(10**9), 10**12, 2.5, "x", [], None)
QUICK = [
    ("check=ahn/theorem1 check.dim=0", "check.dim=0: must be an integer of at least 1"),
    ("check=ahn/theorem5 check.samples=x", "check.samples=x: must be an integer of at least 5000"),
    ("experiment=ahn/theorem3 task.dim=0", "task.dim=0: must be an integer from 1 to 512"),
    ("experiment=ahn/theorem3 task.label_noise=-1", "task.label_noise=-1: must be a finite number"),
    ("experiment=ahn/theorem3 model.layers=65", "model.layers=65: must be an integer from 1 to 64"),
    ("experiment=ahn/theorem3 model.path=gramm", "model.path=gramm: must be one of gram, tokens"),
    ("experiment=ahn/theorem3 optimizer.lr=-1", "optimizer.lr=-1: must be a finite number above 0"),
    ("experiment=ahn/theorem3 optimizer.lr=[0.1,0]", "optimizer.lr=0: must be a finite number above 0"),
    ("experiment=ahn/theorem3 train.steps=0", "train.steps=0: must be an integer of at least 1"),
    ("experiment=ahn/theorem3 trainer.precision=7", "trainer.precision=7: must be one of 32-true, 64-true"),
    ("figure=giannou/fig10 figure.experiment.cells=3", "figure.experiment.cells=3: must be an integer"),
]  # fmt: skip
LEFT_TO_THE_CLASS = {"samples", "condition", "mu"}  # rules between settings; real numbers
MAIN = """
import shlex, sys
from icl.cli import main
verbs = {"check": "check", "experiment": "train", "figure": "figure"}
for line in sys.argv[1:]:
    main([verbs[line.partition("=")[0]], *shlex.split(line)])
sys.exit("torch" in sys.modules)
"""
MODULE = """
from icl.errors import whole
MAX = 2**3
class Base:
    def __init__(self, dim, width=1):
        self.dim = whole("task.dim", dim, 1, MAX)
        self.width = whole("task.width", width, 1)
class PassesOn(Base):
    def __init__(self, dim, width=1):
        super().__init__(dim, width + 1)
class Changes:
    def __init__(self, dim, width=None, depth=1):
        dim = dim or 5
        self.dim = whole("task.dim", dim, 1)
        if width is not None:
            whole("task.width", width, 1)
        if dim == 7:
            return
        whole("task.depth", depth, 1)
class Computes:
    def __init__(self, dim, width=1):
        self.dim = whole("task.dim", dim, 1, len("abc"))
        self.width = whole("task.width", width, 1, LATER + 1)
LATER = MAX + 1
"""


def test_wrong_numbers_are_refused_before_torch_is_imported(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *(line for line, _ in QUICK)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    problems = [line for line in done.stderr.splitlines() if not line.startswith("icl: did you mean ")]
    for (line, message), shown in zip(QUICK, problems, strict=True):
        assert shown.startswith(f"icl: {message}"), line
    assert done.returncode == 0 and not list(tmp_path.iterdir())


@pytest.mark.parametrize("check", ConfigDirs().options("check"))
def test_limits_say_what_the_class_says(check: str) -> None:
    node = compose(ConfigDirs(), "check", [f"check={check}"]).settings["check"]
    node = {key: value for key, value in node.items() if key not in ("expected", "weights")}
    limited = limits_of(node["_target_"])
    validate_limits({"check": node})
    for name in limited.keys() & node.keys():
        for value in WRONG:
            changed = node | {name: value}
            try:
                validate_limits({"check": changed})
            except InputError as refused:
                with pytest.raises(InputError) as own:
                    instantiate("check", changed)
                assert str(own.value) == str(refused)
    numbers = {key for key, value in node.items() if isinstance(value, int) and not isinstance(value, bool)}
    assert numbers - limited.keys() <= LEFT_TO_THE_CLASS


def test_only_sure_refusals_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "limited.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    names = {name: limits_of(f"limited.{name}") for name in ("Base", "PassesOn", "Changes", "Computes")}
    assert {name: sorted(limits) for name, limits in names.items()} == {
        "Base": ["dim", "width"], "PassesOn": ["dim"], "Changes": [], "Computes": ["width"],
    }  # fmt: skip
    with pytest.raises(InputError, match=r"task\.dim=9: must be an integer from 1 to 8"):
        validate_limits({"task": {"_target_": "limited.PassesOn", "dim": 9, "width": 0}})
    assert limits_of("limited.Absent") == limits_of("nowhere.Class") == {}
