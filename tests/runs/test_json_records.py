import json
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from icl.errors import InputError
from icl.runs import layout
from icl.runs.json_records import DAMAGED, JsonRecords

ID, FINGERPRINT = "ahn/theorem1", "0123456789ab"


@pytest.fixture
def records(tmp_path):
    return JsonRecords(tmp_path / "outputs", "checks")


def test_round_trip(records):
    assert records.find(ID, FINGERPRINT, "d1") is None and not records.outputs.exists()
    document = {"measured": math.nan, "bound": np.float64(1e-12), "notes": ()}
    saved = records.save(ID, FINGERPRINT, "d1", document)
    assert saved == records.find(ID, FINGERPRINT, "d1") == {"measured": None, "bound": 1e-12, "notes": []}
    path = records.outputs / "checks" / "ahn" / "theorem1" / f"{FINGERPRINT}.json"
    assert records.path(ID, FINGERPRINT) == path
    assert json.loads(path.read_text())["schema"] == layout.SCHEMA


def test_stale_by_code_schema_or_damage(records, monkeypatch):
    records.save(ID, FINGERPRINT, "d1", {})
    assert records.find(ID, FINGERPRINT, "d2") is None
    assert records.stale(ID, FINGERPRINT, "d2") == "it was made with other code (d1, now d2)"
    assert records.stale(ID, FINGERPRINT, "d1") is None
    with monkeypatch.context() as patch:
        patch.setattr(layout, "SCHEMA", layout.SCHEMA + 1)
        assert records.find(ID, FINGERPRINT, "d1") is None
        assert "schema" in records.stale(ID, FINGERPRINT, "d1")


@pytest.mark.parametrize("harm", ["torn", "a digit", "not a number", "empty"])
def test_damage_is_said_and_never_served(records, harm):
    records.save(ID, FINGERPRINT, "d1", {"bound": 0.97531})
    path = records.path(ID, FINGERPRINT)
    content = path.read_bytes()
    damaged = {
        "torn": content[:-5], "a digit": content.replace(b": 0.97531", b": 0.97532"),
        "not a number": content.replace(b": 0.97531", b": NaN"), "empty": b"{}",
    }[harm]  # fmt: skip
    assert damaged != content
    path.write_bytes(damaged)
    assert records.find(ID, FINGERPRINT, "d1") is None
    assert records.stale(ID, FINGERPRINT, "d1") == DAMAGED
    said = []
    with records.lock(ID, FINGERPRINT, notify=said.append):
        assert said == [f"{path}: {DAMAGED}; it is made again"]
        records.save(ID, FINGERPRINT, "d1", {"bound": 0.5})
    with records.lock(ID, FINGERPRINT, notify=said.append):
        assert len(said) == 1


def test_under_the_lock_it_is_computed_once(records):
    computed = []

    def work():
        with records.lock(ID, FINGERPRINT, notify=lambda _: None):
            if records.find(ID, FINGERPRINT, "d1") is None:
                computed.append(1)
                records.save(ID, FINGERPRINT, "d1", {})

    with ThreadPoolExecutor(4) as threads:
        for _ in range(4):
            threads.submit(work)
    assert computed == [1]
    assert [entry.name for entry in records.path(ID, FINGERPRINT).parent.iterdir()] == [f"{FINGERPRINT}.json"]


def test_kinds_and_places(tmp_path):
    with pytest.raises(InputError, match="did you mean checks"):
        JsonRecords(tmp_path, "check")
    found = JsonRecords(tmp_path, "figures").path("ahn/fig1/laptop", FINGERPRINT)
    assert found == tmp_path / f"figures/ahn/fig1/laptop/{FINGERPRINT}.json"


def test_unwritable_outputs_are_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"paths\.outputs=.*cannot be written"):
        JsonRecords(tmp_path / "file", "checks").save(ID, FINGERPRINT, "d1", {})
