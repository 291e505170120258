"""Figure 1 of xie: one-step GD, one head without a guess, and y_q-LSA, as the prior mean grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from icl.experiments.runner import Runner
from icl.experiments.xie.runs import KEY, RunSize, best_risk, identity, risks, squares, store
from icl.runs.record import RunRecord
from icl.theory.xie.initial_guess import gap_slope, gd_risk

GRID = 25  # points of the exact lines


class Fig1:
    """records: the runs at every squared norm of w*, and `exact`: final risks and the lines they lie on."""

    def __init__(
        self,
        dim: int,
        context: int,
        seeds: Sequence[int],
        squared_norms: Sequence[float],
        steps: int | None = None,
        lr: float | None = None,
    ) -> None:
        self.size = RunSize(dim, context, seeds, steps, lr)
        self.priors = squares(f"{KEY}.squared_norms", squared_norms, least=2)

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        lsa = {f"lsa_{prior:g}": self.size.heads(runner, 1, prior=prior) for prior in self.priors}
        yq_lsa = {f"yq_lsa_{prior:g}": self.size.yq_lsa(runner, prior=prior) for prior in self.priors}
        science = {
            "lsa": identity(lsa.values()),
            "yq_lsa": identity(yq_lsa.values()),
            "seeds": list(self.size.seeds),
        }
        exact = store(
            runner, "xie/fig1_exact", science, lambda: self._exact(list(lsa.values()), list(yq_lsa.values()))
        )
        return lsa | yq_lsa | {"exact": exact}

    def _exact(self, lsa: Sequence[RunRecord], yq_lsa: Sequence[RunRecord]) -> dict[str, np.ndarray]:
        dim, context = self.size.dim, self.size.context
        norm_G = np.linspace(0, self.priors[-1] ** 0.5, GRID)
        return {
            "squared_X": np.array(self.priors),
            "lsa_XR": np.stack([risks(run)[:, -1] for run in lsa]),
            "yq_lsa_XR": np.stack([risks(run)[:, -1] for run in yq_lsa]),
            "one_head_X": np.array([best_risk(self.size.risk(prior), 1) for prior in self.priors]),
            "norm_G": norm_G,
            "one_head_G": np.array([best_risk(self.size.risk(float(norm**2)), 1) for norm in norm_G]),
            "any_heads_G": gd_risk(dim, context) + gap_slope(dim, context) * norm_G**2,
            "gd": np.array(gd_risk(dim, context)),
        }
