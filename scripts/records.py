"""Renew docs/records: `icl reproduce format=json > made.json`, then `python scripts/records.py made.json`.

Each finished check and figure replaces the stored one, with its date and commit; records of what no longer
exists are dropped where the reproduction was of all papers. `python scripts/render.py` then renews the pages.
"""

from __future__ import annotations

import datetime
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

RECORDS = Path(__file__).parents[1] / "docs" / "records"
CHECK = (
    "reference",
    "claim",
    "verdict",
    "expected",
    "settings",
    "measured",
    "exact",
    "kinds",
    "control",
    "controls",
    "notes",
)
CLAIM = ("claim", "measured", "verdict", "expected")


def main(made: Path) -> None:
    document = json.loads(made.read_text(encoding="utf-8"))
    git = ["git", "-C", str(RECORDS.parent), "rev-parse", "HEAD"]
    commit = subprocess.run(git, check=True, capture_output=True, text=True).stdout.strip()
    stamp = {"date": datetime.date.today().isoformat(), "commit": commit}
    papers: dict[str, dict[str, Any]] = {}

    def file(kind: str, id: str, record: dict[str, Any]) -> None:
        papers.setdefault(id.partition("/")[0], {"checks": {}, "figures": {}})[kind][id] = record

    for check in document["checks"]:
        kept = {key: check[key] for key in CHECK if key in check}
        file("checks", check["check"], {**kept, "seconds": check["seconds"], **stamp})
    for figure in document["figures"]:
        claims = [{key: claim[key] for key in CLAIM if key in claim} for claim in figure["claims"]]
        about = {"scale": figure["scale"], "claims": claims, "seconds": figure["seconds"], **stamp}
        file("figures", figure["figure"], about)
        shown = RECORDS.parent / "img" / f"{figure['figure'].replace('/', '-')}.png"
        if shown.is_file():
            shutil.copyfile(figure["files"]["png"], shown)
    for skipped in document["skipped"]:
        file(f"{skipped['group']}s", skipped["id"], {"skipped": skipped["reason"]})
    for paper, records in sorted(papers.items()):
        text = json.dumps(records, indent=1, ensure_ascii=False, sort_keys=True)
        (RECORDS / f"{paper}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
