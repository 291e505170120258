"""Tests of `icl report wandb=true`: what arrives at a server on the loopback; what is refused leaves
nothing.
"""

import json
import sys
from pathlib import Path

import pytest

from icl.cli import main
from tests.loggers.loopback import Loopback
from tests.loggers.test_wandb_online import script


def test_the_report_arrives_with_its_panels(tmp_path: Path) -> None:
    outputs = tmp_path / "outputs"
    words = ["report", "wandb=true", "only=[ahn]", "scale=smoke", "format=json", f"paths.outputs={outputs}"]
    body = f"from icl.cli import main; sys.exit(main({words!r}))"
    with Loopback() as server, script(tmp_path, body, **server.environment) as process:
        said, errors = process.communicate()
    unknown = [
        question for question in server.unknown if not question.startswith("/sdk/otel")
    ]  # its telemetry
    if unknown:
        pytest.skip(f"the client asks what the server on the loopback does not know: {unknown[0]}")
    assert process.returncode == 0, errors
    (view,) = server.views
    assert (view["displayName"], view["entityName"], view["projectName"]) == ("icl at smoke", "me", "icl")
    assert json.loads(said)["wandb"].startswith(f"{server.url}/me/icl/reports/")
    grids = [block["metadata"] for block in view["spec"]["blocks"] if block["type"] == "panel-grid"]
    kinds = []
    for grid in grids:
        (runs,) = grid["runSets"]
        values = [entry["value"] for entry in runs["filters"]["filters"]]
        assert values[:2] == [["ahn"], ["smoke"]]
        kinds.append(values[2])
    assert kinds == ["check", "figure", "train"]
    training = grids[-1]["panelBankSectionConfig"]["panels"]
    curves = {panel["config"]["chartTitle"]: panel["config"] for panel in training[:-1]}
    assert curves["exact_risk"]["xAxis"] == "step"
    bands = [f"mean_band/exact_risk/{end}" for end in ("low", "high")]
    assert curves["exact_risk"]["metrics"] == ["mean/exact_risk", *bands]
    assert "weights/A" in training[-1]["config"]["mediaKeys"]
    pictures = grids[1]["panelBankSectionConfig"]["panels"][0]["config"]["mediaKeys"]
    assert "ahn/fig1" in pictures and not [name for name in pictures if not name.startswith("ahn/")]


def test_without_the_library_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "wandb_workspaces.reports.v2", None)
    assert main(["report", "wandb=true", f"paths.outputs={tmp_path / 'outputs'}"]) == 2
    assert "pip install 'icl-theory[report]'" in capfd.readouterr().err
    assert not (tmp_path / "outputs" / "report").exists()


@pytest.mark.parametrize("entity", ["null", "me"])
def test_nor_without_a_key(
    entity: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))
    outputs = tmp_path / "outputs"
    assert main(["report", "wandb=true", f"++logger.entity={entity}", f"paths.outputs={outputs}"]) == 2
    assert "wandb=true: W&B cannot be reached" in capfd.readouterr().err
    assert not outputs.exists()
