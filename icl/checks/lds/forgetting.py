"""lds, eqs. (2) and (3) and section 4.1: what an AR(s) predictor leaves out vanishes exponentially in s."""

from dataclasses import dataclass
from functools import reduce
from random import Random

from flint import arb, fmpq, fmpq_mat

from icl.checks.lds.settings import Sequences, ranged
from icl.checks.statement import Measured
from icl.theory.lds.kalman import Predictor, filter_gain, least_errors, radius
from icl.theory.rationals import column, identity

NEAR, LONGEST = fmpq(101, 100), 12  # of the filter's variance; the longest window that is told


@dataclass
class Forgetting(Sequences):
    """`samples` systems are drawn, in each setting; `length` is that of the sequence in (3)."""

    length: int = ranged(12, 2, 12, most=100, beyond="the powers have too many digits")
    dim: int = ranged(5, 1, 4, most=8, beyond="the equations of the covariances take minutes")
    samples: int = ranged(20, 1, 3, most=1000, beyond="it takes minutes")

    where = "Section 3, eqs. (2) and (3); Section 4.1, on Kozdoba et al. 2019"
    title = "Eq. (3): what an AR(s) predictor leaves out"
    claim = (
        "Given the system, rho(A - K c^T) < 1 for the gain K of the predictor, so that the second term of "
        "eq. (3) vanishes exponentially in s."
    )
    quote = (
        r'"quantity $\rho(\mathbf{A} - \mathbf{k}\mathbf{c}^\top) < 1$ makes the second term vanish '
        'exponentially in $s$ and thus renders it negligible" (after eq. (3), Section 3)'
    )
    formula = (
        r"y_{t+s} = \sum_{j < s} c^\top F^j K\, y_{t+s-1-j} + c^\top F^s \hat{x}_t + \varepsilon_{t+s},\quad "
        r"F = A - K c^\top,\ \rho(F) < 1"
    )
    tries = 6

    def measure(self, m: Measured) -> None:
        systems, rng, one = self.systems(self.samples), Random(self.seed), identity(self.dim)
        predictors = [self._predictor(A, c, self.observation_noise) for A, c in systems]
        closed = reduce(arb.max, [radius(p.closed) for p in predictors])
        m.below("largest_radius", closed, 1, "largest spectral radius of A - K c^T over the systems")
        largest = reduce(arb.max, [radius(2 * one + p.A) for p in predictors])
        m.control("the same of 2 I + A without a gain, less 1", largest - 1, of="largest_radius")
        y = [fmpq(rng.randint(1, 9)) for _ in range(self.length)]
        first = column(rng.randint(1, 9) for _ in range(self.dim))
        off, left_out, printed = [], [], []
        for p in predictors:
            found, terms = p.run(y, first), p.terms_of_3(y, first, p.gain)
            off.append(found - sum(terms))
            left_out.append(found - sum(terms[:-1]))
            with_k = p.terms_of_3(y, first, filter_gain(p.A, p.c, p.process, self.observation_noise))
            printed.append(abs(found - sum(with_k)) / (sum(map(abs, with_k)) or 1))
        m.zero("error_of_3", off, "the predictor's recursion over y less eq. (3) with K")
        m.control("the most that it is without the second term", max(left_out, key=abs), of="error_of_3")
        about = "(3) with (2)'s gain k for K = A k: the largest error, of the terms"
        m.number("error_of_printed_3", max(printed), about)
        windows = []
        for p in predictors:
            errors = least_errors(p.lags(LONGEST + 1))
            near = [s for s, error in enumerate(errors, 1) if error <= NEAR * p.variance]
            windows.append(near[0] if near else LONGEST)
        about = f"least window within 1 % of the filter, median and largest of systems (at most {LONGEST})"
        m.number("windows_within_1_percent", [sorted(windows)[len(windows) // 2], max(windows)], about)
        wrong = [self._predictor(A, c, self.observation_noise**0.5) for A, c in systems]
        pairs = zip(wrong, predictors, strict=True)
        if ratios := [other.variance / right.variance for other, right in pairs if right.variance]:
            about = "squared error of the filter with sigma_v for sigma_v^2 in (2), over the filter's, mean"
            m.number("ratio_of_printed_2", sum(ratios, fmpq(0)) / len(ratios), about)
        m.note(
            "In (3) the steady-state gain must be the predictor's, A times the gain k of (2). Rates differ "
            "between systems. Gains are rounded to 12 decimals; the rest is exact at them."
        )

    def _predictor(self, A: fmpq_mat, c: fmpq_mat, noise: float) -> Predictor:
        """Return the predictor of the filter that takes this for sigma_v^2."""
        process = self.noise.covariance(self.setting, self.dim)
        gain = A * filter_gain(A, c, process, noise)
        return Predictor(A, c, gain, process, self.noise.observation)
