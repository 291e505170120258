"""Tests of answers of tiny Llama and Qwen2 models, loaded as the large ones are."""

import json
import shutil

import pytest
import torch

pytest.importorskip("transformers", reason="needs the llm extra")

from icl.errors import InputError, Unavailable
from icl.experiments.xie import hub, language
from icl.experiments.xie.language import LanguageModel
from tests.experiments.xie.tiny_models import language_model

KEY = "figure.experiment.models"
PROMPTS = [
    "Score: 3",
    "Rate how similar two sentences are, and then some more words to make it longer than the others.",
    "Sentence 1: A dog runs.\n\nSentence 2: Ein Hund läuft. 犬",
    "x",
]


@pytest.fixture(scope="module", params=["llama", "qwen2"])
def folder(request, tmp_path_factory):
    return language_model(tmp_path_factory.mktemp(request.param), request.param)


def opened(folder, **changed):
    return LanguageModel(KEY, folder, **{"device": "cpu", "dtype": "float32", "new_tokens": 12} | changed)


def arg_max(folder, prompt, ends, new_tokens):
    """Return the answer token by token on the whole text, without a cache, padding or `generate`."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    ids = tokenizer(f"<|user|>{prompt}<|end|><|assistant|>")["input_ids"]
    new = []
    while len(new) < new_tokens and (not new or new[-1] not in ends):
        with torch.no_grad():
            new.append(int(model(torch.tensor([ids + new])).logits[0, -1].argmax()))
    return new


def test_answers_are_the_arg_max_and_do_not_depend_on_their_companions(folder):
    """Compare although the folder sets sampling with a repetition penalty."""
    assert json.loads((folder / "generation_config.json").read_text())["repetition_penalty"] == 1.05
    model = opened(folder)
    together = model.answers(PROMPTS)
    alone = [answer for prompt in PROMPTS for answer in model.answers([prompt])]
    assert together == alone == opened(folder).answers(PROMPTS)
    for prompt, answer in zip(PROMPTS, together, strict=True):
        wanted = arg_max(folder, prompt, [1], 12)
        assert answer.text == model.tokenizer.decode(wanted, skip_special_tokens=True)
        assert answer.ended == (wanted[-1] == 1)
    assert len({answer.text for answer in together}) == 4


def test_an_answer_ends_where_the_model_ends_it(folder, tmp_path):
    """Change the token that ends an answer of the same model."""
    free = arg_max(folder, PROMPTS[0], [], 12)
    stop = next(token for token in free[3:] if token not in free[:3])
    settings = json.loads((folder / "generation_config.json").read_text())
    other = shutil.copytree(folder, tmp_path / "other")
    (other / "generation_config.json").write_text(json.dumps(settings | {"eos_token_id": [1, stop]}))
    model = opened(other)
    answers = model.answers(PROMPTS)
    wanted = [arg_max(folder, prompt, [1, stop], 12) for prompt in PROMPTS]
    assert len(wanted[0]) == free.index(stop) + 1 < 12
    for tokens, answer in zip(wanted, answers, strict=True):
        assert answer.text == model.tokenizer.decode(tokens, skip_special_tokens=True)
        assert answer.ended == (tokens[-1] in (1, stop))


def test_a_tokenizer_without_padding_gets_some(tmp_path):
    """Pad with a tokenizer that has no padding, as Llama's."""
    folder = language_model(tmp_path, "llama")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings.pop("pad_token")
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    model = opened(folder)
    assert model.tokenizer.pad_token_id is None
    for prompt, answer in zip(PROMPTS, model.answers(PROMPTS), strict=True):
        wanted = arg_max(folder, prompt, [1], 12)
        assert answer.text == model.tokenizer.decode(wanted, skip_special_tokens=True)


def test_a_template_with_a_date_gets_the_same_one_every_day(tmp_path):
    template = "{{ date_string }}{% for m in messages %}{{ m['content'] }}{% endfor %}"
    folder = language_model(tmp_path, "llama", template=template)
    model = opened(folder)
    ids = model._tokens(["hello"])["input_ids"][0]
    assert model.tokenizer.decode(ids) == "26 Jul 2024hello"


def test_the_weights_are_measured_before_they_are_loaded(folder):
    model = opened(folder)
    told = model.need(PROMPTS, 4)
    assert model._model is None and "float32" in told and "4 prompts" in told and "on cpu" in told
    model.answers(PROMPTS[:1])
    assert len(opened(folder, dtype="bfloat16").answers(PROMPTS[:2])) == 2, "half precision runs"
    stored = {p.data_ptr(): p.numel() * 4 for p in model._model.parameters()}
    assert hub.weight_bytes(folder, "float32") == sum(stored.values())
    assert hub.dtype_of_files(folder) == "float32" and hub.longest_text(folder) == 4096


def test_too_little_memory_is_said_in_one_line(folder, monkeypatch):
    model = opened(folder)
    weights = hub.weight_bytes(folder, "float32")
    longest = max(len(ids) for ids in model._tokens(PROMPTS)["input_ids"]) + 12
    cache = 2 * 2 * 2 * 8 * 4 * longest * 4  # keys and values, layers, heads, width, bytes, tokens, prompts
    monkeypatch.setattr(language, "free_memory", lambda device: weights + cache)
    model.need(PROMPTS, 4)
    with pytest.raises(Unavailable, match=r"needs .* of weights .* are free$"):
        model.need(PROMPTS, 5)


def test_a_prompt_that_does_not_fit_is_refused(tmp_path):
    model = opened(language_model(tmp_path, "llama", positions=64))
    model.need(["x"], 1)
    with pytest.raises(InputError, match="the model has 64"):
        model.need(["word " * 60], 1)


def test_devices_and_memory_are_those_of_this_machine(monkeypatch):
    assert language.resolve_device("cpu") == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert language.resolve_device("auto") == "cpu"
    with pytest.raises(Unavailable, match="device=cuda"):
        language.resolve_device("cuda")
    with pytest.raises(InputError, match="device=tpu"):
        language.resolve_device("tpu")
    free, total = language.free_memory("cpu"), language.total_memory("cpu")
    assert free is not None and total is not None and 0 < free <= total
    assert language.gib(3 * 1024**3) == "3.0 GiB" and language.gib(1024**2) == "1.0 MiB"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_an_accelerator_the_answers_are_the_same(folder):
    here, there = (opened(folder, device=device).answers(PROMPTS) for device in ("cpu", "cuda"))
    assert here == there
