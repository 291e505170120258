"""Tests that the script and the notebook of the docs run, and show what their text says."""

import ast
import json
import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from icl.verdicts import VERDICTS

ROOT = Path(__file__).parents[1]


def test_ten_lines_train_predict_and_compare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = ROOT / "examples" / "ten_lines.py"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(script), "smoke"])
    runpy.run_path(str(script), run_name="__main__")
    printed = capsys.readouterr().out
    lines = re.findall(r"seed (\d): (\S+), least squares: (\S+), truth: (\S+)", printed)
    assert [line[0] for line in lines] == ["0", "1"] and printed.count("too short") == 2
    for _, prediction, least_squares, truth in lines:
        assert least_squares == truth
        assert abs(float(prediction) - float(truth)) < 3  # little trained, but in the labels' units and sign
    assert len({line[1] for line in lines}) == 2
    code = [
        line for line in script.read_text().splitlines() if line and not line.startswith(('"""', "import"))
    ]
    assert len(code) <= 10


def test_few_tasks_and_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = ROOT / "examples" / "task_diversity.py"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(script), "tasks.png", "smoke"])
    runpy.run_path(str(script), run_name="__main__")
    (row,) = re.findall(r"dMMSE (\S+) (\S+); ridge (\S+) (\S+)", capsys.readouterr().out)
    old, new, ridge_old, ridge_new = map(float, row)
    assert old < ridge_old < 0.5 > ridge_new and new > 4
    assert (tmp_path / "tasks.png").stat().st_size > 10_000


def test_the_readme_trains_and_predicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert "seeds=[0, 1]" in code
    monkeypatch.chdir(tmp_path)
    exec(code.replace("seeds=[0, 1]", 'seeds=[0, 1], scale="smoke"'), {})
    assert re.fullmatch(r"tensor\(\[ *\S+, +\S+\].*\) \S+\n", capsys.readouterr().out)


def cells(notebook: dict[str, Any]) -> list[str]:
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run cell by cell, at smoke; the value of a cell is displayed."""
    path = ROOT / "examples" / "first_run.ipynb"
    assert path.stat().st_size < 60_000  # its pictures are small
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert [c for c in notebook["cells"] if c["cell_type"] == "code" and c["outputs"]]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    space: dict[str, Any] = {}
    shown = []
    for cell in cells(notebook):
        tree = ast.parse(cell.replace('scale = "laptop"', 'scale = "smoke"'))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "cell", "exec"), space)
        if isinstance(last, ast.Expr):
            shown.append(eval(compile(ast.Expression(last.value), "cell", "eval"), space))
    trained, *_, theorem, judged = [value for value in shown if hasattr(value, "_repr_html_")]
    assert trained["steps"] == 60 and space["predicted"].shape == (2, 1000)
    assert space["least_squares"] == pytest.approx(space["truth"])
    assert theorem["verdict"] == "holds" and judged["verdict"] in VERDICTS and judged["control"]["rejected"]
    assert "holds" in theorem._repr_html_()
    import matplotlib.pyplot as plt

    plt.close("all")
