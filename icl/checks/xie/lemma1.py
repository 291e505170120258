"""xie, Lemmas 1 and 2: the risk is not convex in the weights."""

from __future__ import annotations

from dataclasses import dataclass

from flint import fmpq

from icl.checks.statement import Measured, setting
from icl.checks.xie.settings import AroundPrior
from icl.theory.xie.heads import Heads, descent_head, heads_of


@dataclass
class Lemma1(AroundPrior):
    """`heads` is H: the weights are those of least risk where H >= d, else one head and others of 0."""

    heads: int = setting(11, 1, 12, most=10_000, beyond="the weights are those of d heads")

    where, title = "Lemma 1; Lemma 2; Appendices A.4 and B.4", "Lemmas 1 and 2: the risks are not convex"
    law = "x ~ N(0, I), w ~ N(w*, I), C examples, y = w.x; y_q = 0, or v.x_q with v trained"
    claim = (
        "The risks of multi-head LSA in (P_h, Q_h), for every number of heads, and of y_q-LSA in (P, Q, v) "
        "are not convex."
    )
    quote = '"the in-context learning risk [...] is not convex in the parameters" (Lemma 1)'
    formula = (
        r"R\left(\tfrac{\theta + \theta'}{2}\right) > \tfrac12 \left(R(\theta) + R(\theta')\right)"
        r"\quad\text{for some } \theta, \theta' = (P_h, Q_h)_h \text{ or } (P, Q, v)"
    )

    def measure(self, m: Measured) -> None:
        # (P, Q) and (-P, -Q) predict the same; halfway between them the layer does nothing.
        share = fmpq(1, self.context)
        zero, guessed = Heads(self.mean, share), Heads(self.mean, share, self.mean)
        eta = 1 / zero.square
        heads = heads_of(zero.best()[:-1]) if self.heads >= self.dim else [descent_head([0] * self.dim, eta)]
        step = [descent_head(self.mean, eta)]
        for name, layer, weights in (("", zero, heads), ("_trained_guess", guessed, step)):
            ends = [
                layer.risk(layer.matrices([(s * b, [s * a for a in keys]) for b, keys in weights]))
                for s in (1, -1)
            ]
            middle, opposite = (layer.risk([s * x for x in layer.matrices(weights)]) for s in (0, -1))
            above, about = middle - sum(ends, fmpq(0)) / 2, "risk at the midpoint less the mean of both risks"
            m.positive(f"violation{name}", above, about)
            convex = middle - (ends[0] + opposite) / 2
            about = "the same between X_k and -X_k, in which the risk is convex"
            m.control(about, convex, of=f"violation{name}")
