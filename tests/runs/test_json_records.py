import json
import math

import numpy as np
import pytest

from icl.runs import layout
from icl.runs.json_records import DAMAGED, JsonRecords, invalid_reason, read

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


def test_places_of_a_figure(tmp_path):
    folder = tmp_path / "figures/ahn/fig1/laptop"
    for as_shipped, place in ((True, folder), (False, folder / FINGERPRINT)):
        records = JsonRecords(tmp_path, "figures", as_shipped=as_shipped)
        records.save("ahn/fig1/laptop", FINGERPRINT, "d1", {})
        assert read(place / layout.FIGURE) is not None
    found = [(place.id, place.fingerprint) for place in layout.walk(tmp_path)]
    assert found == [("ahn/fig1/laptop", ""), ("ahn/fig1/laptop", FINGERPRINT)]


def test_stale_by_code_or_schema(records, monkeypatch):
    records.save(ID, FINGERPRINT, "d1", {})
    record = read(records.path(ID, FINGERPRINT))
    assert records.find(ID, FINGERPRINT, "d2") is None and invalid_reason(record, "d1") is None
    assert invalid_reason(record, "d2") == "it was made with other code (d1, now d2)"
    monkeypatch.setattr(layout, "SCHEMA", layout.SCHEMA + 1)
    assert read(records.path(ID, FINGERPRINT)) is None


@pytest.mark.parametrize("harm", ["torn", "a digit", "moved"])
def test_damage_is_said_and_never_served(records, harm):
    records.save(ID, FINGERPRINT, "d1", {"bound": 0.97531})
    fingerprint = "f" * 12 if harm == "moved" else FINGERPRINT
    path, content = records.path(ID, fingerprint), records.path(ID, FINGERPRINT).read_bytes()
    path.write_bytes(
        {"torn": content[:-5], "a digit": content.replace(b": 0.97531", b": 0.97532")}.get(harm, content)
    )
    assert records.find(ID, fingerprint, "d1") is None and invalid_reason(read(path), "d1") == DAMAGED
    said = []
    with records.lock(ID, fingerprint, notify=said.append):
        assert said == [f"{path}: {DAMAGED}; it is made again"]
