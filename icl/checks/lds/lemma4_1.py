"""lds, Lemmas 4.1 and D.3: the checkerboard of (11), whose entries are moments of odd index sum."""

from dataclasses import dataclass
from random import Random

from flint import fmpq, fmpq_mat

from icl.checks.lds.settings import Windows
from icl.checks.statement import Measured
from icl.theory.lds.layer import Layer, forced_zeros, in_pattern, moment

ORDERS, TUPLES = (2, 4, 6), 8  # drawn index tuples of each order


@dataclass
class Lemma41(Windows):
    where, title = "Lemma 4.1, eqs. (11) to (13); Lemma D.3", "Lemmas 4.1 and D.3: the checkerboard of zeros"
    claim = (
        "If the weights have pattern (13), both sides of (11) vanish at the entries of the checkerboard "
        "(12), and moments of the observations of order 2, 4 and 6 are 0 where the sum of the indices is odd."
    )
    quote = (
        '"For an arbitrary $s$, the following parameters induce a banded structure in the left-hand side of '
        '(11) matching that of the right-hand side" (Lemma 4.1, Section 4)'
    )
    formula = (
        r"(W_{QK})_{ij} = 0 \ (i + j \text{ odd})\ \implies\ "
        r"\text{both sides of } (11) \text{ vanish on } (12)"
    )

    def measure(self, m: Measured) -> None:
        rng, law, zeros = Random(self.seed), self.sequences(self.length), forced_zeros(self.window)
        layer = Layer(law, self.window)

        def largest(x: fmpq_mat) -> fmpq:
            return max(abs(x[at, 0]) for at in zeros)

        def left(pattern: bool) -> fmpq:
            """Return it at a random head, of pattern (13) or not."""

            def entry(free: bool) -> fmpq:
                drawn = fmpq(rng.choice([-1, 1]) * rng.randint(1, 9))
                return drawn if free or not pattern else fmpq(0)

            free_b, free_a = in_pattern(self.window)
            head = [*map(entry, free_b)], [[*map(entry, row)] for row in free_a]
            return largest(layer.form * layer.coefficients(*head))

        m.zero("left", left(True), "largest entry of the left side of (11) on the checkerboard")
        m.control("the same for weights without the pattern", left(False), of="left")
        m.zero("right", largest(layer.linear), "largest entry of the right side of (11) there")
        about = "a moment of even index sum in its place, E[y_(T-s)^2 G_11^2]"
        m.control(about, layer.form[0, 0], of="right")
        places = range(self.length)
        for order in ORDERS:
            odd = [[rng.choice(places) for _ in range(order)] for _ in range(TUPLES)]
            for times in odd:  # from 0; that of y_1 is odd or even alike, as the order is even
                if sum(times) % 2 == 0:
                    times[0] += 1 if times[0] < self.length - 1 else -1
            rows = [*odd, [0] * order]
            means = law.mean(lambda C, rows=rows: [moment(C, times) for times in rows])  # type: ignore[misc]
            about = f"moments of order {order} of odd index sum, drawn at random"
            m.zero(f"order_{order}", means[:-1], about)
            m.control(f"one of even index sum, E[y_1^{order}]", means[-1], of=f"order_{order}")
        m.note("(11) leaves out the query's own column, as in (38); (10) and (36) leave out the 1/2 of (9).")
