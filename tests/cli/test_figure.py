"""Tests of `icl figure`: the document, the files, what is found again and what is refused."""

import json
import shutil
from pathlib import Path

import pytest

from icl.cli import main, show
from tests.commands import Run, write

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
    assert set(files) == {"png", "pdf", "svg"}
    folder = outputs / "figures/lds/fig3/smoke"
    assert all(path.parent == folder and path.stat().st_size for path in files.values())
    assert fig3["runs"] and all((Path(path) / "run.json").is_file() for path in fig3["runs"])

    assert icl(*FIG3).json == fig3 | {"cached": True}
    style = write(tmp_path / "styles", {"my.mplstyle": "font.size: 9\n"}) / "my.mplstyle"
    look = [*FIG3, f"figure.style={style}", "figure.width=3.3", "figure.formats=[pdf]"]
    mine = icl(*look).json
    assert mine["cached"] and mine["runs"] == fig3["runs"] and mine["claims"] == fig3["claims"]
    assert set(mine["files"]) == {"pdf"} and mine["files"]["pdf"] != fig3["files"]["pdf"]
    picture = Path(mine["files"]["pdf"]).read_bytes()
    style.write_text("font.size: 11\n")  # another style is not served with the picture of this one
    shutil.move(outputs / "runs", tmp_path / "runs")  # the arrays are enough
    assert icl(*look).json == mine and Path(mine["files"]["pdf"]).read_bytes() != picture
    shutil.move(tmp_path / "runs", outputs / "runs")
    assert icl(*FIG3).json == fig3 | {"cached": True}, "the shipped picture stays"

    files["svg"].write_text("")
    files["pdf"].unlink()
    one = icl(*FIG3, "figure.formats=[png]").json
    assert not one["cached"] and {*one["files"]} == {"png"} and not files["pdf"].exists()
    assert icl(*FIG3).json["files"] == fig3["files"] and all(path.stat().st_size for path in files.values())
    assert not icl(*FIG3, "force=true").json["cached"]
    listed = icl("list", "format=json").json["figures"]
    assert [item["done"] for item in listed if item["id"] == "lds/fig3"] == [True]
    text = icl(*FIG3[:3])
    assert (text.code, text.out.count("  undecided")) == (0, 0), "what is expected is counted"
    assert "lds/fig3 at smoke: 2 undecided (found)" in text.out

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


def test_a_claim_counts_its_seeds_beside_other_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    seeds = {"0": [1.5, 2.5], "1": [3.5, 4.5]}
    for measured, told in (
        ({"A": {"mean": 2.5, "by seed": seeds}}, "A: (mean: 2.5; by seed: 2 seeds in format=json)"),
        ({"by_seed": seeds}, "by_seed: (0: [1.5, 2.5]; 1: [3.5, 4.5])"),
    ):
        claim = {"claim": "it", "measured": measured, "bound": "", "verdict": "holds", "expected": "holds"}
        about = {"figure": "x", "scale": "laptop", "cached": True, "files": {"png": "x.png"}}
        show.figures({**about, "claims": [claim]})
        assert told in " ".join(capsys.readouterr().out.split())
