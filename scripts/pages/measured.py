"""Tables of measurements of the program itself, from files: benchmarks, and the last campaign of faults.

`bench NAME` is docs/records/bench/NAME.json, the output of `icl bench bench=NAME format=json`; `faults` and
`inputs` are docs/records/campaign, lists of what the two programs of tests/faults put out, a seed each.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

RECORDS = Path(__file__).parents[2] / "docs" / "records"
HARMS = {
    "stopped": "a signal before one of the writes of the command",
    "stopped_twice": "SIGKILL, and again while it recovers",
    "held_and_resumed": "SIGSTOP while another process gives the same command",
    "together": "two to six processes with the same command at once",
    "beside": "`icl clean` and `icl report` at the same time",
    "harmed": "a finished file emptied, cut or changed",
    "no_room": "a disk that fills",
    "no_long_files": "files that may not grow",
    "swapped": "two finished records exchanged",
    "unsealed": "a finished record without its seal",
    "two_codes": "another version of the code in the same folder at the same time",
    "secret": "a secret in the environment that is a word of a config, or in a name",
    "searched": "a module in `hydra.searchpath`",
    "jumping_clock": "a clock that jumps by up to years, in one of two processes",
    "worker_killed": "one of joblib's workers killed",
}

MUCH = "no end in 40 s of CPU time, where much was asked for"


def stored(folder: str, name: str) -> Any:
    return json.loads((RECORDS / folder / f"{name}.json").read_text(encoding="utf-8"))


def faults() -> str:
    campaigns = stored("campaign", "faults")
    tried = [Counter[str]() for _ in campaigns]
    for counts, campaign in zip(tried, campaigns, strict=True):
        for story, count in campaign["tried"].items():
            counts[story.partition(": ")[2]] += count
    writes = sorted(count for campaign in campaigns for count in campaign["writes"].values())
    rows = [
        _row("disturbance", [f"seed {campaign['seed']}" for campaign in campaigns]),
        _row("---", ["---"] * len(campaigns)),
        *(
            _row(harm, [counts[story] for counts in tried])
            for story, harm in HARMS.items()
            if any(counts[story] for counts in tried)
        ),
        _row("cases in all", [sum(counts.values()) for counts in tried]),
        _row("seconds", [campaign["seconds"] for campaign in campaigns]),
        _row("did not end as required", [len(campaign["failures"]) for campaign in campaigns]),
    ]
    return "\n".join([f"A command makes {writes[0]} to {writes[-1]} writes.", "", *rows, *_lost(campaigns)])


def inputs() -> str:
    campaigns = stored("campaign", "inputs")
    codes = [Counter[str]() for _ in campaigns]
    for counts, campaign in zip(codes, campaigns, strict=True):
        for case, count in campaign["codes"].items():
            code = case.rpartition(" ")[2]
            counts[f"exit code {code}" if code.isdigit() else MUCH if code != "wrong" else code] += count
    rows = [
        _row("commands that ended with", [f"seed {campaign['seed']}" for campaign in campaigns]),
        _row("---", ["---"] * len(campaigns)),
        *(
            _row(end, [counts[end] for counts in codes])
            for end in sorted({end for counts in codes for end in counts} - {"wrong"})
        ),
        _row("commands in all", [campaign["inputs"] for campaign in campaigns]),
        _row("seconds", [campaign["seconds"] for campaign in campaigns]),
        _row("did not end as required", [len(campaign["failures"]) for campaign in campaigns]),
    ]
    reasons = [
        f"- seed {campaign['seed']}, exit code 4, {count} of them: `{reason}`"
        for campaign in campaigns
        for reason, count in campaign["reasons"].items()
    ]
    return "\n".join([*rows, *_lost(campaigns), *(["", *reasons] if reasons else [])])


def _row(first: str, cells: Sequence[Any]) -> str:
    return f"| {first} | {' | '.join(map(str, cells))} |"


def _lost(campaigns: Sequence[Mapping[str, Any]]) -> list[str]:
    lost = [f"- `{failure}`" for campaign in campaigns for failure in campaign["failures"]]
    return ["", *lost] if lost else []


def bench(name: str) -> str:
    document = stored("bench", name)
    table = next(of for key, of in KINDS.items() if any(key in row for row in document["rows"]))
    rows, machine = table(document["rows"]), document["machine"]
    where = (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['threads']} threads, torch {machine['torch']}"
    )
    load = f"; load average at the start {machine['load']:.1f}" if "load" in machine else ""
    return "\n".join([*rows, "", f"*`icl bench bench={document['bench']}`, on {where}{load}.*"])


def _steps(rows: list[dict[str, Any]]) -> list[str]:
    """Return the rows that the kernel has a share in: CPU time of a step."""
    head = [
        "| step | torch, ms | kernel, ms | ratio | target | share of the multiply-add rate | drawing, ms |",
        "|---|---|---|---|---|---|---|",
    ]
    return head + [
        f"| {row['name']} | {row['first_cpu_ms']:.3g} | {row['second_cpu_ms']:.3g} | {row['ratio']:.1f} | "
        f"{row['target']}{'' if row['met'] else ', **missed**'} | {row['share_of_rate']:.0%} | "
        f"{row['draw_ms']:.3g} |"
        for row in rows
        if "share_of_rate" in row
    ]


def _seconds(rows: list[dict[str, Any]]) -> list[str]:
    head = ["| | seconds | peak memory | target | |", "|---|---|---|---|---|"]
    return head + [
        f"| {row['name']} | {row['seconds']:.2g} | {row['peak_mb']:.0f} MB | {row['target']} | "
        f"{'met' if row['met'] else '**missed**'} |"
        for row in rows
    ]


def _hours(rows: list[dict[str, Any]]) -> list[str]:
    head = ["| | CPU seconds of a step, by layers | runs | hours of one core |", "|---|---|---|---|"]
    for row in rows:
        by_depth = ", ".join(f"{layers}: {cost:.2g}" for layers, cost in row["step_cpu_seconds"].items())
        runs = f"{row['runs']} of {row['steps']:,} steps"
        head.append(f"| {row['name']} | {by_depth} | {runs} | {row['core_hours']:,.0f} |")
    counted = [row for row in rows if row["gpu_hours"]]
    hours = ", ".join(f"{row['name'].partition(': ')[2]} {row['gpu_hours']:.1f}" for row in counted)
    return [*head, "", f"Hours of a GPU that multiplies at ten teraflops, by counted products: {hours}."]


KINDS: dict[str, Callable[[list[dict[str, Any]]], list[str]]] = {
    "share_of_rate": _steps,
    "core_hours": _hours,
    "peak_mb": _seconds,
}
TABLES: dict[str, Callable[..., str]] = {"bench": bench, "faults": faults, "inputs": inputs}
