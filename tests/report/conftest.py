"""Entries of a report made by hand: a check, a figure with its files, and their failures."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from icl.report.entries import Paper, ReportContent, ReportEntry
from tests.report.browser import Browser, browser, find

HOSTILE = "<script>alert(1)</script>\"><img src=x onerror=alert(1)>'&"
REMARKS = ["With (3) as printed the sign is wrong."]
NOTES = ["The proof's two steps are measured on 64 pairs, by words in S."]
PROVENANCE = {
    "git": {"commit": "0123456789abcdef", "dirty": False},
    "versions": {"python": "3.12", "icl": "0.1.0", "torch": None},
    "hardware": {"cpu": "A processor", "gpu": None},
}
Make = Callable[..., ReportEntry]


def png(path: Path, width: int = 120, height: int = 60) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (width, height), "#2060a0").save(path)
    return path


def check(id: str = "one/theorem1", verdict: str = "holds", **changes: Any) -> ReportEntry:
    document = {
        "check": id, "paper": id.partition("/")[0], "reference": "Theorem 1", "claim": "The minimum is at A.",
        "verdict": verdict, "expected": verdict, "settings": {"dim": 5, "covariance": None, "seed": 3},
        "measured": {"risk": 0.25, "gradient_norm": 2.1e-16, "scalars": list(range(20))},
        "kinds": {"risk": "sampled", "gradient_norm": "exact"},
        "bound": {"value": 1e-12, "source": "rounding: 64 eps, times all terms", "of": "gradient_norm"},
        "control": {"description": "at twice A", "measured": 0.5, "rejected": True},
        "controls": None, "exact": {}, "tries": None, "sentence": "", "typed": [], "inputs": [],
        "remarks": REMARKS, "notes": [*REMARKS, *NOTES], "seconds": 0.5, "cached": False, "meanings": {},
    }  # fmt: skip
    document |= {key: changes.pop(key) for key in list(changes) if key in document}
    record = {"fingerprint": "0" * 12, "date": "2026-01-01 00:00 UTC", "provenance": PROVENANCE, "seeds": [3]}
    told = {"command": f"icl check check={id} scale=laptop", "reference": document["reference"]}
    told |= {"state": "done", "document": document, "record": record, "paper": document["paper"], **changes}
    return ReportEntry("check", id, **told)


FAILS = {"verdict": "fails", "expected": "fails"}
CLAIMS: Sequence[Mapping[str, Any]] = (
    {"claim": "the curve falls", "measured": {"from": 1.0, "to": 0.5}, "bound": "below 1"},
    {"claim": "'almost 0'", "measured": 0.1336, "bound": "below .01", **FAILS},
)


@pytest.fixture
def figure(tmp_path: Path) -> Make:
    def make(
        id: str = "one/fig1",
        claims: Sequence[Mapping[str, Any]] = CLAIMS,
        caption: str = "A curve.",
        vector: str = "",
        **changes: Any,
    ) -> ReportEntry:
        folder, name = tmp_path / "outputs/figures" / id / "laptop", "fig1"
        files = {extension: folder / f"{name}.{extension}" for extension in ("png", "pdf")}
        png(files["png"])
        files["pdf"].write_bytes(b"%PDF-1.4")
        if vector:
            files["svg"] = folder / f"{name}.svg"
            files["svg"].write_text(vector)
        config = {"task": {"dim": 5}, "seeds": [0, 1], "train": {"steps": 4}}
        drawn_from = [{"name": "run", "run": "runs/one/first/0123456789ab", "config": config}]
        document = {
            "figure": id, "scale": "laptop", "files": {k: str(path) for k, path in files.items()},
            "claims": [{"verdict": "holds", "expected": "holds", **claim} for claim in claims],
            "runs": [], "seconds": 1.0, "cached": False, "caption": caption, "drawn_from": drawn_from,
            "settings": changes.pop("settings", {}),
        }  # fmt: skip
        told = {"command": f"icl figure figure={id}", "reference": "Figure 1", "paper": id.partition("/")[0]}
        return ReportEntry("figure", id, **{**told, "state": "done", "document": document, **changes})

    return make


def waiting(group: str = "check", id: str = "one/theorem9", **changes: Any) -> ReportEntry:
    return ReportEntry(
        group, id, id.partition("/")[0], f"Reference of {id}", f"icl {group} {group}={id}", **changes
    )


def content(*entries: ReportEntry, papers: Sequence[Paper] = (), **changes: Any) -> ReportContent:
    scale = changes.pop("scale", "laptop")
    return ReportContent(scale, papers, entries, {"written": "2026-01-02 03:04 UTC"}, **changes)


@pytest.fixture(scope="session")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find()
    if program is None:
        pytest.skip("no Chromium or Chrome is installed")
    with browser(program, tmp_path_factory.mktemp("profile")) as opened:
        yield opened
