"""Tests of command lines in the docs and in the help: they can be pasted into bash and zsh."""

import re
from collections.abc import Iterator
from pathlib import Path

from icl.cli import main
from icl.cli.help import VERBS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
COMMAND = re.compile(r"(\.venv/bin/)?icl (train|check|figure|reproduce|report|runs|sweep|clean) .*=")


def commands() -> Iterator[str]:
    """Yield every line that begins with icl, without its comment."""
    texts = [page.read_text("utf-8") for page in PAGES]
    texts += ["\n".join(line for line in lines if line.startswith("icl ")) for lines in VERBS.values()]
    for line in (line.strip() for text in texts for line in text.splitlines()):
        if COMMAND.match(line):
            yield line.partition(" #")[0].rpartition("&& ")[2]


def test_brackets_and_globs_are_quoted() -> None:
    lines = list(commands())
    assert len(lines) > 40 and any("'seeds=[0,1]'" in line for line in lines)
    unquoted = (re.sub(r"'[^']*'|\"[^\"]*\"", "", line) for line in lines)
    assert not [line for line in unquoted if re.search(r"[\[\]()*?<>]", line)]


def test_the_statement_of_the_page_for_agents_holds_and_a_wrong_one_fails(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "AGENTS.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    path, rest = tmp_path / "mine.py", f"paths.outputs={tmp_path}"
    for source, exit_code in ((code, 0), (code.replace('"d*(d + 1 + s)', '"d*(d + s)'), 1)):
        path.write_text(source, "utf-8")
        assert main(["check", str(path), rest]) == exit_code
