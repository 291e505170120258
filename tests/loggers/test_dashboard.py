"""Tests of the dashboard: the same JSON each time, without a server, of fields that are logged; and saved."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from icl.loggers.dashboard import CHARTS, Dashboard, spec_of
from tests.loggers.loopback import Loopback
from tests.loggers.test_wandb import apart
from tests.processes import Command

ROW = ("name",)  # what W&B adds to each row of a table
ALL = Dashboard("", "icl", ["ahn/theorem3"], ["ahn", "xie"])


def parts(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
    for one in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from parts(one)


@pytest.mark.parametrize("name", CHARTS)
def test_a_charts_fields_are_columns_of_its_table(name: str) -> None:
    spec, made, read = spec_of(name), set[str](), set[str]()
    for part in parts(spec):
        named = part.get("as", [])
        made |= {named} if isinstance(named, str) else {*named}
        read |= {part["field"]} if isinstance(part.get("field"), str) else set()
        read |= {*part.get("groupby", []), *part.get("fold", [])}
        texts = [part[key] for key in ("filter", "calculate") if isinstance(part.get(key), str)]
        read |= {field for text in texts for field in re.findall(r"datum\.(\w+)", text)}
    assert read - made <= {*CHARTS[name].columns, *ROW} and spec["data"] == {"name": "wandb"}
    panel = next(
        panel
        for panels in ALL.sections().values()
        for panel in panels
        if vars(panel).get("chart_name") == f"icl-{name}"
    )
    assert panel.query == {"summaryTable": {"tableKey": CHARTS[name].table}}


def test_its_json_is_the_same_each_time_and_asks_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: object, **__: object) -> None:
        raise AssertionError("asks a server")

    monkeypatch.setattr("wandb.Api", asked)
    one, other = (json.dumps(ALL.documents()) for _ in range(2))
    assert one == other
    runs = ALL.documents()["workspace"]["spec"]["section"]["runSets"][0]
    assert [key["name"] for key in runs["grouping"]] == ["paper.value", "experiment.value"]
    assert [key["key"]["name"] for key in runs["sort"]["keys"]][:2] == ["paper", "experiment"]
    assert len(ALL.documents()["workspace"]["spec"]["section"]["customRunColors"]) == len(ALL.papers)


def test_it_is_written_and_saved(tmp_path: Path) -> None:
    with Loopback() as server:
        documents = []
        for words in ([], ["save=true"]):
            argv = ["dashboard", "ahn/theorem3", "format=json", f"paths.outputs={tmp_path}", *words]
            command = Command(argv, tmp_path, apart(tmp_path, **server.environment))
            assert command.end() == 0 and bool(server.views) == bool(words), command.err
            documents.append(json.loads(command.out))
        if server.unknown:
            pytest.skip(f"the client asks what the server on the loopback does not know: {server.unknown[0]}")
    found, saved = documents[0], documents[1]["saved"]
    assert found["saved"] is None and saved["report"].startswith(f"{server.url}/me/icl/reports/")
    assert set(server.charts) == {f"icl-{name}" for name in CHARTS}
    workspace = json.loads(Path(found["workspace"]).read_text())
    names = [
        section["name"] for section in server.views["project-view"]["section"]["panelBankConfig"]["sections"]
    ]
    assert names == [
        section["name"] for section in workspace["spec"]["section"]["panelBankConfig"]["sections"]
    ]
    grids = [block for block in server.views["runs"]["blocks"] if block["type"] == "panel-grid"]
    assert {grid["metadata"]["runSets"][0]["project"]["name"] for grid in grids} == {"icl"}


def test_to_save_takes_a_key(tmp_path: Path) -> None:
    words = ["dashboard", "save=true", f"paths.outputs={tmp_path / 'outputs'}"]
    command = Command(words, tmp_path, apart(tmp_path))
    assert (command.end(), command.err.count("\n")) == (2, 1) and "no W&B key" in command.err
    assert not (tmp_path / "outputs" / "dashboard").exists()
