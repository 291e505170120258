"""Training runs that differ in numbers of single replicas only, as ensembles: each run has the record, and
the numbers, it has when it is trained alone.

Such numbers are seeds, those of the optimizer, the clip, the initial scale, and a context that is only seen
as a Gram matrix. Runs that differ otherwise are of another ensemble; whatever might look at more than one
replica at once (L-BFGS, a user's callback, an option of Lightning's) is trained by itself.
"""

from __future__ import annotations

import json
import resource
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from icl.config.session import Session
from icl.jobs.execution.memory import available_bytes
from icl.jobs.requests.train import TrainRequest

if TYPE_CHECKING:
    from icl.training.ensemble import Ensemble
    from icl.training.plan import EnsembleMember, TrainingPlan, TrainResult

SHARE = 0.5  # of the memory that is free
PER_PROMPT = 8  # tensors of a prompt's size in float64: drawn, shared out, cut, and those of a gradient
_CONTEXT_IN_GRAM_FORM = "icl.tasks.LinearRegression"
Config = Mapping[str, Any]  # of a training run, as its record stores it
Place = tuple[str, ...]  # of a value: ("seeds",), ("train", "clip")
ValuesByPlace = dict[Place, list[Any]]  # of keys whose value may differ between replicas, one for each


def train_together(
    requests: Sequence[TrainRequest], session: Session, max_replicas: int | None = None
) -> dict[int, TrainResult | Exception]:
    """Train those of the validated requests that can be trained as ensembles; return, by their places, what
    came of them."""
    groups: dict[str, list[int]] = {}
    for i, request in enumerate(requests):
        if request.finished(session) is None and _can_vectorize(request):
            groups.setdefault(_split_per_replica(request.config)[0], []).append(i)
    found: dict[int, TrainResult | Exception] = {}
    for members in groups.values():
        for chunk in _chunks([requests[i] for i in members], max_replicas):
            from icl.training.run import train_runs

            chosen = [requests[members[j]] for j in chunk]
            parts = [request.member(session) for request in chosen]
            outcomes = train_runs(parts, partial(_ensemble, chosen, parts), force=session.force)
            found |= {members[j]: outcome for j, outcome in zip(chunk, outcomes, strict=True)}
    return found


def _can_vectorize(request: TrainRequest) -> bool:
    nodes = filter(None, request.config["callbacks"].values())
    ours = all(node["_target_"].startswith("icl.callbacks.") for node in nodes)
    parts = request.components
    alone = request.processes > 1 or any(getattr(callback, "alone", True) for callback in parts.callbacks)
    return ours and not alone and not parts.trainer.options and not parts.optimizer.needs_per_replica_step


def _split_per_replica(config: Config) -> tuple[str, ValuesByPlace]:
    """Split a config into what an ensemble shares, as text, and the values of each replica."""
    from icl.training.optimizers import PAIRS

    values: ValuesByPlace = {("seeds",): list(config["seeds"])}
    places = [("train", "clip"), ("model", "init_std")]
    places += [("optimizer", name) for name in config["optimizer"]]
    if config["task"]["_target_"] == _CONTEXT_IN_GRAM_FORM and config["model"].get("path") == "gram":
        places.append(("task", "context"))
    for group, name in places:
        own = _per_replica(config[group].get(name), len(config["seeds"]), pairs=name in PAIRS)
        if own is not None:
            values[group, name] = own
    shared = _with_values(config, {place: [] for place in values})
    return json.dumps([[*map(list, values)], shared], sort_keys=True, default=str), values


def _with_values(config: Config, values: ValuesByPlace) -> Config:
    changed = dict(config)
    for (group, *name), own in values.items():
        changed[group] = {**changed[group], name[0]: own} if name else own
    return changed


def _per_replica(value: Any, count: int, *, pairs: bool) -> list[Any] | None:
    """Return the numbers of each replica; None if the value is no number."""
    if _is_number(value):
        return [value] * count
    if not isinstance(value, list) or not value:
        return None
    if pairs and all(map(_is_number, value)):
        return [value] * count
    return list(value) if all(_is_number(v) or isinstance(v, list) for v in value) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _ensemble(
    requests: Sequence[TrainRequest], parts: Sequence[EnsembleMember], chosen: Sequence[int]
) -> Ensemble:
    """Return one plan for all replicas, and one for the replicas whose prompts differ."""
    from icl.training.build import build_parts
    from icl.training.ensemble import Ensemble

    values: ValuesByPlace = {}
    for i in chosen:
        for place, own in _split_per_replica(requests[i].config)[1].items():
            values.setdefault(place, []).extend(own)
    seeds = values["seeds",]
    laws = list(zip(seeds, values.get(("task", "context"), [None] * len(seeds)), strict=True))
    firsts: dict[Any, int] = {}
    for r, law in enumerate(laws):
        firsts.setdefault(law, r)
    numbers = {law: number for number, law in enumerate(firsts)}
    some = {place: [each[r] for r in firsts.values()] for place, each in values.items()}
    shared, plan = requests[chosen[0]].config, parts[chosen[0]].plan

    def with_values(own: ValuesByPlace) -> TrainingPlan:
        config = _with_values(shared, own)
        return replace(plan, seeds=tuple(config["seeds"]), config=config, **vars(build_parts(config)))

    return Ensemble(with_values(values), with_values(some), [numbers[law] for law in laws])


def _chunks(requests: Sequence[TrainRequest], max_replicas: int | None) -> list[list[int]]:
    """Cut requests, in order, into chunks of as many replicas as there may be, one request at least, and of
    no more requests than this process may have locks, of which each is an open file."""
    device = requests[0].components.trainer.free_device_bytes()
    free = available_bytes()  # where prompts are drawn, or trained on
    free = free if device is None else min(free, device)
    most = max_replicas or max(int(SHARE * free / _bytes_of_replica(requests[0])), 1)
    files = max(int(SHARE * resource.getrlimit(resource.RLIMIT_NOFILE)[0]), 1)
    chunks: list[list[int]] = []
    size = most
    for i, request in enumerate(requests):
        count = len(request.seeds)
        if size + count > most or len(chunks[-1]) == files:
            chunks.append([])
            size = 0
        chunks[-1].append(i)
        size += count
    return chunks


def _bytes_of_replica(request: TrainRequest) -> float:
    """Return an upper bound of a replica's memory in training: its prompts, or those of its metrics."""
    parts = request.components
    width = parts.law.dim + 1
    samples = [getattr(callback, "samples", 0) for callback in parts.callbacks]
    tokens = 1 if parts.model.path == "gram" else max(parts.law.context_R) / width + 1
    prompts = max(parts.train.batch or 0, *samples, 1)
    return PER_PROMPT * 8.0 * prompts * width**2 * tokens
