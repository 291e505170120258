"""Tests of Figure 6 of xie: prompts, records, and what is refused."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch

from icl.cli import main
from icl.errors import InputError, Interrupted, Unavailable
from icl.experiments.xie import fig6, guess, hub, language
from icl.experiments.xie.language import Answer
from icl.progress import listening
from tests.experiments.runners import StoringRunner
from tests.experiments.xie.test_hub import make

PAIRS = Path(__file__).parent / "data" / "pairs.csv"


class Scripted:
    """A stand-in for LanguageModel that answers by a function of the prompt, and keeps the prompts."""

    asked: ClassVar[list[list[str]]] = []
    say: Callable[[str], str] = staticmethod(lambda prompt: "Score: 3")
    stop_after: int | None = None
    stop_with: BaseException = Interrupted(15)

    def __init__(self, key, folder, *, device, dtype, new_tokens):
        assert (key, device, dtype, new_tokens) == ("figure.experiment.models", "cpu", "bfloat16", 20)

    def need(self, prompts, batch):
        return "little"

    def answers(self, prompts):
        if Scripted.stop_after is not None and len(Scripted.asked) == Scripted.stop_after:
            raise Scripted.stop_with
        Scripted.asked.append(list(prompts))
        return [Answer(Scripted.say(prompt), len(Scripted.say(prompt)) < 20) for prompt in prompts]


def embedded(folder, pairs, device):
    """Return counts of letters."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    rows = [[[sentence.count(c) for c in letters] for sentence in pair] for pair in pairs]
    return torch.tensor(rows, dtype=torch.float32)


@pytest.fixture
def scripted(monkeypatch):
    monkeypatch.setattr(language, "LanguageModel", Scripted)
    monkeypatch.setattr(guess, "embed", embedded)
    monkeypatch.setattr(language, "quiet_libraries", lambda: None)
    monkeypatch.setattr(fig6, "PACKAGES", {})
    monkeypatch.setattr(Scripted, "asked", [])
    monkeypatch.setattr(Scripted, "say", staticmethod(lambda prompt: f"Score: {len(prompt) % 50 / 10}"))
    monkeypatch.setattr(Scripted, "stop_after", None)
    return Scripted


@pytest.fixture
def settings(tmp_path):
    return {
        "models": [str(make(tmp_path / "one"))], "embeddings": str(make(tmp_path / "embeddings")),
        "data": str(PAIRS), "runs": 6, "examples": 5, "new_tokens": 20, "batch": 4, "device": "cpu",
    }  # fmt: skip


@pytest.fixture
def records(tmp_path, scripted, settings):
    """Return records of the figure with some settings changed, stored below `out`."""

    def make(out="out", **changed):
        return fig6.Fig6(**settings | changed).records(StoringRunner(tmp_path / out))

    return make


def prompts_of(asked):
    return [prompt for batch in asked for prompt in batch]


def plain(weights):
    return {name: array.tolist() for name, array in weights.items()}


def test_both_forms_are_asked_of_the_same_pairs_and_everything_is_kept(tmp_path, scripted, records):
    made = records()
    assert list(made) == ["guesses", "answers_one"]
    answers, guesses = made["answers_one"].weights, made["guesses"].weights
    asked = prompts_of(scripted.asked)
    assert len(asked) == 12 and all(len(batch) <= 4 for batch in scripted.asked)
    for r, (without, with_guess) in enumerate(zip(asked[::2], asked[1::2], strict=True)):
        shown = [float(g) for g in re.findall("Initial guess: (.*)", with_guess)]
        examples_C, query = answers["examples_RC"][r], answers["query_R"][r]
        wanted = [*guesses["guess_pool"][examples_C], guesses["guess_queries"][query]]
        assert shown == pytest.approx(wanted, abs=1e-9) and shown[-1] == answers["guess_R"][r]
        assert re.findall("Sentence.*", without) == re.findall("Sentence.*", with_guess)
        assert "Initial guess" not in without
        for form, prompt in (("without", without), ("with", with_guess)):
            assert str(answers[f"answer_{form}_R"][r]) == scripted.say(prompt)
            assert answers[f"score_{form}_R"][r] == len(prompt) % 50 / 10
    assert (answers["truth_R"] == guesses["score_queries"][answers["query_R"]]).all()
    assert len(set(answers["query_R"].tolist())) == 6
    runs = list((tmp_path / "out/runs/xie/fig6_runs").iterdir())
    assert len(runs) == 6
    with np.load(runs[0] / "weights.npz") as stored:
        assert str(stored["prompt_with"]) in asked and str(stored["answer_with"]).startswith("Score")


def test_the_guess_model_is_the_baseline_it_is_said_to_be(records):
    stored = records(guess={"epochs": 60, "lr": 0.003})["guesses"].weights
    error = ((stored["guess_pool"] - stored["score_pool"]) ** 2).mean()
    assert error < stored["score_pool"].var() and len(stored["loss_by_epoch"]) == 60
    assert (stored["guess_pool"] == np.round(stored["guess_pool"], 2)).all()


def test_what_is_no_score_is_kept_and_marked(scripted, records):
    texts = {"with": "I cannot say.", "without": "It lies between 3 and 4, I would think."}
    scripted.say = staticmethod(lambda prompt: texts["with" if "Initial guess" in prompt else "without"])
    weights = records()["answers_one"].weights
    for form, text in texts.items():
        assert weights[f"answer_{form}_R"].tolist() == [text] * 6
        assert np.isnan(weights[f"score_{form}_R"]).all()
    assert weights["ended_with_R"].all() and not weights["ended_without_R"].any()


def test_an_interrupted_experiment_continues(tmp_path, scripted, records):
    whole = records("whole")["answers_one"].weights
    scripted.asked.clear()
    for stop, error in ((1, Interrupted(15)), (2, KeyboardInterrupt())):
        scripted.stop_after, scripted.stop_with = stop, error
        with pytest.raises(type(error)):
            records()
    state = json.loads(next((tmp_path / "out/runs/xie/fig6").glob("*/run.json")).read_text())["status"]
    assert state == "interrupted"
    scripted.stop_after = None
    found = records()["answers_one"].weights
    assert plain(found) == plain(whole)
    asked = prompts_of(scripted.asked)
    assert len(asked) == len(set(asked)) == 12, "an answer was asked for twice"
    records()
    assert len(prompts_of(scripted.asked)) == 12


def test_progress_goes_to_the_listener_and_memory_to_the_runner(capfd, tmp_path, scripted, settings):
    shares, runner = [], StoringRunner(tmp_path / "out")
    with listening(lambda what, share, _: shares.append((what, share))):
        fig6.Fig6(**settings).records(runner)
    assert shares == [("one", pytest.approx(done / 6)) for done in range(1, 7)]
    assert len(runner.lines) == 1 and runner.lines[0].startswith("one: ")
    assert capfd.readouterr() == ("", "")


def test_a_killed_experiment_continues(scripted, records):
    child = os.fork()
    if child == 0:
        given = scripted.answers
        scripted.answers = lambda *asked: os._exit(9) if len(scripted.asked) == 2 else given(*asked)
        try:
            records()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    found = records()["answers_one"].weights
    assert len(prompts_of(scripted.asked)) == 12 - 2 * 4
    assert plain(found) == plain(records("whole")["answers_one"].weights)


def test_more_runs_ask_for_the_new_ones_only(scripted, records):
    few = records(runs=4)["answers_one"].weights
    scripted.asked.clear()
    more = records(runs=9, batch=3)["answers_one"].weights
    assert len(prompts_of(scripted.asked)) == 2 * 5 and all(len(batch) <= 3 for batch in scripted.asked)
    assert more["answer_with_R"][:4].tolist() == few["answer_with_R"].tolist()


def test_what_matters_is_asked_again_and_what_does_not_is_found(tmp_path, scripted, records):
    def asked(**changed):
        scripted.asked.clear()
        records(**changed)
        return len(prompts_of(scripted.asked))

    assert asked() == 12
    moved = make(tmp_path / "moved" / "one")
    other = make(tmp_path / "other" / "one", changed=5)
    assert asked(batch=1) == asked(models=[str(moved)]) == 0
    assert asked(models=[str(other)]) == asked(seed=1) == asked(examples=4) == 12
    assert asked(guess={"hidden": 8}) == 12, "the guesses are others, so the prompts are"
    assert asked(models=[str(other)]) == asked() == 0
    changed = tmp_path / "changed.csv"
    changed.write_text(PAIRS.read_text().replace("4.8", "4.71", 1))
    guesses = records(data=str(changed))["guesses"].weights
    assert 4.71 in [*guesses["score_pool"], *guesses["score_queries"]], "these are the guesses of other data"


def test_all_that_is_missing_is_said_at_once(tmp_path, scripted, records, monkeypatch):
    monkeypatch.setattr(hub.Source, "cached", lambda source: None)
    names = {"models": ["some/a", "other/b"], "embeddings": "all-MiniLM-L6-v2", "data": None}
    wanted = ["some/a", "other/b", "sentence-transformers/all-MiniLM-L6-v2", "mteb/stsbenchmark-sts"]
    with pytest.raises(Unavailable) as raised:
        records(**names)
    text = str(raised.value)
    assert all(name in text for name in wanted) and "\n" not in text
    assert all(f"figure.experiment.{key}=" in text for key in ("download", "models", "embeddings", "data"))
    monkeypatch.setattr(fig6, "PACKAGES", {"no_such_module_at_all": "transformers"})
    several = r"transformers \(pip install 'icl-theory\[llm\]'\); some/a; other/b"
    with pytest.raises(Unavailable, match=several) as raised:
        records(models=names["models"])
    assert "MiniLM" not in str(raised.value) and "stsbenchmark" not in str(raised.value)
    with pytest.raises(Unavailable, match="transformers"):
        records()
    assert not (tmp_path / "out").exists() and not scripted.asked


def test_the_network_is_used_where_it_is_asked_for(tmp_path, records, monkeypatch):
    here = {}
    fetched = []

    def fetch(source):
        fetched.append(source.name)
        if source.name == "gated/b":
            return "gated/b: accept its licence"
        here[source.name] = make(tmp_path / source.label)
        return None

    monkeypatch.setattr(hub.Source, "cached", lambda source: here.get(source.name))
    monkeypatch.setattr(hub.Source, "fetch", fetch)
    with pytest.raises(Unavailable, match="some/a"):
        records(models=["some/a"])
    assert not fetched
    made = records(models=["some/a"], download=True)
    assert fetched == ["some/a"] and "answers_a" in made
    with pytest.raises(Unavailable, match="gated/b: accept its licence") as raised:
        records("no", models=["some/a", "gated/b"], download=True)
    assert "download=true" not in str(raised.value) and not (tmp_path / "no").exists()
    (here["some/a"] / "model.safetensors").unlink()
    with pytest.raises(Unavailable, match=r"some/a \(no model.safetensors\)"):
        records(models=["some/a"])


def test_a_model_larger_than_the_machine_is_refused_before_anything(tmp_path, records, monkeypatch):
    monkeypatch.setattr(language, "total_memory", lambda device: 10_000)
    with pytest.raises(Unavailable, match=r"models=one: its weights take .* as bfloat16, cpu has"):
        records()
    assert not (tmp_path / "out").exists()


def test_folders_that_are_no_models_are_refused(tmp_path, records):
    bare = make(tmp_path / "bare")
    (bare / "tokenizer_config.json").unlink()
    (tmp_path / "empty").mkdir()
    for changed, message in (
        ({"models": [str(bare)]}, "no chat template"),
        ({"models": [str(tmp_path / "empty")]}, "models=.*empty: is no folder of a model: no config.json"),
        ({"embeddings": str(tmp_path / "empty")}, "embeddings=.*empty: is no folder of a model"),
        ({"data": str(tmp_path / "empty")}, "data=.*empty: has no train file"),
        ({"runs": 10}, "runs=10: the data hold 9 queries"),
        ({"examples": 34}, "examples=34: the data hold 33"),
    ):
        with pytest.raises(InputError, match=message):
            records(**changed)
    assert not (tmp_path / "out").exists()


def command(outputs, *more):
    return ["figure", "figure=xie/fig6", "scale=smoke", "logger=none", f"paths.outputs={outputs}", *more]


def test_without_a_model_the_command_says_so_and_writes_nothing(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    missing = ["figure.experiment.models=[nobody/no-such-model]", f"figure.experiment.data={PAIRS}"]
    assert main(command(tmp_path / "out", *missing)) == 2
    out, err = capfd.readouterr()
    assert out == "" and err.count("\n") == 1 and "nobody/no-such-model" in err and "download=true" in err
    assert main(command(tmp_path / "out", "figure.experiment.models=[/no/such/folder]")) == 2
    out, err = capfd.readouterr()
    assert out == "" and err == "icl: figure.experiment.models=/no/such/folder: no such file or folder\n"
    assert list(tmp_path.iterdir()) == []


def test_tiny_models_go_all_the_way(tmp_path, capfd):
    pytest.importorskip("transformers", reason="needs the llm extra")
    pytest.importorskip("sentence_transformers", reason="needs the llm extra")
    from tests.experiments.xie.tiny_models import embedding_model, language_model

    llama = language_model(tmp_path / "Tiny-Llama", "llama")
    qwen = language_model(tmp_path / "tiny-qwen2", "qwen2", seed=1)
    embeddings = embedding_model(tmp_path / "embeddings")
    settings = {"models": f"[{llama},{qwen}]", "embeddings": embeddings, "data": PAIRS, "device": "cpu"}
    settings |= {"new_tokens": 12, "examples": 3}
    own = [f"figure.experiment.{key}={value}" for key, value in settings.items()]
    args = command(tmp_path / "out", "format=json", *own)
    capfd.readouterr()
    assert main(args) == 0
    out, err = capfd.readouterr()
    document = json.loads(out)
    told = [line for line in err.splitlines() if line and "scale=smoke" not in line]
    assert len(told) == 2 and all("of weights as float32" in line for line in told), err
    assert len(document["claims"]) == 4
    assert {claim["verdict"] for claim in document["claims"]} == {"undecided"}
    assert all(Path(path).stat().st_size for path in document["files"].values())
    assert len(list((tmp_path / "out/runs/xie/fig6_runs").iterdir())) == 2 * 4
    assert main(args) == 0
    assert json.loads(capfd.readouterr().out) == document | {"cached": True}
