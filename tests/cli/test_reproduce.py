"""Tests of `icl reproduce`: what is done and what is left."""

import json
import os
import random
import re
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from icl.checks.ahn.lemma1 import Lemma1
from icl.config.search_path import ConfigDirs
from icl.errors import Unavailable
from icl.jobs.stored.report import ReportRequest, blank_entries
from tests.cli.conftest import Run, write
from tests.loggers.wandb_file import records
from tests.processes import ROOT, Command

CODE = """
import os, time
import numpy as np
from icl.checks.verdict import Bound, Control, Finding
from icl.errors import Unavailable
from icl.figures.claims import Claim, exact
from icl.figures.style import panels

class Good:
    reference, claim = "Lemma 0", "One is one."
    def __init__(self, seed: int = 0): self.seed = seed
    def measure(self):
        error = float(np.random.default_rng(self.seed).random())
        bound = Bound(1.0, "by definition", "error")
        return Finding("holds", {"error": error}, bound, Control("two", 2.0, True))

class Slow(Good):
    def measure(self):
        for _ in range(12): time.sleep(0.05)
        return super().measure()

class Long(Good):
    def measure(self):
        for _ in range(1200): time.sleep(0.05)

class Crash(Good):
    def measure(self): return 1 / 0

class Die(Good):
    def measure(self):
        if os.path.exists(os.environ["MYLAB_GO"] + "-alone"): raise RuntimeError("not while alone")
        os._exit(7)

class Absent(Good):
    def __init__(self): raise Unavailable("needs a telescope: none is here")

class Held:
    # Told slowly until a file says go, so that no run can have ended before it is killed.
    def rate(self, base, step):
        if step and not os.path.exists(os.environ["MYLAB_GO"]): time.sleep(0.05)
        return base

class Trained:
    def records(self, runner): return {"run": runner.train("mylab/first")}

class Curve:
    caption = "A loss."
    def __init__(self, column: str): self.column = column
    def draw(self, records):
        figure, axes = panels(1, 1)
        axes[0, 0].plot(records["run"].metrics[self.column])
        return figure
    def table(self, records):
        return [{"x": i, "y": y} for i, y in enumerate(records["run"].metrics[self.column])]
    def claims(self, records):
        last = records["run"].metrics[self.column][-1]
        small = exact(last).below(1e6, "1e6")
        return [Claim.of("it ends below one million", {"last": last}, small, trained=False)]
"""
FIGURE = """# @package figure
# paper: mylab
# reference: Figure {number}
experiment: {{_target_: mylab.all.Trained}}
draw: {{_target_: mylab.all.Curve, column: {column}}}
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
    """A user's package and configs, brought in with --config-dir and ICL_PACKAGES."""

    def __init__(self, folder: Path, files: dict[str, str]) -> None:
        self.folder = folder
        write(folder, {"mylab/__init__.py": "", "mylab/all.py": CODE})
        write(folder / "conf", files)
        path_variable = os.pathsep.join([str(folder), str(ROOT)])
        self.go = folder / "go"
        self.go.touch()
        own = {"ICL_PACKAGES": "mylab", "PYTHONPATH": path_variable, "MYLAB_GO": str(self.go)}
        self.environment = {**os.environ, **own}

    def start(self, outputs: Path, *more: str) -> Command:
        common = ["scale=smoke", "logger=none", "format=json", f"paths.outputs={outputs}"]
        argv = ["reproduce", "--config-dir", str(self.folder / "conf"), "only=[mylab]", *common, *more]
        return Command(argv, self.folder, self.environment)

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


def page(outputs: Path) -> str:
    """Return the report without its times."""
    text = (outputs / "report" / "index.html").read_text().replace(str(outputs), "OUTPUTS")
    text = re.sub(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d[\d:.+]*( UTC|Z)?", "DATE", text)
    text = re.sub(r'<td class="num">[\d.]+( × 10[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)?</td>', "TIME", text)
    text = re.sub(r"&#34;(drawing_seconds|seconds|cached)&#34;: [\w.+-]+", r"\1", text)
    return re.sub(r"\b\d+(\.\d+)?( ?s| min| seconds| h)\b", "TIME", text)


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
    assert die["id"] == "mylab/die" and "died (exit code 7)" in die["error"]
    assert document["skipped"] == [
        {"group": "check", "id": "mylab/absent", "reason": "needs a telescope: none is here"}
    ]
    assert "ahn" not in json.dumps(document)
    runs = [json.loads(path.read_text()) for path in outputs.glob("runs/mylab/first/*/run.json")]
    assert [(run["attempt"], run["resumed"]) for run in runs] == [(1, 0)]
    assert Path(document["report"]) == outputs / "report" / "smoke-mylab.html"
    assert "mylab/good" in Path(document["report"]).read_text()
    assert "0 of 6 done already, 6 to run with 2 workers, time unknown" in err
    assert err.index("check mylab/good") < err.index("figure mylab/fig1")

    lab.go.with_name("go-alone").touch()
    again, found, err = lab.run(outputs)  # in the process itself
    assert again == 4 and "3 of 6 done already, 3 to run" in err
    assert all(part["cached"] for part in [*found["checks"], *found["figures"]])
    assert found["failures"] == [crash, {**die, "error": "RuntimeError: not while alone"}]
    assert timeless(found | {"failures": []}, outputs) == timeless(document | {"failures": []}, outputs)
    assert page(outputs)


@pytest.mark.slow
def test_killed_three_times_it_ends_the_same(tmp_path: Path) -> None:
    """Send SIGTERM in a check, SIGKILL and, to a worker's parent, SIGINT in training: at moments that
    differ."""
    lab = Lab(tmp_path, configs("Slow", figures=COLUMNS))
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    code, expected, err = lab.run(straight)
    assert code == 0, err
    lab.go.unlink()

    def kill(signum: int, when: Callable[[], object], jobs: int) -> int:
        command = lab.start(broken, f"jobs={jobs}")
        command.until(when)
        time.sleep(random.uniform(0, 0.1))
        command.send(signum)
        code, err = command.end(), command.err
        assert command.out == "" and (signum == signal.SIGKILL or "interrupted" in err.splitlines()[-1]), err
        return code

    def training() -> dict[str, Any]:
        (path,) = broken.glob("runs/mylab/first/*/run.json")
        return json.loads(path.read_text())

    def checkpoint() -> tuple[str, ...]:
        """Return the checkpoints that are written whole: nothing continues from a part of one."""
        return tuple(sorted(path.name for path in broken.glob("runs/mylab/first/*/checkpoints/*.pt")))

    assert kill(signal.SIGTERM, lambda: list(broken.glob("checks/mylab/slow/*.lock")), 1) == 143
    assert not list(broken.glob("checks/mylab/slow/*.lock"))
    assert kill(signal.SIGKILL, checkpoint, 1) == -9
    before = checkpoint()
    assert kill(signal.SIGINT, lambda: checkpoint() not in (before, ()), 2) == 130
    assert training()["status"] == "interrupted" and not list(broken.rglob("*.lock"))
    lab.go.touch()
    code, document, err = lab.run(broken)
    assert code == 0, err
    assert [training()[key] for key in ("status", "attempt", "resumed")] == ["done", 1, 2]
    assert timeless(document, broken) == timeless(expected, straight)
    assert page(broken) == page(straight)


@pytest.mark.slow
def test_workers_of_a_killed_starter_end(tmp_path: Path) -> None:
    """Kill the parent: no worker is left that holds locks for which the next start would have to wait."""
    lab, outputs = Lab(tmp_path, configs("Good", "Long")), tmp_path / "out"
    command = lab.start(outputs, "jobs=2")
    locks: list[Path] = []
    command.until(lambda: locks.extend(outputs.glob("checks/mylab/long/*.lock")) or locks)
    worker = json.loads(locks[0].read_text())["pid"]
    assert worker != command.pid
    command.kill()
    while Path(f"/proc/{worker}").exists():
        time.sleep(0.005)


@pytest.fixture
def two_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce everything to two quick checks."""
    every = blank_entries(ReportRequest("smoke"), ConfigDirs())
    kept = [entry for entry in every if entry.id in ("ahn/lemma1", "ahn/theorem1") and entry.group == "check"]
    monkeypatch.setattr("icl.jobs.execution.plan.blank_entries", lambda *asked: kept)
    monkeypatch.setattr("icl.jobs.execution.run_all._ids", lambda *asked: [entry.id for entry in kept])


SMOKE = ("reproduce", "scale=smoke", "format=json")


def test_a_report_that_cannot_be_written_stops_nothing(
    icl: Run, two_checks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> Path:
        raise OSError("no paper left")

    monkeypatch.setattr("icl.jobs.execution.reproduce.write", refuse)
    result = icl(*SMOKE)
    assert result.code == 4 and len(result.json["checks"]) == 2 and result.json["report"] is None
    assert result.json["failures"] == [{"group": "report", "id": "report", "error": "OSError: no paper left"}]
    text = icl("reproduce", "scale=smoke")
    assert "failed report report: OSError: no paper left" in text.out


def test_what_is_not_available_is_skipped_and_alone_is_an_error(
    icl: Run, two_checks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Any) -> None:
        raise Unavailable("needs a language model: none is here")

    measure = Lemma1.measure
    monkeypatch.setattr(Lemma1, "measure", refuse)
    skipped = [{"group": "check", "id": "ahn/lemma1", "reason": "needs a language model: none is here"}]
    result = icl(*SMOKE)
    assert (result.code, result.json["skipped"], result.json["failures"]) == (0, skipped, [])
    assert [check["check"] for check in result.json["checks"]] == ["ahn/theorem1"]
    assert "needs a language model: none is here" in icl("reproduce", "scale=smoke").out
    many = icl("check", "check=all", "scale=smoke", "format=json")
    assert (many.code, many.json["skipped"], len(many.json["checks"])) == (0, skipped, 1)
    assert many.err.count("needs a language model") == 1
    alone = icl("check", "check=ahn/lemma1", "scale=smoke")
    assert (alone.code, alone.out) == (2, "") and "needs a language model" in alone.err
    page = Path(icl("report", "scale=smoke", "format=json").json["report"])
    assert "needs a language model: none is here" in page.read_text(), "a later page forgets the reason"
    monkeypatch.setattr(Lemma1, "measure", measure)
    assert icl(*SMOKE).json["skipped"] == []
    icl("report", "scale=smoke")
    assert "needs a language model" not in page.read_text()


def test_wandb_has_one_project_grouped_by_paper_and_scale(
    icl: Run, two_checks: None, outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Log again after W&B failed midway, which fails nothing."""

    def broken(*args: object) -> None:
        raise ConnectionResetError("W&B's service is gone")

    def logs() -> set[Path]:
        return set((outputs / "wandb").glob("offline-run-*/*.wandb"))

    args = (*SMOKE, "logger.project=lab")
    with monkeypatch.context() as patched:
        patched.setattr("icl.loggers.wandb_run.WandbRun.table", broken)
        result = icl(*args, logger="wandb_offline")
    assert (result.code, result.json["failures"], len(result.json["checks"])) == (0, [], 2)
    assert result.err.count("W&B has failed (ConnectionResetError") == 2
    before = logs()
    again = icl(*args, logger="wandb_offline")
    assert again.code == 0 and "0 of 2 done already" in again.err
    assert all(check["cached"] for check in again.json["checks"])
    whole = sorted(logs() - before, key=lambda path: path.name)
    runs = [next(record.run for record in records(log) if record.HasField("run")) for log in whole]
    assert [run.display_name for run in runs] == ["ahn/lemma1 scale=smoke", "ahn/theorem1 scale=smoke"]
    for run in runs:
        assert (run.project, run.run_group, run.job_type) == ("lab", "ahn-smoke", "check")
        assert list(run.tags) == ["ahn", "smoke"]
    (table,) = (whole[0].parent / "files").rglob("verdicts*.json")
    columns, (row,) = json.loads(table.read_text()).values()
    assert dict(zip(columns, row, strict=True))["verdict"] == result.json["checks"][0]["verdict"]
    assert "2 of 2 done already" in icl(*args, logger="wandb_offline").err
    assert logs() == {*before, *whole}
