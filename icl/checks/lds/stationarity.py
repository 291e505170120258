"""lds, section 5: "{y_t} approaches stationarity exponentially fast", and the Gram matrix a Toeplitz one."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from flint import fmpq, fmpq_mat

from icl.checks.lds.settings import Windows, ranged
from icl.checks.statement import Measured
from icl.theory.lds import systems
from icl.theory.lds.layer import toeplitz_distance
from icl.theory.rationals import column, identity, matrix

INSIDE, GROWTH = fmpq(9, 10), fmpq(6, 5)  # of the controls' eigenvalues: the mean converges; unstable


@dataclass
class Stationarity(Windows):
    """Settings (a) and (b), whose means are exact; lengths T and 2 T. `samples` systems are drawn."""

    setting: str = ranged("a", choices=("a", "b"))
    length: int = ranged(15, 4, 8, most=60, beyond="the moments take minutes")

    where = "Section 5, before eq. (15), and eq. (15); Assumption 3.1"
    title = "Section 5: stationarity, given the system and on average"
    claim = (
        "Given the system, the second moments of y converge exponentially fast, like rho(A)^2t. On average "
        "over the systems they do not: E[y_t^2] grows like the logarithm of t. The normalised Gram matrix "
        "comes nearer to a Toeplitz matrix, faster than 1 / sqrt(N)."
    )
    quote = (
        r'"the stochastic process $\{y_t\}_t$ approaches stationarity exponentially fast, meaning that '
        'autocorrelations become (almost) solely dependent on lag" (Section 5)'
    )
    formula = (
        r"\mathbb{E}[y_t y_{t+k} \mid A, c] - \gamma(k) = c^\top A^t (\Sigma_0 - S) (A^\top)^{t+k} c,\quad "
        r"\mathbb{E}_v\, v^{2t} = \tfrac{1}{2t + 1}"
    )
    tries = 6

    def expected(self) -> str:
        return "holds" if self.process_noise else "fails"  # nothing drives y: on average it converges

    def measure(self, m: Measured) -> None:
        off, without = zip(*(self._deviation(A, c) for A, c in self.systems(self.samples)), strict=True)
        about = "E[y_t y_(t+k)] less gamma(k) and c.A^t (Sigma_0 - S) A^(t+k) c, most"
        m.zero("deviation_error", list(off), about)
        m.control("the same without the second term and sigma_v^2", max(without), of="deviation_error")
        self._growth(m)
        self._toeplitz(m)

    def _deviation(self, A: fmpq_mat, c: fmpq_mat) -> tuple[fmpq, fmpq]:
        """Return the largest error of the transient written down, and what is left without it and
        without observation noise."""
        T, noise, process = self.length, self.noise, self.noise.covariance(self.setting, self.dim)
        S = systems.covariance_limit(A, process)
        C, gap = systems.covariance(A, c, T, noise, process), -1 * S
        for i in range(self.dim):
            gap[i, i] += noise.start
        rows = [c.transpose() * A**t for t in range(T + 1)]
        off, largest = fmpq(0), fmpq(0)
        for t in range(T):
            for k in range(T - t):
                found = C[t][t + k] - (rows[k] * S * c)[0, 0]
                written = (rows[t + 1] * gap * rows[t + k + 1].transpose())[0, 0]
                written += noise.observation if k == 0 else 0
                off, largest = max(off, abs(found - written)), max(largest, abs(found))
        return off, largest

    def _growth(self, m: Measured) -> None:
        """From T to 2 T what w drives grows by sigma_w^2 E|c|^2 sum_(T <= k < 2T) 1 / (2k + 1)."""
        T, noise, size = self.length, self.noise, systems.mean_square_of_c(self.setting, self.dim)
        C = systems.mean_covariance(self.setting, self.dim, 2 * T, noise)
        started = size * noise.start * (fmpq(1, 4 * T + 1) - fmpq(1, 2 * T + 1))
        growth, quarter = C[-1][-1] - C[T - 1][T - 1] - started, noise.process * size / 4
        inside = sum((INSIDE ** (2 * k) / (2 * k + 1) for k in range(T, 2 * T)), fmpq(0))
        about = "growth of E[y_t^2] from T to 2 T, but for x_0's part, less a quarter of sigma_w^2 E|c|^2"
        m.positive("growth", growth - quarter, about)
        wrong = noise.process * size * inside - quarter
        m.control("the same for eigenvalues uniform on [-.9, .9]", wrong, of="growth")

    def _toeplitz(self, m: Measured) -> None:
        """Neighbours on a diagonal of G differ by two of N products."""
        s, T = self.window, self.length

        def of(law: Callable[[int], systems.Law]) -> fmpq:
            at_T, at_2T = (toeplitz_distance(law(length), s) for length in (T, 2 * T))
            return at_2T / at_T

        ratio, shorter = of(self.sequences), fmpq(T - s - 1, 2 * T - s - 1)
        if ratio >= shorter and self.noise.process:  # x_0 outweighs w up to T: as in the growth, without it
            ratio = of(replace(self, initial_variance=0.0).sequences)
        about = "squared distance of G from Toeplitz at 2 T over that at T: the ratio of N, or less"
        m.below("distance_ratio", ratio, shorter, about)
        unstable, driven = [(matrix([[GROWTH]]), column([1]))], systems.Noise(fmpq(1), fmpq(1), fmpq(1))
        wrong = of(lambda length: systems.drawn_systems(unstable, length, driven, identity(1)))
        about = f"the same for one state that grows {GROWTH}-fold, less that ratio"
        m.control(about, wrong - shorter, of="distance_ratio")
