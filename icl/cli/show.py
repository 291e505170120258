"""Documents as text, readable at 80 columns."""

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from icl.figures.look import FORMATS
from icl.metrics import MEANINGS, kind_of, of_one_matrix
from icl.text import brief, inequality, measurement, numbers, relation, tries_in_words
from icl.verdicts import KINDS, error_of, outcome, short, totals, word

MOST = 8  # numbers that are shown beside those that decide
MOST_SEEDS = 3  # with a column each; of more, the lowest and the highest value

Document = Mapping[str, Any]


def line(text: str, style: str = "") -> None:
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


def check(document: Document) -> None:
    """Print a verdict: title, the verdict and the control in a sentence each, what was measured, the random
    settings, claim and record's path."""
    title = Text(document["title"], style="bold").append(f"  {document['check']}", style="not bold dim")
    Console().print(title, highlight=False)
    _sentence(_told(document), style=_colour(document))
    _sentence(document["control_sentence"])
    if document.get("tries"):
        _numbers(document)
        _tries(document)
    reference = f" ({document['reference']})" if document["reference"] else ""
    _sentence(f"Claim: {document['claim']}{reference}", style="dim")
    if document["record"]:
        line(f"  {document['record']}")


def _numbers(document: Document) -> None:
    """Print numbers with their bound and kind, and their meaning below; of many only those that decide."""
    rows = list(numbers(document))
    if len(rows) > MOST:
        rows = [row for row in rows if row.name in document["bounds"]]
    columns = max((len(row.name) for row in rows), default=0) + 4
    for row in rows:
        value = f"{row.value} ({row.kind})".strip() if row.kind else row.value
        named = f"{f'  {row.name}':<{columns}}{value}"
        line(textwrap.fill(named, Console().width, subsequent_indent=" " * columns))
        if row.meaning:
            _sentence(row.meaning, 6, style="dim")
        for name, entry in row.entries:
            line(f"{f'    {name}':<{columns}}{entry}")


def _tries(document: Document) -> None:
    """Print what a statement is at random settings, and the command of a counterexample, to be copied."""
    tries = document["tries"]
    if told := tries_in_words(tries):
        _sentence(f"Of {tries['decided']} random settings: {told}.")
    if tries["smallest_counterexample"] is not None:
        line(f"  {next(n for n in document['notes'] if n.startswith('fails at other settings'))}")


def checks(document: Document) -> None:
    """Print a verdict, or those of a file's statements; of all of a paper a table with a row for each, and
    the sentences of those that are other than expected."""
    documents = document.get("checks", [document])
    if "failures" not in document:
        for one in documents:
            check(one)
        return
    rows = [
        [d["check"], Text(short(d), style=_colour(d)), inequality(relation(d["measured"], d["bound"])),
         "found" if d["cached"] else f"{d['seconds']:.1f}"]
        for d in documents
    ]  # fmt: skip
    table({"check": "", "verdict": "", "measured against its bound": "wrapped", "s": "right"}, rows)
    _decided(documents)


def _decided(documents: Sequence[Document]) -> None:
    """Print how checks are decided, and the sentences of those that are other than expected."""
    if documents:
        line(f"{len(documents)} checks: {totals(documents)}")
    for d in documents:
        if d["verdict"] != d["expected"]:
            _sentence(f"{d['check']}: {_told(d)}", 0, style="red")


def table(columns: Mapping[str, str], rows: Iterable[Sequence[str | Text]]) -> None:
    """Print rows below the names of their columns, of which some are "right", some "wrapped", and some "cut",
    where there is no room."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for name, how in columns.items():
        justify: Literal["left", "right"] = "right" if how == "right" else "left"
        made.add_column(name, justify=justify, no_wrap=how not in ("wrapped", "cut"))
    for row in rows:
        cells = [Text(cell) if isinstance(cell, str) else cell for cell in row]
        for cell, how in zip(cells, columns.values(), strict=True):
            if how == "cut":
                cell.no_wrap, cell.overflow = True, "ellipsis"
        made.add_row(*cells)
    if made.row_count:
        Console().print(made, highlight=False)


def _of_claim(claim: Document) -> str:
    """Return a figure's claim as text: the measurement, its kind and its bound."""
    kind = KINDS.get(claim.get("kind", ""), "")
    measured = brief(_without_seeds(claim["measured"]))
    return f"{claim['claim']}: {measured} ({kind and f'{kind}; '}bound: {claim['bound']})"


def _without_seeds(found: Any, key: str = "") -> Any:
    """Count the seeds where others stand beside them: of ten numbers each they would fill the screen."""
    if not isinstance(found, dict):
        return found
    if key.replace("_", " ") == "by seed":
        return f"{len(found)} seeds in format=json"
    return {key: _without_seeds(x, key if len(found) > 1 else "") for key, x in found.items()}


def figures(found: Document) -> None:
    """Print the claims of each figure and the path of its picture. At scale=smoke those that are undecided
    are counted alone."""
    for document in found.get("figures", [found]):
        line(f"{document['figure']} at {document['scale']}: {in_short(document)}", style="bold")
        for claim in document["claims"]:
            if document["scale"] == "smoke" and word(claim) == "undecided":
                continue
            why = f" ({claim['reason']})" if claim.get("reason") else ""
            line(f"  {outcome(claim)}{why}", style=_colour(claim))
            _sentence(_of_claim(claim), 4)
        line(f"  {next(document['files'][name] for name in FORMATS if name in document['files'])}")


def in_short(document: Document) -> str:
    """Return the outcome of a check or figure in a few words, and its seconds."""
    how = "found" if document["cached"] else f"{document['seconds']:.1f} s"
    if "verdict" in document:
        return f"{outcome(document)}, {measurement(document)} ({how})"
    return f"{totals(document['claims'])} ({how})"


def needs(group: str, id: str, reason: str) -> str:
    """Return why something was skipped, as `ID needs ...: ...`."""
    return f"skipped: {reason if id in reason else f'{group} {id} needs what is not here: {reason}'}"


def reproduced(document: Document) -> None:
    """Print the totals, what is not as expected, what was skipped or failed, and the report's path."""
    claims = [(claim, figure["figure"]) for figure in document["figures"] for claim in figure["claims"]]
    _decided(document["checks"])
    if claims:
        counted = totals([claim for claim, _ in claims])
        line(f"{len(claims)} claims of {len(document['figures'])} figures: {counted}")
    for claim, id in claims:
        if claim["verdict"] != claim["expected"]:
            _sentence(f"{id}: {outcome(claim)}: {_of_claim(claim)}", 0, style="red")
    for skipped in document["skipped"]:
        line(needs(**skipped))
    for failure in document["failures"]:
        line(f"failed {failure['group']} {failure['id']}: {failure['error']}", style="red")
    line(f"{document['seconds']:.0f} s")
    if document["report"] is not None:
        line(f"report: {document['report']}")


def run(document: Document) -> None:
    """Print a run: metrics by seed, verdicts, and its folder."""
    how = "found" if document["cached"] else "resumed and done" if document["resumed"] else "done"
    warned = ", with a warning" if document["warnings"] else ""
    line(f"{how}{warned}: {document['steps']} steps, {document['seconds']:.1f} s", style="bold")
    metrics = document["metrics"]
    seeds = list(next(iter(metrics.values()))["by_seed"])
    few = len(seeds) <= MOST_SEEDS
    rows = []
    for name, entry in metrics.items():
        values = [value for value in entry["by_seed"].values() if value is not None]
        if not values or of_one_matrix(name) or name in map(error_of, metrics):
            continue  # a standard error stands behind its own metric
        shown = entry["by_seed"].values() if few else [min(values), max(values)]
        rows.append([name, kind_of(name, errors(metrics, name)), mean(metrics, name), *map(brief, shown)])
    heads = [f"seed {seed}" for seed in seeds] if few else ["lowest", "highest"]
    table({"metric": "", "": "", **dict.fromkeys(["mean", *heads], "right")}, rows)
    for name, *_ in rows:
        if name in MEANINGS:
            _sentence(f"{name}: {MEANINGS[name]}", 1, style="dim")
    for verdict in document["verdicts"]:
        _sentence(f"{verdict['check']} at these weights: {outcome(verdict)}", 0, style=_colour(verdict))
        _sentence(verdict["sentence"])
    for warning in document["warnings"]:
        line(f"warning: {warning}", style="yellow")
    if document["error"]:
        line(f"failed: {document['error']}", style="red")
    line(f"run: {document['run_dir']}")


def mean(metrics: Mapping[str, Any], name: str) -> str:
    """Return the mean over seeds and, if it was sampled, its standard error; seeds are independent."""
    shown, given = brief(metrics.get(name, {}).get("mean")), errors(metrics, name)
    known = [error for error in given if error is not None]
    error = math.hypot(*known) / len(known) if known and len(known) == len(given) else None
    return f"{shown} \N{PLUS-MINUS SIGN} {error:.2g}" if error else shown


def errors(metrics: Mapping[str, Any], name: str) -> list[float | None]:
    return list(metrics.get(error_of(name), {"by_seed": {}})["by_seed"].values())


def report(document: Document) -> None:
    """Print the verdicts of the page in a sentence, and its path."""
    print(document["summary"])
    print(document["report"])
