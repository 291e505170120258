"""Tests of command lines in the docs and in the help: they can be pasted into bash and zsh."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from icl.cli import main
from icl.cli.runs import USAGE

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
COMMAND = re.compile(r"(\.venv/bin/)?icl (train|check|figure|reproduce|report|runs|sweep|clean) \S*=")


def commands() -> Iterator[str]:
    """Yield every line that begins with icl, without its comment."""
    texts = [page.read_text("utf-8") for page in PAGES]
    texts.append(USAGE)
    for line in (line.strip() for text in texts for line in text.splitlines()):
        if COMMAND.match(line):
            yield line.partition(" #")[0]


def test_brackets_and_globs_are_quoted() -> None:
    lines = list(commands())
    assert len(lines) > 40 and any("'seeds=[0,1]'" in line for line in lines)
    unquoted = (re.sub(r"'[^']*'|\"[^\"]*\"", "", line) for line in lines)
    assert not [line for line in unquoted if re.search(r"[\[\]()*?<>]", line)]


def test_the_python_of_the_page_for_agents_runs() -> None:
    text = (ROOT / "docs" / "AGENTS.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(code, {})  # it asserts a true formula, and that a wrong one is seen


def test_the_ten_statements_of_the_page_for_agents_are_decided_so(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "AGENTS.md").read_text("utf-8")
    rows = re.findall(r"^\| .+ \| `(check=.+)` \| (\d) \|$", text, re.MULTILINE)
    assert sorted(code for _, code in rows) == ["0"] * 5 + ["1"] * 5
    rest = ["check.expected=holds", f"paths.outputs={tmp_path}"]
    assert {line: main(["check", *shlex.split(line), *rest]) for line, _ in rows} == {
        line: int(code) for line, code in rows
    }
