"""Tests of the estimators that `train.estimator` names; that all have one mean, tests/tasks does."""

from typing import Any

import pytest
import torch
from torch import Tensor

from icl.errors import InputError
from icl.models import (
    Encoder,
    Full,
    LinearTransformer,
    LinearTransformerBlock,
    Parametrization,
    SparseA,
    SparseAB,
    YqLSA,
)
from icl.random import generator
from icl.tasks import LinearRegression, LogisticRegression
from icl.training.estimators import make_estimator

BLOCK = LinearTransformerBlock(2, 1, 2, 0.5)


def _with_gradient(risk_R: Tensor, model: Any) -> Tensor:
    grads = torch.autograd.grad(risk_R.sum(), list(model.parameters()))
    return torch.cat([risk_R.detach(), *(grad.flatten() for grad in grads)])


@pytest.mark.parametrize("family", [SparseA(2, 2, 0.2), YqLSA(2, 1, 0.2), BLOCK], ids=["a", "yq", "block"])
def test_the_population_risk_is_the_exact_one(family: Parametrization) -> None:
    """Compare risk and gradient, from float32 weights too; nothing is drawn."""
    law = LinearRegression(2, 5, read_out=-1 if family.sparse else 1).law([0, 1])
    family.initialise([0, 1])
    model = LinearTransformer(family)
    population, exact = make_estimator("population", model, law), law.exact_risk(model)
    assert population.draw([], 0) == {} and exact is not None
    expected = _with_gradient(exact(model), model)
    assert torch.equal(_with_gradient(population.risk(model, {}), model), expected)
    family.initialise([0, 1], torch.float32)
    single = _with_gradient(population.risk(model, {}), model)
    torch.testing.assert_close(single.double(), expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "model", "words"),
    [
        ("population", LinearTransformer(Full(2, 2)), r"needs a risk in closed form: one layer at dim <= "),
        ("population", LinearTransformer(Full(2, 1), "tokens", "relu"), "needs a risk in closed form"),
        ("expected", LinearTransformer(SparseA(2), "tokens", "relu"), r"model\.path=tokens; use .*=sampled"),
        ("exact", LinearTransformer(SparseA(2), "tokens", "relu"), r"not with .*; use .*estimator=sampled"),
    ],
)
def test_an_estimator_that_a_model_does_not_have(name: str, model: LinearTransformer, words: str) -> None:
    with pytest.raises(InputError, match=f"train.estimator={name}.*{words}"):
        make_estimator(name, model, LinearRegression(dim=2).law([0]))


def encoder(reads: str) -> Encoder:
    return Encoder(3, layers=2, width=8, heads=2, hidden=8, reads=reads, init_std=0.3)


LINEAR, LOGISTIC = LinearRegression(dim=3, context=5), LogisticRegression(dim=3, context=5)
PIECES = [
    *((name, LinearTransformer(SparseAB(3, 2, 0.1)), LINEAR) for name in ("tilted", "expected", "sampled")),
    *((name, LinearTransformer(Full(3, 2, 0.1)), LINEAR) for name in ("expected", "sampled")),
    ("sampled", encoder("label"), LINEAR),
    ("sampled", encoder("parameter"), LOGISTIC),
]


@pytest.mark.parametrize(("name", "model", "task"), PIECES)
def test_pieces_add_up_to_the_whole(
    name: str, model: Any, task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut into uneven parts that hold every prompt once: the same risk and the same gradient."""
    model.parametrization.initialise([0, 1])
    estimator = make_estimator(name, model, task.law([0, 1]))
    monkeypatch.setattr(estimator, "piece_bytes", 2000)
    draw = estimator.draw([generator(seed, "eval") for seed in (0, 1)], 101)
    pieces = estimator.pieces(draw)
    sizes = [next(iter(part.values())).shape[estimator.prompt_axis] for _, part in pieces]
    assert len(pieces) > 3 and len(set(sizes)) == 2 and sum(sizes) == 101
    whole = _with_gradient(estimator.risk(model, draw), model)
    parts = [_with_gradient(estimator.risk(model, part) * share, model) for share, part in pieces]
    torch.testing.assert_close(torch.stack(parts).sum(0), whole, rtol=1e-10, atol=1e-12)
