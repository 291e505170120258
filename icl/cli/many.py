"""Verbs whose things are asked for one at a time or many: check=ahn/theorem1, check=ahn/all, check=all."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig

from icl.cli.hydra_app import options, parse_flags, run_hydra, use_config_dir
from icl.cli.outcome import FAILED, OK, Outcome, emit, stdout_kept_for_results, worst
from icl.errors import InputError, Unavailable, nearest, whole

Document = dict[str, Any]


@dataclass(frozen=True)
class Group:
    """`verb` is also the config group, the key that chooses and the module of icl.cli holding this GROUP."""

    verb: str
    example: str
    common: Sequence[str]  # all that may be set when many are run
    compose: Callable[[str, Sequence[str]], DictConfig]
    described: Callable[..., Any]  # a plan, of which only the settings are known
    plan_of: Callable[..., Any]  # a validated plan
    found: Callable[[Any, DictConfig], Document | None]  # where nothing at all is left to do
    run: Callable[[Any, DictConfig], Document]
    code_of: Callable[[Document], int]
    show: Callable[[Sequence[Document]], None]
    job: Callable[[DictConfig], Outcome]


def command(group: Group, args: Sequence[str]) -> int:
    """One through Hydra, or many."""
    verb = group.verb
    flags = parse_flags(verb, args)
    use_config_dir(flags.config_dir)
    pairs = [override.partition("=") for override in flags.overrides]
    chosen = [value.strip("'\"") for key, _, value in pairs if key.lstrip("+") == verb]
    if flags.cfg or flags.info or flags.shell_completion or flags.hydra_help:
        return run_hydra(verb, args, group.job, group.plan_of)
    if not chosen:
        example = f"{verb}={group.example}, {verb}={group.example.partition('/')[0]}/all, {verb}=all"
        raise InputError(f"{verb}: choose one: {example} (icl list names {len(set(options(verb)))})")
    which = chosen[-1]
    if which != "all" and not which.endswith("/all"):
        return run_hydra(verb, args, group.job, group.plan_of)
    if flags.multirun:
        raise InputError(f"{verb}={which}: runs many already; -m is for the settings of one")
    overrides = [o for o in flags.overrides if o.partition("=")[0].lstrip("+") != verb]
    for override in overrides:
        if override.partition("=")[0] not in group.common:
            raise InputError(f"{override}: with {verb}={which} only {', '.join(group.common)} may be set")
    return _many(group, which, overrides, flags.config_dir)


def _many(group: Group, which: str, overrides: Sequence[str], config_dir: str | None) -> int:
    from icl.cli.display import Display
    from icl.cli.workers import Item, carry_out

    ids = _ids(group, which)
    cfgs = [group.compose(name, overrides) for name in ids]
    jobs = whole("jobs", cfgs[0].jobs, 1)
    for cfg, name in zip(cfgs, ids, strict=True):
        with contextlib.suppress(Unavailable):  # said again, and listed, when its turn comes
            if group.found(group.described(cfg, name), cfg) is None:
                group.plan_of(cfg, name)
    started = time.monotonic()
    items = [Item(group.verb, name, tuple(overrides)) for name in ids]
    ended = []
    with (
        stdout_kept_for_results(),
        Display(len(ids), quiet=True, traces=cfgs[0].verbose) as display,
        contextlib.closing(carry_out(items, jobs, config_dir)) as events,
    ):
        for event in events:
            display.see(event)
            ended += [event] if event.state in ("done", "skipped", "failed") else []
    documents = sorted((e.document for e in ended if e.document), key=lambda d: d[group.verb])
    failed = [FAILED for event in ended if event.state == "failed"]
    skipped = sorted((e.item.id, e.text) for e in ended if e.state == "skipped")
    document: Document = {f"{group.verb}s": documents}
    document["skipped"] = [{"group": group.verb, "id": id, "reason": reason} for id, reason in skipped]
    document["seconds"] = time.monotonic() - started
    emit(Outcome(document, show=lambda: group.show(documents)), cfgs[0].format)
    return worst([OK, *map(group.code_of, documents), *failed])


def _ids(group: Group, which: str) -> list[str]:
    known = sorted(set(options(group.verb)))
    ids = [name for name in known if name.startswith(which.removesuffix("all"))]
    if not ids:
        papers = sorted({f"{name.partition('/')[0]}/all" for name in known})
        hint = f"{nearest(which, papers)} (one of: all, {', '.join(papers)})"
        raise InputError(f"{group.verb}={which}: no such {group.verb}s{hint}")
    return ids
