"""Comments in the configs: after each key, and the first line of each file."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from pathlib import Path

from icl.config.nested_keys import user_key
from icl.config.search_path import ConfigDirs

_KEY = re.compile(r"^(\s*)([\w.-]+):(?=\s|$)(.*)$")
_COMMENT = re.compile(r"(?:^|\s)#\s*(.*)$")
_PACKAGE = re.compile(r"^#\s*@package\s+(\S+)", re.MULTILINE)
_LONGEST = 120
_HEADER = re.compile(r"^#\s*(@package|paper:|origin:|reference:|formula:)")
_TITLE = re.compile(r"^#\s*title:\s*")


def of_keys(configs: ConfigDirs, verb: str, choices: Mapping[str, str | None]) -> dict[str, str]:
    """Return comments by dotted key, of conf/VERB.yaml, base.yaml and the options chosen; a user's win."""
    names = {"base": "_global_", verb: "_global_"}
    names |= {f"{group}/{option}": group for group, option in choices.items() if option}
    found: dict[str, str] = {}
    for folder in configs.folders:
        for name, group in names.items():
            path = folder / f"{name}.yaml"
            if path.is_file():
                found |= _of_file(path, group.replace("/", "."))
    return {user_key(key): comment for key, comment in found.items()}


def of_option(configs: ConfigDirs, group: str, option: str) -> str:
    """Return an option's description: the title of a check or figure, else its file's first sentence."""
    return _first(configs.text(group, option).splitlines())


def _first(lines: list[str]) -> str:
    lines_shown = []
    for line in lines:
        if not line.startswith("#"):
            break
        if _TITLE.match(line):
            return _TITLE.sub("", line)
        if not _HEADER.match(line):
            lines_shown.append(line.lstrip("# "))
    sentence = re.split(r"(?<=[\w)\]])\. (?=[A-Z~+])", " ".join(lines_shown), maxsplit=1)[0].removesuffix(".")
    return textwrap.shorten(sentence, _LONGEST, placeholder=" ...")


def _of_file(path: Path, package: str) -> dict[str, str]:
    text = path.read_text(encoding="utf-8")
    declared = _PACKAGE.search(text)
    package = declared[1] if declared else package
    above: list[tuple[int, str]] = [(-1, "")] if package == "_global_" else [(-1, f"{package}.")]
    found = {}
    for line in text.splitlines():
        key = _KEY.match(line)
        if key is None:
            continue
        indent, name = len(key[1]), key[2]
        while above[-1][0] >= indent:
            above.pop()
        dotted = f"{above[-1][1]}{name}"
        above.append((indent, f"{dotted}."))
        if comment := _COMMENT.search(key[3]):
            found[dotted] = comment[1].strip()
    return found
