"""Tests of `icl figure`: the document, the files, what is found again and what is refused."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from icl.cli import main
from tests.commands import Run, write
from tests.loggers.wandb_file import records

FIG3 = ["figure", "figure=lds/fig3", "scale=smoke", "format=json"]


def test_a_figure_is_found_again_and_drawn_again_on_request(
    icl: Run, outputs: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    result = icl(*FIG3)
    assert result.code == 0, result.err
    fig3 = result.json
    assert (fig3["figure"], fig3["scale"], fig3["cached"]) == ("lds/fig3", "smoke", False)
    assert [claim["verdict"] for claim in fig3["claims"]] == ["undecided"] * 2
    parts = {"claim", "measured", "bound", "verdict", "expected"}
    assert all(set(claim) >= parts for claim in fig3["claims"])
    files = {extension: Path(path) for extension, path in fig3["files"].items()}
    assert set(files) == {"png", "pdf", "svg", "csv", "md"}
    folder = outputs / "figures/lds/fig3/smoke"
    assert all(path.parent == folder and path.stat().st_size for path in files.values())
    assert fig3["runs"] and all((Path(path) / "run.json").is_file() for path in fig3["runs"])
    assert {row["panel"] for row in csv.DictReader(files["csv"].open())} == {"AR(1)", "AR(2)"}
    caption = files["md"].read_text()
    assert all(claim["claim"].replace("|", "\\|") in caption for claim in fig3["claims"])

    assert icl(*FIG3).json == fig3 | {"cached": True}
    style = write(tmp_path / "styles", {"my.mplstyle": "font.size: 9\n"}) / "my.mplstyle"
    look = [*FIG3, f"figure.style={style}", "figure.width=3.3", "figure.formats=[pdf]"]
    mine = icl(*look).json
    assert not mine["cached"] and mine["runs"] == fig3["runs"] and mine["claims"] == fig3["claims"]
    assert set(mine["files"]) == {"pdf", "csv", "md"} and mine["files"]["pdf"] != fig3["files"]["pdf"]
    picture = Path(mine["files"]["pdf"]).read_bytes()
    assert icl(*look).json == mine | {"cached": True}
    style.write_text("font.size: 11\n")  # another style is not served with the picture of this one
    assert not icl(*look).json["cached"] and Path(mine["files"]["pdf"]).read_bytes() != picture
    assert icl(*FIG3).json == fig3 | {"cached": True}, "the shipped picture stays"

    files["csv"].write_text("")
    assert not icl(*FIG3).json["cached"]
    assert files["csv"].stat().st_size
    assert not icl(*FIG3, "force=true").json["cached"]
    listed = icl("list", "format=json").json["figures"]
    assert [item["done"] for item in listed if item["id"] == "lds/fig3"] == [True]
    text = icl(*FIG3[:3])
    assert (text.code, text.out.count("  undecided")) == (0, 1)
    assert "lds/fig3 at smoke (found): 2 undecided" in text.out and "undecided is expected at" in text.out
    assert icl(*FIG3[:3], "verbose=true").out.count("  undecided (training at scale=smoke") == 2

    # A copy answers with its own files, also where the runs are looked for anew, with these configs.
    copy = shutil.move(outputs, tmp_path / "copy")
    conf = write(tmp_path / "conf", {"task/mine.yaml": "{}\n"})
    for more in ([], ["--config-dir", str(conf)]):
        assert main([*FIG3, "logger=none", *more, f"paths.outputs={copy}"]) == 0
        again = json.loads(capfd.readouterr().out)
        assert again["cached"] and again["claims"] == fig3["claims"]
        assert len(again["runs"]) == len(fig3["runs"])
        for path in map(Path, [*again["files"].values(), *again["runs"]]):
            assert path.is_relative_to(copy) and path.exists()
    assert not outputs.exists()


def test_other_settings_leave_the_shipped_figure_alone(icl: Run, outputs: Path) -> None:
    """Draw from the same trained runs, whose models are logged to W&B as inputs."""
    fig1 = ["figure=giannou/fig1", "scale=smoke", "format=json"]
    many = icl("figure", "-m", *fig1, "figure.experiment.newton_steps=2")
    assert many.code == 0, many.err
    (job,) = many.json["results"]
    drawn = [job["document"], icl("figure", *fig1).json]
    files = [Path(document["files"]["png"]) for document in drawn]
    assert files[0] != files[1] and all(file.is_file() for file in files)
    assert files[1].name == "fig1.png"
    command = "`icl figure figure=giannou/fig1 scale=smoke"
    for document, own in zip(drawn, (" figure.experiment.newton_steps=2`", "`"), strict=True):
        assert f"\n{command}{own}\n" in Path(document["files"]["md"]).read_text()
    runs = [{run for run in document["runs"] if "giannou/logistic/" in run} for document in drawn]
    assert runs[0] == runs[1] and len(runs[0]) == 2

    assert icl("figure", *fig1, logger="wandb_offline").code == 0
    models: dict[bool, set[tuple[str, str]]] = {True: set(), False: set()}  # by whether they are used
    for log in (outputs / "wandb").glob("offline-run-*/*.wandb"):
        for artifact in (record.artifact for record in records(log) if record.HasField("artifact")):
            is_used = artifact.use_after_commit
            assert is_used == ("figure" in log.name) or artifact.type != "model"
            if artifact.type == "model":
                models[is_used].add((artifact.name, artifact.digest))
    assert models[True] == models[False] and len(models[True]) == 2
