"""Figure 3 of xie: enough heads, no guess, and a prior mean of growing length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from icl.errors import whole
from icl.experiments.runner import Runner
from icl.experiments.xie.fig2 import MAX_HEADS
from icl.experiments.xie.runs import KEY, Minibatch, RunSize, curves, identity, squares, store
from icl.runs.record import RunRecord
from icl.theory.xie.initial_guess import gap_slope, gd_risk


class Fig3:
    """records: a run for every squared norm of w*, minibatch runs for some of them, and `exact`."""

    def __init__(
        self,
        dim: int,
        context: int,
        seeds: Sequence[int],
        heads: int,
        squared_norms: Sequence[float],
        minibatch_squared_norms: Sequence[float],
        minibatch_steps: int,
        minibatch_size: int,
        steps: int | None = None,
        lr: float | None = None,
    ) -> None:
        self.size = RunSize(dim, context, seeds, steps, lr)
        self.heads = whole(f"{KEY}.heads", heads, 1, MAX_HEADS)
        self.priors = squares(f"{KEY}.squared_norms", squared_norms, least=2)
        self.minibatch = Minibatch(minibatch_steps, minibatch_size)
        self.minibatch_priors = squares(f"{KEY}.minibatch_squared_norms", minibatch_squared_norms, least=0)

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        runs = {f"w*^2={s:g}": self.size.heads(runner, self.heads, prior=s) for s in self.priors}
        short = {
            f"minibatch w*^2={s:g}": self.size.heads(runner, self.heads, prior=s, minibatch=self.minibatch)
            for s in self.minibatch_priors
        }
        science = {
            "of": identity(runs.values()),
            "minibatch": identity(short.values()),
            "seeds": list(self.size.seeds),
        }
        exact = store(
            runner, "xie/fig3_exact", science, lambda: self._exact(list(runs.values()), list(short.values()))
        )
        return runs | short | {"exact": exact}

    def _exact(self, runs: Sequence[RunRecord], short: Sequence[RunRecord]) -> dict[str, np.ndarray]:
        """X: the squared norms."""
        dim, context = self.size.dim, self.size.context
        found = {
            "heads": np.array(self.heads),
            "dim": np.array(dim),
            "squared_X": np.array(self.priors),
            **curves(runs),
            "any_heads_X": np.array([self.size.risk(s).convex_bound().value for s in self.priors]),
            "gd": np.array(gd_risk(dim, context)),
            "slope": np.array(gap_slope(dim, context)),
            "minibatch_squared_X": np.array(self.minibatch_priors),
        }
        return found | ({f"minibatch_{k}": v for k, v in curves(short).items()} if short else {})
