"""Battery of the models of conf/model: paths agree, gradients are right, replicas share nothing. A new
parametrization needs a line in CASES."""

from pathlib import Path

import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import icl.models
from icl.models import LSA, Encoder, LinearTransformer, gram
from icl.models.batched import batch_last
from icl.random import generator
from icl.tasks import ConditionedRegression, LinearRegression

CONF = Path(__file__).parents[2] / "conf/model"
CASES = [
    ("Full", {}),
    ("SparseA", {}),
    ("SparseAB", {}),
    ("SparseA", {"shared": True}),
    ("SparseAB", {"shared": True}),
    ("YqLSA", {}),
    ("ReducedLSA", {}),
    ("MultiHead", {"heads": 1}),
    ("MultiHead", {"heads": 3}),
    ("LinearTransformerBlock", {"hidden": 2}),
    ("LSA", {"heads": 2}),
    ("LSA", {"heads": 2, "mask": True, "read_in": 0.5}),
    ("LSA", {"heads": 2, "width": 9}),
    ("LSA", {"heads": 2, "width": 9, "rank": 2, "mask": True}),
    ("LSA", {"heads": 1, "rank": 5}),
]
ENCODERS = [
    ("Encoder", {"width": 4, "heads": 2, "hidden": 0, "attention": "linear", "norm": "none"}),
    ("Encoder", {"width": 4, "heads": 2, "hidden": 3, "attention": "softmax", "mask": True}),
]
LINEAR = pytest.mark.parametrize(("family", "options"), CASES, ids=str)
EACH = pytest.mark.parametrize(("family", "options"), CASES + ENCODERS, ids=str)


def made(family, options, seeds=(0, 1), dim=2, layers=2, std=0.3):
    parametrization = getattr(icl.models, family)(dim=dim, layers=layers, init_std=std, **options)
    (parametrization.parametrization if family == "Encoder" else parametrization).initialise(seeds)
    return parametrization


def models(family, options, **sizes):
    """Return the model on each path that it has."""
    made_once = made(family, options, **sizes)
    if isinstance(made_once, Encoder):
        return [made_once]
    return [LinearTransformer(made_once, path) for path in ("tokens", "gram")]


def prompts(dim=2, context=4, seeds=(0, 1), batch=3, constant=False, **task):
    kind = ConditionedRegression if constant else LinearRegression
    law = kind(dim, context, label_noise=0.2, **{"constant": True, **task} if constant else task).law(seeds)
    return law.token_prompts([generator(seed, "check") for seed in seeds], batch)


def test_every_model_is_here():
    options = [yaml.safe_load(path.read_text()) for path in CONF.glob("*.yaml")]
    targets = {option["_target_"] for option in options if "_target_" in option}  # else another option's
    assert targets == {f"icl.models.{name}" for name, _ in CASES + ENCODERS}


@LINEAR
@settings(max_examples=30, deadline=None)
@given(
    dim=st.integers(1, 4),
    layers=st.integers(1, 4),
    context=st.integers(1, 9),
    guesses=st.booleans(),
    read_out=st.sampled_from([-1, 1]),
    seed=st.integers(0, 10**6),
)
def test_the_paths_agree(family, options, dim, layers, context, guesses, read_out, seed):
    """Compare tokens, their Gram matrices and, where matrices are sparse, the dense stack."""
    seeds, constant = (seed, seed + 1), family == "LSA" and guesses
    task = {"read_out": read_out} | ({"guess_vector_norm": 0.7, "guess_bias": -0.4} if guesses else {})
    prompt = prompts(dim, context, seeds, constant=constant, **{} if constant else task)
    std = (0.3 if family != "LSA" else 0.1) / layers  # deep stacks of large weights cancel
    by_tokens, by_gram = models(family, options, seeds=seeds, dim=dim, layers=layers, std=std)
    over_tokens, over_gram = by_tokens.predict(prompt), by_gram.predict(prompt.gram())
    # Relative to the largest intermediate: predictions may cancel against one another, layers cannot.
    scale = over_tokens.abs().max() + prompt.gram().gram_RBPP.abs().max() + prompt.query_RBP.abs().max()
    assert ((over_tokens - over_gram).abs() <= 1e-12 * scale).all()
    parametrization = by_gram.parametrization
    if parametrization.sparse:
        queries = batch_last(prompt.gram().gram_RBPP), batch_last(prompt.query_RBP)[:, :, None]
        dense = gram.stack_output(*parametrization.stack(), *queries)
        assert ((prompt.read_out * dense[:, 0] - over_gram).abs() <= 1e-12 * scale).all()


@EACH
def test_gradients_are_those_of_finite_differences(family, options):
    """Compare gradients of predictions on each path, and of risks with query and task integrated out."""
    law = LinearRegression(2, 3, label_noise=0.1).law([0, 1])
    streams = [generator(seed, "check") for seed in (0, 1)]
    S = batch_last(law.covariate_grams(streams, 2))
    G, w = (batch_last(tensor) for tensor in law.gram_tasks(streams, 2))
    prompt = prompts(batch=2)
    for model in models(family, options, layers=3 if family in ("SparseA", "SparseAB") else 2):
        functions = [lambda model: model.predict(prompt if model.path == "tokens" else prompt.gram())]
        if model.path == "gram" and model.parametrization.mask:
            functions.append(lambda model: model.risk_given_task(G, w, law.query_token_root_RPK, read_out=1))
        if model.path == "gram" and model.parametrization.sparse:
            roots = law.label_root_REK, law.query_root_RED
            functions.append(lambda model, roots=roots: model.risk_given_gram(S, *roots, read_out=-1))
        matrices = [matrix.detach().requires_grad_() for matrix in model.parametrization.matrices().values()]
        for function in functions:

            def value(*given, model=model, function=function):
                return function(model.on(model.parametrization.sharing(given)))

            assert torch.autograd.gradcheck(value, matrices)


@EACH
@pytest.mark.parametrize("layers", [1, 3])
def test_replicas_share_nothing(family, options, layers):
    """Compare first weights, predictions and gradients; each is a function of its seed."""
    prompt, both = prompts(), models(family, options, seeds=(4, 7), layers=layers)
    alone, others = (models(family, options, seeds=seeds, layers=layers) for seeds in ((7,), (5, 7)))
    one = type(prompt)(prompt.context_RBNP[1:], prompt.query_RBP[1:], prompt.target_RB[1:], prompt.read_out)
    for together, single, other in zip(both, alone, others, strict=True):
        seen, own = (prompt, one) if together.path == "tokens" else (prompt.gram(), one.gram())
        predicted, expected = together.predict(seen)[1], single.predict(own)[0]
        assert torch.allclose(predicted, expected, rtol=1e-11, atol=1e-13)
        together.zero_grad(), single.zero_grad()
        predicted.square().sum().backward(), expected.square().sum().backward()
        for name, matrix in together.parametrization.matrices().items():
            mine, first = single.parametrization.matrices()[name], other.parametrization.matrices()[name]
            assert matrix.shape == (2, *together.parametrization.shapes()[name]) and matrix.requires_grad
            assert torch.equal(matrix[1], mine[0]) and torch.equal(matrix[1], first[1])
            assert "gain" in name or not torch.equal(matrix[0], first[0])
            assert not matrix.grad[0].any()
            assert torch.allclose(matrix.grad[1], mine.grad[0], rtol=1e-9, atol=1e-13)


@EACH
def test_weights_are_loaded_by_value_and_shared_by_reference(family, options):
    model = models(family, options)[-1]
    weights = model.parametrization
    assert list(dict(weights.named_parameters())) == list(weights.shapes())
    views = [nn.Parameter(matrix.data[1:]) for matrix in weights.matrices().values()]
    shared = weights.sharing(views)
    assert all(a is b for a, b in zip(shared.matrices().values(), views, strict=True))
    given = {name: torch.ones(3, *shape) for name, shape in weights.shapes().items()}
    before = [matrix.clone() for matrix in weights.matrices().values()]
    other = model.on(weights.sharing(views)).parametrization
    other.load(given)
    for tensor in given.values():
        tensor.zero_()
    assert all(matrix.shape[0] == 3 and bool((matrix == 1).all()) for matrix in other.matrices().values())
    assert all(torch.equal(a, b) for a, b in zip(weights.matrices().values(), before, strict=True))


def test_first_weights_have_the_standard_deviation_that_is_set():
    """Set a standard deviation, also per replica; gains and a read-out keep their fixed initial values. What
    the sublayers of a normalised encoder add, two in a layer, begins smaller."""
    stds, smaller = [1.0, 0.0, 0.01], dict.fromkeys(("merge", "down"), 2**-0.5)
    for family, options in CASES + ENCODERS:
        options = options | ({"width": 42} if "width" in options else {})
        scales = smaller if options.get("attention") == "softmax" else {}
        model = made(family, options, (0, 1, 2), dim=40, layers=1, std=stds)
        for name, matrix in getattr(model, "parametrization", model).matrices().items():
            if "gain" in name:
                continue
            if isinstance(model, LSA) and name == "o":
                one = torch.nn.functional.one_hot(torch.tensor(40), matrix.shape[-1])
                matrix = matrix - one / model.read_in
            for std, weights in zip(stds, matrix.detach() / scales.get(name, 1.0), strict=True):
                error = 5 * std / (2 * weights.numel()) ** 0.5
                assert abs(float(weights.square().mean()) ** 0.5 - std) <= error, (family, name)
