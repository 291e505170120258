"""The language model, which answers without sampling, and the small model that guesses.

N pairs, E width of an embedding, B prompts, T tokens.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from icl.errors import InputError
from icl.random import generator

DATE = "26 Jul 2024"  # some templates write today's date into the prompt
_SAMPLE = 1 << 20  # bytes of a file that go into a digest


class LanguageModel:
    """Decodes by the plain arg max, without the sampling and penalties a model is published with.

    Prompts answered together are padded on the left and masked: an answer depends on its companions by
    rounding alone.
    """

    def __init__(self, folder: Path, device: str, dtype: str, new_tokens: int) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

        quiet()
        self.folder, self.device = folder, device
        self.tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left", local_files_only=True)
        if not self.tokenizer.chat_template:
            raise InputError(f"figure.models={folder}: no chat template; take a model tuned for instructions")
        self.model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=getattr(torch, dtype), local_files_only=True
        )
        published = self.model.generation_config.eos_token_id
        ends = [published] if isinstance(published, int) else list(published or [])
        ends = [end for end in dict.fromkeys([*ends, self.tokenizer.eos_token_id]) if end is not None]
        if not ends:
            raise InputError(f"figure.models={folder}: the model names no token that ends an answer")
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token_id = ends[0]
        self.ends = torch.tensor(ends)
        self.model.generation_config = GenerationConfig(
            do_sample=False,
            max_new_tokens=new_tokens,
            eos_token_id=ends,
            pad_token_id=self.tokenizer.pad_token_id,
            bos_token_id=self.model.generation_config.bos_token_id,
        )
        self.longest = getattr(self.model.config, "max_position_embeddings", 2**31) - new_tokens
        self.model.to(device).eval()

    def answers(self, prompts: Sequence[str]) -> list[tuple[str, bool]]:
        """Return for each prompt the answer, and whether the model itself ended it."""
        messages = [[{"role": "user", "content": prompt}] for prompt in prompts]
        given = self.tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, date_string=DATE, padding=True, return_tensors="pt",
            return_dict=True,
        ).to(self.device)  # fmt: skip
        length = given["input_ids"].shape[1]
        if length > self.longest:
            raise InputError(f"figure.models={self.folder}: a prompt has {length} tokens, too many")
        with torch.inference_mode():
            out_BT = self.model.generate(input_ids=given["input_ids"], attention_mask=given["attention_mask"])
        new_BT = out_BT[:, length:].cpu()
        ended_B = torch.isin(new_BT, self.ends).any(1).tolist()
        return list(zip(self.tokenizer.batch_decode(new_BT, skip_special_tokens=True), ended_B, strict=True))


def embed(folder: Path, pairs: Sequence[tuple[str, str]], device: str) -> Tensor:
    """Return embedded_N2E by the sentence-transformers model in the folder."""
    from sentence_transformers import SentenceTransformer

    quiet()
    sentences = list(dict.fromkeys(sentence for pair in pairs for sentence in pair))
    model = SentenceTransformer(str(folder), device=device, local_files_only=True)
    found = dict(zip(sentences, model.encode(sentences, show_progress_bar=False), strict=True))
    return torch.from_numpy(np.stack([[found[first], found[second]] for first, second in pairs])).float()


class GuessModel(nn.Module):
    """ReLU between two affine layers on both embeddings (section C.3); the output is not clipped."""

    def __init__(self, width: int, hidden: int, seed: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, hidden), nn.Linear(hidden, 1)
        rng = generator(seed, "init")
        for layer in (self.first, self.second):  # torch's own initial law, from our generator
            for parameter in (layer.weight, layer.bias):
                bound = layer.in_features**-0.5
                parameter.data.copy_(torch.from_numpy(rng.uniform(-bound, bound, tuple(parameter.shape))))

    def forward(self, embedded_N2E: Tensor) -> Tensor:
        score_N1: Tensor = self.second(self.first(embedded_N2E.flatten(1)).relu())
        return score_N1.squeeze(1)


def train_guess_model(
    embedded_N2E: Tensor, score_N: Tensor, hidden: int, lr: float, epochs: int, batch: int, seed: int
) -> GuessModel:
    """Return the model that Adam finds on the squared error, `batch` pairs at a time."""
    model = GuessModel(embedded_N2E[0].numel(), hidden, seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        order = torch.from_numpy(generator(seed, "train", epoch).permutation(len(score_N)))
        for chosen in order.split(batch):
            optimizer.zero_grad()
            (model(embedded_N2E[chosen]) - score_N[chosen]).square().mean().backward()
            optimizer.step()
    return model.requires_grad_(False)


def folder_digest(folder: Path) -> str:
    """Return a digest of a model's content, wherever it lies: names, sizes and beginnings of its files."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(folder).as_posix()}\0{path.stat().st_size}\0".encode())
        with open(path, "rb") as file:
            digest.update(file.read(_SAMPLE))
    return digest.hexdigest()[:16]


def quiet() -> None:
    """Turn off the bars and the advice of transformers."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
