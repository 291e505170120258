"""Tests of the verbs that start no run: list, clean, and Python."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from icl.verdicts import joint_sign, outcome
from tests.commands import Run, tiny_argv
from tests.processes import ROOT

QUICK = {"torch", "numpy", "hydra", "omegaconf", "yaml", "rich", "wandb"}
PAGE = {"torch", "matplotlib", "wandb", "icl.figures.figure"}
FOUND = {"torch", "pytorch_lightning", "scipy", "matplotlib", "wandb"}
ONE_AFTER_ANOTHER = """
import sys, icl
assert not {"numpy", "torch", "hydra", "yaml"} & set(sys.modules)
from icl.cli import main
for argv, heavy in eval(sys.argv[1]):
    code = main(argv)
    loaded = heavy & set(sys.modules)
    assert code == 0 and not loaded, (argv, code, loaded)
icl.check
"""


def test_the_quick_ones_load_nothing_heavy(icl: Run, tiny: Run, outputs: Path) -> None:
    """Import neither torch nor a check to list or to find what is done."""
    check = ["check", "check=ahn/lemma1", "scale=smoke"]
    train = tiny_argv("checks=[ahn/theorem3]")
    assert icl(*check).code == icl(*train).code == 0
    quick = [["--help"], ["--version"], ["list"], ["list", "format=json"], []]
    common = [f"paths.outputs={outputs}", "logger=none", "format=json"]
    told = [(argv, QUICK) for argv in quick] + [(["report", "scale=smoke", common[0]], PAGE)]
    told += [([*argv, *common], FOUND) for argv in (check, train)]
    done = subprocess.run(
        [sys.executable, "-c", ONE_AFTER_ANOTHER, repr(told)], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout.count('"cached": true') == 2, (done.stdout, done.stderr)


def test_list(icl: Run, tiny: Run) -> None:
    document = icl("list", "format=json").json
    assert set(document) == {"checks", "experiments", "figures"}
    items = [item for name in document for item in document[name]]
    keys = {"id", "title", "paper", "origin", "reference", "done", "verdicts", "claims"}
    more = {"statement", "results"}
    assert all(set(item) == keys | (more if item in document["checks"] else set()) for item in items)
    assert all(item["reference"] and item["paper"] == item["id"].partition("/")[0] for item in items)
    assert all(item["title"] != item["id"] and item["origin"] in (item["paper"], "icl") for item in items)
    assert not any(item["done"] for item in items)
    tiny()
    icl("check", "check=ahn/lemma1", "check.dim=4")
    done = [i["id"] for name, group in icl("list", "format=json").json.items() for i in group if i["done"]]
    assert sorted(done) == ["ahn/lemma1", "ahn/theorem3"]
    text = icl("list").out
    assert "[own] Layers with A_l and B_l" in text and max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("verdict", "expected", "text"),
    [
        ("holds", "holds", "✓ holds"), ("fails", "fails", "¬ known false"),
        ("fails", "holds", "✗ fails (expected: holds)"), ("undecided", "undecided", "? undecided"),
        ("undecided", "holds", "? undecided (expected: holds)"),
    ],
)  # fmt: skip
def test_an_undecided_outcome_is_never_a_success(verdict: str, expected: str, text: str) -> None:
    claim = {"verdict": verdict, "expected": expected}
    assert outcome(claim) == text and joint_sign([claim]) == text[0]
    assert joint_sign([claim, {"verdict": "holds", "expected": "holds"}]) == text[0].replace("¬", "✓")
