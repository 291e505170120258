"""Tests of the verbs that start no run: list, clean, completion, and Python."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from icl.cli import VERBS, main
from icl.config.search_path import ConfigDirs
from icl.jobs.stored.catalog import KINDS, StoredResult, stored_results
from tests.commands import Run, tiny_argv
from tests.processes import ROOT
from tests.records import write_sealed

QUICK = {"torch", "numpy", "hydra", "omegaconf", "yaml", "rich", "wandb"}
PAGE = {"torch", "matplotlib", "wandb", "icl.checks.verdict", "icl.figures", "icl.experiments"}
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


def test_help_names_every_verb_and_the_settings_of_a_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"  {verb} " in text for verb in VERBS)
    assert main(["check", "check=xie/theorem1", "scale=smoke", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "The least risk of multi-head LSA is the same for every number of heads H >= d + 1." in text
    assert "check.restarts=1 random starts for each number of heads below dim" in text and "${" not in text


def test_list(icl: Run, tiny: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    document = icl("list", "format=json").json
    assert set(document) == {"checks", "experiments", "figures"}
    items = [item for name in document for item in document[name]]
    assert all(set(item) == {"id", "title", "paper", "origin", "reference", "done"} for item in items)
    assert all(item["reference"] and item["paper"] == item["id"].partition("/")[0] for item in items)
    assert all(item["title"] != item["id"] and item["origin"] in (item["paper"], "icl") for item in items)
    assert not any(item["done"] for item in items)
    tiny()
    icl("check", "check=ahn/lemma1", "check.samples=4")
    done = [i["id"] for name, group in icl("list", "format=json").json.items() for i in group if i["done"]]
    assert sorted(done) == ["ahn/lemma1", "ahn/theorem3"]
    text = icl("list").out
    assert "\u2713 ahn/lemma1" in text and "own settings" in text and "x ahn/theorem3" in text
    assert "Lemma 1: the forward" in text and all(len(line) <= 80 for line in text.splitlines())
    assert "[own] Layers with A_l and B_l" in text and "The forward pass of L layers" not in text
    monkeypatch.setenv("COLUMNS", "160")
    wide = icl("list").out
    assert "The forward pass of L layers" in wide and max(map(len, wide.splitlines())) in range(140, 161)


def test_a_list_says_at_which_scale_a_check_was_measured(outputs: Path) -> None:
    kind, configs = KINDS[0], ConfigDirs()
    config = yaml.safe_load((ROOT / "conf/check/ahn/global_optimum.yaml").read_text())["check"]
    shipped = {k: v for k, v in config.items() if k != "_target_"} | {"starts": 4, "weights": None}
    folder = outputs / "checks/ahn/global_optimum"
    for settings, scales in (({}, ("laptop",)), ({"starts": 1}, ("smoke",)), ({"dim": 3}, ())):
        document = {"verdict": "undecided", "settings": shipped | settings}
        write_sealed(folder / "0123456789ab.json", document=document)
        assert stored_results(outputs, kind, "ahn/global_optimum", configs) == [
            StoredResult(scales, ("undecided",))
        ]


COMPLETED = {
    "icl tr": {"train"},
    "icl ": set(VERBS),
    "icl check check=ahn/lem": {"check=ahn/lemma1", "check=ahn/lemma4", "check=ahn/lemma5"},
    "icl check check=ahn/theorem1 check.con": {"check.context="},
    "icl train exp": {"experiment="},
    "icl figure figure=ahn/fig1 scal": {"scale="},
}


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completion(tmp_path: Path) -> None:
    """Complete in bash with `icl` on the path."""
    command = tmp_path / "bin" / "icl"
    command.parent.mkdir()
    program = "import sys; from icl.cli import main; sys.exit(main())"
    command.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c '{program}' \"$@\"\n")
    command.chmod(0o755)
    script = (
        'eval "$(icl completion bash)"\nfor COMP_LINE in "$@"; do\n'
        'COMP_POINT=${#COMP_LINE}; read -ra COMP_WORDS <<< "$COMP_LINE"\n'
        'COMP_WORDBREAKS=" "; _icl; echo "${COMPREPLY[@]}"\ndone'
    )
    environment = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    lines = [
        *COMPLETED,
        "icl train experiment=",
        "icl train experiment=ahn/theorem3 train.s",
        "icl check che",
    ]
    done = subprocess.run(
        ["bash", "-c", script, "bash", *lines],
        capture_output=True, text=True, check=True, env=environment, cwd=tmp_path,
    )  # fmt: skip
    offered = dict(zip(lines, map(str.split, done.stdout.splitlines()), strict=True))
    assert done.stderr == ""
    assert {line: set(offered[line]) for line in COMPLETED} == COMPLETED
    assert "experiment=ahn/theorem3" in offered["icl train experiment="]
    assert "train.steps=" in offered["icl train experiment=ahn/theorem3 train.s"]
    assert offered["icl check che"][-1] == "check="


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_reads_its_completion(capsys: pytest.CaptureFixture[str]) -> None:
    main(["completion", "zsh"])
    script = capsys.readouterr().out
    done = subprocess.run(
        ["zsh", "-f", "-c", f"{script}\n(( $+functions[_icl] ))"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
