"""lds, Lemma D.2: the second moments of the observations, eq. (26)."""

from dataclasses import dataclass

from flint import fmpq_mat

from icl.checks.lds.settings import Sequences
from icl.checks.statement import Measured
from icl.theory.lds.systems import covariance, covariance_by_sums, mean_covariance
from icl.theory.rationals import largest


@dataclass
class LemmaD2(Sequences):
    """`samples` systems are drawn, in each setting."""

    where, title = "Lemma D.2, eq. (26)", "Lemma D.2: second moments of the outputs"
    claim = "The second moments E[y_i y_j] of the observations are given by eq. (26)."
    quote = (
        r'"For time indices $0 \leq i \leq j$, it holds that $\mathbb{E}[y_i y_j] = '
        r"\mathbb{E}[\mathbf{c}^\top \mathbf{A}^i \Sigma_{\mathbf{x}_0} (\mathbf{A}^\top)^j \mathbf{c}] + "
        r"\sum_{k=0}^{i-1} \mathbb{E}[\mathbf{c}^\top \mathbf{A}^{i-1-k} \Sigma_{\mathbf{w}} "
        r'(\mathbf{A}^\top)^{j-1-k} \mathbf{c}] + \mathbf{1}_{\{i=j\}} \sigma_v^2$" (Lemma D.2, Appendix D)'
    )
    formula = (
        r"\mathbb{E}[y_i y_j] = \mathbb{E}[c^\top A^i \Sigma_0 (A^j)^\top c] + \sum_{k < \min(i,j)} "
        r"\mathbb{E}[c^\top A^{i-1-k} \Sigma_w (A^{j-1-k})^\top c] + \sigma_v^2\, \mathbb{1}_{i = j}"
    )

    def measure(self, m: Measured) -> None:
        T, noise, process = self.length, self.noise, self.noise.covariance(self.setting, self.dim)
        systems = self.systems(self.samples)
        twice = noise._replace(observation=2 * noise.observation, start=2 * noise.start)
        found = [fmpq_mat(covariance(A, c, T, noise, process)) for A, c in systems]
        by_sums = [fmpq_mat(covariance_by_sums(A, c, T, noise, process)) for A, c in systems]
        doubled = [fmpq_mat(covariance_by_sums(A, c, T, twice, 2 * process)) for A, c in systems]
        off, wrong = (largest(*map(fmpq_mat.__sub__, found, sums)) for sums in (by_sums, doubled))
        m.zero("recursion_error", off, "largest difference of (26) from the state's covariance, by steps")
        m.control("the same with all terms doubled", wrong, of="recursion_error")
        if self.setting in ("a", "b"):
            entries = [(i, j) for i in range(T) for j in range(i + 1)]
            means = self.sequences(T).mean(lambda C: [C[i][j] for i, j in entries])
            written = mean_covariance(self.setting, self.dim, T, noise)
            off = max(abs(mean - written[i][j]) for mean, (i, j) in zip(means, entries, strict=True))
            about = "largest difference of the mean of (26) over systems, E v^n = 1 / (n + 1)"
            m.zero("mean_error", off, about)
        m.note("Eq. (26) starts at y_0; a sequence y_1 .. y_T has the entries i, j >= 1.")
