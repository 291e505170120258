"""Tests that the model of a finished run is a torch module like any other."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from icl.errors import InputError
from icl.models import Encoder, LinearTransformer, MultiHead, SparseA, SparseAB
from icl.tasks import LinearRegression
from icl.training.load import Predictor, restored
from tests.plans import MakePlan, train_one

SEEDS = (0, 1)
ENCODER: dict[str, Any] = {"layers": 2, "width": 8, "heads": 2, "hidden": 8, "init_std": 0.3}
TASK = {"_target_": "icl.tasks.LinearRegression", "dim": 2, "context": 6, "task_covariance": "inverse"}
KINDS = {
    "gram": lambda: LinearTransformer(SparseAB(3, 2, 0.3)),
    "tokens": lambda: LinearTransformer(MultiHead(3, 2, 2, 0.3), "tokens"),
    "softmax": lambda: LinearTransformer(MultiHead(3, 2, 1, 0.3), "tokens", "softmax"),
    "encoder": lambda: Encoder(3, **ENCODER),
}


@pytest.fixture(params=KINDS)
def model(request: pytest.FixtureRequest) -> Predictor:
    """Return a model of a law with an initial guess, whose numbers have to be where the prompts are."""
    transformer: Any = KINDS[request.param]()
    transformer.parametrization.initialise(SEEDS)
    transformer.parametrization.requires_grad_(False)
    return Predictor(transformer, LinearRegression(dim=3, context=5, guess_vector_norm=0.5).law(SEEDS))


def prompts(batch: int = 4, N: int = 5, D: int = 3) -> tuple[torch.Tensor, ...]:
    rng = np.random.default_rng(batch)
    shapes = (batch, N, D), (batch, N), (batch, D)
    return tuple(torch.from_numpy(rng.standard_normal(shape)) for shape in shapes)


def test_tensors_arrays_and_lists_are_the_same(model: Predictor) -> None:
    given = prompts()
    found = model(*given)
    assert found.dtype == torch.float64 and found.shape == (2, 4)
    assert torch.equal(found, model(*(tensor.numpy() for tensor in given)))
    assert torch.equal(found, model(*(tensor.tolist() for tensor in given)))
    torch.testing.assert_close(model(*(tensor[0] for tensor in given)), found[:, 0])


def test_gradients_in_what_it_reads(model: Predictor) -> None:
    x, y, x_query = (tensor.requires_grad_() for tensor in prompts(1))
    assert torch.autograd.gradcheck(model, (x, y, x_query))


def test_it_moves(model: Predictor) -> None:
    given = prompts()
    wanted = model(*given)
    found = model.float()(*given)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), wanted, rtol=1e-3, atol=1e-4)
    assert model.to("meta")(*given).device.type == "meta"


def test_a_shared_layer_is_applied_as_often_as_asked() -> None:
    """Compare with a stack of six equal layers; a model whose layers differ has none to repeat."""
    one, six = SparseA(3, 2, 0.3, shared=True), SparseA(3, 6)
    one.initialise(SEEDS)
    six.load({"A": one.A.detach().repeat(1, 6, 1, 1)})
    law = LinearRegression(dim=3, context=5).law(SEEDS)
    model, given = Predictor(LinearTransformer(one), law), prompts()
    assert torch.equal(model(*given, loops=6), Predictor(LinearTransformer(six), law)(*given))
    assert torch.equal(model(*given, loops=2), model(*given))
    for wrong, loops, words in ((one, 0, "loops=0: must be"), (six, 3, r"model\.shared=true")):
        with pytest.raises(InputError, match=words):
            Predictor(LinearTransformer(wrong), law)(*given, loops=loops)


def test_a_run_is_restored_with_its_model(make_plan: MakePlan) -> None:
    """Predict with the stored weights; what moves is a copy."""
    plan = make_plan(train={"estimator": "sampled", "clip": 1.0})
    config = {"task": TASK, "model": {"_target_": "icl.models.Encoder", **ENCODER}}
    record = train_one(dataclasses.replace(plan, model=Encoder(2, **ENCODER), config=config)).record
    run, given = restored(record), prompts(4, 6, 2)
    model = Encoder(2, **ENCODER)
    model.parametrization.load({name: torch.from_numpy(M) for name, M in run.matrices.items()})
    prompt = run.law.encode(*(torch.stack([tensor, tensor]) for tensor in given))
    assert torch.equal(run.model(*given), model.predict(prompt))
    run.model.float()
    assert run.transformer.parametrization.read_in.dtype == torch.float64
    steps = [step for step, _ in run.stored_models()]
    assert steps[0] == 0 and steps[-1] == 12
