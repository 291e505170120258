"""`icl figure`: the document, the files, what is found again and what is refused."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
SMOKE = ("scale=smoke", "logger=none")


@pytest.fixture
def fig2(icl: Run) -> Any:
    result = icl("figure", "figure=ahn/fig2", "format=json", *SMOKE)
    assert result.code == 0, result.err
    return result.json


def test_a_figure_is_found_again_and_drawn_again_on_request(icl: Run, fig2: Any, outputs: Path) -> None:
    assert (fig2["figure"], fig2["scale"], fig2["cached"]) == ("ahn/fig2", "smoke", False)
    assert {claim["verdict"] for claim in fig2["claims"]} == {"undecided"}
    assert all(
        set(claim) >= {"claim", "measured", "bound", "verdict", "expected"} for claim in fig2["claims"]
    )
    files = {extension: Path(path) for extension, path in fig2["files"].items()}
    assert set(files) == {"png", "pdf", "csv", "md"}
    assert all(
        path.parent == outputs / "figures/ahn/fig2/smoke" and path.stat().st_size for path in files.values()
    )
    assert all((Path(path) / "run.json").is_file() for path in fig2["runs"])
    rows = list(csv.DictReader(files["csv"].open()))
    assert len(rows) == 2 * 3 * 25
    caption = files["md"].read_text()
    assert all(claim["claim"].replace("|", "\\|") in caption for claim in fig2["claims"])

    again = icl("figure", "figure=ahn/fig2", "format=json", *SMOKE).json
    assert again == fig2 | {"cached": True}
    files["csv"].write_text("")
    assert not icl("figure", "figure=ahn/fig2", "format=json", *SMOKE).json["cached"]
    assert files["csv"].stat().st_size
    assert not icl("figure", "figure=ahn/fig2", "format=json", "force=true", *SMOKE).json["cached"]

    listed = icl("list", "format=json", logger=None).json["figures"]
    assert [item["done"] for item in listed if item["id"] == "ahn/fig2"] == [True]

    text = icl("figure", "figure=ahn/fig2", *SMOKE)
    assert (text.code, text.out.count("undecided, as expected")) == (0, 2)


def test_figures_share_their_run(icl: Run, fig2: Any) -> None:
    fig1 = icl("figure", "figure=ahn/fig1", "format=json", *SMOKE)
    assert fig1.json["runs"] == fig2["runs"]
    assert fig1.code == 0
    assert json.loads(fig1.out)["claims"][0]["expected"] == "undecided"


def test_other_settings_leave_the_shipped_figure_alone(icl: Run) -> None:
    tiny = ("figure.experiment.starts=1", "figure.experiment.batches=1", "format=json", *SMOKE)
    many = icl("figure", "-m", "figure=ahn/fig4", "figure.experiment.context=6,10", *tiny)
    assert many.code == 0, many.err
    files = [job["document"]["files"]["png"] for job in many.json["results"]]
    shipped = icl("figure", "figure=ahn/fig4", "format=json", *SMOKE).json["files"]["png"]
    assert len({*files, shipped}) == 3
    assert Path(shipped).name == "fig4.png"
    assert all(Path(file).is_file() for file in files)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["figure=ahn/fig9"], "figure=ahn/fig9"),
        (["figure=nobody/all"], "nobody/all"),
        (["figure=all", "figure.experiment.context=20"], "only scale"),
        (["figure=ahn/fig3", "figure.experiment.context=0"], "figure.experiment.context=0"),
        (["figure=ahn/fig3", "figure.experiment.contxt=20"], "contxt"),
        (["figure=ahn/fig1", "scale=tiny"], "scale=tiny"),
        (["figure=ahn/fig1", "jobs=0"], "jobs=0"),
        ([], "figure=ahn/fig1"),
    ],
)
def test_wrong_input_is_one_line_and_leaves_nothing(
    icl: Run, outputs: Path, args: list[str], words: str
) -> None:
    result = icl("figure", *args)
    assert (result.code, result.out) == (2, "")
    assert words in result.err
    assert len(result.err.strip().splitlines()) <= 2
    assert not outputs.exists()
