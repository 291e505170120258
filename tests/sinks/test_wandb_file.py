"""A log of W&B's with anything missing is not taken for a whole one."""

import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from icl.sinks.wandb_file import Damaged, holds_all, records

ROOT = Path(__file__).parents[2]
BLOCK = 32768


def record(number: int, **kind: Any) -> bytes:
    from wandb.proto.wandb_internal_pb2 import Record  # type: ignore[attr-defined]

    made = Record(num=number)
    for name, step in kind.items():
        getattr(made, name).SetInParent()
        if step is not None:
            made.history.step.num = step
    return made.SerializeToString()


def log(path: Path, bodies: Sequence[bytes]) -> Path:
    """Written as W&B does: whole where it fits into a block, else in chunks."""
    data = b":W&B\xe1\xbe\x00"
    for body in bodies:
        first = True
        while True:
            room = BLOCK - len(data) % BLOCK
            if room < 7:
                data += bytes(room)
                continue
            piece, body = body[: room - 7], body[room - 7 :]
            kind = bytes([(1 if first else 4) if not body else (2 if first else 3)])
            data += struct.pack("<IH", zlib.crc32(kind + piece), len(piece)) + kind + piece
            first = False
            if not body:
                break
    path.write_bytes(data)
    return path


def steps(first: int, last: int, *, number: int = 1) -> list[bytes]:
    return [record(number + i, history=step) for i, step in enumerate(range(first, last + 1))]


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    return log(tmp_path / "whole", [*steps(0, 4999), record(5001, exit=None)])


def test_a_whole_log(whole: Path) -> None:
    assert whole.stat().st_size > 2 * BLOCK  # so that records lie across blocks
    assert [found.num for found in records(whole)] == list(range(1, 5002))
    assert holds_all([whole])


def test_of_a_run_without_steps(tmp_path: Path) -> None:
    assert holds_all([log(tmp_path / "empty", [record(1, summary=None), record(2, exit=None)])])


def test_a_log_that_is_not_there() -> None:
    assert not holds_all([])


def test_one_record_missing(tmp_path: Path) -> None:
    assert not holds_all(
        [log(tmp_path / "gap", [*steps(0, 5), *steps(7, 9, number=8), record(11, exit=None)])]
    )


def test_cut_short_anywhere(tmp_path: Path) -> None:
    path = log(tmp_path / "short", [*steps(0, 3), record(5, exit=None)])
    data = path.read_bytes()
    assert holds_all([path])
    for length in range(7, len(data)):
        path.write_bytes(data[:length])
        assert not holds_all([path]), length


def test_a_flipped_bit(whole: Path) -> None:
    data = bytearray(whole.read_bytes())
    data[40000] ^= 1
    whole.write_bytes(data)
    assert not holds_all([whole])
    with pytest.raises(Damaged, match="is damaged at byte"):
        list(records(whole))


def test_continued_runs(tmp_path: Path) -> None:
    begun = log(tmp_path / "1", [*steps(0, 5), record(7, exit=None)])
    killed = log(tmp_path / "2", steps(0, 5))
    rest = log(tmp_path / "3", [*steps(4, 9), record(7, exit=None)])
    again = log(tmp_path / "4", [*steps(0, 9), record(11, exit=None)])
    assert holds_all([begun, rest])
    assert not holds_all([rest])
    assert not holds_all([killed, rest])
    assert holds_all([killed, rest, again])  # told again from its record


@pytest.mark.slow
def test_what_a_full_disk_did_not_take_is_told_again(tmp_path: Path) -> None:
    """W&B's own process drops what cannot be written, without a word: here what would make a file larger than
    50 kB. A process of its own, since W&B's serves all that a process starts."""
    script = f"""
import resource, sys
if sys.argv[1] == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
from pathlib import Path
from icl.config.logger import LoggerSettings
from icl.sinks.logged_once import DocumentLogger
settings = LoggerSettings(mode="offline")
story = DocumentLogger(settings, Path({str(tmp_path)!r}), "check", "lab/a", "smoke", "1", {{}})
def write(sink):
    for step in range(40):
        sink.log(step, {{f"loss{{i}}": step / (i + 1) for i in range(100)}})
story.tell({{}}, write, print)
"""
    alone = {k: v for k, v in os.environ.items() if k != "WANDB_SERVICE"} | {"PYTHONPATH": str(ROOT)}

    def tell(disk: str) -> tuple[str, list[Path]]:
        command = [sys.executable, "-c", script, disk]
        done = subprocess.run(command, env=alone, capture_output=True, text=True, check=True)
        return done.stdout, sorted(tmp_path.glob("wandb/offline-run-*/*.wandb"))

    said, (cut,) = tell("full")
    assert cut.stat().st_size <= 50_000 and "W&B's copy is not whole" in said
    said, (_, whole) = tell("roomy")
    assert said == "" and holds_all([cut, whole])
    found = [record.history.step.num for record in records(whole) if record.HasField("history")]
    assert found == list(range(40))
    assert tell("roomy") == ("", [cut, whole])
