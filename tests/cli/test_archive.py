"""Tests of `icl archive`, `icl verify` and `from=`: what is kept, drawn by other code, compared, refused."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from icl.cli import main
from icl.config.search_path import ConfigDirs
from icl.config.session import Session
from icl.jobs.execution.estimate import _step_and_draw, as_text, estimates
from icl.jobs.requests import train
from icl.jobs.stored.archive import renew_manifest
from icl.jobs.stored.run_list import listed_runs
from icl.runs import documents
from tests.commands import Run
from tests.documents import read

FIGURE = ["figure", "figure=lds/fig3", "scale=smoke", "format=json"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with `outputs`, in which one figure was drawn, and `kept`, its archive."""
    folder = tmp_path_factory.mktemp("archive")
    outputs = f"paths.outputs={folder / 'outputs'}"
    assert main([*FIGURE, "logger=none", outputs]) == 0
    assert main(["archive", str(folder / "kept"), "only=[lds]", "scale=smoke", outputs]) == 0
    return folder


@pytest.fixture
def kept(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "kept", tmp_path / "kept"))


def by_other_code(archive: Path) -> None:
    """Let every record of the archive be one of another commit."""
    for path in [*archive.rglob("run.json"), *archive.glob("figures/*/*/*/*.json")]:
        record = documents.read_record(path)
        assert record is not None
        record["digest"] = "0" * 16
        (record if "git" in record else record["provenance"])["git"] = {
            "commit": "c0ffee" * 6,
            "dirty": False,
        }
        documents.write_record(path, record)


def rows(document: dict[str, dict[str, str]]) -> list[dict[str, str]]:
    return list(csv.DictReader(Path(document["files"]["csv"]).open()))


def test_an_archive_describes_itself_and_is_extended(
    made: Path, kept: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Read it as an outputs folder, too, whose runs are as good as before."""
    crate = {
        entity["@id"]: entity
        for entity in json.loads((kept / "ro-crate-metadata.json").read_text())["@graph"]
    }
    assert crate["ro-crate-metadata.json"]["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    root = crate["./"]
    assert all(root[key] for key in ("name", "description", "datePublished", "license"))
    files = {path.relative_to(kept).as_posix() for path in kept.rglob("*") if path.is_file()}
    assert {id for id, entity in crate.items() if entity["@type"] == "File"} == files - {
        "ro-crate-metadata.json"
    }
    reached = [part["@id"] for part in root["hasPart"]]
    reached += [part["@id"] for id in reached for part in crate[id].get("hasPart", [])]
    assert set(reached) >= files - {"ro-crate-metadata.json"}
    makers = [entity for entity in crate.values() if entity["@type"] == "CreateAction"]
    assert all(crate[action["instrument"]["@id"]] and crate[action["result"]["@id"]] for action in makers)
    assert not [name for name in files if "checkpoints" in name or name.endswith((".pdf", ".svg"))]
    assert "lds/fig3 at scale=smoke" in (kept / "README.md").read_text()
    texts = [path.read_bytes() for path in kept.rglob("*") if path.suffix in (".json", ".yaml", ".md")]
    assert texts and not [text for text in texts if str(made).encode() in text], "no path of this machine"

    argv = ["archive", str(kept), "scale=smoke", "format=json", f"paths.outputs={made / 'outputs'}"]
    before = (kept / "ro-crate-metadata.json").read_bytes()
    capfd.readouterr()
    assert main(argv) == 0
    assert read(argv, capfd.readouterr().out)["new"] == []
    assert (kept / "ro-crate-metadata.json").read_bytes() == before, "nothing new, nothing changed"
    assert {run.status for run in listed_runs(kept, every=True)} == {"done"}


def test_a_figure_is_drawn_from_an_archive_of_any_commit(
    icl: Run, outputs: Path, made: Path, kept: Path
) -> None:
    """Draw without training: the numbers are those of before, and the commit is named."""
    by_other_code(kept)
    drawn = icl(*FIGURE, f"from={kept}")
    assert drawn.code == 0, drawn.err
    found = drawn.json
    assert found["archive"]["commits"] == ["c0ffee" * 6] and "commit c0ffeec0ff" in found["caption"]
    assert all(Path(run).is_relative_to(kept) for run in found["runs"])
    assert not (outputs / "runs").exists()
    before = made / "outputs/figures/lds/fig3/smoke/fig3.csv"
    assert rows(found) == list(csv.DictReader(before.open()))
    assert Path(found["files"]["png"]).name == "fig3-archived.png"
    styled = icl(*FIGURE, f"from={kept}", "figure.width=3.3", "figure.formats=[svg]").json
    assert "svg" in styled["files"] and not (outputs / "runs").exists()

    # Its picture is no result of today's code.
    refused = icl("archive", str(kept.parent / "again"), "scale=smoke")
    assert refused.code == 2 and "nothing finished" in refused.err


def test_a_figure_of_other_settings_is_not_that_as_shipped(icl: Run, outputs: Path, tmp_path: Path) -> None:
    """Draw it from the archive if they are asked for; as shipped, train what is missing."""
    other, kept = "figure.experiment.seeds=[7]", str(tmp_path / "kept")
    assert icl(*FIGURE, other).code == 0
    assert icl("archive", kept, "only=[lds]", "scale=smoke").code == 0
    shutil.rmtree(outputs)
    assert icl(*FIGURE, other, f"from={kept}").code == 0
    assert not (outputs / "runs").exists()
    shipped = icl(*FIGURE, f"from={kept}").json
    assert shipped["settings"]["experiment"]["seeds"] != [7]
    assert [run for run in shipped["runs"] if Path(run).is_relative_to(outputs / "runs/lds/ar")]


def test_a_figure_is_assembled_from_pieces(icl: Run, outputs: Path, made: Path, tmp_path: Path) -> None:
    """Take the run that is there, by whatever code, and train the other; keep the figure with its pieces."""
    begun = Path(shutil.copytree(made / "outputs", tmp_path / "begun"))
    shutil.rmtree(begun / "figures")
    one, other = sorted((begun / "runs/lds/ar").iterdir())
    shutil.rmtree(other)
    pieces = tmp_path / "pieces"
    assert main(["archive", str(pieces), "scale=smoke", f"paths.outputs={begun}"]) == 0
    assert (pieces / "runs/lds/ar" / one.name / "weights.npz").is_file()
    by_other_code(pieces)
    drawn = icl(*FIGURE, f"from={pieces}")
    assert drawn.code == 0, drawn.err
    runs = {Path(run) for run in drawn.json["runs"]}
    assert pieces / "runs/lds/ar" / one.name in runs
    assert [run.name for run in (outputs / "runs/lds/ar").iterdir()] == [other.name]
    drawn_rows = rows(drawn.json)
    assert drawn.json["claims"]
    assert drawn_rows == list(csv.DictReader((made / "outputs/figures/lds/fig3/smoke/fig3.csv").open()))

    keep = ["archive", "only=[lds/fig3]", "scale=smoke", "format=json"]
    new = icl(*keep, str(tmp_path / "elsewhere")).json["new"]
    assert not [name for name in new if name.startswith("figures/")], "its pieces are not there"
    new = icl(*keep, str(pieces)).json["new"]
    assert f"runs/lds/ar/{other.name}" in new and f"runs/lds/ar/{one.name}" not in new
    assert [name for name in new if name.startswith("figures/lds/fig3/smoke/")]
    text = next(pieces.glob("figures/lds/fig3/smoke/*.json")).read_text()
    assert str(tmp_path) not in text and "archive" not in json.loads(text)["document"]
    shutil.rmtree(outputs)
    again = icl(*FIGURE, f"from={pieces}")
    assert rows(again.json) == drawn_rows and not (outputs / "runs").exists()
    assert icl(*keep, str(pieces)).code == 2, "a figure that is kept is not replaced by one drawn from it"


def test_what_cannot_be_archived_or_drawn_is_refused(
    icl: Run,
    outputs: Path,
    made: Path,
    kept: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Refuse each in one line, with exit code 2, and write nothing."""
    (weights,) = [path for path in kept.glob("runs/lds/weights/*/weights.npz")][:1]
    (tmp_path / "file").write_text("")
    lost, damaged = (Path(shutil.copytree(kept, tmp_path / name)) for name in ("lost", "damaged"))
    shutil.rmtree(lost / weights.parent.relative_to(kept))
    content = bytearray(weights.read_bytes())
    content[len(content) // 2] ^= 1
    (damaged / weights.relative_to(kept)).write_bytes(content)
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn/ro-crate-metadata.json").write_text("{")
    for given, said in (
        ("nowhere", "from=nowhere: no such folder"),
        (made / "outputs", "is no archive, since it has no ro-crate-metadata.json"),
        (tmp_path / "torn", "its ro-crate-metadata.json is damaged"),
        (lost, f"{weights.parent.relative_to(kept)} is missing"),
        (damaged, "its weights.npz is damaged (not the bytes that were written)"),
    ):
        refused = icl(*FIGURE, f"from={given}")
        assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1) and said in refused.err
    other = icl("figure", "figure=lds/fig6", "scale=smoke", f"from={kept}")
    assert (
        other.code == 2
        and "has nothing of lds/fig6 at scale=smoke; it has lds/fig3 at scale=smoke" in other.err
    )
    assert not outputs.exists()
    common = ["scale=smoke", f"paths.outputs={made / 'outputs'}"]
    for arguments, said in (
        (["a", *common, "only=[lsd]"], "only=lsd: no such paper, figure or check"),
        (["a", *common, "only=xie"], "nothing finished in"),
        (["a", "scale=paper", common[1]], "scale=paper: nothing finished in"),
        (["a", "scale=huge", common[1]], "scale=huge: must be one of smoke, laptop, paper"),
        ([], "archive: takes a folder"),
        (["a", "b"], "archive: takes a folder"),
        (["a", "force=true"], "force=true: icl archive takes"),
        ([str(tmp_path / "file"), *common], "is a file"),
        ([str(made), *common], "is not empty and no archive"),
        (["/proc/archive", *common], "cannot be written"),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(tmp_path)
            assert main(["archive", *arguments]) == 2, said
        assert said in capfd.readouterr().err
    assert not (tmp_path / "a").exists()


def test_verification_tells_what_differs_and_what_is_missing(
    kept: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Damage a file, remove one, add one; then a number that is wrong under digests that are right."""

    def verified(archive: Path) -> tuple[int, Any]:
        capfd.readouterr()
        argv = ["verify", str(archive), "format=json"]
        return main(argv), read(argv, capfd.readouterr().out)

    code, whole = verified(kept)
    assert (code, whole["differs"], whole["missing"], whole["not_recomputed"]) == (0, [], [], [])
    results = [name for name in whole["agrees"] if ": " in name]
    assert [name.rpartition(": ")[2] for name in results if "lds/ar/" in name] == ["exact risk"] * 2
    assert sum(name.endswith(": arrays") for name in results) == 4
    assert {"figure lds/fig3 at scale=smoke: table", "figure lds/fig3 at scale=smoke: 2 claims"} <= {*results}

    harmed = Path(shutil.copytree(kept, tmp_path / "harmed"))
    one, other = sorted(harmed.glob("runs/lds/ar/*"))
    (one / "metrics.csv").write_text("step\n")
    (other / "config.yaml").unlink()
    (harmed / "notes.txt").write_text("mine")
    code, found = verified(harmed)
    names = {entry["what"] for entry in found["differs"]}
    assert code == 1 and f"{one.relative_to(harmed)}/metrics.csv" in names and "notes.txt" in names
    assert found["missing"] == [f"{other.relative_to(harmed)}/config.yaml"]

    wrong = sorted(kept.glob("runs/lds/ar/*/run.json"))[0]
    record = documents.read_record(wrong)
    assert record is not None
    by_seed = record["metrics"]["exact_risk"]["by_seed"]
    by_seed.update({seed: value * (1 + 1e-7) for seed, value in by_seed.items()})
    documents.write_record(wrong, record)
    renew_manifest(kept)
    code, found = verified(kept)
    (entry,) = found["differs"]
    assert code == 1 and entry["what"].endswith("exact risk") and "1e-07 of itself" in entry["why"]

    for arguments in (
        ["nowhere"],
        [str(tmp_path)],
        [],
        [str(kept), "seconds=soon"],
        [str(kept), "seconds=-1"],
    ):
        assert main(["verify", *arguments]) == 2


def test_time_that_is_over_leaves_work_to_go_on_with(icl: Run, outputs: Path) -> None:
    """End with exit code 3, for what is undecided yet; the same command goes on."""
    over = icl(*FIGURE, "hours=1e-6")
    assert over.code == 3, over.err
    assert over.json["status"] == "interrupted" and len(over.json["left"]) == 2
    assert "hours=1e-06 are over, 2 runs left to train; the same command goes on" in over.err
    assert "2 runs left to train" in icl(*FIGURE[:3], "hours=1e-6").out
    some = icl("reproduce", "scale=smoke", "only=[looped]", "hours=1e-6", "jobs=1", "format=json")
    assert some.code == 3 and "looped/fig1" in some.json["left"] and not some.json["failures"]
    refused = icl(*FIGURE, "hours=0")
    assert refused.code == 2 and "hours=0: must be a finite number above 0" in refused.err


def test_the_rest_of_a_run_is_estimated_from_its_first_steps(outputs: Path) -> None:
    """Count draws as often as the run draws; a longer run of the same shape shares the trial."""
    steps = [9.0, 1.0, 1.0, 3.0, 1.0, 1.0, 3.0, 1.0]
    assert _step_and_draw(steps, 3) == (1.0, 2.0) and _step_and_draw(steps[:3], 1) == (1.0, 0.0)
    session = Session(outputs, configs=ConfigDirs.of(None))
    requests = []
    for more in (["train.steps=400"], ["train.steps=4000", "optimizer.lr=0.5"]):
        composed = session.compose("train", ["experiment=lds/ar", "scale=smoke", "train.log_every=40", *more])
        requests.append(train.parse(composed, session))
    short, long = estimates(requests, session)
    assert short.cost is long.cost and not outputs.exists()
    per_batch = requests[0].config.train["steps_per_batch"]
    assert short.seconds == 400 * short.cost.step + 400 / per_batch * short.cost.draw > 0
    assert long.seconds == pytest.approx(10 * short.seconds) and long.bytes > short.bytes > 0
    assert "2 runs to train, about" in as_text("lds", [short, long])
