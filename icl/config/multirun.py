"""Hydra's own multirun of `icl VERB -m`, with any launcher."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from omegaconf import DictConfig

from icl.config import packages
from icl.config.compose import ERRORS, Composed, explain, hydra_of, plain_in_job
from icl.config.places import Configs
from icl.errors import InputError

Overrides = list[str]


@dataclass
class Multirun:
    """`check` sees all jobs before the first starts, and may refuse; `returned` is what each gave back."""

    check: Callable[[Sequence[Overrides], Iterable[Composed]], None]
    jobs: list[Overrides] = field(default_factory=list)
    returned: list[Any] = field(default_factory=list)


_current: Multirun | None = None  # Hydra calls its sweeper without a way to hand it anything


def current() -> Multirun:
    """For the sweeper."""
    assert _current is not None, "hydra/sweeper=icl works below `icl` alone"
    return _current


@dataclass(frozen=True)
class Task:
    """The task function Hydra hands to a launcher, picklable. What it may build was fixed where it was made:
    hydra.job.env_set is in force when it is called."""

    job: Callable[[Composed], Any]
    allowed: tuple[str, ...] = field(default_factory=packages.allowed)

    def __call__(self, cfg: DictConfig) -> Any:
        with packages.fixed(self.allowed):
            return self.job(plain_in_job(cfg))


def run(
    verb: str,
    overrides: Sequence[str],
    configs: Configs,
    job: Callable[[Composed], Any],
    check: Callable[[Sequence[Overrides], Iterable[Composed]], None],
) -> Multirun:
    """`job` must not raise; it runs wherever the launcher says."""
    global _current
    with hydra_of(configs, verb) as hydra:
        _current = Multirun(check)
        try:
            hydra.multirun(verb, Task(job), [*overrides, "hydra.mode=MULTIRUN"])
        except ERRORS as error:
            raise InputError(explain(configs, verb, overrides, error)) from error
        return _current
