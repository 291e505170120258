from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from icl.runs import index
from icl.runs.json_records import JsonRecords
from icl.runs.store import RunStore

PRINTS = [f"{i:012x}" for i in range(10)]


@pytest.fixture
def outputs(tmp_path):
    return tmp_path / "outputs"


@pytest.fixture
def records(outputs):
    records = JsonRecords(outputs, "checks")
    for fingerprint in PRINTS[:3]:
        records.save("ahn/theorem1", fingerprint, "d1", {})
    records.save("ahn/theorem2", PRINTS[0], "d1", {})
    return records


def known(outputs):
    return {
        key: [entry["fingerprint"] for entry in entries] for key, entries in index.read_index(outputs).items()
    }


def test_no_index_is_an_empty_one(outputs):
    assert index.read_index(outputs) == {}


def test_newest_entry_of_each_record(outputs, records):
    assert known(outputs) == {("checks", "ahn/theorem1"): PRINTS[:3], ("checks", "ahn/theorem2"): PRINTS[:1]}
    records.save("ahn/theorem1", PRINTS[0], "d2", {})
    entries = index.read_index(outputs)["checks", "ahn/theorem1"]
    assert [(e["fingerprint"], e["digest"]) for e in entries] == [
        (PRINTS[1], "d1"), (PRINTS[2], "d1"), (PRINTS[0], "d2")
    ]  # fmt: skip


def test_what_is_gone_does_not_count(outputs, records):
    records.path("ahn/theorem1", PRINTS[1]).unlink()
    shutil.rmtree(records.path("ahn/theorem2", PRINTS[0]).parent)
    assert known(outputs) == {("checks", "ahn/theorem1"): [PRINTS[0], PRINTS[2]]}


@pytest.mark.parametrize(
    "torn", [b'{"kind": "chec', b"\xff\xfe\n", b"[1, 2]\n", b'{"kind": "checks"}\n', b"\n\n", b"}{\n"]
)
def test_a_torn_or_foreign_line_harms_no_other(outputs, records, torn):
    before = known(outputs)
    with open(outputs / "index", "ab") as file:
        file.write(torn)
    assert known(outputs) == before
    records.save("ahn/theorem3", PRINTS[5], "d1", {})
    assert known(outputs) == before | {("checks", "ahn/theorem3"): [PRINTS[5]]}


def test_rebuild_adds_what_is_missing_and_mends_what_is_wrong(outputs, records, begin, finish):
    with begin(RunStore(outputs)) as run:
        finish(run)
    with pytest.raises(ZeroDivisionError), RunStore(outputs).begin("ahn/theorem4", PRINTS[7], {}, "d1"):
        1 / 0  # noqa: B018
    whole = known(outputs)
    assert index.rebuild_index(outputs) == 0
    (outputs / "index").unlink()
    assert known(outputs) == {}
    assert index.rebuild_index(outputs) == 6
    assert known(outputs) == whole
    assert index.read_index(outputs)["runs", "ahn/theorem4"][0]["status"] == "failed"
    index.append(outputs, {"kind": "runs", "id": "ahn/theorem4", "fingerprint": PRINTS[7], "status": "done"})
    assert index.rebuild_index(outputs) == 1
    assert index.read_index(outputs)["runs", "ahn/theorem4"][0]["status"] == "failed"


APPEND = """
import sys
from pathlib import Path
from icl.runs import index
sys.stdin.readline()
for i in range(200):
    entry = {"kind": "checks", "id": "a/b", "fingerprint": f"{i:06d}{int(sys.argv[2]):06d}", "status": "done"}
    index.append(Path(sys.argv[1]), entry | {"pad": "x" * (i % 97)})
"""


def test_many_writers_lose_no_line(outputs, spawn):
    outputs.mkdir()
    writers = [spawn(APPEND, outputs, i) for i in range(4)]
    for writer in writers:
        writer.stdin.write("\n")
        writer.stdin.flush()
    for writer in writers:
        assert writer.wait(30) == 0, writer.stderr.read()
    entries = index._entries(outputs)
    assert len({entry["fingerprint"] for entry in entries}) == len(entries) == 800


def test_reading_the_index_loads_nothing_heavy():
    code = (
        "import sys; import icl.runs.index, icl.runs.record, icl.runs.clean; from pathlib import Path;"
        "icl.runs.index.read_index(Path('absent'));"
        "print([m for m in ('torch', 'numpy', 'yaml', 'hydra', 'scipy') if m in sys.modules])"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
