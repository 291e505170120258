"""lu: at finite d the interpolation threshold is at d (d + 1) prompts, the number of weights, not at d^2."""

from dataclasses import dataclass, replace

import numpy as np
from flint import fmpq, nmod_mat

from icl import stats
from icl.checks.lu.sizes import Ratios
from icl.checks.statement import QUANTILE, Measured, Sample, setting
from icl.models.lu.pretraining import Pretraining
from icl.progress import track
from icl.random import generator

PRIME = 2**61 - 1
HALF = fmpq(1, 2)


@dataclass
class Threshold(Ratios):
    """Dimension, and `draws` of tasks and prompts."""

    dim: int = setting(6, 2, 12, most=32, beyond="the rank of d (d + 1) prompts takes minutes")
    draws: int = setting(400, 20, 1000, most=10**6, beyond="they take days")

    where, origin = "this project, beside the threshold at tau = 1", "icl"
    title = "The interpolation threshold at finite d"
    claim = "At finite d the error on new tasks peaks at n = d (d + 1), and not at n = d^2."
    formula = r"n_{\text{peak}} = d (d + 1)"

    def measure(self, m: Measured) -> None:
        d, weights = self.dim, self.dim * (self.dim + 1)
        sizes = Pretraining.at(d, self.alpha, self.kappa, 1.0, self.rho)
        stream = generator(self.seed, "check")
        draws = track(range(self.draws), "draws", self.draws)
        prompts = [replace(sizes, prompts=n) for n in (d * d, weights, weights + d)]
        errors = [[at.errors(stream)[0] for at in prompts] for _ in draws]
        squared_T, peak_T, after_T = np.array(errors).T

        reached = reached_by(sizes, weights, stream)
        about = "weights less the rank of the features of d (d + 1) prompts of whole numbers"
        m.zero("missing_rank", weights - reached, about)
        more = reached_by(sizes, d * d + 1, stream) - d * d
        about = "rank of d^2 + 1 prompts less d^2: 0 were d^2 the most that can be fitted"
        m.control(about, more, of="missing_rank")

        about = "share of draws in which the error is larger at d (d + 1) prompts than at"
        m.above("above_d_squared", share(peak_T > squared_T), HALF, f"{about} d^2")
        m.above("above_more", share(peak_T > after_T), HALF, f"{about} d more")
        about = "median ratio of the error at d (d + 1) prompts to that at d^2"
        m.number("median_ratio", Sample.median(peak_T / squared_T), about)


def share(seen_T: np.ndarray) -> Sample:
    """Return a share with the wider side of Clopper and Pearson's interval of 99.9 %."""
    mean = float(seen_T.mean())
    low, high = stats.proportion(0.0005, int(seen_T.sum()), len(seen_T))
    return Sample(mean, max(mean - low, high - mean) / QUANTILE)


def reached_by(sizes: Pretraining, count: int, rng: np.random.Generator) -> int:
    """Return the largest rank of prompts drawn nine times: if some reach it, almost all do."""
    found = 0
    for _ in range(9):
        found = max(found, rank(whole_prompts(sizes, count, rng)))
        if found == count:
            break
    return found


def whole_prompts(sizes: Pretraining, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw prompts whose tokens, tasks and noise are whole numbers; return their features up to scale."""
    N, L, D = count, sizes.examples, sizes.dim
    w_ND = rng.integers(-99, 100, (sizes.tasks or N, D))[np.arange(N) % (sizes.tasks or N)]
    sums_ND, squares_N1 = np.zeros((N, D), int), np.zeros((N, 1), int)
    for _ in range(L):
        x_ND = rng.integers(-99, 100, (N, D))
        y_N1 = (x_ND * w_ND).sum(1, keepdims=True) + rng.integers(-1, 2, (N, 1)) * (sizes.rho > 0)
        sums_ND, squares_N1 = sums_ND + x_ND * y_N1, squares_N1 + y_N1**2
    query_ND = rng.integers(-99, 100, (N, D))
    return np.asarray((query_ND[:, :, None] * np.hstack([sums_ND, squares_N1])[:, None]).reshape(N, -1))


def rank(whole: np.ndarray) -> int:
    """Return the rank modulo a prime, which is at most that of the matrix itself."""
    rows, columns = whole.shape
    return int(nmod_mat(rows, columns, [x % PRIME for x in whole.ravel().tolist()], PRIME).rank())
