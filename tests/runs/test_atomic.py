import errno
import os

import pytest

from icl.errors import InputError
from icl.runs import atomic


def test_a_failure_leaves_the_old_content_and_no_trace(tmp_path, monkeypatch):
    path = tmp_path / "x"
    atomic.write_bytes(path, b"old")

    def broken(*_):
        raise OSError(errno.EIO, "broken")

    for call in ("replace", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(os, call, broken)
            with pytest.raises(OSError, match="broken"):
                atomic.write_bytes(path, b"new")
        assert path.read_bytes() == b"old"
        assert [entry.name for entry in tmp_path.iterdir()] == ["x"]
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
    with pytest.raises(FileNotFoundError), atomic.writing(tmp_path):
        (tmp_path / "absent").read_bytes()


def test_a_file_that_may_not_grow_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.EFBIG, "File too large")))
    with pytest.raises(atomic.DiskFull, match=f"File too large: {tmp_path / 'x'}"), atomic.writing(tmp_path):
        atomic.write_bytes(tmp_path / "x", b"content")
