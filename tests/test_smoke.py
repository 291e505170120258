"""Tests that every experiment, check and figure runs at scale=smoke, whatever configs are on disk."""

import json
from pathlib import Path

import numpy as np
import pytest

from icl.cli import main
from icl.verdicts import error_of
from tests.conformance.configs import configs
from tests.documents import read


def run(capsys: pytest.CaptureFixture[str], outputs: Path, *args: str) -> dict:
    common = ["scale=smoke", "logger=none", "format=json", f"paths.outputs={outputs}"]
    code = main([*args, *common])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return json.loads(captured.out)


def of_each_number_is_said_what_it_is(document: dict) -> None:
    measured, kinds = document["measured"], document["kinds"]
    numbers = {name for name, value in measured.items() if not isinstance(value, int | str | None)}
    errors = {error_of(name) for name in measured} & set(measured)
    assert (numbers - errors) | {document["bound"]["of"]} <= set(kinds) <= set(measured) - errors, document
    known = {name.removesuffix("_stderr") for name in errors if np.any(measured[name])}
    assert all(kinds[name] == "sampled" for name in known), document


PAPERS = sorted({config.name.partition("/")[0] for config in configs("check", "figure")})
ROWS = [pytest.param(paper, marks=[pytest.mark.nightly] * (paper != "depth")) for paper in PAPERS]


@pytest.mark.slow(60)
@pytest.mark.parametrize("paper", ROWS)
def test_reproduce_makes_every_check_and_figure(
    paper: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Make a paper's figures from nothing, then its checks, then find all of it again; and train the
    experiments that no figure trains as they are. All papers but one are nightly."""

    def own(group: str) -> list[str]:
        return [config.name for config in configs(group) if config.name.startswith(f"{paper}/")]

    drawn = run(capsys, tmp_path, "figure", f"figure={paper}/all")["figures"]
    assert [document["figure"] for document in drawn] == own("figure")
    first = run(capsys, tmp_path, "reproduce", f"only=[{paper}]")
    assert first["failures"] == first["skipped"] == []
    for group in ("check", "figure"):
        assert [document[group] for document in first[f"{group}s"]] == own(group)
    page = Path(first["report"]).read_text()
    assert all(name in page for name in [*own("check"), *own("figure")])
    for document in first["checks"]:
        assert document["verdict"] == document["expected"] and document["control"]["rejected"], document
        notes = document["notes"]
        assert len(set(notes)) == len(notes) and all(notes), document
        of_each_number_is_said_what_it_is(document)
    for document in first["figures"]:
        assert document["claims"] and all(Path(path).stat().st_size for path in document["files"].values())
        assert all(claim["verdict"] == claim["expected"] for claim in document["claims"]), document["figure"]
    again = run(capsys, tmp_path, "reproduce", f"only=[{paper}]")
    assert all(document["cached"] for document in [*again["checks"], *again["figures"]])
    for name in own("experiment"):
        trained = run(capsys, tmp_path, "train", f"experiment={name}")
        assert trained["status"] == "done" and trained["metrics"]["loss"]["mean"] is not None, name
    clean = ["clean", "format=json", f"paths.outputs={tmp_path}"]
    assert main(clean) == 0 and read(clean, capsys.readouterr().out)["found"] == []
