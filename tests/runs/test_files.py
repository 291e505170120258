"""Tests of files that are there whole or not at all, of JSON, and of what reading a stranger's file does not
do."""

import errno
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

from icl.errors import InputError
from icl.runs import atomic, documents


def test_a_failure_leaves_the_old_content_and_no_trace(tmp_path, monkeypatch):
    path = tmp_path / "x"
    atomic.write_bytes(path, b"old")
    for call in ("replace", "fsync"):
        with monkeypatch.context() as patch, pytest.raises(OSError, match="broken"):
            patch.setattr(os, call, lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "broken")))
            atomic.write_bytes(path, b"new")
        assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]
    atomic.write_bytes(path, b"new")
    assert path.read_bytes() == b"new"


def test_content_is_on_disk_before_the_name_is(tmp_path, monkeypatch):
    order = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (order.append("fsync"), fsync(fd)))
    monkeypatch.setattr(os, "replace", lambda *names: (order.append("replace"), replace(*names)))
    atomic.write_bytes(tmp_path / "x", b"content")
    assert order == ["fsync", "replace", "fsync"]


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.ENOSPC])
def test_what_the_user_can_mend_is_one_line_and_other_errors_pass(tmp_path, number):
    with pytest.raises(InputError) as caught, atomic.writing(tmp_path):
        raise OSError(number, os.strerror(number))
    assert str(caught.value) == f"paths.outputs={tmp_path}: cannot be written ({os.strerror(number)})"
    assert isinstance(caught.value, atomic.DiskFull) == (number == errno.ENOSPC)
    with pytest.raises(FileNotFoundError), atomic.writing(tmp_path):
        (tmp_path / "absent").read_bytes()


def test_everything_has_its_json_form_or_is_refused(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    document = {
        "nan": math.nan, "inf": [math.inf, -math.inf], "np": np.float32(0.5), "b": np.True_,
        "array": np.array([[1.0, np.nan]]), "path": Path("runs"), "tuple": (1, "x"), 0: None, "big": 2**70,
    }  # fmt: skip
    assert json.loads(documents.dumps(document)) == {
        "nan": None, "inf": [None, None], "np": 0.5, "b": True,
        "array": [[1.0, None]], "path": str(tmp_path / "runs"), "tuple": [1, "x"], "0": None, "big": 2**70,
    }  # fmt: skip
    with pytest.raises(TypeError, match="no JSON form for object"):
        documents.to_json({"x": object()})


def test_a_record_reads_back_and_what_is_none_reads_as_none(tmp_path):
    path, document = tmp_path / "x.json", {"a": 0.1 + 0.2, "b": ["é", None], "c": {"d": 1e-320}}
    documents.write_record(path, document)
    assert documents.read_record(path) == document
    assert documents.read_record(tmp_path / "absent.json") is None
    changed = path.read_bytes().replace(b"null", b"1")
    for content in (b"", b"{", b"[1]", b"\xff\xfe", b'{"a": 1} trailing', b'{"unsealed": 1}', changed):
        path.write_bytes(content)
        assert documents.read_record(path) is None, content
    os.mkfifo(tmp_path / "pipe.json")
    assert documents.read_record(tmp_path / "pipe.json") is None


def test_what_is_large_is_not_read(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "zeros.npz", A=np.zeros(10_000))
    content = documents.read_bytes(tmp_path / "zeros.npz")
    assert documents.arrays_in(content)["A"].shape == (10_000,)
    monkeypatch.setattr(documents, "LARGEST", 2**16)
    with pytest.raises(ValueError, match="unpacks to"):
        documents.arrays_in(content)
    monkeypatch.setattr(documents, "LARGEST", len(content) - 1)
    with pytest.raises(OSError, match="at most"):
        documents.read_bytes(tmp_path / "zeros.npz")


def test_no_pickle_is_loaded(tmp_path):
    np.savez(tmp_path / "objects.npz", A=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="pickle"):
        documents.arrays_in((tmp_path / "objects.npz").read_bytes())
