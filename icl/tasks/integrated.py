"""Estimators with the query, and where the model allows it the task, integrated out: unbiased, and of smaller
variance than sampling them. `Tilted` draws their contexts so that the risk's tail is seen.

R replicas, B prompts, K query columns, D covariates, E width of the vector u behind a token.
"""

from abc import abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor

from icl.stats import effective_size
from icl.tasks.gaussian_prompts import GaussianPrompts
from icl.tasks.law import Draw, Estimator, Generators, Model
from icl.tasks.tilted import inflations_for


class Integrated(Estimator):
    """A draw begins with the contexts' S; given these, `draw_on` draws the rest."""

    def __init__(self, law: GaussianPrompts) -> None:
        super().__init__()
        self.law = law

    def draw(self, generators: Generators, batch: int) -> Draw:
        return self.draw_on(self.law.covariate_grams(generators, batch), generators)

    @abstractmethod
    def draw_on(self, S_RBEE: Tensor, generators: Generators) -> Draw: ...

    @abstractmethod
    def risks(self, model: Model, draw: Draw) -> Tensor:
        """Return one risk for each prompt, (R, B)."""

    def risk(self, model: Model, draw: Draw) -> Tensor:
        return self.risks(model, draw).mean(-1)


class ExpectedSparse(Integrated):
    """Only S is sampled: risk = E_S tr(V K X K^T)."""

    label_root: Tensor
    query_root: Tensor

    def __init__(self, law: GaussianPrompts) -> None:
        super().__init__(law)
        self.register_buffer("label_root", law.label_root_REK, persistent=False)
        self.register_buffer("query_root", law.query_root_RED, persistent=False)

    def draw_on(self, S_RBEE: Tensor, generators: Generators) -> Draw:
        return {"S": S_RBEE.movedim(1, -1).contiguous()}

    def risks(self, model: Model, draw: Draw) -> Tensor:
        given = draw["S"], self.label_root, self.query_root
        return model.risk_given_gram(*given, read_out=self.law.read_out)


class ExpectedStack(Integrated):
    """Any linear stack: the query is integrated out, the task and the context are sampled."""

    query_root: Tensor

    def __init__(self, law: GaussianPrompts) -> None:
        super().__init__(law)
        self.register_buffer("query_root", law.query_token_root_RPK, persistent=False)

    def draw_on(self, S_RBEE: Tensor, generators: Generators) -> Draw:
        gram_RBPP, w_RBD = self.law.gram_tasks_on(S_RBEE, generators)
        return {"gram": gram_RBPP.movedim(1, -1).contiguous(), "w": w_RBD.movedim(1, -1).contiguous()}

    def risks(self, model: Model, draw: Draw) -> Tensor:
        given = draw["gram"], draw["w"], self.query_root
        return model.risk_given_task(*given, read_out=self.law.read_out)


class Tilted(Estimator):
    """The same risk from contexts some of which have an inflated largest eigenvalue, each with its weight
    (icl.tasks.tilted). Shallow models have no tail that plain draws miss; for them no draw is inflated.

    `degree`: of the risk as a polynomial in S.
    """

    reliability_names = ("effective_size", "largest_weight")

    def __init__(self, inner: Integrated, degree: int) -> None:
        super().__init__()
        self.inner: Integrated = inner
        width = inner.law.u_root_REE.shape[-1]
        self.inflations_R = [inflations_for(degree, n, width) for n in inner.law.context_R]

    def draw(self, generators: Generators, batch: int) -> Draw:
        S_RBEE, weight_RB = self.inner.law.tilted_grams(generators, batch, self.inflations_R)
        return self.inner.draw_on(S_RBEE, generators) | {"weight": weight_RB}

    def risk(self, model: Model, draw: Draw) -> Tensor:
        return self.terms(model, draw).mean(-1)

    def terms(self, model: Model, draw: Draw) -> Tensor:
        """(R, B), whose mean is the risk; neighbours are of different components."""
        return draw["weight"] * self.inner.risks(model, draw)

    @property
    def plain(self) -> Estimator | None:
        return self.inner if any(len(inflations) > 1 for inflations in self.inflations_R) else None

    def reliability(self, draw: Draw) -> Mapping[str, Tensor]:
        weight_RB = draw["weight"].cpu().double()
        sizes = [effective_size(weight_B.numpy()) for weight_B in weight_RB]
        return {"effective_size": torch.tensor(sizes), "largest_weight": weight_RB.amax(-1)}


def degree_of_risk(model: Model) -> int:
    """In S: a layer that moves the covariates triples the degree of what they become."""
    family = model.parametrization
    moves = family.with_b or not family.sparse
    return 3**family.layers - 1 if moves else 2 * family.layers
