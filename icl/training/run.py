"""Training runs, found in the store or trained and kept there: one, or several as one ensemble."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from icl.errors import one_line
from icl.runs.lock import notify
from icl.runs.store import RunStore
from icl.training import loop
from icl.training.ensemble import Ensemble
from icl.training.launch import spawn_group
from icl.training.plan import RunPart, TrainResult

Outcome = TrainResult | Exception
_NO_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")  # torch's RuntimeErrors


def _not_of_several(chosen: Sequence[int]) -> Ensemble:
    raise ValueError("several runs train together only as an ensemble, which `ensemble_of` makes")


def train_runs(
    parts: Sequence[RunPart],
    ensemble_of: Callable[[Sequence[int]], Ensemble] = _not_of_several,
    *,
    force: bool = False,
) -> list[Outcome]:
    """Train the runs that are not done, and return each one's result or the exception that prevented it.

    `ensemble_of(chosen)` makes one ensemble of several of `parts`. Records are locked in one order
    everywhere, so that two processes never wait for each other. Interrupted leaves after the runs have saved.
    """
    try:
        for part in sorted(parts, key=lambda part: (part.plan.experiment, part.plan.fingerprint)):
            try:
                _begin(part, force)
            except Exception as error:
                part.end(error)
        waiting = [i for i, part in enumerate(parts) if part.outcome is None]
        for group in resumable_groups(parts, waiting):
            members = [parts[i] for i in group.parts]
            try:
                ensemble = ensemble_of(group.parts) if len(members) > 1 else Ensemble.of_one(members[0].plan)
                with spawn_group(ensemble.plan) as process_group:
                    loop.train(members, ensemble, group.checkpoints, process_group)
            except Exception as error:
                ended = _naming_what_takes_memory(error, several=len(members) > 1)
                for part in members:
                    if part.outcome is None:
                        part.end(ended)
    except BaseException as error:
        for part in parts:
            if part.outcome is None:
                part.abandon(error)
        raise
    return [part.outcome for part in parts if part.outcome is not None]


def _naming_what_takes_memory(error: Exception, *, several: bool) -> Exception:
    """Return the error; where it says that there is no memory, with the settings that take less of it."""
    if not isinstance(error, MemoryError) and not any(words in str(error) for words in _NO_MEMORY):
        return error
    settings = [*(["hydra.launcher.max_replicas"] if several else []), "train.batch", "train.steps_per_batch"]
    named = MemoryError(f"lower {' or '.join(settings)}: {one_line(error) or 'out of memory'}")
    return named.with_traceback(error.__traceback__)


def _begin(part: RunPart, force: bool) -> None:
    """Lock a run's record and open its observers, or end the run with the record another process made."""
    plan = part.plan
    identity = (plan.experiment, plan.fingerprint, plan.config, plan.digest, plan.roots)
    store = RunStore(plan.outputs)
    begun = store.begin(*identity, origin=plan.origin, force=force, notify=part.notify or notify)
    part.run = part.resources.enter_context(begun)
    if part.run.cached is not None:
        part.end(TrainResult(part.run.cached, cached=True))
    else:
        part.observers = part.resources.enter_context(part.observe(part.run.attempt))


@dataclass
class ResumableGroup:
    """Runs that train together from here on, and the checkpoint of each; none: from the beginning."""

    parts: list[int]
    checkpoints: list[dict[str, Any]] = field(default_factory=list)


def resumable_groups(parts: Sequence[RunPart], waiting: Sequence[int]) -> list[ResumableGroup]:
    """Group interrupted runs with those they trained with, from the last step that all of them have saved:
    their numbers are then, to the bit, those of an ensemble that was never stopped."""
    groups: list[ResumableGroup] = []
    left = list(waiting)
    while left:
        saved = next((c for i in left if (c := parts[i].run.checkpoint) is not None), None)
        if saved is None:
            groups.append(ResumableGroup(left))
            break
        together = saved.get("together")
        if together is None:  # trained alone: with those at the same step
            point = _resume_point(saved)
            same = [i for i in left if _resume_point_alone(parts[i]) == point]
            groups.append(ResumableGroup(same, [parts[i].run.checkpoint or {} for i in same]))
        else:
            names = {tuple(name) for name in together}
            same = [i for i in left if tuple(parts[i].name) in names]
            by_step = [_checkpoints_by_step(parts[i], together) for i in same]
            common = set(by_step[0]).intersection(*by_step)
            groups.append(ResumableGroup(same, [states[max(common)] for states in by_step] if common else []))
        left = [i for i in left if i not in groups[-1].parts]
    return groups


def _checkpoints_by_step(part: RunPart, together: Any) -> dict[int, dict[str, Any]]:
    """Return a run's checkpoints as a part of the ensemble `together`, by step."""
    states = [part.run.checkpoint, *part.run.earlier]
    return {s["step"]: s for s in states if s is not None and s.get("together") == together}


def _resume_point_alone(part: RunPart) -> tuple[int, int, str] | None:
    saved = part.run.checkpoint
    return None if saved is None or "together" in saved else _resume_point(saved)


def _resume_point(saved: Mapping[str, Any]) -> tuple[int, int, str]:
    return saved["step"], saved["threads"], saved.get("kernel", "eager")
