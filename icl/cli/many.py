"""Verbs whose things are asked for one at a time or many: check=ahn/theorem1, check=ahn/all, check=all."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig, OmegaConf

from icl.cli.app import say_failure
from icl.cli.hydra_app import options, parse_flags, run_hydra, use_config_dir
from icl.cli.outcome import FAILED, OK, Outcome, emit, stdout_kept_for_results, worst
from icl.errors import InputError, nearest, whole

Document = dict[str, Any]


@dataclass(frozen=True)
class Group:
    """`verb` is also the config group, the key that chooses and the module of icl.cli holding this GROUP."""

    verb: str
    example: str
    common: Sequence[str]  # all that may be set when many are run
    compose: Callable[[str, Sequence[str]], DictConfig]
    plan_of: Callable[..., Any]
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
    known = sorted(set(options(group.verb)))
    ids = [name for name in known if name.startswith(which.removesuffix("all"))]
    if not ids:
        papers = sorted({f"{name.partition('/')[0]}/all" for name in known})
        hint = f"{nearest(which, papers)} (one of: all, {', '.join(papers)})"
        raise InputError(f"{group.verb}={which}: no such {group.verb}s{hint}")
    cfgs = [group.compose(name, overrides) for name in ids]
    jobs = whole("jobs", cfgs[0].jobs, 1)
    plans = [group.plan_of(cfg, name) for cfg, name in zip(cfgs, ids, strict=True)]
    started = time.monotonic()
    with stdout_kept_for_results():
        results = list(_watched(group, _results(group, plans, cfgs, jobs, config_dir), cfgs))
    documents = sorted((r for r in results if isinstance(r, dict)), key=lambda d: d[group.verb])
    codes = [OK, *map(group.code_of, documents), *([FAILED] if len(documents) < len(results) else [])]
    document = {f"{group.verb}s": documents, "seconds": time.monotonic() - started}
    emit(Outcome(document, show=lambda: group.show(documents)), cfgs[0].format)
    return worst(codes)


def _watched(
    group: Group, results: Iterator[tuple[str, Document | Exception]], cfgs: Sequence[DictConfig]
) -> Iterator[Document | Exception]:
    """The results as they come, with a bar on a terminal and a line for each failure."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(f"{group.verb}s", total=len(cfgs))
        for name, result in results:
            if isinstance(result, Exception):
                say_failure(f"{name} failed: ", result, tell_all=cfgs[0].verbose)
            bar.update(task, advance=1, description=name)
            yield result


def _results(
    group: Group, plans: Sequence[Any], cfgs: Sequence[DictConfig], jobs: int, config_dir: str | None
) -> Iterator[tuple[str, Document | Exception]]:
    """Each is stored as soon as it is there; a failure does not stop the others."""
    if jobs == 1:
        for plan, cfg in zip(plans, cfgs, strict=True):
            try:
                yield plan.id, group.run(plan, cfg)
            except Exception as error:
                yield plan.id, error
        return
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import active_children, get_context

    pool = ProcessPoolExecutor(min(jobs, len(plans)), mp_context=get_context("spawn"))
    try:
        texts = [OmegaConf.to_yaml(cfg, resolve=True) for cfg in cfgs]
        tasks = [(group.verb, plan.id, text, config_dir) for plan, text in zip(plans, texts, strict=True)]
        running = {pool.submit(_in_worker, *task): task[1] for task in tasks}
        for future in as_completed(running):
            try:
                yield running[future], future.result()
            except Exception as error:
                yield running[future], error
    except BaseException:
        for child in active_children():
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _in_worker(verb: str, name: str, text: str, config_dir: str | None) -> Document:
    import torch

    torch.set_num_threads(1)
    use_config_dir(config_dir)
    group: Group = importlib.import_module(f"icl.cli.{verb}").GROUP
    cfg = OmegaConf.create(text)
    assert isinstance(cfg, DictConfig)
    return group.run(group.plan_of(cfg, name), cfg)
