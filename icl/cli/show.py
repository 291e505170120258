"""Verdicts as text: one row a check, readable at 80 columns; claims beside it or, where narrow, below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

WIDE = 130  # from here on the claim has a column of its own


def show(documents: Sequence[Mapping[str, Any]], *, full: bool = False, claims: bool = True) -> None:
    """A table of verdicts; with `claims` what each is about, and `full`, for one, all that was measured."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console()
    wide = claims and console.width >= WIDE
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1 if wide else 0))
    table.add_column("check", overflow="fold", min_width=12)
    table.add_column("verdict", no_wrap=True)
    table.add_column("measured", min_width=10, overflow="fold")
    table.add_column("bound", no_wrap=True, justify="right")
    table.add_column("control", no_wrap=True)
    table.add_column("s", no_wrap=True, justify="right")
    if wide:
        table.add_column("claim", ratio=1)
    for d in documents:
        seconds = "cached" if d["cached"] else f"{d['seconds']:.1f}"
        row = [d["check"], coloured(d), headline(d), _brief(d["bound"]["value"]), _control(d, wide), seconds]
        table.add_row(*row, *([d["claim"]] if wide else []))
    console.print(table)
    if claims and not wide:
        for d in documents:
            console.print(f"[bold]{d['check']}[/] [dim]{d['reference']}[/]", highlight=False)
            console.print(_indented(d["claim"]), highlight=False)
    unexpected = [d["check"] for d in documents if d["verdict"] != d["expected"]]
    if unexpected:
        console.print(f"[red]other than expected: {', '.join(unexpected)}[/]", highlight=False)
    if full:
        for d in documents:
            _details(console, d)


def coloured(document: Mapping[str, Any]) -> str:
    """The verdict in green where it is the expected one, elsewhere in red and with a mark."""
    if document["verdict"] == document["expected"]:
        return f"[green]{document['verdict']}[/]"
    return f"[bold red]{document['verdict']} ![/]"


def headline(document: Mapping[str, Any]) -> str:
    """The measurement held against the bound: the one its source names first, or the first that small."""
    measured = {k: v for k, v in document["measured"].items() if isinstance(v, int | float)}
    source = document["bound"]["source"]
    named = {name: source.find(name) for name in measured if name in source}
    if named:
        name = min(named, key=lambda name: (named[name], -len(name)))
    else:
        bound = document["bound"]["value"]
        near = [name for name, value in measured.items() if bound is not None and abs(value) <= bound]
        name = next(iter([*near, *measured, *document["measured"]]), "")
    return f"{_brief(document['measured'].get(name))} {name}"


def _control(document: Mapping[str, Any], wide: bool) -> str:
    word = "rejected" if document["control"]["rejected"] else "[red]NOT rejected[/]"
    return f"{word} {_brief(document['control']['measured'])}" if wide else word


def _details(console: Any, document: Mapping[str, Any]) -> None:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in document["measured"].items():
        table.add_row(f"  {name}", _exact(value))
    control = document["control"]
    outcome = "rejected" if control["rejected"] else "NOT rejected"
    table.add_row("  bound", f"{_exact(document['bound']['value'])}: {document['bound']['source']}")
    table.add_row("  control", f"{_exact(control['measured'])}, {outcome}: {control['description']}")
    for note in document["notes"]:
        table.add_row("  note", note)
    console.print(table, highlight=False, markup=False)


def _indented(text: str) -> Any:
    from rich.padding import Padding

    return Padding(text, (0, 0, 0, 2))


def _brief(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, int | float) else "-"


def _exact(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_exact, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_exact(v)}" for k, v in value.items()) + "}"
    return "-" if value is None else str(value)


def verdict_text(claim: Mapping[str, Any]) -> str:
    """The verdict; where it is not `holds`, whether that was to be expected."""
    if claim["verdict"] != claim["expected"]:
        return f"{claim['verdict']} (expected: {claim['expected']})"
    return claim["verdict"] if claim["verdict"] == "holds" else f"{claim['verdict']}, as expected"


def short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        nested = {k: f"({short(v)})" if isinstance(v, Mapping) else short(v) for k, v in value.items()}
        return ", ".join(f"{key} {text}" for key, text in nested.items())
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(short, value))}]"
    return "-" if value is None else str(value)


def show_figures(documents: Sequence[Mapping[str, Any]]) -> None:
    """Every claim of every figure, and where the picture is."""
    from rich.console import Console

    console = Console()
    for document in documents:
        how = "found" if document["cached"] else f"{document['seconds']:.1f} s"
        console.print(f"[bold]{document['figure']}[/] at {document['scale']} ({how})", highlight=False)
        for claim in document["claims"]:
            colour = "green" if claim["verdict"] == claim["expected"] else "bold red"
            text = f"{claim['claim']}: {short(claim['measured'])} (bound: {claim['bound']})"
            console.print(f"  [{colour}]{verdict_text(claim)}[/]", highlight=False)
            console.print(f"    {text}", soft_wrap=True, markup=False, highlight=False)
        console.print(f"  {document['files']['png']}", soft_wrap=True, markup=False, highlight=False)


def in_short(document: Mapping[str, Any]) -> str:
    """A check or figure in a few words: what came of it, and how long it took."""
    how = "found" if document["cached"] else f"{document['seconds']:.1f} s"
    if "verdict" in document:
        return f"{verdict_text(document)} ({how})"
    unexpected = [claim for claim in document["claims"] if claim["verdict"] != claim["expected"]]
    if unexpected:
        return f"{len(unexpected)} of {_claims(document['claims'])} other than expected ({how})"
    return f"{_claims(document['claims'])} as expected ({how})"


def needs(group: str, id: str, reason: str) -> str:
    """Why something was skipped, which says `ID needs ...: ...`."""
    return f"skipped: {reason if id in reason else f'{group} {id} needs what is not here: {reason}'}"


def show_reproduced(document: Mapping[str, Any]) -> None:
    """All checks, all figures, what did not come about, and where it can be read at leisure."""
    from rich.console import Console

    if document["checks"]:
        show(document["checks"], claims=False)
    console = Console()
    for figure in document["figures"]:
        unexpected = [claim for claim in figure["claims"] if claim["verdict"] != claim["expected"]]
        colour = "bold red" if unexpected else "green"
        console.print(f"{figure['figure']}: [{colour}]{in_short(figure)}[/]", highlight=False)
        for claim in unexpected:
            text = f"  {verdict_text(claim)}: {claim['claim']}: {short(claim['measured'])} ({claim['bound']})"
            console.print(text, soft_wrap=True, markup=False, highlight=False)
    for skipped in document["skipped"]:
        console.print(needs(**skipped), soft_wrap=True, markup=False, highlight=False)
    for failure in document["failures"]:
        line = f"failed {failure['group']} {failure['id']}: {failure['error']}"
        console.print(line, soft_wrap=True, markup=False, highlight=False, style="red")
    console.print(f"{document['seconds']:.0f} s", highlight=False)
    if document["report"] is not None:
        console.print(f"report: {document['report']}", soft_wrap=True, markup=False, highlight=False)


def _claims(claims: Sequence[Any]) -> str:
    return f"{len(claims)} claim{'' if len(claims) == 1 else 's'}"
