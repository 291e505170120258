"""Figure 2 of xie: training by number of heads, and the least risk each number allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from icl.errors import real
from icl.experiments.runner import Runner
from icl.experiments.xie.runs import KEY, Minibatch, RunSize, best_risk, curves, identity, store, wholes
from icl.runs.record import RunRecord
from icl.theory.xie.initial_guess import gd_risk, lost_slope

MAX_HEADS = 64


class Fig2:
    """records: a run for every number of heads, a minibatch run for some of them, and `exact`."""

    def __init__(
        self,
        dim: int,
        context: int,
        seeds: Sequence[int],
        heads: Sequence[int],
        squared_norm: float,
        minibatch_heads: Sequence[int],
        minibatch_steps: int,
        minibatch_size: int,
        steps: int | None = None,
        lr: float | None = None,
    ) -> None:
        self.size = RunSize(dim, context, seeds, steps, lr)
        self.heads = wholes(f"{KEY}.heads", heads, 1, MAX_HEADS, least=2)
        self.prior = real(f"{KEY}.squared_norm", squared_norm, 0)
        self.minibatch = Minibatch(minibatch_steps, minibatch_size)
        self.minibatch_heads = wholes(f"{KEY}.minibatch_heads", minibatch_heads, 1, MAX_HEADS, least=0)

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        runs = {f"H{h}": self.size.heads(runner, h, prior=self.prior) for h in self.heads}
        short = {
            f"minibatch_H{h}": self.size.heads(runner, h, prior=self.prior, minibatch=self.minibatch)
            for h in self.minibatch_heads
        }
        science = {
            "of": identity(runs.values()),
            "minibatch": identity(short.values()),
            "seeds": list(self.size.seeds),
        }
        exact = store(
            runner, "xie/fig2_exact", science, lambda: self._exact(list(runs.values()), list(short.values()))
        )
        return runs | short | {"exact": exact}

    def _exact(self, runs: Sequence[RunRecord], short: Sequence[RunRecord]) -> dict[str, np.ndarray]:
        """X: the numbers of heads."""
        risk, (dim, context) = self.size.risk(self.prior), (self.size.dim, self.size.context)
        bound = risk.convex_bound()
        lost_X = np.array([self.prior * lost_slope(dim, context, h) for h in self.heads])
        found = {
            "dim": np.array(dim),
            "heads_X": np.array(self.heads),
            **curves(runs),
            "best_X": np.array([best_risk(risk, h) for h in self.heads]),
            "certified_X": bound.value + lost_X,
            "any_heads": np.array(bound.value),
            "rounding": np.array(bound.rounding),
            "gd": np.array(gd_risk(dim, context)),
            "minibatch_heads_X": np.array(self.minibatch_heads, dtype=int),
        }
        return found | ({f"minibatch_{k}": v for k, v in curves(short).items()} if short else {})
