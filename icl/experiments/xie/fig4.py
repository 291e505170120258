"""Figure 4 of xie: a fixed guess y_q = <v, x_q> + b that misses the prior mean w* = 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from icl.errors import whole
from icl.experiments.runner import Runner
from icl.experiments.xie.fig2 import MAX_HEADS
from icl.experiments.xie.runs import KEY, RunSize, identity, risks, squares, store
from icl.runs.record import RunRecord
from icl.theory.xie.initial_guess import gap_slope, gd_risk


class Fig4:
    """records: a run for every |v|^2 at b = 0 and for every b^2 at v = 0, and `exact`."""

    def __init__(
        self,
        dim: int,
        context: int,
        seeds: Sequence[int],
        heads: int,
        squared_norms: Sequence[float],
        squared_biases: Sequence[float],
        steps: int | None = None,
        lr: float | None = None,
    ) -> None:
        self.size = RunSize(dim, context, seeds, steps, lr)
        self.heads = whole(f"{KEY}.heads", heads, 1, MAX_HEADS)
        self.guesses = squares(f"{KEY}.squared_norms", squared_norms, least=2)
        self.biases = squares(f"{KEY}.squared_biases", squared_biases, least=2)

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        vectors = {f"v^2={s:g}": self.size.heads(runner, self.heads, guess=s) for s in self.guesses}
        biases = {f"b^2={s:g}": self.size.heads(runner, self.heads, bias=s) for s in self.biases}
        science = {
            "vectors": identity(vectors.values()),
            "biases": identity(biases.values()),
            "seeds": list(self.size.seeds),
        }
        exact = store(
            runner,
            "xie/fig4_exact",
            science,
            lambda: self._exact(list(vectors.values()), list(biases.values())),
        )
        return vectors | biases | {"exact": exact}

    def _exact(self, vectors: Sequence[RunRecord], biases: Sequence[RunRecord]) -> dict[str, np.ndarray]:
        """X: the squared norms of v, or the squares of b."""
        dim, context = self.size.dim, self.size.context
        return {
            "heads": np.array(self.heads),
            "dim": np.array(dim),
            "vector_squared_X": np.array(self.guesses),
            "vector_risk_XR": np.stack([risks(run)[:, -1] for run in vectors]),
            "vector_any_heads_X": np.array(
                [self.size.risk(guess=s).convex_bound().value for s in self.guesses]
            ),
            "bias_squared_X": np.array(self.biases),
            "bias_risk_XR": np.stack([risks(run)[:, -1] for run in biases]),
            "bias_any_heads_X": np.array([self.size.risk(bias=s).convex_bound().value for s in self.biases]),
            "gd": np.array(gd_risk(dim, context)),
            "slope": np.array(gap_slope(dim, context)),
        }
