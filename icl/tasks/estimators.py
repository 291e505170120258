"""Estimators of the risk that any law has: as the papers sample it, and the exact risk itself.

R replicas, B prompts. A draw is a dict of tensors in float64 on the CPU.
"""

from __future__ import annotations

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
