"""Means compared with a formula by sampling, with a stated chance of calling a true formula false.

One sample tests all means together, two-sided, at level ALPHA (a Student quantile, shared among the means by
Bonferroni). A rejection is no verdict yet: a fresh sample twice as large, hence larger than all before it
together, tests again. The formula `fails` only where ROUNDS samples in a row reject the same mean on the same
side; it `holds` where a sample rejects nothing, and is `undecided` otherwise.

The error: a true formula fails with probability at most (ALPHA / 2)^(ROUNDS - 1) ALPHA, 2.5e-10, as far as
means are normal; squared errors are skewed and reject a true formula more often in small samples, but ROUNDS
independent samples must all do so: with ten times the error in each it is 2.5e-7.
`icl bench bench=calibration` measures it.

K means, B values of each in one block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from icl import quantiles
from icl.checks.numbers import Numbers, exact, sampled
from icl.checks.rounding import ROUNDING
from icl.checks.verdict import Route
from icl.progress import track

ALPHA = 1e-3
ROUNDS = 3
PILOT = 1000  # draws from which the sample's size is found
LEAST = 2000  # draws, for means to be about normal
SOURCE = (
    f"Student's quantile at {1 - ALPHA:.1%}, two-sided, over all points together; {ROUNDS} samples, "
    "each larger than all before it, must reject one point on the same side before the claim fails"
)


class Sample(NamedTuple):
    """Mean of random draws and its standard error."""

    mean: float
    stderr: float


def mean_of(values_B: Tensor) -> Sample:
    """Return the mean of independent draws, with its standard error."""
    return Sample(float(values_B.mean()), float(values_B.std()) / len(values_B) ** 0.5)


Draw = Callable[[int], Tensor]  # this many new values of every quantity, (B, K)


@dataclass(frozen=True, eq=False)
class Comparison:
    """The result of the last sample. `sees_K` is the relative error of each formula that a sample of this
    size rejects in 39 cases of 40."""

    verdict: str
    z_K: Tensor
    quantile: float
    mean_K: Tensor
    stderr_K: Tensor
    sees_K: Tensor
    samples: int
    rounds: int

    @property
    def z(self) -> float:
        """The largest deviation in standard errors; NaN where any is."""
        return float(self.z_K.abs().max())

    def route(self, name: str, *places: int) -> Route:
        """Return the sample as a second route of the values at these places."""
        mean = [float(self.mean_K[place]) for place in places]
        off = float(self.z_K[list(places)].abs().max())
        agrees = self.verdict == "holds"
        value = mean[0] if len(mean) == 1 else mean
        return Route("computed", name, value, off, "standard errors", self.quantile, agrees)

    def numbers(self, prefix: str, of: str = "the formula") -> Numbers:
        """`PREFIX_z`, which decides, and the sample's description; `of` names what is compared with it."""
        return Numbers(
            [
                *self.decides(f"{prefix}_z", of).with_bounds(),
                *sampled(**{f"{prefix}_risk": self.mean_K.tolist()}).means(
                    f"mean of the sample, for each value of {of}"
                ),
                *sampled(**{f"{prefix}_risk_stderr": self.stderr_K.tolist()}),
                *sampled(**{f"{prefix}_sees": float(self.sees_K.max())}).means(
                    f"relative error of {of} that a sample of this size detects 39 times out of 40"
                ),
                *exact(**{f"{prefix}_samples": self.samples})
                .means("number of samples of the last round")
                .by_definition(),
                *exact(**{f"{prefix}_rounds": self.rounds})
                .means("number of rounds of sampling")
                .by_definition(),
            ]
        )

    def decides(self, name: str, of: str, source: str = SOURCE) -> Numbers:
        """Return the deviation `z` under this name, with the verdict of all rounds and Student's quantile;
        `of` names what is compared with the sample."""
        deviation = f"largest deviation of {of} from the mean of a sample, in standard errors"
        return sampled(**{name: self.z}).means(deviation).judged(self.verdict, "<", self.quantile, source)


def compare(
    draw: Draw,
    expected_K: Tensor,
    block: int,
    size: int,
    what: str = "prompts",
    rounding_K: Tensor | float = 0.0,
) -> Comparison:
    """Compare the expected values with means of draws, `block` at a time, `size` in the first sample.

    `rounding_K` is what rounding can make of the expected values, beyond their last bits.
    """
    if size < 2 or block < 1:
        raise ValueError(f"{size} samples in blocks of {block}: must be at least 2 and 1")
    sides = []
    for number in range(ROUNDS):
        count = size << number
        mean_K, stderr_K = _mean_and_stderr(draw, block, count, what)
        # A quantity that hardly varies is known to rounding, not better.
        floor_K = ROUNDING * torch.maximum(expected_K.abs(), mean_K.abs()) + rounding_K
        stderr_K = torch.hypot(stderr_K, floor_K)
        z_K = (mean_K - expected_K) / stderr_K
        quantile = quantiles.student(ALPHA / (2 * len(z_K)), count - 1)
        agrees_K = z_K.abs() <= quantile  # a NaN agrees with nothing
        sides.append(torch.where(agrees_K, 0.0, z_K.sign()))
        if agrees_K.all():
            break
    same_K = torch.stack(sides).sum(0).abs() == ROUNDS
    verdict = "holds" if agrees_K.all() else "fails" if same_K.any() else "undecided"
    sees_K = (quantile + 2) * stderr_K / expected_K.abs()
    return Comparison(verdict, z_K, quantile, mean_K, stderr_K, sees_K, count, number + 1)


def size_for(draw: Draw, block: int, precision_K: Tensor, least: int, most: int) -> int:
    """Return how many draws give every mean this standard error, by a pilot sample that is thrown away."""
    _, stderr_K = _mean_and_stderr(draw, block, min(PILOT, most), "pilot")
    wanted = float((stderr_K / precision_K).square().max()) * min(PILOT, most)
    return most if math.isnan(wanted) else int(min(max(wanted, least), most))


def _mean_and_stderr(draw: Draw, block: int, count: int, what: str) -> tuple[Tensor, Tensor]:
    """Streamed: blocks are merged by their means and sums of squares about them."""
    blocks = math.ceil(count / block)
    total, mean_K, squares_K = 0, torch.zeros(()), torch.zeros(())
    for values_BK in track(_blocks(draw, block, count), what, blocks):
        B, block_mean_K = len(values_BK), values_BK.mean(0)
        step_K = block_mean_K - mean_K
        squares_K = squares_K + (values_BK - block_mean_K).square().sum(0)
        squares_K = squares_K + step_K.square() * (total * B / (total + B))
        mean_K, total = mean_K + step_K * (B / (total + B)), total + B
    return mean_K, (squares_K / (total - 1) / total).sqrt()


def _blocks(draw: Draw, block: int, count: int) -> Iterator[Tensor]:
    for start in range(0, count, block):
        yield draw(min(block, count - start))
