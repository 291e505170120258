"""`icl reproduce`: every check, then every figure with the runs it draws from; or of the papers in `only`.

What to run is what the config folders hold; no paper is named here. The cheap and telling come first; a
failure is kept for the end; what is done is found again, so that the same command continues after any
interruption.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig

from icl.cli import check, figure
from icl.cli.app import say_failure
from icl.cli.hydra_app import compose, options
from icl.cli.outcome import FAILED, OK, Outcome, verdict_code, worst
from icl.config import common_settings, plain
from icl.errors import InputError, nearest

OWN = ("only",)
GROUPS = ("check", "figure")


@dataclass(frozen=True)
class Item:
    """One thing to do: its group, its id and how."""

    group: str
    id: str
    run: Callable[[], dict[str, Any]]


def reproduce_job(cfg: DictConfig) -> Outcome:
    items = plan_of(cfg)
    started = time.monotonic()
    done: dict[str, list[dict[str, Any]]] = {group: [] for group in GROUPS}
    failures = []
    for number, item in enumerate(items, 1):
        print(f"[{number}/{len(items)}] {item.group} {item.id}", file=sys.stderr, flush=True)
        try:
            done[item.group].append(item.run())
        except Exception as error:
            failures.append({"group": item.group, "id": item.id, "error": f"{type(error).__name__}: {error}"})
            say_failure(f"{item.id} failed: ", error, tell_all=cfg.verbose)
    codes = [OK, *(verdict_code(d["verdict"], d["expected"]) for d in done["check"])]
    codes += [figure.code_of(document) for document in done["figure"]] + [FAILED] * len(failures)
    document = {
        "checks": done["check"],
        "figures": done["figure"],
        "failures": failures,
        "skipped": [],
        "report": None,
        "seconds": time.monotonic() - started,
    }
    return Outcome(document, worst(codes), lambda: _show(document))


def plan_of(cfg: DictConfig) -> list[Item]:
    """Every item, composed and validated; nothing has run."""
    common_settings(cfg, "reproduce", OWN)
    only = plain(cfg.only)
    only = [only] if isinstance(only, str) else list(only or [])
    papers = sorted({name.partition("/")[0] for group in GROUPS for name in options(group)})
    for paper in only:
        if paper not in papers:
            known = f"{nearest(str(paper), papers)} (one of: {', '.join(papers)})"
            raise InputError(f"only={paper}: no such paper{known}")
    wanted = [*figure.passed_on(cfg), f"force={str(cfg.force).lower()}"]
    return [*_items("check", only, wanted, _check), *_items("figure", only, wanted, _figure)]


def _items(
    group: str,
    only: Sequence[str],
    wanted: Sequence[str],
    make: Callable[[str, Sequence[str]], Callable[[], dict[str, Any]]],
) -> Iterator[Item]:
    for name in sorted(set(options(group))):
        if not only or name.partition("/")[0] in only:
            yield Item(group, name, make(name, wanted))


def _check(name: str, wanted: Sequence[str]) -> Callable[[], dict[str, Any]]:
    cfg = compose("check", [f"check={name}", *wanted])
    plan = check.plan_of(cfg, name)
    return lambda: check.run_plan(plan, cfg)


def _figure(name: str, wanted: Sequence[str]) -> Callable[[], dict[str, Any]]:
    cfg = compose("figure", [f"figure={name}", *wanted])
    plan = figure.plan_of(cfg, name)
    return lambda: figure.make(plan, cfg)


def _show(document: dict[str, Any]) -> None:
    from icl.cli.show import show

    show(document["checks"])
    figure.show(document["figures"])
    for failure in document["failures"]:
        print(f"failed: {failure['group']} {failure['id']}: {failure['error']}")
    print(f"{document['seconds']:.0f} s; the report page comes with a later version")
