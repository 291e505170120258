"""Tests of `icl report`: what is stored becomes a page, and nothing is measured or trained for it."""

import re
import shutil
from pathlib import Path

import pytest
from markupsafe import escape

from icl.config.session import Session
from icl.digests import digest
from icl.jobs.stored import report_content as report
from icl.report.entries import ReportContent, ReportEntry
from icl.runs.documents import read_record, write_record
from tests.commands import Run, assert_refused, write

LEMMA = ("check", "check=ahn/lemma1", "scale=smoke", "format=json")


def page(outputs: Path) -> str:
    """Return the page without the links within its sentences."""
    return re.sub(r'<a class="term"[^>]*>|</a>', "", (outputs / "report/index.html").read_text())


def content(outputs: Path, *only: str, scale: str = "smoke") -> ReportContent:
    told = report.content_of(report.ReportRequest(scale, only), Session(outputs))
    assert told.provenance["written"].endswith("UTC")
    return told


def entries(outputs: Path, *only: str, scale: str = "smoke") -> dict[str, ReportEntry]:
    return {entry.id: entry for entry in content(outputs, *only, scale=scale).entries}


def test_the_document_and_the_page(icl: Run, outputs: Path) -> None:
    measured = icl(*LEMMA).json
    result = icl("report", "scale=smoke", "format=json", "only=[ahn]")
    assert result.code == 0, result.err
    assert set(result.json) == {"report", "summary", "checks", "figures", "seconds"}
    assert (result.json["checks"], result.json["figures"]) == (1, 0)
    assert result.json["report"] == str(outputs / "report/smoke-ahn.html")
    assert escape(measured["claim"]) in page(outputs) and "not run" in page(outputs)
    text = icl("report", "scale=smoke", "only=[ahn]")
    assert text.code == 0 and text.out.splitlines()[0].startswith("1 holds.")
    assert text.out.splitlines()[-1] == str(outputs / "report/smoke-ahn.html")


def test_nothing_stored_is_no_error(icl: Run, outputs: Path) -> None:
    result = icl("report", "format=json")
    assert (result.code, result.json["checks"], result.json["figures"]) == (0, 0, 0)
    assert "Nothing has been measured yet." in page(outputs)
    found = entries(outputs, "ahn")
    assert all((e.state, e.reason, e.document) == ("waiting", "", None) for e in found.values())
    assert {path.name for path in outputs.iterdir()} == {"report"}


def test_only_the_shipped_settings_at_this_scale_count(icl: Run, outputs: Path) -> None:
    icl(*LEMMA, "check.dim=2")
    assert entries(outputs)["ahn/lemma1"].document is None
    icl(*LEMMA)
    icl(*LEMMA, "check.dim=3")
    found = entries(outputs)["ahn/lemma1"]
    assert found.state == "done" and found.document["settings"]["dim"] == 5
    assert found.command == "icl check ahn/lemma1 scale=smoke" and found.reference
    stored = {
        p.stem: read_record(p)["document"]["settings"]["dim"] for p in outputs.glob("checks/*/*/*.json")
    }
    assert stored[found.record["fingerprint"]] == 5 and found.record["seeds"] == [0]
    assert found.record["provenance"]["versions"]["icl"]
    icl("check", "check=ahn/conditioning", "scale=smoke")
    assert entries(outputs)["ahn/conditioning"].state == "done"
    assert entries(outputs, scale="laptop")["ahn/conditioning"].document is None, (
        "its samples differ by scale"
    )


def test_what_is_mine_is_found_by_what_was_typed_and_the_newest_is_first(
    icl: Run, tmp_path: Path, outputs: Path
) -> None:
    own = write(tmp_path, {"own.py": OTHERS}) / "own.py"
    icl(*LEMMA)
    icl(*LEMMA, "check.dim=2", "tries=3")
    icl("check", str(own), "tries=2")
    icl("figure", "figure=giannou/fig1", "figure.dim=2", "scale=smoke")
    found = content(outputs).mine
    told = [(e.id, e.command.replace(str(own), "own.py"), e.state, e.heading) for e in found]
    assert told == [
        ("giannou/fig1", "icl figure giannou/fig1 scale=smoke figure.dim=2", "done", found[0].heading),
        ("own/own/One", "icl check own.py tries=2", "done", "One"),
        (
            "ahn/lemma1",
            "icl check ahn/lemma1 check.dim=2 tries=3 scale=smoke",
            "done",
            found[2].heading,
        ),
    ]
    tries = [(entry.document or {})["tries"]["decided"] for entry in found[1:]]
    assert tries == [2, 3] and found[2].formula and Path((found[0].document or {})["files"]["png"]).is_file()
    assert [e.id for e in content(outputs, "xie").mine] == ["own/own/One"], "of that paper, and of no paper"
    assert [e.id for e in content(outputs, scale="laptop").mine] == ["own/own/One", "ahn/lemma1"]
    (stored,) = outputs.glob("checks/own/own/One/*.json")
    write_record(stored, (read_record(stored) or {}) | {"digest": "0" * 16})
    assert content(outputs).mine[1].state == "stale"


def test_a_record_of_other_code_is_shown_as_stale(icl: Run, outputs: Path) -> None:
    icl(*LEMMA)
    (stored,) = outputs.glob("checks/ahn/lemma1/*.json")
    write_record(stored, (read_record(stored) or {}) | {"digest": "0" * 16})
    icl("report", "scale=smoke")
    assert "stale record" in page(outputs)
    assert entries(outputs)["ahn/lemma1"].state == "stale"
    icl(*LEMMA)
    assert entries(outputs)["ahn/lemma1"].state == "done"
    stored.write_text("{ torn")
    assert entries(outputs)["ahn/lemma1"].state == "waiting"


def test_a_figure_with_its_files_and_when_it_is_stale(icl: Run, outputs: Path) -> None:
    drawn = icl("figure", "figure=lds/fig3", "scale=smoke", "format=json").json
    found = entries(outputs)["lds/fig3"]
    assert (found.state, found.reason) == ("done", ""), "as `icl figure` itself would judge"
    assert found.document == drawn | {"cached": True, "contents": found.document["contents"]}
    assert found.record["seeds"] == [666013, 1] and found.record["training_seconds"] > 0
    assert icl("report", "scale=smoke", "format=json").json["figures"] == 1
    assert 'src="../figures/lds/fig3/smoke/fig3.png"' in page(outputs)
    assert 'href="../figures/lds/fig3/smoke/figure.json"' in page(outputs)

    moved = outputs.with_name("moved")
    shutil.copytree(outputs, moved)
    png = moved / "figures/lds/fig3/smoke/fig3.png"
    assert entries(moved)["lds/fig3"].document["files"]["png"] == str(png)

    svg = Path(drawn["files"]["svg"])
    before = svg.read_bytes()
    svg.write_text("")
    assert "svg file is gone or was changed" in entries(outputs)["lds/fig3"].reason
    svg.write_bytes(before)
    run = Path(drawn["runs"][0]) / "run.json"
    record = read_record(run) or {}
    write_record(run, record | {"digest": "0" * 16})
    assert "made with other code" in entries(outputs)["lds/fig3"].reason
    write_record(run, record | {"attempt": 2})
    assert entries(outputs)["lds/fig3"].state == "done", "the run was repeated, with the same numbers"
    metrics = run.with_name("metrics.csv")
    metrics.write_bytes(metrics.read_bytes() + b"\n")
    written = {"bytes": metrics.stat().st_size, "digest": digest(metrics.read_bytes())}
    write_record(run, {**record, "files": {**record["files"], "metrics.csv": written}})
    assert entries(outputs)["lds/fig3"].state == "stale", "the run was repeated, with others"


OTHERS = """
from dataclasses import dataclass
from icl.checks import Statement

@dataclass
class One(Statement):
    where, claim = "Lemma 0", "One is <b>one</b>."
    def measure(self, m):
        m.zero("error", 1 - 1, "difference")
        m.control("two", 2 - 1)
"""


def test_a_third_partys_paper(
    icl: Run, tmp_path: Path, outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Find a paper through --config-dir; without paper/ID.yaml its id is its title."""
    write(tmp_path, {"lab_of_others.py": OTHERS})
    lemma = "check/other/lemma0.yaml"
    head = "# @package check\n# reference: Lemma 0\n"
    conf = write(tmp_path / "their conf", {lemma: f"{head}_target_: lab_of_others.One\n"})
    monkeypatch.syspath_prepend(tmp_path)
    flags = ("--config-dir", str(conf), "scale=smoke")
    assert icl("check", "check=other/lemma0", *flags).code == 0
    result = icl("report", "only=[other]", "format=json", *flags)
    assert (result.code, result.json["checks"]) == (0, 1), result.err
    html = (outputs / "report/smoke-other.html").read_text()
    assert "One is &lt;b&gt;one&lt;/b&gt;." in html and '<h3 id="paper-1">other</h3>' in html
    command = f"icl check --config-dir '{conf}' other/lemma0 scale=smoke"
    assert command in html.replace("&#39;", "'")
    write(conf, {"paper/other.yaml": "title: Of ones & twos\nterms: [{name: one, text: $1$}]\n"})
    assert icl("report", "only=[other]", *flags).code == 0
    assert "Of ones &amp; twos</h3>" in (outputs / "report/smoke-other.html").read_text()
    write(conf, {lemma: "# @package check\n_target_: elsewhere.Two\n"})
    assert icl("report", *flags).code == 0, "a config that cannot be used does not hide the others"
    html = (outputs / "report/smoke.html").read_text()
    assert "not run" in html
    write(conf, {"paper/other.yaml": "name: wrong\n"})
    assert_refused(icl("report", "only=[other]", *flags), "must have title")
