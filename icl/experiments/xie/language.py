"""A language model that answers prompts without sampling. Needs the `llm` extra.

A prompt is one message of a user, put into the model's own chat template. Decoding is the plain arg max: the
settings a model is published with (temperature, repetition penalty) are not used; the penalty would also make
an answer depend on the padding. Prompts answered together are padded on the left and masked, so an answer
depends on its companions through rounding alone: sums over a longer row may be taken in another order, which
in 16 bits can now and then turn a near tie between two tokens.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from icl.errors import InputError, Unavailable, one_of
from icl.experiments.xie import hub

# Some templates write today's date into the prompt; a run must not depend on the day.
DATE = "26 Jul 2024"
GIB = 1024**3


class Answer(NamedTuple):
    """`ended`: by the model itself, and not by the limit on new tokens."""

    text: str
    ended: bool


class LanguageModel:
    """Tokenizer at once, weights with the first `answers`."""

    def __init__(self, key: str, folder: Path, *, device: str, dtype: str, new_tokens: int) -> None:
        from transformers import AutoTokenizer

        self.key, self.folder, self.device, self.dtype = key, folder, device, dtype
        self.new_tokens = new_tokens
        self.tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left", local_files_only=True)
        self._model: Any = None

    def need(self, prompts: Sequence[str], batch: int) -> str:
        """Return the memory that `batch` of these prompts need at a time; refuse where the machine has
        less."""
        tokens = max(len(ids) for ids in self._tokens(prompts)["input_ids"]) + self.new_tokens
        longest = hub.longest_text(self.folder)
        if longest is not None and tokens > longest:
            raise InputError(
                f"{self.key}={self.folder}: a prompt and its answer take {tokens} tokens, "
                f"the model has {longest}"
            )
        weights = hub.weight_bytes(self.folder, self.dtype)
        cache = hub.cache_bytes_per_token(self.folder, self.dtype) * tokens * batch
        free = free_memory(self.device)
        told = (
            f"{gib(weights)} of weights as {self.dtype} and {gib(cache)} for {batch} prompts at a time "
            f"of up to {tokens} tokens, on {self.device}"
        )
        if free is not None and weights + cache > free:
            raise Unavailable(f"{self.key}={self.folder}: needs {told}, of which {gib(free)} are free")
        return told

    def answers(self, prompts: Sequence[str]) -> list[Answer]:
        """One for each prompt, all generated together."""
        model = self._load_model()
        given = self._tokens(prompts, padding=True, return_tensors="pt").to(self.device)
        with torch.inference_mode():
            out_BT = model.generate(**given)
        new_BT = out_BT[:, given["input_ids"].shape[1] :].cpu()
        ends = torch.tensor(_as_list(model.generation_config.eos_token_id))
        ended_B = torch.isin(new_BT, ends).any(1)
        texts = self.tokenizer.batch_decode(new_BT, skip_special_tokens=True)
        return [Answer(text, bool(ended)) for text, ended in zip(texts, ended_B, strict=True)]

    def _tokens(self, prompts: Sequence[str], **how: Any) -> Any:
        texts = [
            self.tokenizer.apply_chat_template(
                [{"role": "user", "content": prompt}],
                tokenize=False,
                add_generation_prompt=True,
                date_string=DATE,
            )
            for prompt in prompts
        ]
        # The template has written the special tokens already.
        return self.tokenizer(texts, add_special_tokens=False, return_token_type_ids=False, **how)

    def _load_model(self) -> Any:
        if self._model is None:
            self._model = self._load()
        return self._model

    def _load(self) -> Any:
        from transformers import AutoModelForCausalLM, GenerationConfig

        model: Any = AutoModelForCausalLM.from_pretrained(
            self.folder, dtype=getattr(torch, self.dtype), local_files_only=True
        )
        published = model.generation_config
        ends = _as_list(published.eos_token_id) or _as_list(model.config.eos_token_id)
        own = self.tokenizer.eos_token_id
        ends = list(dict.fromkeys([*ends, *([own] if own is not None else [])]))
        if not ends:
            raise InputError(f"{self.key}={self.folder}: the model names no token that ends an answer")
        pad = self.tokenizer.pad_token_id
        if pad is None:
            self.tokenizer.pad_token_id = pad = ends[0]
        model.generation_config = GenerationConfig(
            do_sample=False,
            max_new_tokens=self.new_tokens,
            eos_token_id=ends,
            pad_token_id=pad,
            bos_token_id=published.bos_token_id,
        )
        return model.to(self.device).eval()


def _as_list(ids: int | Sequence[int] | None) -> list[int]:
    return [] if ids is None else [ids] if isinstance(ids, int) else list(ids)


def quiet_libraries() -> None:
    """Their bars and advice are not for our users."""
    import huggingface_hub.utils
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    huggingface_hub.utils.logging.set_verbosity_error()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def resolve_device(device: str) -> str:
    """`auto` is the accelerator there is, else the CPU."""
    key = "figure.experiment.device"
    here = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    one_of(key, device, ("auto", *here))
    if device == "auto":
        return next(name for name, there in here.items() if there)
    if not here[device]:
        raise Unavailable(f"{key}={device}: torch sees no such device here")
    return device


def free_memory(device: str) -> int | None:
    """Bytes that can be had now on `device`, None where the system does not say."""
    if device == "cuda":
        unused = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()  # of an earlier model
        return torch.cuda.mem_get_info()[0] + unused
    if device == "mps":
        return torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory()
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return total_memory(device)
    free = next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")), None)
    return free if free is None else min(free, _container_limit())


def total_memory(device: str) -> int | None:
    """Bytes this machine has for `device` when nothing else runs."""
    if device == "cuda":
        return torch.cuda.get_device_properties(0).total_memory
    if device == "mps":
        return torch.mps.recommended_max_memory()
    try:
        return min(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), _container_limit())
    except (ValueError, OSError):
        return None


def _container_limit() -> int:
    try:
        return int(Path("/sys/fs/cgroup/memory.max").read_text())
    except (OSError, ValueError):  # "max"
        return 1 << 62


def gib(size: float) -> str:
    return f"{size / GIB:.1f} GiB" if size >= GIB / 10 else f"{size / 1024**2:.1f} MiB"
