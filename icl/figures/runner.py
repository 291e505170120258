"""The runner of a figure, which gives a training run, or arrays computed once and stored like one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from icl.runs.code import code_digest
from icl.runs.fingerprint import fingerprint
from icl.runs.record import find_done
from icl.runs.store import RunStore

if TYPE_CHECKING:
    import numpy as np

    from icl.config.session import Session
    from icl.runs.record import RunRecord


class Runner(ABC):
    """Given to a figure by the command line; what is done already is found, not repeated."""

    def __init__(self, scale: str, session: Session) -> None:
        self.scale, self.session = scale, replace(session, force=False)

    @abstractmethod
    def train(self, experiment: str, overrides: Mapping[str, Any] | None = None) -> RunRecord:
        """Return the finished run of conf/experiment/EXPERIMENT.yaml with these overrides."""

    def store(
        self,
        name: str,
        science: Mapping[str, Any],
        compute: Callable[[], Mapping[str, np.ndarray]],
    ) -> RunRecord:
        """Return the arrays `compute` gives, as runs/NAME/FINGERPRINT; `science` must determine them. Its
        `seeds`, if any, are those of the record.

        They are computed anew when code has changed that the module `compute` is written in reaches.
        """
        identity = fingerprint(science)
        store, config = RunStore(self.session.outputs), {"settings": dict(science)}
        roots = (compute.__module__,)
        done = find_done(store.path(name, identity), None) if self.session.uses_stale else None
        if done is not None:
            return done
        digest, notify = code_digest(roots), self.session.info
        origin = {"figure": self.session.figure, "scale": self.scale}
        with store.begin(name, identity, config, digest, roots, origin=origin, notify=notify) as run:
            if run.cached is not None:
                return run.cached
            seeds = list(science.get("seeds", []))
            return run.finish(metrics=[], weights=dict(compute()), summary={}, steps=0, seeds=seeds)

    def info(self, line: str) -> None:
        """Show a line to whoever waits."""
        self.session.info(line)
