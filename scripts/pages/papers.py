"""Tables of statements and figures, and single numbers, from docs/records; files of the repository.

Of a number's name, `*` stands for every key; `min:.4f` or `max:.4f` then shows the least or the greatest.
`|.4f` leaves out the sign.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from icl.config.search_path import ConfigDirs
from icl.config.values import flatten, literal
from icl.jobs.requests.parse import parse_named
from icl.jobs.stored.catalog import entry_of
from icl.runs.archive import MANIFEST, Archive, commit_of, copied_runs, is_as_shipped, scale_of
from icl.text import brief, control_sentence, main_route, measurement
from icl.verdicts import KINDS

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "docs" / "records"
CONFIGS = ConfigDirs()
_SHAPES = {"holds": "●", "fails": "▲", "undecided": "○", "skipped": "–"}


def records(paper: str) -> dict[str, Any]:
    return json.loads((RECORDS / f"{paper}.json").read_text(encoding="utf-8"))


def short_name(paper: str) -> str:
    """Return the first author and the year, from the paper's citation, and its name in commands; a citation
    without a comma, such as this project's own, is returned whole."""
    config = yaml.safe_load((ROOT / "conf" / "paper" / f"{paper}.yaml").read_text(encoding="utf-8"))
    if "," not in config["citation"]:
        return f"{config['citation']} (`{paper}`)"
    authors, year = config["citation"].split(","), config["citation"].split()[-1]
    return f"{authors[0].split()[-1]} et al. {year} (`{paper}`)"


def value(id: str, keys: str) -> Any:
    """Return `measured.scalars.0` of a stored check or figure; `_` may replace a space, `*` every key."""
    paper = records(id.partition("/")[0])
    return _lookup(paper["checks"].get(id) or paper["figures"][id], keys.split("."), f"{id} {keys}")


def _lookup(node: Any, keys: Sequence[str], request: str) -> Any:
    if not keys:
        return node
    if keys[0] == "*":
        parts = node.values() if isinstance(node, Mapping) else node
        return [_lookup(part, keys[1:], request) for part in parts]
    if isinstance(node, list):
        return _lookup(node[int(keys[0])], keys[1:], request)
    for count in range(1, len(keys) + 1):  # a key may contain a point
        name = ".".join(keys[:count])
        for key in (name, name.replace("_", " ")):
            if isinstance(node, Mapping) and key in node:
                return _lookup(node[key], keys[count:], request)
    raise KeyError(f"{request}: no record has {keys[0]}")


def formatted(value: Any, form: str) -> str:
    if isinstance(value, str):
        return f"*{value}*"
    chosen, colon, rest = form.partition(":")
    if colon:
        return format({"min": min, "max": max}[chosen](value), rest)
    return format(abs(value), form[1:]) if form.startswith("|") else format(value, form)


def statements(name: str) -> str:
    paper = records(name)
    rows = ["| statement | verdict | measured, bound and control |", "|---|---|---|"]
    for id, check in sorted(paper["checks"].items(), key=lambda item: _rank(item[1]["reference"])):
        entry = entry_of("check", id, CONFIGS)
        own = " (a statement of this project)" if entry.origin == "icl" else ""
        claim = [f"**{_cell(entry.title)}**{own}", f"{_cell(check['claim'])} ({_cell(check['reference'])})"]
        statement = [*claim, *_formula(ROOT / "conf" / "check" / f"{id}.yaml"), f"`check={id}`"]
        route = main_route(check)
        measured = [
            _cell(check.get("sentence") or measurement(check)),
            *([f"*{_cell(route[0].upper() + route[1:])}.*"] if route else []),
            f"*Bound:* {_cell(check['bound']['source'])}",
            _cell(check.get("control_sentence") or control_sentence(check)),
        ]
        rows.append(f"| {'<br>'.join(statement)} | {_verdict(check)} | {'<br>'.join(measured)} |")
    return _narrow(rows) + _made(paper["checks"], "icl check check=PAPER/all")


def _formula(config: Path) -> list[str]:
    """Return the claim as a formula, if the header of the config has one."""
    header = re.search(r"^# formula: (.+)$", config.read_text(encoding="utf-8"), re.MULTILINE)
    if not header:
        return []
    return [f" ${portable(header[1])}$ "]


def portable(latex: str) -> str:
    r"""Rewrite what Markdown takes for escapes or cell borders, and \\operatorname, which GitHub refuses."""
    commands = {
        "\\": "cr",
        "|": "Vert",
        "{": "lbrace",
        "}": "rbrace",
        ",": "thinspace",
        " ": "enspace",
        "#": "sharp",
    }
    latex = re.sub(r"\\([\\|{},# ])", lambda c: f"\\{commands[c[1]]} ", latex)
    latex = latex.replace("|", r"\vert ").replace("<", r"\lt ").replace("*", r"\ast ")
    latex = re.sub(r"(?<=[\w}]) ?\\operatorname", r" \\thinspace \\operatorname", latex)
    latex = re.sub(r"\\operatorname\{(\w+)\}(?!\s*(?:\(|\\left))", r"\\mathrm{\1} \\thinspace", latex)
    return re.sub(r" +", " ", latex.replace(r"\operatorname", r"\mathrm")).strip()


def _kind(words: str) -> str:
    return f" ({words})" if words else ""


def _rank(reference: str) -> int:
    """Return the place of a statement in the table: theorems first."""
    kinds = ("Theorem", "Proposition", "Lemma", "Corollary")
    return next((i for i, kind in enumerate(kinds) if reference.startswith(kind)), len(kinds))


def figures(name: str) -> str:
    paper = records(name)
    if not paper["figures"]:
        return "No figure of this paper has a stored record yet."
    rows = ["| figure and claim | verdict | measured, and what it is compared with |", "|---|---|---|"]
    for id, figure in paper["figures"].items():
        if "skipped" in figure:
            rows.append(
                f"| `figure={id}` | {_verdict({'verdict': 'skipped'})} | {_cell(figure['skipped'])} |"
            )
        rows += [_claim_row(claim, f"`figure={id}`<br>") for claim in figure.get("claims", [])]
    return _narrow(rows) + _made(paper["figures"], "icl figure figure=PAPER/all")


def _claim_row(claim: Mapping[str, Any], of: str = "", at_laptop: str = "") -> str:
    """Return the row of a claim; a verdict at scale=laptop is said where it is another."""
    other = f"<br>at laptop {at_laptop}" if at_laptop not in ("", claim["verdict"]) else ""
    kind = _kind(KINDS.get(claim.get("kind", ""), ""))
    measured = (
        f"{_cell(brief(claim['measured'], 3))}{kind}<br>*Compared with:* {_cell(brief(claim['bound'], 3))}"
    )
    return f"| {of}{_cell(claim['claim'])} | {_verdict(claim)}{other} | {measured} |"


def paperscale() -> str:
    """List the figures that were drawn at scale=paper: picture, claims, time and machine."""
    blocks = []
    for id, figure in sorted(paper_scale_figures().items()):
        paper = id.partition("/")[0]
        name, stored = short_name(paper).partition(" (")[0], records(paper)
        took, threads = _duration(figure["seconds"]), figure["threads"]
        of = f"{threads} thread{'s' if threads > 1 else ''} of " if threads else ""  # where it trains
        on = of + figure["cpu"]
        rows = ["| claim | verdict | measured, and what it is compared with |", "|---|---|---|"]
        laptop = {claim["claim"]: claim["verdict"] for claim in stored["figures"][id].get("claims", [])}
        rows += [_claim_row(claim, at_laptop=laptop.get(claim["claim"], "")) for claim in figure["claims"]]
        made = f"{figure['date']}, commit {figure['commit'][:10]}: {took} on {on}"
        blocks += [
            f"## {name}, {stored['figures'][id]['reference']}",
            f"![{id} at the paper's scale](../img/paper/{id.replace('/', '-')}.png)",
            f"*{_escaped(figure['caption'])}*",
            _narrow(rows),
            f"*`icl figure figure={id} {' '.join([scale_of(figure), *figure['own']])} "
            f"from=docs/records/paper/{paper}`, {_escaped(made)}.*",
        ]
    return "\n\n".join(blocks)


def paper_scale_figures() -> dict[str, dict[str, Any]]:
    """Return the figures in the archives of docs/records/paper."""
    found: dict[str, dict[str, Any]] = {}
    for manifest in sorted((RECORDS / "paper").glob(f"*/{MANIFEST}")):
        archive = Archive.at(str(manifest.parent))
        for folder in sorted(archive.path.glob("figures/*/*/paper")):
            id = "/".join(folder.parts[-3:-1])
            # The newest with the paper's own steps, where there is one.
            newest = min(archive.figures(id, "paper"), key=lambda record: "budget" in record["document"])
            found[id] = _archived_figure(newest, archive)
    return found


def _archived_figure(record: Mapping[str, Any], archive: Archive) -> dict[str, Any]:
    document, made_by = record["document"], record["provenance"]
    runs = {run.path: run.run["seconds"] for run in copied_runs(record, archive).values()}
    return {
        **{key: document[key] for key in ("caption", "claims", "scale")},
        "budget": document.get("budget"),
        "own": _own_settings(record),
        "seconds": sum(runs.values()) + document["drawing_seconds"],
        "date": datetime.fromtimestamp(record["written"], UTC).date().isoformat(),
        "commit": commit_of(made_by),
        "threads": made_by["threads"],
        "cpu": made_by["hardware"]["cpu"],
    }


def _own_settings(record: Mapping[str, Any]) -> list[str]:
    """Return the settings that were not as shipped, as they are typed."""
    document = record["document"]
    if is_as_shipped(record):
        return []
    request, _ = parse_named("figure", document["figure"], scale_of(document).split(), CONFIGS)
    shipped, own = flatten(request.settings), flatten(document["settings"])  # type: ignore[attr-defined]
    changed = {f"figure.{key}": value for key, value in own.items() if shipped.get(key) != value}
    return [shlex.quote(f"{key}={literal(value)}") for key, value in changed.items()]


def _duration(seconds: float) -> str:
    for unit, length in (("hours", 3600), ("minutes", 60)):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} seconds"


def findings(name: str) -> str:
    """List the remarks on a paper's text, each once, with the first check that makes it."""
    paper = records(name)
    first: dict[str, str] = {}
    for id, check in paper["checks"].items():
        for remark in check["remarks"]:
            first.setdefault(remark, id)
    return "\n".join(f"- {_escaped(remark)} (`{id}`)" for remark, id in first.items())


def file(name: str) -> str:
    path = ROOT / name
    language = {".py": "python", ".toml": "toml", ".yaml": "yaml"}[path.suffix]
    return f"```{language}\n{path.read_text(encoding='utf-8').rstrip()}\n```"


def counts() -> str:
    rows = ["| paper | checks | hold | fail | undecided | figures drawn |", "|---|---|---|---|---|---|"]
    for path in sorted(RECORDS.glob("*.json")):
        paper = records(path.stem)
        counted = Counter(check["verdict"] for check in paper["checks"].values())
        drawn = sum("claims" in figure for figure in paper["figures"].values())
        numbers = [len(paper["checks"]), counted["holds"], counted["fails"], counted["undecided"], drawn]
        rows.append(f"| {short_name(path.stem)} | {' | '.join(map(str, numbers))} |")
    return "\n".join(rows)


def times() -> str:
    """Sum the seconds of each paper's records; those of a figure include its runs."""
    rows, machines = ["| paper | checks | figures, with their training |", "|---|---|---|"], set()
    for path in sorted(RECORDS.glob("*.json")):
        paper, cells = records(path.stem), []
        for plural in ("checks", "figures"):
            made = [item for item in paper[plural].values() if "commit" in item]
            machines |= {item.get("machine", "a machine that is not on record") for item in made}
            known = all("seconds" in item for item in made)
            cells.append(f"{sum(item['seconds'] for item in made):,.0f} s" if known else "not on record")
        rows.append(f"| {short_name(path.stem)} | {' | '.join(cells)} |")
    return "\n".join([*rows, "", f"*Measured on {' and on '.join(sorted(machines))}.*"])


def _narrow(rows: Sequence[str]) -> str:
    """Return a table whose cells are stacked on a phone."""
    return "\n".join(['<div class="records" markdown>', "", *rows, "", "</div>", "", ""])


def _verdict(claim: Mapping[str, Any]) -> str:
    verdict = claim["verdict"]
    expected = claim.get("expected", verdict)
    odd = (
        f" (expected: {expected})" if verdict != expected else " (known false)" if verdict == "fails" else ""
    )
    return f'<span class="verdict {verdict}">{_SHAPES[verdict]} {verdict}</span>{odd}'


def _made(items: Mapping[str, Any], command: str) -> str:
    made = [item for item in items.values() if "commit" in item]
    dates, commits = sorted({item["date"] for item in made}), sorted({item["commit"][:10] for item in made})
    scales = sorted({item["scale"] for item in made if "scale" in item})
    at = f", scale {', '.join(scales)}" if scales else ""
    days = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    return f"*Measured {days}{at}, by commit {', '.join(commits)}. The command is `{command}`.*"


def _cell(text: str) -> str:
    return _escaped(text).replace("\n", " ")


def _escaped(text: str) -> str:
    """Escape plain text of the checks, whose * and _ and < and $ are no Markdown."""
    return re.sub(r"[&<>\\`*_\[\]$^~|{}]", lambda character: f"&#{ord(character[0])};", text)


TABLES: dict[str, Callable[..., str]] = {
    "counts": counts,
    "figures": figures,
    "file": file,
    "findings": findings,
    "paperscale": paperscale,
    "statements": statements,
    "times": times,
}
