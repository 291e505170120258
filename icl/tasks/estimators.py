"""Estimators of the risk that any law has: as the papers sample it, and the exact risk itself.

R replicas, B prompts, C chunks, K entries. A draw is a dict of tensors in float64 on the CPU.
"""

import torch
from torch import Tensor

from icl.tasks.law import CACHE_BYTES, Draw, DrawsPrompts, Estimator, Generators, Model, RiskFunction
from icl.tasks.prompts import GramPrompt, TokenPrompt


class SampledGram(Estimator):
    """The papers' estimator: task and query sampled; the context enters through its Gram matrix, which holds
    the query where the model has no mask."""

    def __init__(self, law: DrawsPrompts, model: Model) -> None:
        super().__init__()
        self.law, self.mask = law, model.parametrization.mask

    def prompts(self, generators: Generators, batch: int) -> GramPrompt:
        prompt = self.law.gram_prompts(generators, batch)
        return prompt if self.mask else prompt.with_query()

    def draw(self, generators: Generators, batch: int) -> Draw:
        return self.tensors(self.prompts(generators, batch))

    def tensors(self, prompt: GramPrompt) -> Draw:
        tensors = {"gram": prompt.gram_RBPP, "query": prompt.query_RBP, "target": prompt.target_RB}
        return {name: tensor.movedim(1, -1).contiguous() for name, tensor in tensors.items()}

    def risk(self, model: Model, draw: Draw) -> Tensor:
        last_RB = model.last_entry(draw["gram"], draw["query"])
        return (self.law.read_out * last_RB - draw["target"]).square().mean(-1)


class SampledTokens(Estimator):
    """Task, query and every token sampled: what activations other than the identity need."""

    prompt_axis = 1
    piece_bytes = CACHE_BYTES // 4  # what a model makes of tokens is several times as large

    def __init__(self, law: DrawsPrompts) -> None:
        super().__init__()
        self.law = law

    def draw(self, generators: Generators, batch: int) -> Draw:
        prompt = self.law.token_prompts(generators, batch)
        return {"context": prompt.context_RBNP, "query": prompt.query_RBP, "target": prompt.target_RB}

    def risk(self, model: Model, draw: Draw) -> Tensor:
        prompt = TokenPrompt(draw["context"], draw["query"], draw["target"], self.law.read_out)
        return (model.predict(prompt) - prompt.target_RB).square().mean(-1)


class PopulationRisk(Estimator):
    """A law's exact risk, in float64 on the CPU whatever the weights are: nothing is drawn, and training is
    deterministic."""

    def __init__(self, exact: RiskFunction) -> None:
        super().__init__()
        self.exact = exact

    def pieces(self, draw: Draw) -> list[tuple[float, Draw]]:
        return [(1.0, draw)]

    def draw(self, generators: Generators, batch: int) -> Draw:
        return {}

    def risk(self, model: Model, draw: Draw) -> Tensor:
        family = model.parametrization
        exact = [matrix.cpu().double() for matrix in family.matrices().values()]
        return self.exact(model.on(family.sharing(exact)))


def norm_and_stderr(grad_CRK: Tensor) -> tuple[Tensor, Tensor]:
    """|E g| from C independent chunks, and its standard error (zero for one chunk, taken as exact).

    The square is the mean of <g_i, g_j> over pairs i != j, unbiased where the square of a mean is biased
    upward by the noise; its standard error s is the jackknife's. That of the root is sqrt(square + s) -
    sqrt(square): s / 2|E g| away from zero, and sqrt(s), not zero, where the gradient vanishes.
    """
    C = len(grad_CRK)
    if C == 2:
        raise ValueError("2 chunks: must be 1 or at least 3, the jackknife leaves one out")
    if C == 1:
        norm_R = grad_CRK[0].norm(dim=-1)
        return norm_R, torch.zeros_like(norm_R)
    total_RK, squares_CR = grad_CRK.sum(0), grad_CRK.square().sum(-1)
    pairs_R = total_RK.square().sum(-1) - squares_CR.sum(0)
    pairs_without_CR = (total_RK - grad_CRK).square().sum(-1) - (squares_CR.sum(0) - squares_CR)
    without_CR = pairs_without_CR / ((C - 1) * (C - 2))
    s_R = ((without_CR - without_CR.mean(0)).square().sum(0) * (C - 1) / C).sqrt()
    square_R = (pairs_R / (C * (C - 1))).clamp(min=0)
    return square_R.sqrt(), (square_R + s_R).sqrt() - square_R.sqrt()
