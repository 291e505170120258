"""Tests that the guess model learns what two layers can, from its seed alone."""

import numpy as np
import pytest
import torch

from icl.experiments.xie.guess import GuessModel, embed, train_guess_model
from icl.experiments.xie.settings import GuessTraining
from icl.random import generator


def toy(count=400):
    """Return scores that are a ramp in one coordinate of the first sentence, cut off below: a ReLU."""
    embedded_N2E = torch.from_numpy(np.random.default_rng(5).standard_normal((count, 2, 6))).float()
    return embedded_N2E, 2 + 1.5 * embedded_N2E[:, 0, 0].relu()


def test_forward_is_two_layers_on_the_concatenation():
    model = GuessModel(12, 16, generator(0, "init"))
    embedded_N2E, _ = toy(7)
    W1, b1, W2, b2 = (p.detach().double().numpy() for p in model.parameters())
    x_NE = np.concatenate([embedded_N2E[:, 0], embedded_N2E[:, 1]], axis=1)
    wanted_N = np.maximum(x_NE @ W1.T + b1, 0) @ W2[0] + b2[0]
    np.testing.assert_allclose(model(embedded_N2E).detach(), wanted_N, rtol=1e-5)
    assert W1.shape == (16, 12) and np.abs(W1).max() <= 12**-0.5 and np.abs(W2).max() <= 0.25
    assert np.abs(W1).max() > 0.9 * 12**-0.5


def test_training_beats_the_best_constant_on_new_pairs():
    embedded_N2E, score_N = toy()
    model, losses = train_guess_model(embedded_N2E[:300], score_N[:300], GuessTraining(), seed=0)
    error = (model(embedded_N2E[300:]) - score_N[300:]).square().mean()
    assert error < 0.5 * score_N[300:].var()
    assert len(losses) == 10 and losses == sorted(losses, reverse=True)


def test_training_is_adam_on_the_mean_square():
    """Compare with one epoch of two steps, written out."""
    embedded_N2E, score_N = toy(12)
    trained, losses = train_guess_model(embedded_N2E, score_N, GuessTraining(epochs=1), seed=3)
    model = GuessModel(12, 16, generator(3, "init"))
    order = generator(3, "train", 0).permutation(12)
    moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in model.parameters()]
    total = 0.0
    for step, chosen in enumerate((order[:8], order[8:]), 1):
        error_N = model(embedded_N2E[chosen]) - score_N[chosen]
        total += float(error_N.detach().square().sum())
        grads = torch.autograd.grad(error_N.square().mean(), list(model.parameters()))
        with torch.no_grad():
            for parameter, grad, (m, v) in zip(model.parameters(), grads, moments, strict=True):
                m.mul_(0.9).add_(0.1 * grad)
                v.mul_(0.999).add_(0.001 * grad**2)
                scaled = m / (1 - 0.9**step) / ((v / (1 - 0.999**step)).sqrt() + 1e-8)
                parameter.sub_(1e-3 * scaled)
    for found, wanted in zip(trained.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(found, wanted.detach(), rtol=1e-4, atol=1e-6)
    assert losses == [pytest.approx(total / 12)]


def test_the_seed_decides_and_nothing_else():
    embedded_N2E, score_N = toy(60)
    torch.manual_seed(1)
    first = train_guess_model(embedded_N2E, score_N, GuessTraining(epochs=2), seed=0)
    drawn = torch.rand(3)
    torch.manual_seed(1)
    assert torch.equal(drawn, torch.rand(3)), "the global generator was used"
    again = train_guess_model(embedded_N2E, score_N, GuessTraining(epochs=2), seed=0)
    other = train_guess_model(embedded_N2E, score_N, GuessTraining(epochs=2), seed=1)
    assert first[1] == again[1] != other[1]


def test_every_pair_gets_its_sentences_embeddings(tmp_path):
    pytest.importorskip("sentence_transformers", reason="needs the llm extra")
    from sentence_transformers import SentenceTransformer

    from tests.experiments.xie.tiny_models import embedding_model

    folder = embedding_model(tmp_path / "embeddings")
    pairs = [("A dog.", "A cat sat on the mat."), ("A cat sat on the mat.", "Rain?"), ("A dog.", "A dog.")]
    found_N2E = embed(folder, pairs, "cpu")
    model = SentenceTransformer(str(folder), device="cpu")
    for pair, found_2E in zip(pairs, found_N2E, strict=True):
        for sentence, found_E in zip(pair, found_2E, strict=True):
            wanted_E = torch.from_numpy(model.encode(sentence))
            torch.testing.assert_close(found_E, wanted_E, rtol=1e-4, atol=1e-5)
    assert found_N2E.shape == (3, 2, 16) and not torch.allclose(found_N2E[0, 0], found_N2E[0, 1])
