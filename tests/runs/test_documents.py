import json
import math
from pathlib import Path

import numpy as np
import pytest

from icl.runs import documents


def test_everything_has_its_json_form_or_is_refused(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    document = {
        "nan": math.nan, "inf": [math.inf, -math.inf], "np": np.float32(0.5), "int": np.int64(3),
        "b": np.True_,
        "array": np.array([[1.0, np.nan]]), "path": Path("runs"), "tuple": (1, "x"), 0: None, "big": 2**70,
    }  # fmt: skip
    assert json.loads(documents.dumps(document)) == {
        "nan": None, "inf": [None, None], "np": 0.5, "int": 3, "b": True,
        "array": [[1.0, None]], "path": str(tmp_path / "runs"), "tuple": [1, "x"], "0": None, "big": 2**70,
    }  # fmt: skip
    assert documents.dumps([True, np.False_], indent=None) == "[true, false]"
    with pytest.raises(TypeError, match="no JSON form for object"):
        documents.to_json({"x": object()})


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe", b'{"a": 1} trailing'])
def test_what_is_no_object_reads_as_none(tmp_path, content):
    (tmp_path / "x.json").write_bytes(content)
    assert documents.read_json(tmp_path / "x.json") is None
    assert documents.read_json(tmp_path / "absent.json") is None


def test_round_trip(tmp_path):
    document = {"a": 0.1 + 0.2, "b": ["é", None], "c": {"d": 1e-320}}
    documents.write_json(tmp_path / "x.json", document)
    assert documents.read_json(tmp_path / "x.json") == document
