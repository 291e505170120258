"""Battery of the laws of conf/task: Gram matrices and every estimate of a risk are those of the tokens, a
replica draws what it draws alone, tokens are encoded as they are drawn. A new task needs a line in CASES."""

from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

import icl.tasks
from icl.errors import InputError
from icl.models import (
    LSA,
    Encoder,
    Full,
    LinearTransformer,
    LinearTransformerBlock,
    MultiHead,
    SparseA,
    SparseAB,
    YqLSA,
)
from tests.streams import streams

CONF = Path(__file__).parents[2] / "conf/task"
SIGMAS, SEEDS = 5.0, (5, 2, 9)
COVARIANCE = [[2.0, 0.5], [0.5, 1.0]]
GUESS = {"prior_mean": [0.7, 0.7], "guess_vector": [0.5, -2.0], "guess_bias": 2.5, "read_out": 1}
NOISY = {"label_noise": 0.5, **GUESS}
CASES = {
    "LinearRegression": [
        {"dim": 1, "context": 1},
        {"dim": 3, "context": 2, "label_noise": 0.3, "task_covariance": "inverse"},
        {"dim": 2, "context": 5, "distortion": [[1.0, 0.5], [0.0, 2.0]], "task_covariance": "inverse"},
        {"dim": 2, "context": 4, "eigenvalues": [1e-6, 1e2], "prior_mean": [1.0, -0.5]},
        {"dim": 2, "context": 4, "covariance": COVARIANCE, **NOISY},
        {"dim": 2, "context": 6, "task_covariance": COVARIANCE, "rotation": "none"},
        {"dim": 2, "context": 4, "tasks": 3, "task_law": "gaussian", "task_draw": "balanced", **NOISY},
        {"dim": 3, "context": 4, "task_law": "sphere", "tasks": 2},
        {"dim": 2, "context": 5, "task_law": "sphere", "task_covariance": COVARIANCE},
    ],
    "ConditionedRegression": [
        {"dim": 1, "context": 3}, {"dim": 3, "context": 2, "condition": 9.0, "constant": True},
        {"dim": 3, "context": 6, "condition": 4.0, "largest": [1.0, 2.0], "label_noise": 0.4},
        {"dim": 3, "context": 6, "condition": 1.5, "largest": [1.0, 2.0], "label_noise": 2.0},
        {"dim": 2, "context": 6, "condition": 4.0, "label_noise": 0.4, "constant": True},
    ],
    "DynamicalSystem": [
        *({"setting": setting, "dim": 3, "length": 8, "window": 2} for setting in "abcd"),
        {"dim": 1, "length": 3, "window": 1, "spectrum": "ball", "initial_variance": 0.5},
        *({"setting": setting, "dim": 2, "length": 6, "window": 2} for setting in "ab"),
        *({"setting": setting, "dim": 2, "length": 6, "spectrum": [0.9, -0.4]} for setting in "ab"),
        *({"setting": setting, "dim": 2, "length": 6, "systems": 3} for setting in "acd"),
    ],
    "LogisticRegression": [{"dim": 1, "context": 1}, {"dim": 3, "context": 9, "mu": 0.05}],
    "RotatedRegression": [
        {"dim": 1, "context": 2},
        {"dim": 3, "context": 2, "nu": 0.5, "beta": 0.5},
        {"dim": 2, "context": 6, "nu": 0.0, "task_eigenvalues": [3.0, 0.0], "label_noise": 0.4},
    ],
}  # fmt: skip
EACH = pytest.mark.parametrize(
    ("task", "settings"), [(name, case) for name, cases in CASES.items() for case in cases], ids=str
)


def law_of(task, settings, seeds=SEEDS):
    return getattr(icl.tasks, task)(**settings).law(seeds)


def models_of(law):
    """Return a model for each path, deep enough for estimators to have something to do."""
    if getattr(law, "constant", False):
        return [LinearTransformer(LSA(law.dim, 3), "gram"), LinearTransformer(LSA(law.dim, 3), "tokens")]
    models = [LinearTransformer(SparseAB(law.dim, 3), path) for path in ("gram", "tokens")]
    return [*models, Encoder(law.dim, reads="parameter")]


def everything(law, seeds=SEEDS, batch=4, **stream):
    """Return all that can be drawn of a law, by name."""
    drawn = {}
    kinds = ["gram_prompts"] if len(set(law.context_R)) > 1 else ["gram_prompts", "token_prompts"]
    for kind in kinds:
        prompt = getattr(law, kind)(streams(seeds, **stream), batch)
        matrices = prompt.gram_RBPP if kind == "gram_prompts" else prompt.context_RBNP
        drawn |= {f"{kind}.context": matrices, f"{kind}.target": prompt.target_RB}
        drawn[f"{kind}.query"] = prompt.query_RBP
    for model in models_of(law)[: 1 if len(kinds) == 1 else None]:
        for name, make in law.estimators(model).items():
            of = f"{type(model).__name__} {model.path} {name}"
            parts = make().draw(streams(seeds, **stream), batch)
            drawn |= {f"{of}.{part}": value for part, value in parts.items()}
    return drawn | {name: torch.from_numpy(array) for name, array in law.arrays().items()}


def test_every_law_is_here():
    targets = {yaml.safe_load(path.read_text())["_target_"] for path in CONF.glob("*.yaml")}
    assert targets == {f"icl.tasks.{name}" for name in CASES}


@EACH
def test_gram_matrices_are_those_of_the_tokens(task, settings):
    """Compare means of all numbers of a prompt and of all their products, y_q x_q among them: of degree
    four at least, so that a target of another task than its context's is noticed."""
    law, batch = law_of(task, settings, (3,)), 4_000 if task == "LogisticRegression" else 30_000
    by_gram = law.gram_prompts(streams((3,), step=1), batch)
    by_tokens = law.token_prompts(streams((3,), step=2), batch).gram()
    assert by_gram.read_out == by_tokens.read_out == law.read_out
    moments = []
    for prompt in (by_gram, by_tokens):
        P = prompt.gram_RBPP.shape[-1]
        G, q, y = prompt.gram_RBPP[0], prompt.query_RBP[0], prompt.target_RB[0, :, None]
        assert G.shape == (batch, P, P) and (G - G.mT).abs().amax() <= 1e-12 * G.abs().amax()
        f_BK = torch.cat([G.flatten(1)[:, torch.ones(P, P).triu().flatten().bool()], q, y, y * q], 1)
        i, j = torch.triu_indices(f_BK.shape[1], f_BK.shape[1])
        moments.append(torch.cat([f_BK, f_BK[:, i] * f_BK[:, j]], 1))
    difference = (moments[0].mean(0) - moments[1].mean(0)).abs()
    error = ((moments[0].var(0) + moments[1].var(0)) / batch).sqrt()
    assert (difference <= SIGMAS * error + 1e-12 * moments[1].abs().mean(0)).all(), difference / error


LOSSES = {
    "ConditionedRegression": lambda law: 1 / law.dim,
    "DynamicalSystem": lambda law: 0.5,
    "RotatedRegression": lambda law: 1 / law.dim,
}  # of a squared error
FAMILIES = {
    "a": lambda dim: SparseA(dim, 2, 0.2),
    "ab": lambda dim: SparseAB(dim, 2, 0.3),
    "one sparse layer": lambda dim: SparseAB(dim, 1, 0.3),
    "deep": lambda dim: SparseA(dim, 3, 0.3),
    "full": lambda dim: Full(dim, 1, 0.3),
    "heads": lambda dim: MultiHead(dim, 1, 2, 0.3),
    "guess": lambda dim: YqLSA(dim, 1, 0.3),
    "block": lambda dim: LinearTransformerBlock(dim, 1, 2, 0.5),
    "lsa": lambda dim: LSA(dim, 1, 2, mask=True, init_std=0.3),
    "unmasked": lambda dim: LSA(dim, 1, 2, init_std=0.2),
}


OF_EACH_LAW = ("a", "heads", "lsa", "unmasked")


@pytest.mark.parametrize(
    ("task", "settings", "family"),
    [
        (name, case, family)
        for name, cases in CASES.items()
        for case in cases
        if case.get("length") != 8  # of long tails
        for family in (FAMILIES if name == "LinearRegression" and "task_law" not in case else OF_EACH_LAW)
    ],
    ids=str,
)
def test_every_risk_is_the_mean_loss_over_the_tokens(task, settings, family):
    """Compare the exact risk, and the mean of every estimator on either path; weights of the order of 1 /
    the root mean square of the tokens' squared norms, so that long tails do not rule the mean."""
    law, seeds, chunks = law_of(task, settings, (3, 4)), (3, 4), 30
    weights, logistic = FAMILIES[family](law.dim), task == "LogisticRegression"
    if getattr(law, "constant", False) and not isinstance(weights, LSA):
        with pytest.raises(InputError, match="only model=lsa"):
            law.estimators(LinearTransformer(weights))
        return
    prompt = law.token_prompts(streams(seeds, step=1), 2_000 if logistic else 40_000)
    weights.initialise(seeds)
    with torch.no_grad():
        for name in {"A", "Q"} & set(weights.shapes()):
            getattr(weights, name).div_(prompt.context_RBNP.square().sum(-1).square().mean().sqrt())
        losses_RB = (LinearTransformer(weights, "tokens").predict(prompt) - prompt.target_RB).square()
        losses_RB *= LOSSES.get(task, lambda law: 1.0)(law)
        mean_R, variance_R = losses_RB.mean(1), losses_RB.var(1) / losses_RB.shape[1]
        exact = law.exact_risk(LinearTransformer(weights))
        if exact is not None:
            assert ((exact(LinearTransformer(weights)) - mean_R).abs() < SIGMAS * variance_R.sqrt()).all()
        for path in ("gram", "tokens"):
            model = LinearTransformer(weights, path)
            for name, make in law.estimators(model).items():
                estimator, generators, size = make(), streams(seeds, "eval"), 50 if logistic else 400
                draws = (estimator.draw(generators, size) for _ in range(chunks))
                risk_CR = torch.stack([estimator.risk(model, draw) for draw in draws])
                error_R = (variance_R + risk_CR.var(0) / chunks).sqrt()
                assert ((risk_CR.mean(0) - mean_R).abs() < SIGMAS * error_R).all(), (path, name)
                assert (error_R < 0.2 * mean_R).all(), "an error that large tests nothing"


@EACH
def test_a_replica_is_what_it_is_alone(task, settings):
    contexts = [settings.get("context")] * 3
    _alone(task, settings, contexts)
    if task == "LinearRegression":  # of which each replica may have a context of its own
        _alone(task, settings | {"context": [4, 9, 5]}, [4, 9, 5])


def _alone(task, settings, contexts):
    law = law_of(task, settings)
    together = everything(law)
    for r, seed in enumerate(SEEDS):
        own = settings | ({"context": contexts[r]} if "context" in settings else {})
        for alone in (law.replica(r), law_of(task, own, (seed,))):
            assert alone.context_R == law.context_R[r : r + 1] and alone.dim == law.dim
            drawn = everything(alone, (seed,))
            for name in together:
                if task == "LogisticRegression":  # whose targets are minima found in one batch
                    assert torch.allclose(together[name][r], drawn[name][0], rtol=1e-9)
                else:
                    assert torch.equal(together[name][r], drawn[name][0]), name


@EACH
def test_streams_repeat_are_disjoint_and_none_is_global(task, settings):
    law, before = law_of(task, settings, (0,)), (torch.get_rng_state(), np.random.get_state()[1].copy())
    keys = [(seed, role, step) for seed in (0, 1) for role in ("init", "train", "eval") for step in (0, 1)]
    drawn = [everything(law, (seed,), 2, role=role, step=step) for seed, role, step in keys]
    again = everything(law, (0,), 2, role="init")
    for name, tensor in again.items():
        assert torch.equal(drawn[0][name], tensor)
        if name.endswith(".query"):
            assert all(not torch.equal(a[name], b[name]) for i, a in enumerate(drawn) for b in drawn[:i])
    assert torch.equal(before[0], torch.get_rng_state())
    assert np.array_equal(before[1], np.random.get_state()[1])


@EACH
def test_tokens_are_encoded_as_they_are_drawn(task, settings):
    """Encode covariates and labels of a user's own as the law does: its guess, its constant, its sign."""
    law = law_of(task, settings)
    prompt, D = law.token_prompts(streams(SEEDS), 3), law.dim
    x_RBND, y_RBN = prompt.context_RBNP[..., :D], prompt.context_RBNP[..., D]
    encoded = law.encode(x_RBND, y_RBN, prompt.query_RBP[..., :D])
    assert torch.equal(encoded.context_RBNP, prompt.context_RBNP) and encoded.read_out == law.read_out
    assert torch.equal(encoded.query_RBP, prompt.query_RBP) and encoded.target_RB.isnan().all()
