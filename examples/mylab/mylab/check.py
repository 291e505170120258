"""The least risk of one layer of eq. (8) on signs, compared with prompts drawn as tokens."""

from dataclasses import dataclass

from flint import fmpq

from icl.checks import Measured, Sample, Statement, setting
from icl.checks.given import Comparison, Given
from icl.errors import InputError
from icl.theory.rationals import dot, trace


@dataclass
class SignRisk(Statement):
    dim: int = setting(5, 1, 8)
    context: int = setting(20, 1, 100)
    seed: int = setting(0, 0, 1000)
    samples: int = setting(20_000, 100)

    where, origin = "no paper: this package's own", "mylab"
    title = "The least risk of one layer on signs"
    law = "x uniform on {-1, 1}^d, w ~ N(0, I), n examples, y = w.x"
    claim = "On signs, one layer of eq. (8) has the least risk d (d - 1) / (n + d - 1)."
    tries = 0  # it draws prompts: random settings are tried when they are asked for

    def measure(self, m: Measured) -> None:
        risk = self._sampled_risk()
        d, n = self.dim, self.context
        m.zero(
            "difference",
            Sample(risk.mean - float(least_risk(d, n)), risk.stderr),
            "sampled risk at the best step less the formula",
        )
        gaussian = d * (d + 1) / (n + d + 1)
        m.control("the same, for Gaussian inputs", Sample(risk.mean - gaussian, risk.stderr))
        m.number("sampled_risk", risk, "mean loss over drawn prompts")

    def _sampled_risk(self) -> Sample:
        import torch  # here, so that a list of checks does not import it

        from icl.models import LinearTransformer, SparseA
        from icl.random import generator
        from mylab.task import Signs

        d, n = self.dim, self.context
        model = SparseA(d, 1)
        model.load({"A": float(fmpq(n, n + d - 1)) * torch.eye(d).double()[None, None]})
        prompt = Signs(d, n).law([0]).token_prompts([generator(self.seed, "check")], self.samples)
        predicted_RB = LinearTransformer(model, path="tokens").predict(prompt)
        loss_B = (predicted_RB - prompt.target_RB)[0].detach().square()
        return Sample(float(loss_B.mean()), float(loss_B.std()) / self.samples**0.5)

    def compare(self, given: Given) -> Comparison:
        """Compare the exact risk of given weights with the least: an experiment's `checks`, check.weights."""
        from mylab.task import SignsLaw

        if not isinstance(given.law, SignsLaw) or given.family != "sparse_a":
            raise InputError("check.weights: the statement is about eq. (8) on signs")
        if len(given.matrices["A"]) != 1:
            raise InputError("check.weights: the statement is about one layer")
        A, d, n = given.matrices["A"][0], given.law.dim, given.context
        risk = d - 2 * trace(A) + fmpq(n - 1 + d, n) * dot(A, A)
        return Comparison(risk, least_risk(d, n))


def least_risk(dim: int, context: int) -> fmpq:
    """Return the risk at A = n / (n + d - 1) I; for Gaussian inputs it is d (d + 1) / (n + d + 1)."""
    return fmpq(dim * (dim - 1), context + dim - 1)
