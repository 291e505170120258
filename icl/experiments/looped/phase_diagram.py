"""Figure 2 of looped: what the best shared matrix gains, by context length, loops and dimension.

C dimensions, N context lengths, L loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import torch

from icl.checks.looped.support.rotations import best_rotation, held_out_gain
from icl.checks.looped.support.settings import MAX_DIM
from icl.errors import whole
from icl.experiments.looped.loops import KEY, rational_risk, whole_list
from icl.experiments.runner import Runner
from icl.progress import track
from icl.random import generator
from icl.runs.record import RunRecord
from icl.tasks.tilted import draw_tilted
from icl.theory.looped.equal_steps import EqualSteps
from icl.theory.looped.plane import MAX_LAYERS
from icl.theory.looped.weighted import WeightedRisk


class PhaseDiagram:
    """records: `gains` of every cell with half of its interval, the same found otherwise, and the sign of
    the curvature at the best scalar."""

    def __init__(
        self, dims: Sequence[int], contexts: Sequence[int], loops: Sequence[int], draws: int, seed: int
    ) -> None:
        self.dims = whole_list("dims", dims, 2, MAX_DIM)
        self.contexts = whole_list("contexts", contexts, 1, 10**9)
        self.loops = whole_list("loops", loops, 1, MAX_LAYERS)
        self.draws = whole(f"{KEY}.draws", draws, 10_000)
        self.seed = whole(f"{KEY}.seed", seed, 0)

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        science = {
            "dims": self.dims,
            "contexts": self.contexts,
            "loops": self.loops,
            "draws": self.draws,
            "seed": self.seed,
        }
        return {"gains": runner.store("looped/phase_diagram", science, self._gains)}

    def _gains(self) -> dict[str, np.ndarray]:
        cells = list(product(self.dims, self.contexts, self.loops))
        with ThreadPoolExecutor(max(1, torch.get_num_threads())) as threads:
            rows = list(track(threads.map(lambda cell: self._cell(*cell), cells), "cells", len(cells)))
        size = (len(self.dims), len(self.contexts), len(self.loops))
        columns = np.array(rows).T.reshape(-1, *size)
        names = ("gain", "half_width", "other", "other_half_width", "sign", "scalar", "a", "b")
        return {f"{name}_CNL": column for name, column in zip(names, columns, strict=True)} | {
            "dims_C": np.array(self.dims),
            "contexts_N": np.array(self.contexts),
            "loops_L": np.array(self.loops),
        }

    def _cell(self, dim: int, context: int, layers: int) -> tuple[float, ...]:
        steps = EqualSteps(dim, context, layers)
        found = best_rotation(steps, self.seed, self.draws)
        if dim == 2:
            other, half_width = 1 - rational_risk(steps, found) / steps.least_risk, 0.0
        elif not found.b.any():
            other, half_width = 0.0, 0.0
        else:
            count = self.draws // dim**2
            G_JDD, weight_J = draw_tilted(generator(self.seed, "eval", layers), context, dim, count)
            others = WeightedRisk(G_JDD, weight_J / count, layers)  # of another mixture than the search's
            other, half_width = held_out_gain(found.A_DD, steps, others)
        at = (steps.curvature_sign(), steps.least_risk, found.a, float(found.b.max()))
        return (found.gain, found.half_width, other, half_width, *at)
