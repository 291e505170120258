"""`icl reproduce`: every check, then every experiment, of every paper or of those in `only`.

What to run is what the config folders hold; no paper is named here. The cheap and telling come first; a failure is
kept for the end; what is done is found again, so the same command continues after any interruption.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig

from icl.cli import check as checks
from icl.cli import train as training
from icl.cli.hydra_app import compose, options
from icl.cli.outcome import FAILED, OK, Outcome, verdict_code, worst
from icl.config import SCALES, outputs_folder, plain
from icl.errors import InputError, nearest, one_of

GROUPS = ("check", "experiment")


@dataclass(frozen=True)
class Item:
    """One thing to do: its group, its id and how."""

    group: str
    id: str
    run: Callable[[], dict[str, Any]]


def reproduce_job(cfg: DictConfig) -> Outcome:
    items = plan(cfg)
    started = time.monotonic()
    done: dict[str, list[dict[str, Any]]] = {group: [] for group in GROUPS}
    failures = []
    for number, item in enumerate(items, 1):
        print(f"[{number}/{len(items)}] {item.group} {item.id}", file=sys.stderr, flush=True)
        try:
            done[item.group].append(item.run())
        except Exception as error:
            failures.append({"group": item.group, "id": item.id, "error": f"{type(error).__name__}: {error}"})
            print(f"icl: {item.id} failed: {error}", file=sys.stderr)
    verdicts = [*done["check"], *(verdict for run in done["experiment"] for verdict in run["verdicts"])]
    codes = [verdict_code(v["verdict"], v["expected"]) for v in verdicts] + [FAILED] * len(failures)
    document = {
        "checks": done["check"],
        "experiments": done["experiment"],
        "figures": [],
        "failures": failures,
        "skipped": [],
        "report": None,
        "seconds": time.monotonic() - started,
    }
    return Outcome(document, worst([OK, *codes]), lambda: _show(document))


def plan(cfg: DictConfig) -> list[Item]:
    """Every item, composed and validated; nothing has run."""
    one_of("scale", cfg.scale, SCALES)
    one_of("format", cfg.format, ("text", "json"))
    outputs_folder(cfg)
    return [*_items(cfg, "check", _check), *_items(cfg, "experiment", _experiment)]


def _items(cfg: DictConfig, group: str, make: Callable[[str, list[str]], Callable[[], dict[str, Any]]]) -> Iterator[Item]:
    found = sorted(set(options(group)))
    only = plain(cfg.only)
    only = [only] if isinstance(only, str) else list(only)
    papers = sorted({name.partition("/")[0] for name in (*options("check"), *options("experiment"))})
    for paper in only:
        if paper not in papers:
            raise InputError(f"only={paper}: no such paper{nearest(str(paper), papers)} (one of: {', '.join(papers)})")
    for name in found:
        if not only or name.partition("/")[0] in only:
            yield Item(group, name, make(name, _passed_on(cfg)))


def _passed_on(cfg: DictConfig) -> list[str]:
    """The settings every verb understands, as overrides for the parts."""
    mode = {"none": "none", "offline": "wandb_offline", "online": "wandb_online"}[cfg.logger.mode]
    return [
        f"scale={cfg.scale}",
        f"force={str(cfg.force).lower()}",
        f"logger={mode}",
        f"paths.outputs='{outputs_folder(cfg)}'",
    ]


def _check(name: str, overrides: Sequence[str]) -> Callable[[], dict[str, Any]]:
    cfg = compose("check", [f"check={name}", *overrides])
    plan = checks.plan_of(cfg, name)
    return lambda: checks.run_plan(plan, cfg)


def _experiment(name: str, overrides: Sequence[str]) -> Callable[[], dict[str, Any]]:
    cfg = compose("train", [f"experiment={name}", *overrides])
    training.training_plan(cfg)
    return lambda: training.train_job(cfg).document


def _show(document: dict[str, Any]) -> None:
    from rich.console import Console

    checks.show(document["checks"])
    console = Console()
    for run in document["experiments"]:
        how = "found" if run["cached"] else "done"
        risk, distance = (run["metrics"][name]["mean"] for name in ("exact_risk", "dist_preconditioned"))
        numbers = f"exact risk {training.number(risk)}, Dist {training.number(distance)}"
        console.print(f"{how}: {run['run_dir']} ({numbers})", soft_wrap=True)
        for verdict in run["verdicts"]:
            console.print(f"  {verdict['check']} at these weights: {verdict['verdict']}")
    for failure in document["failures"]:
        console.print(f"[red]failed[/] {failure['group']} {failure['id']}: {failure['error']}", soft_wrap=True)
    console.print(f"{document['seconds']:.0f} s; figures and the report page come with a later version")
