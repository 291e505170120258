"""Tests of Figure 6 of xie: prompts, answers, records, verdicts; installed as its README says."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import icl
from icl.errors import InputError, Unavailable
from icl.runs.record import RunRecord

SOURCE = Path(__file__).parents[1]
WORDS = ["dog", "cat", "tree", "river", "stone", "cloud", "lamp", "boat", "horse", "bread"]


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    site = tmp_path_factory.mktemp("site")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--target"]
    command = [sys.executable, "-m", "pip", "install", "-q", *options, site, SOURCE]
    subprocess.run(command, check=True, capture_output=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        yield


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Any]:
    for name in ("one", "embeddings", "data"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
    rng = np.random.default_rng(0)
    for part, count in (("train", 30), ("test", 9)):
        lines = [
            f"A {a} {part}{i}.,A {b}.,{5 * (a == b)}"
            for i, (a, b) in enumerate(rng.choice(WORDS, (count, 2)))
        ]
        (tmp_path / "data" / f"{part}.csv").write_text(
            "\n".join(["sentence1,sentence2,score", "A b.,C d.,3", *lines])
        )
    given = {name: str(tmp_path / name) for name in ("embeddings", "data")}
    return given | {"models": [str(tmp_path / "one")], "trials": 4, "examples": 5}


class Scripted:
    """Stands in for LanguageModel: answers by a function of the prompt, and keeps the prompts."""

    asked: ClassVar[list[str]] = []

    def __init__(self, folder: Path, device: str, dtype: str, new_tokens: int) -> None: ...

    def answers(self, prompts: list[str]) -> list[tuple[str, bool]]:
        Scripted.asked.extend(prompts)
        return [(f"Score: {len(prompt) % 50 / 10}", True) for prompt in prompts]


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> type[Scripted]:
    from language_models import models

    def embed(folder: Path, pairs: list[tuple[str, str]], device: str) -> torch.Tensor:
        rows = [[[sentence.count(c) for c in "abcdefgh"] for sentence in pair] for pair in pairs]
        return torch.tensor(rows, dtype=torch.float32)

    monkeypatch.setattr(models, "LanguageModel", Scripted)
    monkeypatch.setattr(models, "embed", embed)
    monkeypatch.setattr(Scripted, "asked", [])
    return Scripted


def test_both_forms_are_asked_of_the_same_pairs(folders: Any, scripted: Any, tmp_path: Path) -> None:
    found = icl.figure("xie/fig6", outputs=tmp_path / "out", **folders)
    assert [claim["verdict"] for claim in found["claims"]] == ["undecided"] * 2, "too few for a verdict"
    assert len(scripted.asked) == 8
    with np.load(Path(found["files"]["png"]).with_name("arrays.npz")) as arrays:
        stored = {name.partition("/")[2]: arrays[name] for name in arrays if name.startswith("answers_one")}
    for r, (without, with_guess) in enumerate(zip(scripted.asked[::2], scripted.asked[1::2], strict=True)):
        assert re.findall("Sentence.*", without) == re.findall("Sentence.*", with_guess)
        assert "guess" not in without.lower() and "refine the initial guess" in with_guess
        assert (
            len(re.findall("Initial guess: ", with_guess)) == 6 == 1 + len(re.findall(r"Score: \d", without))
        )
        assert float(re.findall("Initial guess: (.*)", with_guess)[-1]) == stored["guess_R"][r]
        assert str(stored["answer_with_R"][r]) == f"Score: {len(with_guess) % 50 / 10}"
    again = icl.figure("xie/fig6", outputs=tmp_path / "out", **folders | {"trials": 5})
    assert len(scripted.asked) == 10 and not again["cached"], "the first four trials are found again"


def test_what_is_missing_or_wrong_is_said(folders: Any, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="needs language models"):
        icl.figure("xie/fig6", outputs=tmp_path / "out")
    wrong: list[dict[str, Any]] = [
        {"models": ["/no/such"]}, {"models": "one"}, {"models": folders["models"] * 2},
        {"embeddings": "gone"}, {"data": "gone"}, {"trials": 0}, {"trials": 11}, {"examples": 40},
        {"dtype": "float8"}, {"lr": 0},
        {"device": "gpu"}, {"hidden": 0}, {"seed": -1},
    ]  # fmt: skip
    for changes in wrong:
        with pytest.raises(InputError, match=rf"^figure\.{next(iter(changes))}="):
            icl.figure("xie/fig6", outputs=tmp_path / "out", **folders | changes)
    for content in ("", "A,B,six\n", "A,B,5.5\n", "A,B,nan\n", ",B,3\n", "A,B,0.5\n", "A\n"):
        (Path(folders["data"]) / "train.csv").write_text(f"sentence1,sentence2,score\n{content}")
        with pytest.raises(InputError, match=r"^figure\.data=.*train.csv"):
            icl.figure("xie/fig6", outputs=tmp_path / "out", **folders)


GIVEN = {
    "Score: 3.5": 3.5, "**4**": 4, "3.5/5": 3.5, "3.5 out of 5": 3.5, "**Score:** 4.0": 4, "score is 3.": 3,
    "Score: 3.5\n\nScore: 3.5": 3.5, "Initial guess: 2.90\nScore: 3.4": 3.4, "Refined score: 3.6": 3.6,
    "Score: 3.5\n\nExample 2 had a score of 2.0.": 3.5, "Score: 0": 0, "5": 5,
    "Score: 4.0/5.0": 4, "Score: .5": 0.5,
}  # fmt: skip
NOT_GIVEN = [
    "", "Score: between 3 and 4", "3-4", "Score: 3 to 4", "Score: 7", "-1", "Score: -1",
    "Score: 3.5\nScore: 4", "Initial guess: 2.9", "Score: 35%", "Score: 3.5/10", "3,5", "Score: X", "nan",
    "3.5.2", "Score: 1e3", "Query 3", "Score: " * 60, "1 " * 300, "the " * 200 + "x",
]  # fmt: skip


@pytest.mark.parametrize(("text", "score"), [*GIVEN.items(), *((text, None) for text in NOT_GIVEN)])
def test_only_a_plain_score_is_read(text: str, score: float | None) -> None:
    from language_models.similarity import parse_score

    assert parse_score(text) == score


def answers(runs: int = 100, missing: dict[str, int] | None = None, **errors: float) -> dict[str, RunRecord]:
    """Return records of answers off the truth by normal errors of the given sizes, some without a score."""
    rng = np.random.default_rng(4)
    sizes = {"without": 1.2, "with": 0.4, "guess": 1.6} | errors
    truth_R = rng.uniform(0, 5, runs)
    off = {form: (truth_R + size * rng.standard_normal(runs)).clip(0, 5) for form, size in sizes.items()}
    arrays = {"truth_R": truth_R, "guess_R": off["guess"]}
    for form in ("without", "with"):
        texts = [f"Score: {score:.6f}" for score in off[form]]
        texts[: (missing or {}).get(form, 0)] = ["none"] * (missing or {}).get(form, 0)
        arrays |= {f"answer_{form}_R": np.array(texts), f"ended_{form}_R": np.full(runs, True)}
    record = RunRecord(Path("none"), {})
    vars(record)["weights"] = arrays
    return {"answers_model": record}


BAD = {"without": 0.8, "with": 1.4, "guess": 0.7}
VERDICTS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["holds", "holds"]),
    (BAD, ["fails", "fails"]),
    ({"without": 0.3, "with": 1.0, "guess": 2.5}, ["fails", "holds"]),
    ({"runs": 20}, ["undecided", "undecided"]),
    ({"without": 2.0, "with": 0.1, "guess": 2.0, "missing": {"with": 2}}, ["holds", "holds"]),
    ({"missing": {"with": 20}}, ["undecided", "undecided"]),
    ({"without": 2.0, "with": 0.9, "guess": 2.5, "missing": {"without": 60}}, ["undecided", "holds"]),
    (BAD | {"missing": {"with": 1}}, ["fails", "fails"]),
    ({"missing": {"with": 100, "without": 100}}, ["undecided", "undecided"]),
    (BAD | {"missing": {"with": 60}}, ["undecided", "undecided"]),
]


@pytest.mark.parametrize(("given", "verdicts"), VERDICTS)
def test_missing_scores_count_against_every_verdict(given: dict[str, Any], verdicts: list[str]) -> None:
    from language_models.figure import Fig6

    figure, records = Fig6.__new__(Fig6), answers(**given)
    claims = figure.claims(records)
    assert [claim.verdict for claim in claims] == verdicts
    lost = given.get("missing", {})
    runs = given.get("runs", 100)
    assert claims[0].measured["pairs"] == f"{runs - max(lost.values(), default=0)} of {runs}"
    assert claims[1].measured["no score with"] == f"{lost.get('with', 0)} of {runs}"
    figure.picture(records).canvas.draw()  # also without a single score


@pytest.mark.slow(20)
def test_an_answer_is_the_arg_max_whatever_its_companions(tmp_path: Path) -> None:
    """Ask a tiny model of random weights, alone and padded beside a longer prompt."""
    transformers = pytest.importorskip("transformers")
    from language_models.models import LanguageModel
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    letters = ["<pad>", "<end>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    made = Tokenizer(models.BPE({letter: i for i, letter in enumerate(letters)}, []))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", eos_token="<end>"
    )
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}:"
    sizes = {"vocab_size": 258, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    more = {"num_attention_heads": 4, "max_position_embeddings": 64, "initializer_range": 0.6}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, **more, eos_token_id=1))
    model.generation_config.update(do_sample=True, temperature=0.6, repetition_penalty=1.5)
    for part in (tokenizer, model):
        part.save_pretrained(tmp_path / "tiny")
    opened = LanguageModel(tmp_path / "tiny", "cpu", "float32", 8)
    prompts = ["A dog runs", "a dog runs in the park, or so it seems"]
    both = opened.answers(prompts)
    assert both == [opened.answers([prompt])[0] for prompt in prompts]
    tokens = [tokenizer.vocab[letter] for letter in "AĠdogĠruns:"]
    for _ in range(8):
        tokens.append(int(model(torch.tensor([tokens])).logits[0, -1].argmax()))
    assert both[0][0] == tokenizer.decode(tokens[11:], skip_special_tokens=True)
    with pytest.raises(InputError, match="tokens, too many"):
        opened.answers(["x" * 60])
