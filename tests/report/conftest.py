"""Entries of a report made by hand: a check, a figure with its files, and their failures."""

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from icl.report.content import Paper, ReportContent, ReportEntry
from tests.report.browser import Browser, browser, find

HOSTILE = "<script>alert(1)</script>\"><img src=x onerror=alert(1)>'&"
REMARKS = ["With (3) as printed the sign is wrong."]
NOTES = ["The proof's two steps are measured on 64 pairs, by words in S."]
PROVENANCE = {
    "git": {"commit": "0123456789abcdef", "dirty": False},
    "versions": {"python": "3.12", "icl": "0.1.0", "torch": None},
    "hardware": {"cpu": "A processor", "gpu": None},
    "threads": 1,
}
Make = Callable[..., ReportEntry]


def png(path: Path, width: int = 120, height: int = 60) -> Path:
    """Draw a blue picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\x20\x60\xa0" * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    content = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + content)
    return path


def check(id: str = "one/theorem1", verdict: str = "holds", **changes: Any) -> ReportEntry:
    document = {
        "check": id, "paper": id.partition("/")[0], "reference": "Theorem 1", "claim": "The minimum is at A.",
        "verdict": verdict, "expected": verdict, "settings": {"dim": 5, "covariance": None, "seed": 3},
        "measured": {"risk": 0.25, "gradient_norm": 2.1e-16, "scalars": list(range(20))},
        "kinds": {"risk": "sampled", "gradient_norm": "exact"},
        "bound": {"value": 1e-12, "source": "rounding: 64 eps, times all terms", "of": "gradient_norm"},
        "control": {"description": "at twice A", "measured": 0.5, "rejected": True},
        "remarks": REMARKS, "notes": [*REMARKS, *NOTES], "seconds": 0.5, "cached": False,
    }  # fmt: skip
    document |= {key: changes.pop(key) for key in list(changes) if key in document}
    record = {"fingerprint": "0" * 12, "date": "2026-01-01 00:00 UTC", "provenance": PROVENANCE, "seeds": [3]}
    told = {"command": f"icl check check={id} scale=laptop", "reference": "Theorem 1"}
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
        }  # fmt: skip
        told = {"command": f"icl figure figure={id}", "reference": "Figure 1", "paper": id.partition("/")[0]}
        return ReportEntry("figure", id, **{**told, "state": "done", "document": document, **changes})

    return make


def waiting(group: str = "check", id: str = "one/theorem9", **changes: Any) -> ReportEntry:
    return ReportEntry(
        group, id, id.partition("/")[0], f"Reference of {id}", f"icl {group} {group}={id}", **changes
    )


def content(*entries: ReportEntry, papers: Sequence[Paper] = (), **changes: Any) -> ReportContent:
    scale, only = changes.pop("scale", "laptop"), changes.pop("only", ())
    return ReportContent(scale, papers, entries, {"written": "2026-01-02 03:04 UTC", **changes}, only)


@pytest.fixture(scope="session")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find()
    if program is None:
        pytest.skip("no Chromium or Chrome is installed")
    with browser(program, tmp_path_factory.mktemp("profile")) as opened:
        yield opened
