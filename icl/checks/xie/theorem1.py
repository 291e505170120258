"""xie, Theorem 1: how many heads a layer of linear attention can use."""

from dataclasses import dataclass
from random import Random

from flint import fmpq

from icl.checks.given import Comparison, Given
from icl.checks.statement import Measured
from icl.checks.xie.settings import Guessed, given_layer, not_convex
from icl.errors import InputError
from icl.theory.rationals import largest
from icl.theory.xie.heads import Heads, all_heads_of, descent_head, descent_risk, heads_of
from icl.theory.xie.prompts import matrix


@dataclass
class Theorem1(Guessed):
    where = "Theorem 1; Lemma 1; Section 3.1; Appendices A.1 and A.4"
    title = "Theorem 1: more than d + 1 heads do not help"
    law = "x ~ N(0, I), w ~ N(w*, I), C examples, y = w.x; y_q = 0, v.x_q or v.x_q + b"
    claim = (
        "The least risk of multi-head LSA is the same for every number of heads H >= d + 1; the risk is not "
        "convex in (P_h, Q_h), whatever their number."
    )
    quote = (
        '"the hypothesis class and the attainable ICL risk no longer improve by adding heads" '
        "(after Theorem 1); "
        '"the in-context learning risk [...] is not convex in the parameters" (Lemma 1)'
    )
    formula = r"\min_{P, Q} R_H = \min_{P, Q} R_{d+1}\quad\text{for every } H \ge d + 1"
    claim_of_weights = "The risk at these weights is the least risk over all numbers of heads."

    def measure(self, m: Measured) -> None:
        d, share, v = self.dim, fmpq(1, self.context), self.guess
        for name, guess, bias in (("", None, 0), ("_linear_guess", v, 0), ("_bias", v, self.guess_bias)):
            layer = Heads(self.mean, share, guess, bias)
            X, least = layer.best(), layer.least()
            enough = d if layer.guess_error else 1
            few = heads_of(X) if layer.guess_error else [descent_head(self.mean, 1 / layer.square)]
            excess, of_few, off = (
                layer.risk([factor * x for x in layer.matrices(heads)]) - least
                for heads, factor in ((all_heads_of(X), 1), (few, 1), (all_heads_of(X), 1 + fmpq(1, 10**30)))
            )
            stated = descent_risk(d, share) + 2 * layer.guess_error / (d * self.context + 2)
            of = f"largest_difference_beyond_d{name}"
            m.zero(of, excess, "risk of A.1's d + 1 heads less the least of any number")
            m.control(f"the same with keys off by 1e-30{name}", off, of=of)
            m.zero(f"excess_where_it_saturates{name}", of_few, "the same of as few heads as suffice")
            of = f"lost_by_one_fewer{name}"
            m.positive(of, layer.lost(enough - 1), "what one head fewer loses at least")
            m.control(f"the loss of that many heads{name}", layer.lost(enough), of=of)
            about = "least risk less d (d + 1)/(C + d + 1) + 2 (|w* - v|^2 + b^2)/(d C + 2)"
            m.zero(f"least_risk_error{name}", least - stated, about)
            m.number(f"least_risk{name}", least, "least risk of any number of heads")
            m.number(f"saturates_at{name}", enough, "least number of heads with the least risk")
        zero = Heads(self.mean, share)
        lost = [zero.lost(heads) for heads in range(1, d + 4)]
        about = "risk that 1, 2, .. heads have at least, whatever their weights, y_q = 0"
        m.number("certified_lower_bound_by_heads", [zero.least() + e for e in lost], about)
        for name, heads in (
            ("", heads_of(zero.best()[:-1])),
            ("_one_head", [descent_head([0] * d, 1 / zero.square)]),
        ):
            about = "of one head and others of 0" if name else "of d heads and others of 0"
            not_convex(m, f"violation{name}", zero, heads, about)
        # section 3.1: d + 1 heads make any tuple X_1 .. X_{d+1}; d make those of rank d, side by side
        size, rng = min(d, 10), Random(0)
        X = [matrix(rng, size + 1, size + 1) for _ in range(size + 1)]
        made = [sum((b * a[k].transpose() for b, a in all_heads_of(X)), 0 * X[0]) for k in range(size + 1)]
        about = "largest error of an entry of a random tuple that d + 1 heads make"
        m.zero("configuration_error", largest(*(a - b for a, b in zip(made, X, strict=True))), about)
        m.positive("parameters", (d + 1) ** 2, "parameters of d + 1 heads less the numbers of a tuple")

    def compare(self, given: Given) -> Comparison:
        layer, heads = given_layer(given, "Theorem 1", ["multihead", "full"])
        enough = layer.d if layer.guess_error else 1
        if len(heads) < enough:
            raise InputError(
                f"check.weights: the least risk is the same from {enough} heads on, these have {len(heads)}"
            )
        return Comparison(layer.risk(layer.matrices(heads)), layer.least())
