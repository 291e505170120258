"""Tests of commands and what they print, from transcripts/*.txt.

Each command runs in an empty folder. In `$ icl ...` NAME is replaced where the file has `NAME = words`.
The number below it is the exit code; `!` is a part of stderr, `>` of stdout and `-` of neither. With exit
code 2 stdout is empty, stderr one line, with a suggestion a second one, and nothing is written anywhere.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from icl.cli import main
from tests.cli.test_wrong_input import contents, places  # noqa: F401  a fixture

FILES = sorted(Path(__file__).with_name("transcripts").glob("*.txt"))
_RESULT = re.compile(r"(?:(\d+) )?([!>-]) (.*)")


@dataclass
class Command:
    line: str
    number: int
    code: int = 0
    parts: list[tuple[str, str]] = field(default_factory=list)


def commands(path: Path) -> Iterator[Command]:
    names: dict[str, str] = {}
    command: Command | None = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("$ icl"):
            if command is not None:
                yield command
            words = [names.get(word, word) for word in line.removeprefix("$ icl").split(" ")]
            command = Command(" ".join(words), number)
        elif command is not None and (found := _RESULT.fullmatch(line)):
            command.code = int(found[1] or command.code)
            command.parts.append((found[2], found[3]))
        elif " = " in line and not line.startswith("#"):
            name, _, words_of_it = line.partition(" = ")
            names[name] = words_of_it
        else:
            assert not line or line.startswith("#"), f"{path.name}:{number}: {line}"
    if command is not None:
        yield command


CASES = [(path.stem, command) for path in FILES for command in commands(path)]


@pytest.mark.parametrize(("name", "command"), CASES, ids=[f"{name}:{c.number}" for name, c in CASES])
def test_it_prints_what_the_transcript_says(
    name: str,
    command: Command,
    places: Path,  # noqa: F811
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    before = contents(places)
    code = main(shlex.split(command.line))
    out, err = capfd.readouterr()
    assert code == command.code, (command.line, err)
    for kind, part in command.parts:
        where = {"!": err, ">": out, "-": out + err}[kind]
        assert (part in where) == (kind != "-"), (command.line, part, where)
    if code == 2:
        problem, *suggestions = err.splitlines()
        assert out == "" and problem.startswith("icl: "), (command.line, out, err)
        assert len(suggestions) <= 1 and all(line.startswith("icl: did you mean ") for line in suggestions), (
            err
        )
        assert contents(places) == before, command.line
