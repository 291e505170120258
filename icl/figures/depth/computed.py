"""Figures of depth that train nothing: arrays of a power law, computed once."""

from abc import abstractmethod
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from icl.errors import real
from icl.figures.claims import Claim, ClaimNumbers
from icl.figures.figure import Figure, Records
from icl.figures.runner import Runner

own = partial(Claim.of, trained=False, whose="project")


def reached(claim: str, measured: Any, off: ClaimNumbers, within: float) -> Claim:
    """Return the claim of a limit, which what has not come near it yet does not refute."""
    decided = off.at_most(within, f"share off at most {within:g}")
    if decided.verdict == "holds":
        return own(claim, measured, decided)
    reason = f"still off by a share of {np.max(off.values):.2g}, more than {within:g}"
    return Claim.undecided(claim, reason, trained=False, whose="project")


@dataclass(eq=False)
class Computed(Figure):
    """Record: `computed`, of lambda_k = k^-nu with weights lambda_k omega_k ~ k^(-nu beta - 1)."""

    nu: float
    beta: float

    def __post_init__(self) -> None:
        for name in ("nu", "beta"):
            real(f"figure.{name}", getattr(self, name), 0, open_low=True)

    def runs(self, runner: Runner) -> Records:
        name = f"depth/{type(self).__name__.lower()}"
        return {"computed": runner.store(name, asdict(self), self.compute)}

    @abstractmethod
    def compute(self) -> dict[str, np.ndarray]:
        """Return what is drawn."""
