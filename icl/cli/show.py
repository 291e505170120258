"""Documents as text, readable at 80 columns."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from icl.look import FORMATS
from icl.metrics import RISKS, kind_of, of_one_matrix
from icl.text import brief, inequality, measurement, numbers, outcome, relation
from icl.verdicts import KINDS, VERDICTS, error_of

if TYPE_CHECKING:
    from icl.report.content import ReportContent

MOST = 8  # numbers that are shown beside those that decide
MOST_SEEDS = 5  # with a column each; of more, the lowest and the highest value
SHOWN = ("loss", *RISKS, "dist_preconditioned")  # of a multirun

Document = Mapping[str, Any]


def _line(text: str, style: str = "") -> None:
    """Print a line as it is, however long: a path, a command."""
    Console().print(text, style=style, soft_wrap=True, markup=False, highlight=False)


def _sentence(text: str, columns: int = 2, style: str = "") -> None:
    """Print text wrapped between words."""
    Console().print(Padding(Text(text), (0, 0, 0, columns), expand=False), style=style)


def _colour(claim: Document) -> str:
    """Return the colour of a verdict. Undecided is no success, expected or not."""
    if claim["verdict"] != claim["expected"]:
        return "bold red"
    return "yellow" if claim["verdict"] == "undecided" else "green"


def _told(verdict: Document) -> str:
    """Return a verdict's sentence, and what was expected where that is another."""
    other = verdict["verdict"] != verdict["expected"]
    return f"{verdict['sentence']} Expected: {verdict['expected']}." if other else str(verdict["sentence"])


def check(document: Document, *, verbose: bool = False) -> None:
    """Print a verdict: title, the verdict and the control in a sentence each, what was measured, the random
    settings, claim and record's path; with `verbose` notes."""
    title = Text(document["title"], style="bold").append(f"  {document['check']}", style="not bold dim")
    Console().print(title, highlight=False)
    _sentence(_told(document), style=_colour(document))
    _sentence(document["control_sentence"])
    if verbose or document.get("tries"):
        _numbers(document, all_of_them=verbose)
    if document.get("tries"):
        _tries(document)
    reference = f" ({document['reference']})" if document["reference"] else ""
    _sentence(f"Claim: {document['claim']}{reference}", style="dim")
    if verbose:
        if document["bound"]["source"]:
            _sentence(f"Bound: {document['bound']['source']}.")
        for note in document["notes"]:
            _sentence(f"Note: {note}")
    if document["record"]:
        _line(f"  {document['record']}")


def _numbers(document: Document, *, all_of_them: bool) -> None:
    """Print numbers with their bound and kind, and their meaning below; of many only those that decide,
    unless `all_of_them`."""
    rows = list(numbers(document))
    if len(rows) > MOST and not all_of_them:
        rows = [row for row in rows if row.name in document["bounds"]]
    columns = max((len(row.name) for row in rows), default=0) + 4
    for row in rows:
        value = f"{row.value} ({row.kind})".strip() if row.kind else row.value
        named = f"{f'  {row.name}':<{columns}}{value}"
        _line(textwrap.fill(named, Console().width, subsequent_indent=" " * columns))
        if row.meaning:
            _sentence(row.meaning, 6, style="dim")
        for name, entry in row.entries:
            _line(f"{f'    {name}':<{columns}}{entry}")


def _tries(document: Document) -> None:
    """Print what a statement is at random settings, and the command of a counterexample, to be copied."""
    tries = document["tries"]
    told = ", ".join(f"{verdict} at {tries[verdict]}" for verdict in VERDICTS if tries[verdict])
    if told:
        _sentence(f"Of {tries['decided']} random settings: {told}.")
    if tries["smallest_counterexample"] is not None:
        _line(f"  {next(n for n in document['notes'] if n.startswith('fails at other settings'))}")


def checks(documents: Sequence[Document]) -> None:
    """Print a table with one row per check, and the sentences of those that are other than expected."""
    table = headed((0, 1))
    table.add_column("check", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("measured against its bound", overflow="fold")
    table.add_column("s", no_wrap=True, justify="right")
    for d in documents:
        mark = "" if d["verdict"] == d["expected"] else " !"
        seconds = "cached" if d["cached"] else f"{d['seconds']:.1f}"
        verdict = Text(f"{d['verdict']}{mark}", style=_colour(d))
        table.add_row(d["check"], verdict, inequality(relation(d["measured"], d["bound"])), seconds)
    Console().print(table, highlight=False)
    _unexpected(documents)


def _unexpected(documents: Sequence[Document]) -> None:
    for d in documents:
        if d["verdict"] != d["expected"]:
            _sentence(f"{d['check']}: {_told(d)}", 0, style="red")


def headed(padding: tuple[int, int] | tuple[int, int, int, int]) -> Table:
    """Return an empty table with a line below its head."""
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=padding)


def heading(metric: str) -> str:
    """Return a metric's name and, below it, the kind of number it is."""
    return f"{metric}\n{kind_of(metric)}" if kind_of(metric) else metric


def _of_claim(claim: Document) -> str:
    """Return a figure's claim as text: the measurement, its kind and its bound."""
    kind = KINDS.get(claim.get("kind", ""), "")
    return f"{claim['claim']}: {brief(claim['measured'])} ({kind and f'{kind}; '}bound: {claim['bound']})"


def figures(documents: Sequence[Document], *, verbose: bool = False) -> None:
    """Print the claims of each figure and the path of its picture. At scale=smoke, expected `undecided` are
    counted alone, unless `verbose`."""
    for document in documents:
        _line(f"{document['figure']} at {document['scale']}: {in_short(document)}", style="bold")
        for claim in document["claims"]:
            if document["scale"] == "smoke" and not verbose and outcome(claim) == "undecided":
                continue
            why = f" ({claim['reason']})" if claim.get("reason") else ""
            _line(f"  {outcome(claim)}{why}", style=_colour(claim))
            _sentence(_of_claim(claim), 4)
        _line(f"  {next(document['files'][name] for name in FORMATS if name in document['files'])}")


def totals(claims: Sequence[Document]) -> str:
    """Return counts: `31 hold, 3 known false, 17 undecided, 1 other than expected`."""
    counts = Counter(claim["verdict"] for claim in claims if claim["verdict"] == claim["expected"])
    words = {"holds": ("holds", "hold"), "fails": ("known false", "known false")}
    counted = [(counts[verdict], *words.get(verdict, (verdict, verdict))) for verdict in VERDICTS]
    counted.append((len(claims) - counts.total(), "other than expected", "other than expected"))
    return ", ".join(f"{count} {one if count == 1 else many}" for count, one, many in counted if count)


def in_short(document: Document) -> str:
    """Return the outcome of a check or figure in a few words, and its seconds."""
    how = "found" if document["cached"] else f"{document['seconds']:.1f} s"
    if "verdict" in document:
        return f"{outcome(document)}, {measurement(document)} ({how})"
    return f"{totals(document['claims'])} ({how})"


def needs(group: str, id: str, reason: str) -> str:
    """Return why something was skipped, as `ID needs ...: ...`."""
    return f"skipped: {reason if id in reason else f'{group} {id} needs what is not here: {reason}'}"


def reproduced(document: Document, *, verbose: bool = False) -> None:
    """Print the totals, what is not as expected, what was skipped or failed, and the report's path."""
    claims = [(claim, figure["figure"]) for figure in document["figures"] for claim in figure["claims"]]
    if document["checks"]:
        _line(f"{len(document['checks'])} checks: {totals(document['checks'])}")
    if claims:
        counted = totals([claim for claim, _ in claims])
        _line(f"{len(claims)} claims of {len(document['figures'])} figures: {counted}")
    _unexpected(document["checks"])
    for claim, id in claims:
        if claim["verdict"] != claim["expected"]:
            _sentence(f"{id}: {outcome(claim)}: {_of_claim(claim)}", 0, style="red")
    for skipped in document["skipped"]:
        _line(needs(**skipped))
    for failure in document["failures"]:
        _line(f"failed {failure['group']} {failure['id']}: {failure['error']}", style="red")
    _line(f"{document['seconds']:.0f} s")
    if document["report"] is not None:
        _line(f"report: {document['report']}")


def run(document: Document, *, verbose: bool = False) -> None:
    """Print a run: metrics by seed, verdicts, and its folder."""
    how = "found" if document["cached"] else "resumed and done" if document["resumed"] else "done"
    warned = ", with a warning" if document["warnings"] else ""
    _line(f"{how}{warned}: {document['steps']} steps, {document['seconds']:.1f} s", style="bold")
    metrics = {k: v for k, v in document["metrics"].items() if not of_one_matrix(k)}
    seeds = list(next(iter(document["metrics"].values()))["by_seed"])
    columns = [f"seed {seed}" for seed in seeds] if len(seeds) <= MOST_SEEDS else ["lowest", "highest"]
    table = headed((0, 0, 0, 1))
    for name in ("metric", "", "mean", *columns):
        table.add_column(name, no_wrap=True, justify="left" if name in ("metric", "") else "right")
    for name, entry in metrics.items():
        if name in map(error_of, metrics):
            continue  # stands behind its own metric
        values, errors = list(entry["by_seed"].values()), _errors(metrics, name)
        cells = [_cell(*cell) for cell in zip(values, errors or [None] * len(values), strict=True)]
        if len(seeds) > MOST_SEEDS:
            defined = [value for value in values if value is not None]
            cells = [_cell(least(defined, default=None), None) for least in (min, max)]
        table.add_row(name, kind_of(name, errors), _mean(metrics, name), *cells)
    Console().print(table)
    for verdict in document["verdicts"]:
        _sentence(f"{verdict['check']} at these weights: {outcome(verdict)}", 0, style=_colour(verdict))
        _sentence(verdict["sentence"])
    for warning in document["warnings"]:
        _line(f"warning: {warning}", style="yellow")
    if document["error"]:
        _line(f"failed: {document['error']}", style="red")
    _line(f"run: {document['run_dir']}")


def _mean(metrics: Mapping[str, Any], name: str) -> str:
    """Return the mean over seeds and, if it was sampled, its standard error; seeds are independent."""
    errors = _errors(metrics, name)
    known = [error for error in errors if error is not None]
    error = math.hypot(*known) / len(known) if known and len(known) == len(errors) else None
    return _cell(metrics.get(name, {}).get("mean"), error)


def _errors(metrics: Mapping[str, Any], name: str) -> list[float | None]:
    return list(metrics.get(error_of(name), {"by_seed": {}})["by_seed"].values())


def _cell(value: float | None, error: float | None) -> str:
    shown = brief(value)
    return f"{shown} \N{PLUS-MINUS SIGN} {error:.2g}" if value is not None and error else shown


def multirun(results: Sequence[Document]) -> None:
    """Print a table with one row per job."""
    documents = [result["document"] for result in results]
    measured = [found.get("metrics", {}) for found in documents]
    metrics = [name for name in SHOWN if any(m.get(name, {}).get("mean") is not None for m in measured)]
    judged = ["verdict", "measured"] if any("verdict" in d for d in documents) else []
    table = headed((0, 1))
    table.add_column("job", overflow="fold")
    for name in ["state", *judged, *metrics]:
        justify: Any = "right" if name in metrics else "left"
        table.add_column(heading(name), no_wrap=name != "measured", justify=justify)
    for result, found in zip(results, documents, strict=True):
        state = "cached" if found.get("cached") else result["status"]
        warned = ", warning" if found.get("warnings") else ""
        styled = Text(state + warned, style="red" if state == "failed" else "yellow" if warned else "")
        verdict = [found["verdict"], measurement(found)] if "verdict" in found else ["", ""]
        means = [_mean(found.get("metrics", {}), name) for name in metrics]
        table.add_row(" ".join(result["overrides"]), styled, *(verdict if judged else []), *means)
    Console().print(table)
    for result, found in zip(results, documents, strict=True):
        for warning in found.get("warnings", []):
            _line(f"warning: {' '.join(result['overrides'])}: {warning}", style="yellow")


def report(document: Document, book: ReportContent) -> None:
    """Print a summary of the page in one line, and its path."""
    from icl.report.page import summary

    missing = sum(entry.document is None for entry in book.entries)
    rest = f" {missing} of {len(book.entries)} checks and figures have no result." if missing else ""
    print(f"{summary(book)}{rest}".strip())
    print(document["report"])
