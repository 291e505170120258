"""xie, Theorem 2: stationary points of the risk as the context grows."""

from collections.abc import Sequence
from dataclasses import dataclass

from flint import fmpq

from icl.checks.statement import Measured
from icl.checks.xie.settings import Prior
from icl.errors import InputError, whole
from icl.theory.xie.heads import Heads, descent_head, factorised_slopes, heads_of, in_weights, norm


@dataclass
class Theorem2(Prior):
    """`contexts` are the C of which risk and gradient are shown; the limit itself decides."""

    contexts: Sequence[int] = (10, 100, 1000, 10_000, 100_000, 1_000_000)

    where, title = "Theorem 2; Appendices A.2 and A.3", "Theorem 2: no critical point in the limit of large C"
    law = "x ~ N(0, I), w ~ N(w*, I), w* != 0, C examples, y = w.x; y_q = 0"
    claim = "For w* != 0, as C -> infinity, the risk of multi-head LSA has no non-trivial stationary point."
    quote = (
        '"the in-context learning risk admits no non-trivial stationary point in parameter space" (Theorem 2)'
    )
    formula = (
        r"\lim_{C \to \infty} \nabla R_C(P, Q) \ne 0 \text{ at all non-trivial } (P, Q),"
        r"\quad w^\star \ne 0"
    )

    about_a_prior = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.contexts, str) or not isinstance(self.contexts, Sequence) or not self.contexts:
            raise InputError(f"check.contexts={self.contexts}: must be a list of context lengths")
        self.contexts = [whole("check.contexts", C, 1) for C in self.contexts]

    def expected(self) -> str:
        return "fails"

    def measure(self, m: Measured) -> None:
        limit, layers = Heads(self.mean, 0), [Heads(self.mean, fmpq(1, C)) for C in self.contexts]
        fixed, one_head = heads_of(limit.best()[:-1]), [descent_head([0] * self.dim, 1)]
        for name, heads, about in (
            ("", fixed, "d heads with fixed weights"),
            ("one_head_", one_head, "one head, eq. (7) with w* = 0 and eta = 1"),
        ):
            slope, about = norm(limit.gradient(heads)), f"norm of the gradient at {about}, 1/C = 0"
            m.positive(f"{name}gradient_norm_in_the_limit", slope, about)
        wrong = [descent_head(self.mean, 1)]
        m.control("the gradient in the limit at eq. (7) with y_q = 0", norm(limit.gradient(wrong)))
        risks = [layer.risk(limit.matrices(fixed)) for layer in layers]
        m.number("risk_by_context", risks, "risk at d heads with fixed weights, by C")
        slopes = [norm(layer.gradient(fixed)) for layer in layers]
        m.number("gradient_norm_by_context", slopes, "norm of the gradient at them, by C")
        factorised = factorised_slopes(self.mean, limit.matrices(fixed))
        about = "norm of the gradient at them in the limit, with A.2's E[G] x E[G] for E[G x G]"
        m.number("factorised_gradient_norm", norm(in_weights(factorised, fixed)), about)
        if any(norm(limit.gradient(heads)) for heads in (fixed, one_head)):
            m.undecided("no stationary point was found, and that does not prove that there is none")
