"""The least risk of one layer of eq. (8) on signs, compared with prompts drawn as tokens."""

from dataclasses import dataclass

import torch

from icl.checks.numbers import exact, finding, sampled
from icl.checks.settings import integer, validate
from icl.checks.verdict import Control, Finding, Weights
from icl.errors import InputError
from icl.models import LinearTransformer, SparseA
from icl.random import generator
from icl.theory.closed_forms import isotropic_risk
from mylab.task import Signs, SignsLaw, best_step, least_risk

Z = 3.2905  # of a two-sided 99.9 % interval


@dataclass
class SignRisk:
    dim: int = integer(5, 1)
    context: int = integer(20, 1)
    seed: int = integer(0, 0)
    samples: int = integer(20_000, 100)

    reference = "no paper: this package's own"
    claim = "On signs, one layer of eq. (8) has the least risk d (d - 1) / (n + d - 1)."

    def __post_init__(self) -> None:
        validate(self)
        self.law = Signs(self.dim, self.context).law([0])

    def measure(self) -> Finding:
        model = SparseA(self.dim, 1)
        model.load({"A": best_step(self.dim, self.context) * torch.eye(self.dim).double()[None, None]})
        transformer = LinearTransformer(model, path="tokens")
        prompt = self.law.token_prompts([generator(self.seed, "check")], self.samples)
        loss_B = (transformer.predict(prompt) - prompt.target_RB)[0].detach().square()
        mean, stderr = float(loss_B.mean()), float(loss_B.std()) / self.samples**0.5
        off = abs(mean - least_risk(self.dim, self.context)) / stderr
        control = abs(mean - isotropic_risk(self.dim, self.context)) / stderr
        return finding(
            [
                sampled(standard_errors_off=off)
                .means("deviation of the sampled risk from the formula, in standard errors")
                .at_most(Z, "a 99.9 % interval of the mean"),
                sampled(sampled_risk=mean, sampled_risk_stderr=stderr).means("mean loss over drawn prompts"),
            ],
            Control(
                "the deviation from the formula of Gaussian inputs, d (d + 1) / (n + d + 1)",
                control,
                control > Z,
            ),
        )

    def judge(self, weights: Weights) -> Finding:
        """Test with check.weights that the exact risk of these weights is within 2 % of the least."""
        if not isinstance(weights.law, SignsLaw) or weights.family != "sparse_a":
            raise InputError("check.weights: the statement is about eq. (8) on signs")
        model = SparseA(weights.law.dim, weights.matrices["A"].shape[1])
        model.load(weights.matrices)
        risk = weights.law.exact_risk(transformer := LinearTransformer(model))
        if risk is None:
            raise InputError("check.weights: the statement is about one layer")
        least = least_risk(weights.law.dim, weights.law.context_R[0])
        excess = float(risk(transformer).detach().max()) / least - 1
        at_zero = weights.law.dim / least - 1
        return finding(
            [
                exact(worst_excess=excess)
                .means("largest excess of the exact risk over the least risk, relative, over seeds")
                .at_most(0.02, "the tolerance of the papers' figures")
            ],
            Control("the same excess of weights that are zero", at_zero, at_zero > 0.02),
        )
