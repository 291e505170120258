"""Hydra's own run of `icl VERB`, for what only it can do: -m with any launcher, --cfg, --info, completion."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from omegaconf import DictConfig

from icl.config.compose import ERRORS, Composed, explain, plain_in_job, register_resolvers
from icl.config.places import Configs, conf_dir
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
    """The task function Hydra hands to a launcher, picklable."""

    job: Callable[[Composed], Any]

    def __call__(self, cfg: DictConfig) -> Any:
        return self.job(plain_in_job(cfg))


def run(
    verb: str,
    flags: Sequence[str],
    overrides: Sequence[str],
    configs: Configs,
    job: Callable[[Composed], Any],
    check: Callable[[Sequence[Overrides], Iterable[Composed]], None],
) -> Multirun:
    """`job` must not raise; it runs wherever the launcher says."""
    import hydra

    global _current
    register_resolvers()
    os.environ["HYDRA_FULL_ERROR"] = "1"  # so that errors come to us
    before, sys.argv = sys.argv, [f"icl {verb}", *flags, *overrides]
    _current = Multirun(check)
    try:
        hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name=verb)(Task(job))()
    except ERRORS as error:
        raise InputError(explain(configs, verb, overrides, error)) from None
    finally:
        sys.argv = before
    return _current
