"""The pages of the reference: the commands' help, the config files with their comments, public Python."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from icl.cli import VERBS, main
from scripts.pages.papers import short_name

ROOT = Path(__file__).parents[2]

CONFIGS = {
    "configs": ("Configs of the verbs and their groups", ("check", "experiment", "figure", "paper")),
    "configs-checks": ("Configs of the checks", "check"),
    "configs-experiments": ("Configs of the experiments", "experiment"),
    "configs-figures": ("Configs of the figures", "figure"),
}

# What users' code imports, by file.
PYTHON: dict[str, tuple[str, ...]] = {
    "icl/__init__.py": ("check", "train", "figure", "reproduce", "sweep", "runs", "load_run", "exact_risk"),
    "icl/training/load.py": ("TrainedRun",),
    "icl/runs/record.py": ("RunRecord",),
    "icl/jobs/stored/run_list.py": ("ListedRun", "RunList"),
    "icl/notebook.py": ("Shown",),
    "icl/errors.py": ("InputError", "Unavailable", "whole", "one_of"),
    "icl/checks/verdict.py": (),
    "icl/checks/numbers.py": (),
    "icl/tasks/law.py": (),
    "icl/tasks/token_law.py": (),
    "icl/figures/drawing.py": (),
    "icl/figures/claims.py": (),
    "icl/experiments/runner.py": (),
}


def pages() -> dict[str, str]:
    """Return each page by file name."""
    texts = {"commands.md": commands(), "python.md": python()}
    return texts | {f"{name}.md": configs(title, which) for name, (title, which) in CONFIGS.items()}


def commands() -> str:
    parts = [
        "# Commands",
        "The output of `--help` for each command.",
        _block("icl --help", _printed("--help")),
    ]
    for verb, (summary, *_) in VERBS.items():
        words = [verb] if verb == "completion" else [verb, "--help"]
        parts += [f"## icl {verb}", f"{summary[0].upper()}{summary[1:]}."]
        if verb != "completion":
            parts.append(_block(f"icl {' '.join(words)}", _printed(*words)))
    return "\n\n".join(parts) + "\n"


def _printed(*args: str) -> str:
    output = io.StringIO()
    with mock.patch.dict(os.environ, {"COLUMNS": "94", "NO_COLOR": "1"}), contextlib.redirect_stdout(output):
        code = main(args)
    if code != 0 or not output.getvalue().strip():
        raise RuntimeError(f"icl {' '.join(args)} ended with {code}")
    return output.getvalue()


def configs(title: str, which: str | tuple[str, ...]) -> str:
    """Return one group with all its options, or everything except the groups of `which`."""
    conf = ROOT / "conf"
    inside = [conf / which] if isinstance(which, str) else sorted(
        path for path in conf.iterdir() if path.is_dir() and path.name not in (*which, "__pycache__")
    )  # fmt: skip
    parts = [
        f"# {title}",
        "The files in full: comments explain the keys, and the header cites the paper.",
    ]
    if not isinstance(which, str):
        parts += ["## Verbs", *_files(conf, sorted(conf.glob("*.yaml")), 3)]
    for folder in inside:
        option = folder.name
        parts += [
            f"## {option}",
            f"Chosen with `{option}=NAME`.",
            *_contents(option, folder),
            *_files(folder, sorted(folder.rglob("*.yaml")), 3),
        ]
    return "\n\n".join(parts) + "\n"


def _contents(option: str, folder: Path) -> Iterator[str]:
    """List the options of a group by the statement or figure of a paper that their headers name."""
    rows = ["| | in the paper |", "|---|---|"]
    for path in sorted(folder.rglob("*.yaml")):
        id = path.relative_to(folder).with_suffix("").as_posix()
        header = dict(
            re.findall(r"^# (paper|reference): (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        )
        if "reference" in header:
            name = short_name(header["paper"]).partition(" (")[0]
            rows.append(
                f"| [`{option}={id}`](#{id.replace('/', '').lower()}) | {name}, {header['reference']} |"
            )
    if len(rows) > 2:
        yield "\n".join(rows)


def _files(folder: Path, paths: list[Path], level: int) -> Iterator[str]:
    for path in paths:
        yield f"{'#' * level} {path.relative_to(folder).with_suffix('').as_posix()}"
        yield _block("", path.read_text(encoding="utf-8"), "yaml")


def python() -> str:
    """Return signatures and docstrings, read from the files without importing them."""
    parts = ["# Python", "Functions and classes for your own programs and packages."]
    for name, wanted in PYTHON.items():
        module = ast.parse((ROOT / name).read_text(encoding="utf-8"))
        parts.append(f"## {name.removesuffix('/__init__.py').removesuffix('.py').replace('/', '.')}")
        parts.append(_docstring(module))
        for node in module.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and _is_wanted(node.name, wanted):
                parts += _documented(node, "")
    return "\n\n".join(part for part in parts if part) + "\n"


def _is_wanted(name: str, wanted: tuple[str, ...]) -> bool:
    return name in wanted if wanted else not name.startswith("_")


def _documented(node: ast.FunctionDef | ast.ClassDef, owner: str) -> Iterator[str]:
    name = f"{owner}{node.name}"
    yield f"###{'#' * bool(owner)} {name}"
    if isinstance(node, ast.FunctionDef):
        returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        yield _block("", f"{name}({ast.unparse(node.args)}){returns}", "python")
        yield _docstring(node)
        return
    fields = [ast.unparse(part) for part in node.body if isinstance(part, ast.AnnAssign)]
    bases = f"({', '.join(map(ast.unparse, node.bases))})" if node.bases else ""
    yield _block("", "\n".join([f"class {name}{bases}:", *(f"    {field}" for field in fields)]), "python")
    yield _docstring(node)
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and not part.name.startswith("_"):
            yield from _documented(part, f"{name}.")


def _docstring(node: ast.Module | ast.FunctionDef | ast.ClassDef) -> str:
    """Return a docstring as Markdown: indented paragraphs are code, and only backquotes are markup."""
    paragraphs = re.split(r"\n\n(?=\S)|(?<=\S)\n\n(?= {4})", ast.get_docstring(node) or "")
    return "\n\n".join(_block("", part) if part.startswith("    ") else _prose(part) for part in paragraphs)


def _prose(text: str) -> str:
    pieces = re.split(r"(`[^`]*`)", text)
    special = re.compile(r"[<>*_\[\]$^~|{}#]")
    return "".join(p if i % 2 else special.sub(lambda c: f"&#{ord(c[0])};", p) for i, p in enumerate(pieces))


def _block(command: str, text: str, language: str = "text") -> str:
    head = f"$ {command}\n" if command else ""
    fence = (
        "{ .python .wrapped }" if language == "python" else language
    )  # not for ruff, which formats Markdown
    return f"```{fence}\n{head}{textwrap.dedent(text).rstrip()}\n```"
