"""Tests of the dashboard: the same JSON each time, without a server, of fields that are logged; and saved."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from icl.cli import main
from icl.loggers.dashboard import CHARTS, Dashboard, spec_of
from tests.loggers.loopback import Loopback
from tests.loggers.test_wandb import apart
from tests.processes import Command
from tests.report.browser import browser, find
from tests.report.test_browser import COMPLAINTS

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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ahn/theorm3"], "did you mean ahn/theorem3?"),
        (["save=maybe"], "save=maybe: must be"),
        (["colour=blue"], "colour=blue: icl dashboard takes"),
    ],
)
def test_wrong_input_is_one_line(words: list[str], said: str, tmp_path: Path, capsys: Any) -> None:
    assert main(["dashboard", *words, f"paths.outputs={tmp_path / 'outputs'}"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and said in err and err.count("\n") <= 2 and not (tmp_path / "outputs").exists()


def test_to_save_takes_a_key(tmp_path: Path) -> None:
    words = ["dashboard", "save=true", f"paths.outputs={tmp_path / 'outputs'}"]
    command = Command(words, tmp_path, apart(tmp_path))
    assert (command.end(), command.err.count("\n")) == (2, 1) and "no W&B key" in command.err
    assert not (tmp_path / "outputs" / "dashboard").exists()


VERDICT = {
    "check": "ahn/theorem1",
    "verdict": "holds",
    "direction": "<",
    "measured": 0.01,
    "bound": 0.05,
    "control": 0.4,
}
STEPS = (0, 1, 10, 100)
DATA: dict[str, list[dict[str, Any]]] = {
    "theorem": [
        {"step": step, "quantity": name, "mean": mean, "low": mean / 2, "high": mean * 2}
        for step in STEPS
        for name, mean in {"exact_risk": 3 / (1 + step), "level/optimum": 0.02, "level/saddle_1": 0.3}.items()
    ],
    "critical": [
        {"step": step, "quantity": name, "mean": mean, "low": mean, "high": mean}
        for step in STEPS
        for name, mean in {"gradient_norm": 3 / (1 + step), "hessian/least": step - 20.0}.items()
    ],
    "layers": [
        {"step": step, "seed": seed, "layer": layer, "trained": layer + seed / 10, "exact": layer + 0.5}
        for step in STEPS
        for seed in (0, 1)
        for layer in (0, 1)
    ],
    "verdicts": [VERDICT, VERDICT | {"check": "ahn/lemma1", "direction": "=", "bound": 0.0, "measured": 0.0}],
    "sweep": [
        {"metric": "exact_risk", "x": n, "key": "n", "rest": "", "mean": 1 / n}
        | {"low": 0.5 / n, "high": 2 / n, "theory": 0.4 / n}
        for n in (10, 20)
    ],
}  # fmt: skip
MARKS = {"theorem": 8, "critical": 12, "layers": 8, "verdicts": 8, "sweep": 4}  # lines, bands, points, keys


@pytest.mark.chromium
@pytest.mark.parametrize("width", [1280, 400])
def test_vega_lite_draws_the_charts_without_a_warning(width: int, tmp_path: Path) -> None:
    """Draw them in Chromium. ICL_VEGA: a folder where `npm install vega vega-lite@5 vega-embed@6` was run."""
    program, folder = find(), os.environ.get("ICL_VEGA", "")
    if program is None or not folder:
        pytest.skip("no Chromium (scripts/chromium.sh)" if program is None else "no ICL_VEGA")
    names = ("vega", "vega-lite", "vega-embed")
    paths = [Path(folder, "node_modules", name, "build", f"{name}.min.js") for name in names]
    scripts = "".join(f"<script src='{path.as_uri()}'></script>" for path in paths)
    with browser(program, tmp_path / "profile") as tab:
        for name, marks in MARKS.items():
            rows = [row | {"name": "a run"} for row in DATA[name]]
            spec = json.dumps(spec_of(name) | {"data": {"name": "wandb", "values": rows}})
            size = f"width:{width}px;height:300px"
            how = "{renderer: 'svg', actions: false}"
            shown = f"window.done = vegaEmbed('#v', {spec}, {how}).then(() => 'drawn', String)"
            page = tmp_path / f"{name}.html"
            page.write_text(
                f"<meta charset=utf-8><meta name=viewport content='width=device-width'>{scripts}"
                f"<body style='margin:0'><div id=v style='{size}'></div><script>{shown}</script>"
            )
            tab.open(page, width, 320)
            assert tab.run("window.done") == "drawn"
            said = [event for event in tab.events if event["method"] in COMPLAINTS]
            assert said == [], said
            count = "document.querySelectorAll('.{} > *').length"
            assert sum(tab.run(count.format(f"mark-{kind}")) for kind in ("symbol", "line", "area")) == marks
            assert tab.run("document.querySelectorAll('.role-axis-title text').length") >= 1
            assert tab.run("document.querySelector('svg').getBoundingClientRect().right") <= width + 1
