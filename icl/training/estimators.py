"""Estimators of the risk: the risk itself, where it has a closed form; with the task and the query integrated
out; or as the papers sample it. All are unbiased.

R replicas, B prompts, K query columns, D covariates. A draw is a dict of tensors with the batch axis last, in
float64 on the CPU; `risk` answers one number per replica.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from icl.errors import InputError, one_of
from icl.models import LinearTransformer, gram
from icl.models.batched import batch_last
from icl.tasks.linear_regression import LinearRegressionLaw
from icl.tasks.prompts import TokenPrompt
from icl.training.exact import EXACT_LAYER_DIM, EXACT_SPARSE_A_LAYERS, RiskFunction, exact_risk

ESTIMATORS = ("population", "expected", "sampled")
CACHE_BYTES = 1 << 20  # a tensor of this size, and the few made from it, stay in a core's cache
Generators = Sequence[np.random.Generator]
Draw = dict[str, Tensor]


class Estimator(nn.Module, ABC):
    """What is sampled of a prompt (`draw`), and the risk that is left to compute given it (`risk`)."""

    def __init__(self, law: LinearRegressionLaw) -> None:
        super().__init__()
        self.law = law

    @abstractmethod
    def draw(self, generators: Generators, batch: int) -> Draw: ...  # `batch` prompts a replica

    @abstractmethod
    def risk(self, model: LinearTransformer, draw: Draw) -> Tensor: ...

    def pieces(self, draw: Draw) -> list[tuple[float, Draw]]:
        """The draw cut along its prompts into (share, part) that a CPU's cache holds: the risk of the whole
        is the sum of share * risk of the part. Measured: half the time at 5 x 20,000 prompts."""
        batch = next(iter(draw.values())).shape[-1]
        largest = max(tensor.nbytes for tensor in draw.values())
        count = 1 if any(t.device.type != "cpu" for t in draw.values()) else round(largest / CACHE_BYTES)
        if count <= 1:
            return [(1.0, draw)]
        cuts = [batch * i // count for i in range(count + 1)]
        return [
            ((stop - start) / batch, {k: v[..., start:stop].contiguous() for k, v in draw.items()})
            for start, stop in pairwise(cuts)
        ]


class ExpectedSparse(Estimator):
    """Only S is sampled: risk = E_S tr(V K X K^T)."""

    label_root: Tensor
    query_root: Tensor

    def __init__(self, law: LinearRegressionLaw) -> None:
        super().__init__(law)
        self.register_buffer("label_root", law.label_root_REK)
        self.register_buffer("query_root", law.query_root_RED)

    def draw(self, generators: Generators, batch: int) -> Draw:
        return {"S": batch_last(self.law.covariate_grams(generators, batch))}

    def risk(self, model: LinearTransformer, draw: Draw) -> Tensor:
        A, B = model.parametrization.sparse_weights()
        roots = self.label_root, self.query_root
        return gram.sparse_expected_risk(A, B, draw["S"], *roots, self.law.read_out).mean(-1)


class ExpectedStack(Estimator):
    """Any linear stack: the query is integrated out, the task and the context are sampled."""

    query_root: Tensor

    def __init__(self, law: LinearRegressionLaw) -> None:
        super().__init__(law)
        self.register_buffer("query_root", law.query_token_root_RPK)

    def draw(self, generators: Generators, batch: int) -> Draw:
        gram_RBPP, w_RBD = self.law.gram_tasks(generators, batch)
        return {"gram": batch_last(gram_RBPP), "w": batch_last(w_RBD)}

    def risk(self, model: LinearTransformer, draw: Draw) -> Tensor:
        family, given = model.parametrization, (draw["gram"], draw["w"], self.query_root)
        return gram.stack_expected_risk(*family.stack(), *given, self.law.read_out, *family.ends()).mean(-1)


class SampledGram(Estimator):
    """The paper's estimator: task and query sampled; the context still enters through its Gram matrix."""

    def draw(self, generators: Generators, batch: int) -> Draw:
        prompt = self.law.gram_prompts(generators, batch)
        tensors = {"gram": prompt.gram_RBPP, "query": prompt.query_RBP, "target": prompt.target_RB}
        return {name: batch_last(tensor) for name, tensor in tensors.items()}

    def risk(self, model: LinearTransformer, draw: Draw) -> Tensor:
        last_RB = model.last_entry(draw["gram"], draw["query"])
        return (self.law.read_out * last_RB - draw["target"]).square().mean(-1)


class SampledTokens(Estimator):
    """Task, query and every token sampled: what activations other than the identity need."""

    def pieces(self, draw: Draw) -> list[tuple[float, Draw]]:
        return [(1.0, draw)]

    def draw(self, generators: Generators, batch: int) -> Draw:
        prompt = self.law.token_prompts(generators, batch)
        return {"context": prompt.context_RBNP, "query": prompt.query_RBP, "target": prompt.target_RB}

    def risk(self, model: LinearTransformer, draw: Draw) -> Tensor:
        prompt = TokenPrompt(draw["context"], draw["query"], draw["target"], self.law.read_out)
        return (model.predict(prompt) - prompt.target_RB).square().mean(-1)


class PopulationRisk(Estimator):
    """The exact risk of icl.training.exact, in float64 on the CPU whatever the weights are: nothing is drawn,
    and training is deterministic."""

    def __init__(self, law: LinearRegressionLaw, exact: RiskFunction) -> None:
        super().__init__(law)
        self.exact = exact

    def pieces(self, draw: Draw) -> list[tuple[float, Draw]]:
        return [(1.0, draw)]

    def draw(self, generators: Generators, batch: int) -> Draw:
        return {}

    def risk(self, model: LinearTransformer, draw: Draw) -> Tensor:
        family = model.parametrization
        exact = [matrix.to("cpu", torch.float64) for matrix in family.matrices().values()]
        return self.exact(LinearTransformer(family.sharing(exact), model.path, model.activation))


def make_estimator(name: str, model: LinearTransformer, law: LinearRegressionLaw) -> Estimator:
    """The estimator of this name for this model."""
    one_of("train.estimator", name, ESTIMATORS)
    if name == "population":
        exact = exact_risk(model, law)
        if exact is None:
            known = f"one layer at dim <= {EXACT_LAYER_DIM}, or sparse_a of {EXACT_SPARSE_A_LAYERS} at most"
            raise InputError(f"train.estimator=population needs a risk in closed form: {known}")
        return PopulationRisk(law, exact)
    if model.path == "tokens":
        if name == "expected":
            raise InputError(
                "train.estimator=expected needs model.path=gram; tokens need train.estimator=sampled"
            )
        return SampledTokens(law)
    if name == "sampled":
        return SampledGram(law)
    sparse = model.parametrization.sparse and not law.guesses
    return ExpectedSparse(law) if sparse else ExpectedStack(law)
