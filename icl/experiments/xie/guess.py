"""The guess model of xie, section C.3: two layers on the concatenated embeddings of two sentences.

N pairs, E width of an embedding.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from icl.experiments.xie.settings import GuessTraining
from icl.random import generator


class GuessModel(nn.Module):
    """ReLU between two affine layers; the output is any real number, not clipped to the scale of scores."""

    def __init__(self, width: int, hidden: int, rng: np.random.Generator) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_linear(*shape, rng) for shape in ((width, hidden), (hidden, 1)))

    def forward(self, embedded_N2E: Tensor) -> Tensor:
        first, second = self.layers
        score_N1: Tensor = second(first(embedded_N2E.flatten(1)).relu())
        return score_N1.squeeze(1)


def _linear(inputs: int, outputs: int, rng: np.random.Generator) -> nn.Linear:
    """torch's own initial law, from our generator."""
    layer = nn.utils.skip_init(nn.Linear, inputs, outputs)
    bound = inputs**-0.5
    with torch.no_grad():
        for parameter in (layer.weight, layer.bias):
            parameter.copy_(torch.from_numpy(rng.uniform(-bound, bound, tuple(parameter.shape))))
    return layer


def train_guess_model(
    embedded_N2E: Tensor, score_N: Tensor, training: GuessTraining, seed: int
) -> tuple[GuessModel, list[float]]:
    """Return the trained model, and the mean loss of each epoch."""
    model = GuessModel(embedded_N2E[0].numel(), training.hidden, generator(seed, "init"))
    optimizer = torch.optim.Adam(model.parameters(), lr=training.lr)
    losses = []
    for epoch in range(training.epochs):
        order = torch.from_numpy(generator(seed, "train", epoch).permutation(len(score_N)))
        total = 0.0
        for chosen in order.split(training.batch):
            loss = (model(embedded_N2E[chosen]) - score_N[chosen]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(chosen)
        losses.append(total / len(score_N))
    return model.requires_grad_(False), losses


def embed(folder: Path, pairs: Sequence[tuple[str, str]], device: str) -> Tensor:
    """embedded_N2E by the sentence-transformers model in `folder`; each sentence is embedded once."""
    from sentence_transformers import SentenceTransformer

    sentences = list(dict.fromkeys(sentence for pair in pairs for sentence in pair))
    place = {sentence: i for i, sentence in enumerate(sentences)}
    model = SentenceTransformer(str(folder), device=device, local_files_only=True)
    found_SE = model.encode(sentences, convert_to_numpy=True, show_progress_bar=False)
    chosen_N2 = np.array([[place[sentence] for sentence in pair] for pair in pairs])
    return torch.from_numpy(np.asarray(found_SE, dtype=np.float32)[chosen_N2])
