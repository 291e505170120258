"""Estimators with the query, and where the model allows it the task, integrated out: unbiased, and of smaller
variance than sampling them.

R replicas, K query columns, D covariates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from icl.tasks.law import Draw, Estimator, Generators, Model

if TYPE_CHECKING:
    from icl.tasks.linear_regression import LinearRegressionLaw


class ExpectedSparse(Estimator):
    """Only S is sampled: risk = E_S tr(V K X K^T)."""

    label_root: Tensor
    query_root: Tensor

    def __init__(self, law: LinearRegressionLaw) -> None:
        super().__init__()
        self.law = law
        self.register_buffer("label_root", law.label_root_REK)
        self.register_buffer("query_root", law.query_root_RED)

    def draw(self, generators: Generators, batch: int) -> Draw:
        return {"S": self.law.covariate_grams(generators, batch).movedim(1, -1).contiguous()}

    def risk(self, model: Model, draw: Draw) -> Tensor:
        given = draw["S"], self.label_root, self.query_root
        return model.risk_of_contexts(*given, read_out=self.law.read_out).mean(-1)


class ExpectedStack(Estimator):
    """Any linear stack: the query is integrated out, the task and the context are sampled."""

    query_root: Tensor

    def __init__(self, law: LinearRegressionLaw) -> None:
        super().__init__()
        self.law = law
        self.register_buffer("query_root", law.query_token_root_RPK)

    def draw(self, generators: Generators, batch: int) -> Draw:
        gram_RBPP, w_RBD = self.law.gram_tasks(generators, batch)
        return {"gram": gram_RBPP.movedim(1, -1).contiguous(), "w": w_RBD.movedim(1, -1).contiguous()}

    def risk(self, model: Model, draw: Draw) -> Tensor:
        given = draw["gram"], draw["w"], self.query_root
        return model.risk_of_tasks(*given, read_out=self.law.read_out).mean(-1)
