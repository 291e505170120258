"""Tests of commands and what they print, from transcripts/*.txt.

Each command runs in an empty folder. In a file with lines `## TITLE` those below a title run one after
another in one folder. In `$ icl ...` NAME is replaced where the file has `NAME = words`, without words whose
key is given again, and {KEY} by that entry of the document before. Below a command stand

    0 > TEXT         its exit code, before the first of these; a part of stdout
    ! TEXT           a part of stderr
    - TEXT           a part of neither
    = {"key": 1}     a part of the JSON document: objects may have more keys
    + 2 GLOB         the number of files and folders below the working folder

`@ PATH` writes the lines below it, up to an empty one, to a file. With exit code 2 stdout is empty, stderr
one line, with a suggestion a second one, and nothing is written anywhere.
"""

import json
import re
import shlex
from functools import partial
from pathlib import Path

import pytest

from icl.cli import main
from tests.commands import Result, assert_refused, contents, without_repeated

FILES = sorted(Path(__file__).with_name("transcripts").glob("*.txt"))
_RESULT = re.compile(r"(?:(\d+) )?([!>=+-]) (.*)")


def cases():
    """Yield the place and the lines of each story, or of each command in a file without stories."""
    for path in FILES:
        names, found = {}, []
        lines = path.read_text(encoding="utf-8").splitlines()
        first = "## " if any(line.startswith("## ") for line in lines) else "$ icl "
        for number, line in enumerate(lines, 1):
            if name := re.fullmatch(r"([A-Z]+) = (.*)", line):
                names[name[1]] = name[2].split(" ")
            if line.startswith(first):
                found.append((f"{path.stem}:{number}", []))
            if line.startswith("$ icl "):
                head, *rest = line.removeprefix("$ icl ").split(" ")
                line = "$ " + " ".join(without_repeated(names.get(head, [head]), rest))
            if found and (not line.startswith("#") or line.startswith("# @")):
                found[-1][1].append(line)
        yield from found


def is_part(part, whole):
    """Return whether a document holds a part: objects may have more keys, lists no more entries."""
    if isinstance(part, dict):
        return all(key in whole and is_part(value, whole[key]) for key, value in part.items())
    if isinstance(part, list):
        return len(part) == len(whole) and all(map(is_part, part, whole))
    return part == whole and isinstance(part, bool) == isinstance(whole, bool)


def entry(document, key):
    return str(document.get(key[1], key[0]))


@pytest.mark.parametrize("lines", [pytest.param(lines, id=place) for place, lines in cases()])
def test_it_prints_what_the_transcript_says(lines, places, capfd, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("icl.cli.display.EVERY", 1e6)  # however slow the machine, no line is due
    file, code, out, document = None, None, "", {}
    for line in [*lines, "$ "]:
        if line.startswith("$ "):
            assert code in (None, 0), f"{command}: exit {code}: {err}"  # noqa: F821
            if line == "$ ":
                break
            document = json.loads(out) if out.startswith("{") else document
            command = re.sub(r"\{(\w+)\}", partial(entry, document), line[2:])
            before, file = contents(places), None
            code = main(shlex.split(command))
            out, err = capfd.readouterr()
        elif line.startswith("@ "):
            file = Path(line[2:])
            file.parent.mkdir(parents=True, exist_ok=True)
        elif file is not None:
            file.open("a").write(f"{line}\n")
        elif line:
            result = _RESULT.fullmatch(line)
            assert result, f"no line of a transcript: {line}"
            if result[1]:
                assert code == int(result[1]), f"{command}: exit {code}: {err}"
                if code == 2:
                    assert_refused(Result(code, out, err), "")
                    assert contents(places) == before, command
                code = 0
            kind, part = result[2], result[3]
            if kind == "=":
                assert is_part(json.loads(part), json.loads(out)), (command, part, out)
            elif kind == "+":
                number, pattern = part.split(" ")
                assert len(list(Path().glob(pattern))) == int(number), (command, part, contents(places))
            else:
                where = {"!": err, ">": out, "-": out + err}[kind]
                assert (part in where) == (kind != "-"), (command, line, where)
