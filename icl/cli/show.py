"""Documents as text, readable at 80 columns."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from icl.look import FORMATS
from icl.runs.metric_kinds import RISKS, kind_of, of_one_matrix
from icl.text import brief, inequality, measurement, numbers, outcome, relation
from icl.verdicts import KINDS, VERDICTS, error_of

if TYPE_CHECKING:
    from icl.report.content import ReportContent

SHORT = (
    "Undecided is expected here: scale=smoke tests that everything runs, and its training is too short to\n"
    "decide claims about training. `icl reproduce` (scale=laptop, the default) decides them."
)
WIDE = 130  # from here on the meaning of a number has a column of its own
SHOWN = ("loss", *RISKS, "dist_preconditioned")  # of a multirun

Cell = tuple[float | None, float | None]  # a number and its standard error


def check(document: Mapping[str, Any], *, verbose: bool = False) -> None:
    """Print a verdict: title, the verdict and the control in a sentence each, claim and record's path; with
    `verbose` all that was measured, the bound's source, notes, and the construction layer by layer."""
    from rich.console import Console
    from rich.markup import escape

    console = Console()
    console.print(f"[bold]{escape(document['title'])}[/]  [dim]{document['check']}[/]", highlight=False)
    expected = "" if document["verdict"] == document["expected"] else f" Expected: {document['expected']}."
    console.print(_indented(document["sentence"] + expected), style=_colour(document))
    console.print(_indented(document["control_sentence"]))
    console.print(_indented(f"Claim: {document['claim']} ({document['reference']})"), style="dim")
    if verbose:
        _numbers(console, document)
        console.print(_indented(f"Bound: {document['bound']['source']}."))
        for note in document["notes"]:
            console.print(_indented(f"Note: {note}"))
        for line in document["details"]:  # a construction, layer by layer
            console.print(f"  {line}", soft_wrap=True, markup=False, highlight=False)
    if document["record"]:
        console.print(f"  {document['record']}", soft_wrap=True, markup=False, highlight=False)


def checks(documents: Sequence[Mapping[str, Any]]) -> None:
    """Print a table with one row per check, and the sentences of those that are other than expected."""
    from rich.console import Console

    console = Console()
    table = headed((0, 1))
    table.add_column("check", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("measured against its bound", overflow="fold")
    table.add_column("s", no_wrap=True, justify="right")
    for d in documents:
        seconds = "cached" if d["cached"] else f"{d['seconds']:.1f}"
        table.add_row(d["check"], coloured(d), inequality(relation(d["measured"], d["bound"])), seconds)
    console.print(table, highlight=False)
    for d in documents:
        _unexpected(console, d)


def _unexpected(console: Any, document: Mapping[str, Any]) -> None:
    """Print the sentence of a check whose verdict is other than expected."""
    if document["verdict"] != document["expected"]:
        text = f"{document['check']}: {document['sentence']} Expected: {document['expected']}."
        console.print(_indented(text, 0), style="red")


def headed(padding: tuple[int, int] | tuple[int, int, int, int]) -> Any:
    """Return an empty table with a line below its head."""
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=padding)


def heading(metric: str) -> str:
    """Return a metric's name and, below it, the kind of number it is."""
    return f"{metric}\n{kind_of(metric)}" if kind_of(metric) else metric


def width(table: Any) -> int:
    """Return the number of columns of a terminal that a table takes."""
    from rich.console import Console
    from rich.measure import Measurement

    console = Console()
    return Measurement.get(console, console.options.update(max_width=10_000), table).maximum


def _of_claim(claim: Mapping[str, Any]) -> str:
    """Return a figure's claim as text: the measurement, its kind and its bound."""
    kind = KINDS.get(claim.get("kind", ""), "")
    return f"{brief(claim['measured'])} ({f'{kind}; ' if kind else ''}bound: {claim['bound']})"


def coloured(document: Mapping[str, Any]) -> str:
    """Return the verdict, red and with a mark if it is not the expected one."""
    mark = "" if document["verdict"] == document["expected"] else " !"
    return f"[{_colour(document)}]{document['verdict']}{mark}[/]"


def _colour(claim: Mapping[str, Any]) -> str:
    """Return the colour of a verdict. Undecided is no success, expected or not."""
    if claim["verdict"] != claim["expected"]:
        return "bold red"
    return "yellow" if claim["verdict"] == "undecided" else "green"


def _numbers(console: Any, document: Mapping[str, Any]) -> None:
    """Print every number that has a value, with its bound and kind, and its meaning beside it or below."""
    from rich.table import Table

    rows = [
        (f"  {row.name}", f"{row.value} ({row.kind})".strip() if row.kind else row.value, row)
        for row in numbers(document)
    ]
    if console.width >= WIDE:
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold", max_width=WIDE // 2)
        table.add_column(overflow="fold", style="dim")
        for name, value, row in rows:
            table.add_row(name, value, "\n".join(filter(None, [row.meaning, row.route])))
            for entry in row.entries:
                table.add_row(*_entry(entry))
        console.print(table, highlight=False, markup=False)
        return
    columns = max((len(name) for name, *_ in rows), default=0) + 2
    indent = " " * columns
    for name, value, row in rows:
        line = textwrap.fill(f"{name:<{columns}}{value}", console.width, subsequent_indent=indent)
        console.print(line, highlight=False, markup=False)
        for told in filter(None, [row.meaning, row.route]):
            console.print(_indented(told, 6), style="dim")
        for entry in row.entries:
            name, text = _entry(entry)
            console.print(f"{name:<{columns}}{text}", highlight=False, markup=False)


def _entry(entry: tuple[str, str]) -> tuple[str, str]:
    """Return the row of a table's entry, with its name indented below the table's own."""
    return f"    {entry[0]}", entry[1]


def _indented(text: str, columns: int = 2) -> Any:
    """Return text wrapped between words."""
    from rich.padding import Padding
    from rich.text import Text

    return Padding(Text(text), (0, 0, 0, columns), expand=False)


def figures(documents: Sequence[Mapping[str, Any]], *, verbose: bool = False) -> None:
    """Print the claims of each figure and the path of its picture. At scale=smoke, expected `undecided` are
    counted alone, unless `verbose`."""
    from rich.console import Console

    console = Console()
    for document in documents:
        if document.get("status") == "interrupted":
            left = len(document["left"])
            console.print(f"[bold]{document['figure']}[/] at {document['scale']}: {left} runs left to train")
            continue
        how = "found" if document["cached"] else f"{document['seconds']:.1f} s"
        head = f"[bold]{document['figure']}[/] at {document['scale']} ({how})"
        console.print(f"{head}: {totals(document['claims'])}", highlight=False)
        fold = document["scale"] == "smoke" and not verbose
        folded = [c for c in document["claims"] if fold and c["verdict"] == c["expected"] == "undecided"]
        for claim in document["claims"]:
            if claim in folded:
                continue
            text = f"{claim['claim']}: {_of_claim(claim)}"
            why = f" ({claim['reason']})" if claim.get("reason") else ""
            console.print(f"  [{_colour(claim)}]{outcome(claim)}[/]{why}", highlight=False)
            console.print(_indented(text, 4))
        if folded:
            console.print(
                "  undecided is expected at scale=smoke, whose training is too short (verbose=true lists)"
            )
        picture = next(document["files"][name] for name in FORMATS if name in document["files"])
        console.print(f"  {picture}", soft_wrap=True, markup=False, highlight=False)


def totals(claims: Sequence[Mapping[str, Any]]) -> str:
    """Return counts: `31 hold, 3 known false, 17 undecided, 1 other than expected`."""
    counts = Counter(claim["verdict"] for claim in claims if claim["verdict"] == claim["expected"])
    words = {"holds": ("holds", "hold"), "fails": ("known false", "known false")}
    counted = [(counts[verdict], *words.get(verdict, (verdict, verdict))) for verdict in VERDICTS]
    others = len(claims) - counts.total()
    counted.append((others, "other than expected", "other than expected"))
    return ", ".join(f"{count} {one if count == 1 else many}" for count, one, many in counted if count)


def in_short(document: Mapping[str, Any]) -> str:
    """Return the outcome of a check or figure in a few words, and its seconds."""
    how = "found" if document["cached"] else f"{document['seconds']:.1f} s"
    if "verdict" in document:
        return f"{outcome(document)}, {measurement(document)} ({how})"
    return f"{totals(document['claims'])} ({how})"


def needs(group: str, id: str, reason: str) -> str:
    """Return why something was skipped, as `ID needs ...: ...`."""
    return f"skipped: {reason if id in reason else f'{group} {id} needs what is not here: {reason}'}"


def reproduced(document: Mapping[str, Any]) -> None:
    """Print the totals, what is not as expected, what was skipped or failed, and the report's path."""
    from rich.console import Console

    console = Console()
    counted = [(check, check["check"]) for check in document["checks"]]
    claims = [(claim, figure["figure"]) for figure in document["figures"] for claim in figure["claims"]]
    for what, found in (("checks", counted), (f"claims of {len(document['figures'])} figures", claims)):
        if found:
            console.print(f"{len(found)} {what}: {totals([claim for claim, _ in found])}", highlight=False)
    for check, _ in counted:
        _unexpected(console, check)
    for claim, id in claims:
        if claim["verdict"] != claim["expected"]:
            text = f"{id}: {outcome(claim)}: {claim['claim']}: {_of_claim(claim)}"
            console.print(_indented(text, 0), style="red")
    is_smoke = any(figure["scale"] == "smoke" for figure in document["figures"])
    if is_smoke and any(claim["verdict"] == "undecided" for claim, _ in claims):
        console.print(SHORT, highlight=False)
    if document.get("left"):
        console.print(f"left when the time was over: {', '.join(document['left'])}", soft_wrap=True)
    for skipped in document["skipped"]:
        console.print(needs(**skipped), soft_wrap=True, markup=False, highlight=False)
    for failure in document["failures"]:
        line = f"failed {failure['group']} {failure['id']}: {failure['error']}"
        console.print(line, soft_wrap=True, markup=False, highlight=False, style="red")
    console.print(f"{document['seconds']:.0f} s", highlight=False)
    if document["report"] is not None:
        console.print(f"report: {document['report']}", soft_wrap=True, markup=False, highlight=False)


def run(document: Mapping[str, Any], experiment: str) -> None:
    """Print a run: metrics by seed, verdicts, and its folder."""
    from rich.console import Console

    console = Console()
    how = "found" if document["cached"] else "resumed and done" if document["resumed"] else "done"
    warned = ", [yellow]with a warning[/]" if document["warnings"] else ""
    console.print(
        f"[bold]{experiment}[/] {how}{warned}: {document['steps']} steps, {document['seconds']:.1f} s"
    )
    metrics = {k: v for k, v in document["metrics"].items() if not of_one_matrix(k)}
    seeds = list(next(iter(document["metrics"].values()))["by_seed"])
    table = _table(metrics, [f"seed {seed}" for seed in seeds], lambda cells: cells)
    if width(table) > console.width:
        table = _table(metrics, ["lowest", "highest"], _extremes)
        console.print(f"over {len(seeds)} seeds; each of them is in metrics.csv", highlight=False)
    console.print(table)
    for verdict in document["verdicts"]:
        console.print(f"{verdict['check']} at these weights: {coloured(verdict)}")
        if "sentence" in verdict:  # not in runs of an earlier version
            console.print(_indented(verdict["sentence"]))
    for warning in document["warnings"]:
        console.print(f"[yellow]warning: {warning}[/]", soft_wrap=True, highlight=False)
    if document["error"]:
        console.print(f"[red]failed: {document['error']}[/]", soft_wrap=True, highlight=False)
    console.print(f"run: {document['run_dir']}", soft_wrap=True, markup=False, highlight=False)


def _table(
    metrics: Mapping[str, Any], columns: Sequence[str], shown: Callable[[list[Cell]], list[Cell]]
) -> Any:
    table = headed((0, 0, 0, 1))
    table.add_column("metric", no_wrap=True)
    table.add_column("", no_wrap=True)
    for name in ["mean", *columns]:
        table.add_column(name, no_wrap=True, justify="right")
    for name, entry in metrics.items():
        if name in map(error_of, metrics):
            continue  # stands behind its own metric
        values, errors = list(entry["by_seed"].values()), _errors(metrics, name)
        cells = list(zip(values, errors or [None] * len(values), strict=True))
        table.add_row(name, kind_of(name, errors), _mean(metrics, name), *map(_cell, shown(cells)))
    return table


def _mean(metrics: Mapping[str, Any], name: str) -> str:
    """Return the mean over seeds and, if it was sampled, its standard error; seeds are independent."""
    errors = _errors(metrics, name)
    known = [error for error in errors if error is not None]
    error = math.hypot(*known) / len(known) if known and len(known) == len(errors) else None
    return _cell((metrics.get(name, {}).get("mean"), error))


def _errors(metrics: Mapping[str, Any], name: str) -> list[float | None]:
    return list(metrics.get(error_of(name), {"by_seed": {}})["by_seed"].values())


def _extremes(cells: list[Cell]) -> list[Cell]:
    defined = [value for value, _ in cells if value is not None]
    return [(min(defined, default=None), None), (max(defined, default=None), None)]


def _cell(cell: Cell) -> str:
    value, error = cell
    shown = brief(value)
    return f"{shown} \N{PLUS-MINUS SIGN} {error:.2g}" if value is not None and error else shown


def multirun(results: Sequence[Mapping[str, Any]]) -> None:
    """Print a table with one row per job."""
    from rich.console import Console

    documents = [result["document"] for result in results]
    measured = [found.get("metrics", {}) for found in documents]
    metrics = [name for name in SHOWN if any(m.get(name, {}).get("mean") is not None for m in measured)]
    judged = any("verdict" in d for d in documents)
    table = headed((0, 1))
    table.add_column("job", overflow="fold")
    for name in ["state", *(["verdict", "measured"] if judged else []), *metrics]:
        justify: Any = "right" if name in metrics else "left"
        table.add_column(heading(name), no_wrap=name != "measured", justify=justify)
    for result, found in zip(results, documents, strict=True):
        state = "cached" if found.get("cached") else result["status"]
        state = f"[red]{state}[/]" if state == "failed" else state
        state += ", [yellow]warning[/]" if found.get("warnings") else ""
        means = [_mean(found.get("metrics", {}), name) for name in metrics]
        verdict = [found["verdict"], measurement(found)] if "verdict" in found else ["", ""]
        table.add_row(" ".join(result["overrides"]), state, *(verdict if judged else []), *means)
    console = Console()
    console.print(table)
    for result, found in zip(results, documents, strict=True):
        for warning in found.get("warnings", []):
            text = f"warning: {' '.join(result['overrides'])}: {warning}"
            console.print(text, style="yellow", soft_wrap=True, markup=False, highlight=False)


def report(document: Mapping[str, Any], book: ReportContent) -> None:
    """Print a summary of the page in one line, and its path."""
    from icl.report.page import summary

    missing = sum(entry.document is None for entry in book.entries)
    rest = f" {missing} of {len(book.entries)} checks and figures have no result." if missing else ""
    print(f"{summary(book)}{rest}".strip())
    print(document["report"])
    if "wandb" in document:
        print(document["wandb"])
