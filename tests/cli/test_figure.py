"""`icl figure`: the document, the files, what is found again and what is refused."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from icl.cli import main

Run = Callable[..., Any]
SMOKE = ("scale=smoke", "logger=none")


def test_a_figure_is_found_again_and_drawn_again_on_request(icl: Run, outputs: Path) -> None:
    result = icl("figure", "figure=ahn/fig2", "format=json", *SMOKE)
    assert result.code == 0, result.err
    fig2 = result.json
    assert (fig2["figure"], fig2["scale"], fig2["cached"]) == ("ahn/fig2", "smoke", False)
    assert {claim["verdict"] for claim in fig2["claims"]} == {"undecided"}
    assert all(
        set(claim) >= {"claim", "measured", "bound", "verdict", "expected"} for claim in fig2["claims"]
    )
    files = {extension: Path(path) for extension, path in fig2["files"].items()}
    assert set(files) == {"png", "pdf", "svg", "csv", "md"}
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
    assert (text.code, text.out.count("  undecided\n")) == (0, 2)


def test_a_copy_answers_with_its_own_files(
    icl: Run, outputs: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    argv = ["figure", "figure=lds/fig3", "format=json", *SMOKE]
    first = icl(*argv).json
    copy = tmp_path / "copy"
    shutil.move(outputs, copy)
    (tmp_path / "conf" / "task").mkdir(parents=True)
    (tmp_path / "conf" / "task" / "mine.yaml").write_text("{}\n")  # with which the runs are looked for anew
    for more in ([], ["--config-dir", str(tmp_path / "conf")]):
        assert main([*argv, *more, f"paths.outputs={copy}"]) == 0
        again = json.loads(capfd.readouterr().out)
        assert again["cached"] and again["claims"] == first["claims"]
        paths = [*again["files"].values(), *again["runs"]]
        assert len(again["runs"]) == len(first["runs"])
        assert all(Path(path).is_relative_to(copy) and Path(path).exists() for path in paths), paths
    assert not outputs.exists()


def test_other_settings_leave_the_shipped_figure_alone(icl: Run) -> None:
    """And all are drawn from the same trained runs."""
    tiny = ("figure.experiment.starts=1", "figure.experiment.batches=1", "format=json", *SMOKE)
    many = icl("figure", "-m", "figure=ahn/fig4", *tiny)
    assert many.code == 0, many.err
    (job,) = many.json["results"]
    drawn = [job["document"], icl("figure", "figure=ahn/fig4", "format=json", *SMOKE).json]
    files = [Path(document["files"]["png"]) for document in drawn]
    assert files[0] != files[1] and all(file.is_file() for file in files)
    assert files[1].name == "fig4.png"
    runs = [{run for run in document["runs"] if "theorem4_lbfgs/" in run} for document in drawn]
    assert runs[0] == runs[1] and len(runs[0]) == 2
