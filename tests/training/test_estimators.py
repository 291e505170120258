"""Tests that both estimators have one expected gradient, and of what is refused."""

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
from icl.tasks.estimators import PopulationRisk, SampledGram, SampledTokens
from icl.tasks.integrated import ExpectedSparse, ExpectedStack
from icl.tasks.law import Estimator
from icl.training.estimators import make_estimator

CHUNKS = 30
BLOCK = LinearTransformerBlock(2, 1, 2, 0.5)
SIGMAS = 5.0


def gradients(name: str, model: LinearTransformer, law, step: int) -> Tensor:  # type: ignore[no-untyped-def]
    """Return one row per chunk of prompts: (chunks, numbers)."""
    estimator, rows = make_estimator(name, model, law), []
    streams = [generator(seed, "check", step) for seed in (0, 1)]
    for _ in range(CHUNKS):
        risk_R = estimator.risk(model, estimator.draw(streams, 500))
        grads = torch.autograd.grad(risk_R.sum(), list(model.parameters()))
        rows.append(torch.cat([risk_R.detach(), *(grad.flatten() for grad in grads)]))
    return torch.stack(rows)


@pytest.mark.parametrize(
    "family",
    [SparseA(2, 2, 0.2), SparseAB(2, 3, 0.2), Full(2, 1, 0.2), YqLSA(2, 1, 0.2), BLOCK],
    ids=["sparse_a", "sparse_ab", "full", "yq_lsa", "block"],
)
@pytest.mark.parametrize("guess", [{}, {"guess_vector": [0.3, -0.8], "guess_bias": 0.6}], ids=["", "guess"])
def test_both_estimators_have_the_same_expected_risk_and_gradient(
    family: Parametrization, guess: dict[str, Any]
) -> None:
    """Compare |z| < 5 in every coordinate of the difference of two independent means."""
    law = LinearRegression(2, 5, label_noise=0.1, read_out=-1 if guess else 1, **guess).law([0, 1])
    family.initialise([0, 1])
    model = LinearTransformer(family)
    expected, sampled = gradients("expected", model, law, 0), gradients("sampled", model, law, 1)
    by_tokens = gradients("sampled", LinearTransformer(family, "tokens"), law, 2)
    for other in (sampled, by_tokens):
        stderr = ((expected.var(0) + other.var(0)) / CHUNKS).sqrt()
        gap = (expected.mean(0) - other.mean(0)).abs()
        assert (gap <= SIGMAS * stderr).all(), (gap / stderr).max()
    assert expected[:, 2:].mean(0).norm() > 10 * (expected[:, 2:].var(0) / CHUNKS).sum().sqrt(), (
        "no gradient to compare"
    )
    if family.sparse and not guess:
        assert expected.var(0).sum() < sampled.var(0).sum()


@pytest.mark.parametrize("family", [SparseA(2, 2, 0.2), YqLSA(2, 1, 0.2), BLOCK], ids=["a", "yq", "block"])
def test_the_population_risk_is_what_the_others_estimate(family: Parametrization) -> None:
    """Compare risk and gradient, from float32 weights too; nothing is drawn."""
    law = LinearRegression(2, 5, read_out=-1 if family.sparse else 1).law([0, 1])
    family.initialise([0, 1])
    model = LinearTransformer(family)
    population = make_estimator("population", model, law)
    assert isinstance(population, PopulationRisk) and population.draw([], 0) == {}
    risk_R = population.risk(model, {})
    exact = torch.cat([risk_R.detach(), *(g.flatten() for g in _gradients(risk_R, model))])
    sampled = gradients("expected", model, law, 3)
    stderr = (sampled.var(0) / CHUNKS).sqrt()
    assert ((sampled.mean(0) - exact).abs() <= SIGMAS * stderr + 1e-12).all()
    family.initialise([0, 1], torch.float32)
    single_R = population.risk(model, {})
    assert torch.allclose(single_R, risk_R, rtol=1e-5)
    single = torch.cat([g.flatten() for g in _gradients(single_R, model)])
    assert single.dtype == torch.float32 and torch.allclose(single.double(), exact[2:], rtol=1e-3, atol=1e-5)


def _gradients(risk_R: Tensor, model: LinearTransformer) -> tuple[Tensor, ...]:
    return torch.autograd.grad(risk_R.sum(), list(model.parameters()))


def test_no_population_risk_where_there_is_no_closed_form() -> None:
    law = LinearRegression(dim=2).law([0])
    for model in (LinearTransformer(Full(2, 2)), LinearTransformer(Full(2, 1), "tokens", "relu")):
        with pytest.raises(InputError, match=r"population needs a risk in closed form: one layer at dim <= "):
            make_estimator("population", model, law)


def test_which_estimator_serves_which_model() -> None:
    law = LinearRegression(dim=2).law([0])
    assert isinstance(make_estimator("expected", LinearTransformer(SparseA(2)), law), ExpectedSparse)
    assert isinstance(make_estimator("expected", LinearTransformer(Full(2)), law), ExpectedStack)
    assert isinstance(make_estimator("sampled", LinearTransformer(Full(2)), law), SampledGram)
    relu = LinearTransformer(SparseA(2), "tokens", "relu")
    assert isinstance(make_estimator("sampled", relu, law), SampledTokens)
    with pytest.raises(
        InputError, match=r"expected: not with LinearRegressionLaw and model\.path=tokens; use .*=sampled"
    ):
        make_estimator("expected", relu, law)
    with pytest.raises(InputError, match=r"exact: not with .*; use train\.estimator=sampled"):
        make_estimator("exact", relu, law)


@pytest.mark.parametrize("name", ["tilted", "expected", "sampled"])
@pytest.mark.parametrize("family", [SparseAB(3, 2, 0.1), Full(3, 2, 0.1)], ids=["sparse", "stack"])
def test_pieces_add_up_to_the_whole(
    name: str, family: Parametrization, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut into uneven parts that hold every prompt once: the same risk and the same gradient."""
    law = LinearRegression(dim=3, context=5).law([0, 1])
    family.initialise([0, 1])
    model = LinearTransformer(family)
    assert_pieces_add_up(make_estimator(name, model, law), model, monkeypatch)


@pytest.mark.parametrize(
    ("law", "reads"),
    [(LinearRegression(dim=3, context=5), "label"), (LogisticRegression(dim=3, context=5), "parameter")],
    ids=["labels", "parameters"],
)
def test_pieces_of_token_prompts_add_up_to_the_whole(
    law: LinearRegression | LogisticRegression, reads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Encoder(3, layers=2, width=8, heads=2, hidden=8, reads=reads, init_std=0.3)
    model.parametrization.initialise([0, 1])
    of = law.law([0, 1])
    assert_pieces_add_up(make_estimator("sampled", model, of), model, monkeypatch)


def assert_pieces_add_up(estimator: Estimator, model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimator, "piece_bytes", 2000)
    draw = estimator.draw([generator(seed, "eval") for seed in (0, 1)], 101)
    pieces = estimator.pieces(draw)
    sizes = [next(iter(part.values())).shape[estimator.prompt_axis] for _, part in pieces]
    assert len(pieces) > 3 and len(set(sizes)) == 2 and sum(sizes) == 101
    whole_R = estimator.risk(model, draw)
    parts_R = torch.stack([estimator.risk(model, part) * share for share, part in pieces]).sum(0)
    torch.testing.assert_close(parts_R, whole_R, rtol=1e-12, atol=0)
    parameters = list(model.parameters())
    grads = [torch.autograd.grad(risk.sum(), parameters) for risk in (whole_R, parts_R)]
    for whole, parts in zip(*grads, strict=True):
        torch.testing.assert_close(parts, whole, rtol=1e-10, atol=1e-12)
