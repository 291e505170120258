"""Tests of `icl reproduce` when a check, a worker or the command itself ends before its time."""

import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.commands import write
from tests.processes import ROOT, Command, jobs_are_forked

CODE = """
import os, random, time
from dataclasses import dataclass
from icl.checks import Statement, setting
from icl.errors import Unavailable
from icl.figures.claims import Claim, exact
from icl.figures.figure import Figure

@dataclass
class Good(Statement):
    seed: int = setting(0, 0)
    where, claim, tries = "Lemma 0", "One is one.", 0
    def measure(self, m):
        m.below("error", random.Random(self.seed).randrange(1000), 1000, "number drawn")
        m.control("2000", 2000 - 1000, of="error")

class Crash(Good):
    def measure(self, m): return 1 / 0

class Die(Good):
    def measure(self, m):
        if os.path.exists(os.environ["MYLAB_GO"] + "-alone"): raise RuntimeError("not while alone")
        os._exit(7)

class Absent(Good):
    def __post_init__(self): raise Unavailable("needs a telescope: none is here")

class Held:
    # Slow until a file says go, so that no run can have ended before it is killed.
    def rate(self, base, step):
        if step and not os.path.exists(os.environ["MYLAB_GO"]): time.sleep(0.05)
        return base

class Curve(Figure):
    caption = "A loss."
    def __init__(self, column: str): self.column = column
    def runs(self, runner): return {"run": runner.train("mylab/first")}
    def draw(self, panels, records): panels[""].plot(records["run"].metrics[self.column])
    def claims(self, records):
        last = records["run"].metrics[self.column][-1]
        small = exact(last).below(1e6, "1e6")
        return [Claim.of("it ends below one million", {"last": last}, small, trained=False)]
"""
FIGURE = """# @package figure
# paper: mylab
# reference: Figure {number}
_target_: mylab.all.Curve
column: {column}
"""
COLUMNS = ("loss", "exact_risk")
FIRST = """# @package _global_
# paper: mylab
# reference: Figures 1 and 2
defaults:
  - override /task: linear_regression
name: mylab/first
seeds: [0, 1]
task: {dim: 2, context: 4}
model: {layers: 1}
train: {steps: 400, batch: 16, steps_per_batch: 10}
optimizer: {schedule: {_target_: mylab.all.Held}}
callbacks: {gradient: {count: 0}, checkpoint: {seconds: 0.1}}
"""


def configs(*checks: str, figures: Sequence[str] = ()) -> dict[str, str]:
    """Return configs of these checks, and of figures of one run that draw a column each."""
    head = "# @package check\n# paper: mylab\n# reference: Lemma 0\n"
    return {
        **{f"check/mylab/{name.lower()}.yaml": f"{head}_target_: mylab.all.{name}\n" for name in checks},
        **{f"figure/mylab/fig{n}.yaml": FIGURE.format(number=n, column=c) for n, c in enumerate(figures, 1)},
        "experiment/mylab/first.yaml": FIRST,
    }


class Lab:
    """A user's package and configs, brought in with --config-dir."""

    def __init__(self, folder: Path, files: dict[str, str]) -> None:
        self.folder = folder
        write(folder, {"mylab/__init__.py": "", "mylab/all.py": CODE})
        write(folder / "conf", files)
        path_variable = os.pathsep.join([str(folder), str(ROOT)])
        self.go = folder / "go"
        self.go.touch()
        own = {"PYTHONPATH": path_variable, "MYLAB_GO": str(self.go)}
        self.environment = {**os.environ, **own}

    def start(self, outputs: Path, *more: str) -> Command:
        common = ["scale=smoke", "logger=none", "format=json", f"paths.outputs={outputs}"]
        argv = ["reproduce", "--config-dir", str(self.folder / "conf"), "only=[mylab]", *common, *more]
        return Command(argv, self.folder, self.environment, jobs_are_forked)

    def run(self, outputs: Path, *more: str) -> tuple[int, Any, str]:
        command = self.start(outputs, *more)
        code = command.end()
        assert command.out, command.err
        return code, json.loads(command.out), command.err


def timeless(node: Any, outputs: Path) -> Any:
    """Return a document without times, without whether it was cached, and without the outputs folder's
    name."""
    if isinstance(node, dict):
        kept = {k: v for k, v in node.items() if k not in ("seconds", "drawing_seconds", "cached")}
        return {key: timeless(value, outputs) for key, value in kept.items()}
    if isinstance(node, list):
        return [timeless(entry, outputs) for entry in node]
    return node.replace(str(outputs), "OUTPUTS") if isinstance(node, str) else node


@pytest.mark.slow
def test_somebodys_own_checks_and_figures_in_two_workers(tmp_path: Path) -> None:
    """Skip one check, crash one, and end one worker's process; a run that two figures want is made once,
    and what is done is found again."""
    lab, outputs = Lab(tmp_path, configs("Good", "Crash", "Die", "Absent", figures=COLUMNS)), tmp_path / "out"
    code, document, err = lab.run(outputs, "jobs=2")
    assert code == 4, err
    assert set(document) == {"checks", "figures", "failures", "skipped", "report", "seconds"}
    assert [check["check"] for check in document["checks"]] == ["mylab/good"]
    assert [figure["figure"] for figure in document["figures"]] == ["mylab/fig1", "mylab/fig2"]
    crash, die = document["failures"]
    assert crash == {"group": "check", "id": "mylab/crash", "error": "ZeroDivisionError: division by zero"}
    assert die["id"] == "mylab/die" and die["error"] == "its process died"
    assert document["skipped"] == [
        {"group": "check", "id": "mylab/absent", "reason": "needs a telescope: none is here"}
    ]
    assert "ahn" not in json.dumps(document)
    runs = [json.loads(path.read_text()) for path in outputs.glob("runs/mylab/first/*/run.json")]
    assert [(run["attempt"], run["resumed"]) for run in runs] == [(1, 0)]
    assert Path(document["report"]) == outputs / "report" / "smoke-mylab.html"
    assert "mylab/good" in Path(document["report"]).read_text()
    assert "0 of 6 done already, 6 to run with 2 workers" in err
    assert err.index("check mylab/good") < err.index("figure mylab/fig1")

    lab.go.with_name("go-alone").touch()
    again, found, err = lab.run(outputs)  # in the process itself
    assert again == 4 and "3 of 6 done already, 3 to run" in err
    assert all(part["cached"] for part in [*found["checks"], *found["figures"]])
    assert found["failures"] == [crash, {**die, "error": "RuntimeError: not while alone"}]
    assert timeless(found | {"failures": []}, outputs) == timeless(document | {"failures": []}, outputs)


@pytest.mark.slow
def test_interrupted_in_two_workers_it_ends_the_same(tmp_path: Path) -> None:
    lab = Lab(tmp_path, configs("Good", figures=COLUMNS))
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    code, expected, err = lab.run(straight)
    assert code == 0, err
    lab.go.unlink()
    command = lab.start(broken, "jobs=2")
    command.until(lambda: list(broken.glob("runs/mylab/first/*/checkpoints/*.ckpt")))
    command.send(signal.SIGINT)
    assert (command.end(), command.out) == (130, "") and "interrupted" in command.err.splitlines()[-1]
    (path,) = broken.glob("runs/mylab/first/*/run.json")
    assert json.loads(path.read_text())["status"] == "interrupted" and not list(broken.rglob("*.lock"))
    lab.go.touch()
    code, document, err = lab.run(broken)
    assert code == 0, err
    run = json.loads(path.read_text())
    assert [run[key] for key in ("status", "attempt", "resumed")] == ["done", 1, 1]
    assert timeless(document, broken) == timeless(expected, straight)
