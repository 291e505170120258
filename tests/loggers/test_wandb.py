"""Tests of what W&B gets of a run, offline and at a server on the loopback, and that no failure counts."""

import json
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml

from icl.loggers import lightning, wandb_run
from icl.loggers.documents import verdict_row
from icl.loggers.names import CURVES, JUDGED, LAYERS, STEP, SWEEP
from icl.theory.ahn.invariant_risk import InvariantRisk
from tests.commands import TINY, Run
from tests.loggers.loopback import Loopback
from tests.loggers.wandb_file import records
from tests.plans import stopped_at
from tests.processes import Command

REPOSITORY = Path(__file__).parents[2]
WANDB = Path(sys.executable).with_name("wandb")
SECRET = "5ecret" * 8
RISK = ("mean/exact_risk", "mean_band/exact_risk/low", "mean_band/exact_risk/high")
LEVELS = ("level/null", "level/optimum", "level/saddle_1", "level/saddle_2", "excess", "hessian/least")
LOGGED = ["train", *TINY, "checks=[ahn/theorem3]", "callbacks.heatmaps.count=2", "format=json"]


def apart(folder: Path, **more: str) -> dict[str, str]:
    """Return an environment with a home of its own, for which W&B has kept nothing."""
    (folder / "home").mkdir(parents=True, exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WANDB_", "XDG_"))}
    return kept | {"HOME": str(folder / "home"), "PYTHONPATH": str(REPOSITORY)} | more


def started(folder: Path, *words: str, argv: list[str] = LOGGED, **environment: str) -> Command:
    return Command(
        [*argv, *words, f"paths.outputs={folder / 'outputs'}"], folder, apart(folder, **environment)
    )


def log_of(folder: Path, kind: str = "") -> Path:
    (found,) = (folder / "outputs" / "wandb").glob(f"*run-*/run-{kind}*.wandb")
    return found


def told(log: Path, kind: str) -> list[Any]:
    return [getattr(record, kind) for record in records(log) if record.HasField(kind)]


def table_of(log: Path, name: str) -> dict[str, Any]:
    (path,) = log.parent.glob(f"files/media/table/{name}_*.json")
    return json.loads(path.read_text())


def values(items: Any) -> dict[str, Any]:
    return {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Command]:
    folder = tmp_path_factory.mktemp("offline")
    command = started(folder, "logger.wandb.tags=[mine]", WANDB_API_KEY=SECRET, WANDB_NOTES=f"with {SECRET}")
    assert command.end() == 0, command.err
    return folder, command


def test_the_run_in_wandbs_own_file(offline: tuple[Path, Command]) -> None:
    folder, command = offline
    log, made = log_of(folder), json.loads(command.out)
    (run,) = told(log, "run")
    assert (run.run_id, run.project, run.job_type) == (f"{made['fingerprint']}-1", "icl", "train")
    assert run.display_name.startswith("ahn/theorem3 ") and run.run_group.startswith("ahn/theorem3 ")
    assert (list(run.tags), run.notes) == (["ahn", "smoke", "mine"], "with <redacted>")
    rows = [values(row.item) for row in told(log, "history")]
    by_step = {row["trainer/global_step"]: row for row in rows if "mean/loss" in row}
    assert list(by_step) == [0, 2, 4]
    end, loss = by_step[4], made["metrics"]["loss"]
    assert end["mean/loss"] == pytest.approx(loss["mean"])
    assert {end["seed/0/loss"], end["seed/1/loss"]} == {end["mean_band/loss/low"], end["mean_band/loss/high"]}
    captions = [row["weights/all/captions"] for row in rows if "weights/all/captions" in row]
    assert captions[-1] == ["mean of 2 seeds, step 4"]
    decides = [row for row in rows if "level/optimum" in row]
    assert [row["trainer/global_step"] for row in decides] == [0, 4]
    assert [row["level/optimum"] for row in decides] == pytest.approx([12138645 / 90852389] * 2)
    assert all(row["excess"] > 0 > row["hessian/least"] for row in decides)
    layers, curves, verdicts = (table_of(log, name) for name in ("layers", "curves", "verdicts"))
    assert layers["columns"] == [*LAYERS] and {row[0] for row in layers["data"]} == {0, 1, 2, 3, 4}
    assert curves["columns"] == [*CURVES] and verdicts["columns"] == [*JUDGED]
    drawn = {(step, name): values for step, name, *values in curves["data"]}
    assert drawn[4, "exact_risk"] == pytest.approx([end[name] for name in RISK])
    assert {name for _, name in drawn} == {"exact_risk", *LEVELS}
    (row,) = (dict(zip(JUDGED, row, strict=True)) for row in verdicts["data"])
    assert (row["verdict"], row["measured"], row["control"]) == ("undecided", None, None)  # far too short
    models = [artifact for artifact in told(log, "artifact") if artifact.type == "model"]
    ((kept,),) = [model.manifest.contents for model in models]
    assert (models[0].name, kept.path) == ("ahn-theorem3", "weights.npz")
    assert told(log, "exit")[-1].exit_code == 0


@pytest.mark.parametrize(
    ("measured", "bound", "control", "weights", "found"),
    [
        (0.0, 0.0, 0.3, None, (0.0, 0.3)),
        (2.0, 5.0, 1.5, None, (2.0, 6.5)),  # the control is what is beyond the limit
        (0.01, 0.05, 3.0, "this run", (0.01, 0.2)),  # of weights, in tolerances
        ([1.0], 5.0, 1.5, None, (None, None)),
    ],
)
def test_measured_and_control_are_in_the_unit_of_the_bound(
    measured: Any, bound: float, control: float, weights: str | None, found: Any
) -> None:
    document = {name: "" for name in ("check", "reference", "claim", "verdict", "expected")} | {
        "measured": {"risk": measured},
        "bound": {"of": "risk", "direction": "<", "value": bound, "source": ""},
        "control": {"description": "a wrong one", "measured": control},
        "settings": {"weights": weights},
    }
    row = dict(zip(JUDGED, verdict_row(document), strict=True))
    assert (row["measured"], row["control"]) == pytest.approx(found)


def test_nothing_private_is_kept(offline: tuple[Path, Command]) -> None:
    """Nor is anything written outside the outputs."""
    folder, _ = offline
    log = log_of(folder)
    for kind in ("environment", "stats", "output_raw"):
        assert told(log, kind) == []
    (run,) = told(log, "run")
    assert run.host == "icl" != socket.gethostname() and not run.HasField("git")
    for path in (folder / "outputs").rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path
    assert not [path for path in (folder / "home").rglob("*") if "wandb" in path.name]


def test_wandbs_own_variables_and_settings(tmp_path: Path) -> None:
    own = {"WANDB_NAME": "mine", "WANDB_RUN_GROUP": "study", "WANDB_JOB_TYPE": "probe", "WANDB_TAGS": "a,b c"}
    words = ["+logger.wandb.settings.console=wrap", "callbacks.heatmaps=null", "checks=[]"]
    assert started(tmp_path, *words, **own, WANDB_PROJECT="lab").end() == 0
    log = log_of(tmp_path)
    (run,) = told(log, "run")
    found = (run.display_name, run.run_group, run.job_type, run.project, list(run.tags))
    assert found == ("mine", "study", "probe", "lab", ["ahn", "smoke", "a", "b c"])


@pytest.mark.parametrize(
    ("verb", "table"),
    [(["check", "check=ahn/lemma1"], "verdicts"), (["figure", "figure=lds/fig2"], "claims")],
)
def test_a_document_is_a_run_once(verb: list[str], table: str, icl: Run, outputs: Path) -> None:
    for _ in range(2):  # the second is cached
        assert icl(*verb, "scale=smoke", logger="wandb_offline").code in (0, 3)
    kind, _, id = verb[1].partition("=")
    log = log_of(outputs.parent, kind)
    (run,) = told(log, "run")
    assert run.run_id.startswith(f"{kind}-{id.replace('/', '-')}-") and run.job_type == kind
    assert run.run_group == f"{id.partition('/')[0]}-smoke"
    assert list(log.parent.glob(f"files/media/table/{table}*.json"))
    assert bool(list(log.parent.glob("files/media/images/**/*.png"))) == (kind == "figure")


def test_rows_arrive_at_a_server(tmp_path: Path) -> None:
    """Send them under the agent's id, where an agent has started the run."""
    agent = {"WANDB_SWEEP_ID": "sweep1", "WANDB_RUN_ID": "theirs", "WANDB_ENTITY": "me"}
    with Loopback() as server:
        command = started(tmp_path, **server.environment, **agent)
        code = command.end()
        if server.unknown:
            pytest.skip(f"the client asks what the server on the loopback does not know: {server.unknown[0]}")
        assert (code, command.err.count("W&B")) == (0, 0), command.err
    (run,) = server.runs.values()
    assert (run.identity["name"], run.identity["sweep"], run.exit_code) == ("theirs", "sweep1", 0)
    steps = [row["trainer/global_step"] for row in run.rows if "mean/loss" in row]
    assert steps == [0, 2, 4] and run.summary["loss"] > 0 and run.config["commit"]
    sweep = yaml.safe_load((REPOSITORY / "examples" / "wandb_sweep.yaml").read_text())
    assert sweep["metric"]["name"] in run.summary


NOWHERE = {"WANDB_BASE_URL": "http://127.0.0.1:9", "WANDB_API_KEY": "f" * 40}
BAD: dict[str, Callable[[], Any]] = {
    "no key": lambda: nullcontext({}),
    "no server": lambda: nullcontext(NOWHERE),
    "hangs": lambda: Loopback(says=None),
    "500": lambda: Loopback(says=(500, b"")),
    "garbage": lambda: Loopback(says=(200, b"\x00\xff<html>")),
    "refuses runs": lambda: Loopback("UpsertBucket"),
    "takes no files": lambda: Loopback("storage"),
}


@pytest.mark.parametrize(
    "bad", [pytest.param(bad, marks=[pytest.mark.nightly] * (i > 2)) for i, bad in enumerate(BAD)]
)
def test_no_failure_of_wandb_fails_or_blocks_a_run(bad: str, tmp_path: Path) -> None:
    """Say it in one line, with the command that uploads what is on the disk; that works."""
    words = ["logger=wandb", "logger.wandb.init_timeout=1", "-m", "seed=1,2"]
    with BAD[bad]() as server:
        command = started(tmp_path, *words, **getattr(server, "environment", server))
        assert command.end() == 0 and "Traceback" not in command.err, command.err
    (line,) = [line for line in command.err.splitlines() if "W&B" in line]
    upload = shlex.split(line.partition("upload with: ")[2])
    assert upload[0] == "wandb" and "f" * 40 not in line
    with Loopback() as server:
        environment = apart(tmp_path, **server.environment)
        subprocess.run([WANDB, *upload[1:]], env=environment, cwd=tmp_path, check=True, capture_output=True)
    (run,) = server.runs.values()
    assert [row["trainer/global_step"] for row in run.rows if "mean/loss" in row] == [0, 2, 4]


STOPS: list[Any] = []


def stop_at_4() -> None:
    STOPS.append(stopped_at(4))  # kept: what is collected is undone
    STOPS[0].__enter__()


def test_a_resumed_run_is_one_run(tmp_path: Path) -> None:
    words = ["logger=wandb", "train.steps=8"]
    with Loopback() as server:
        environment = apart(tmp_path, **server.environment)
        argv = [*LOGGED, *words, f"paths.outputs={tmp_path / 'outputs'}"]
        assert Command(argv, tmp_path, environment, stop_at_4).end() == 143
        command = started(tmp_path, *words, **server.environment)
        assert command.end() == 0 and json.loads(command.out)["resumed"], command.err
        if server.unknown:
            pytest.skip(f"the client asks what the server on the loopback does not know: {server.unknown[0]}")
    (run,) = server.runs.values()
    assert [row[STEP] for row in run.rows if "mean/loss" in row] == [0, 2, 4, 6, 8] and run.exit_code == 0


@pytest.mark.parametrize("broken", ["open", "log", "finish"])
def test_what_wandb_raises_is_said_once(broken: str, tiny: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Fails(mock.MagicMock):
        def __getattr__(self, name: str) -> Any:
            if name == broken:
                raise ConnectionResetError("gone")
            return super().__getattr__(name)

    def open_run(**_: object) -> Fails:
        if broken == "open":
            raise ConnectionResetError("gone")
        return Fails()

    monkeypatch.setattr(lightning, "open_run", open_run)
    result = tiny(logger="wandb")
    assert result.code == 0
    assert result.err.count("W&B has failed (ConnectionResetError: gone)") == 1


def test_everything_private_is_a_setting_of_wandbs() -> None:
    import wandb

    assert set(wandb_run.PRIVATE) <= set(wandb.Settings.model_fields)


def test_a_sweep_is_a_run_with_its_table(tiny: Run, outputs: Path) -> None:
    """Beside the means the exact optimum of each configuration, here from the rationals."""
    words = ["-m", "task.context=4,8", "seeds=[0,1]", "format=json"]
    made = tiny(*words, logger="wandb_offline").json
    assert tiny(*words, logger="wandb_offline").json["cached"] == 2  # and is not logged again
    (log,) = (outputs / "wandb").glob("*run-*/run-sweep-*.wandb")
    (run,) = told(log, "run")
    assert (run.job_type, run.display_name) == ("sweep", "sweep ahn/theorem3 over n")
    table = table_of(log, "sweep")
    rows = [dict(zip(SWEEP, row, strict=True)) for row in table["data"] if row[1] == "exact_risk"]
    summary = [row for row in made["summary"] if row["metric"] == "exact_risk"]
    assert [row["mean"] for row in rows] == [row["mean"] for row in summary]
    assert [(row["x"], row["count"], row["key"]) for row in rows] == [(4, 2, "n"), (8, 2, "n")]
    bounds = [float(InvariantRisk(5, n, 3).lower_bound()) for n in (4, 8)]
    assert [row["theory"] for row in rows] == pytest.approx(bounds)
