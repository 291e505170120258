"""xie, Figure 6: language models on STS-Benchmark, with and without an initial guess.

Every run is one query with C labelled examples. The examples come from the pool the guess model was trained
on (the train split), the queries from pairs it has not seen (the test split), so that the guesses beside the
examples are somewhat better than the query's. Every answer is kept as it comes, a record for each run.

R runs, C examples, N pairs of the pool, Q queries.
"""

from __future__ import annotations

import dataclasses
import functools
import gc
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from icl.errors import InputError, Unavailable, nearest, one_of, whole
from icl.experiments.runner import Runner
from icl.experiments.xie import hub
from icl.experiments.xie.answers import parse_score
from icl.experiments.xie.settings import DEVICES, DTYPES, GuessTraining
from icl.experiments.xie.similarity import Similarity, digest, read_split
from icl.progress import track
from icl.runs.record import RunRecord

if TYPE_CHECKING:
    from icl.experiments.xie.language import LanguageModel

KEY = "figure.experiment"
PACKAGES = {"transformers": "transformers", "sentence_transformers": "sentence-transformers"}
# The code that answers depend on, beside the model and the prompts, which are content: they cost hours.
ASKING = ("icl.experiments.xie.language",)
FORMS = ("without", "with")  # an initial guess
EMBEDDINGS = "sentence-transformers"  # the hub's organisation, where a name has none
# STS-Benchmark in English, the pairs from which stsb_multi_mt was made, as files that need no more libraries.
DATA = hub.Source(
    f"{KEY}.data",
    "mteb/stsbenchmark-sts",
    "dataset",
    "b0fddb56ed78048fa8b90373c8a3cfc37b684831",
    ("train.jsonl.gz", "test.jsonl.gz"),
)


class Places(NamedTuple):
    """Everything a run needs, on this machine."""

    models: dict[str, Path]
    embeddings: Path
    data: Path


class Prompts(NamedTuple):
    """Prompts of one run, both forms, and the score people gave."""

    texts: dict[str, str]
    query: int
    examples: tuple[int, ...]
    truth: float
    guess: float


class Fig6:
    """records: `guesses` of the small model, and `answers_NAME` of each language model."""

    def __init__(
        self,
        models: Sequence[str],
        embeddings: str,
        runs: int,
        data: str | None = None,
        download: bool = False,
        examples: int = 10,
        new_tokens: int = 150,
        batch: int = 8,
        device: str = "auto",
        dtype: str = "auto",
        seed: int = 0,
        guess: Mapping[str, Any] | None = None,
    ) -> None:
        names = [models] if isinstance(models, str) else models
        if not isinstance(names, Sequence) or not names or not all(isinstance(n, str) and n for n in names):
            raise InputError(f"{KEY}.models={models}: must be a list of folders or names on the hub")
        self.models = [hub.Source(f"{KEY}.models", name) for name in names]
        labels = [source.label for source in self.models]
        if len(set(labels)) < len(labels):
            raise InputError(f"{KEY}.models={list(names)}: two models have one name")
        if not isinstance(embeddings, str) or not embeddings:
            raise InputError(f"{KEY}.embeddings={embeddings}: must be a folder or a name on the hub")
        if data is not None and (not isinstance(data, str) or not data):
            raise InputError(f"{KEY}.data={data}: must be a file or a folder, or null")
        self.embeddings = hub.Source(f"{KEY}.embeddings", embeddings)
        self.data = DATA if data is None else hub.Source(f"{KEY}.data", data, "dataset")
        if not isinstance(download, bool):
            raise InputError(f"{KEY}.download={download}: must be true or false")
        self.download = download
        self.runs = whole(f"{KEY}.runs", runs, 1)
        self.examples = whole(f"{KEY}.examples", examples, 1)
        self.new_tokens = whole(f"{KEY}.new_tokens", new_tokens, 1)
        self.batch = whole(f"{KEY}.batch", batch, 1)
        self.device = one_of(f"{KEY}.device", device, DEVICES)
        self.dtype = one_of(f"{KEY}.dtype", dtype, DTYPES)
        self.seed = whole(f"{KEY}.seed", seed, 0)
        self.training = _guess_training(guess or {})
        for source in (*self.models, self.embeddings, self.data):
            source.local()  # refuses a path that leads nowhere

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        places = self._places()
        from icl.experiments.xie.language import resolve_device

        device = resolve_device(self.device)
        self._refuse_too_large(places, device)
        task = Similarity(*read_split(self.data.key, places.data, self.seed), self.examples, self.seed)
        task.run(self.runs - 1)  # refuses more runs than there are queries
        guesses = self._guesses(runner, task, places.embeddings, device)
        prompts = [self._prompts(task, guesses, number) for number in range(self.runs)]
        answers = {
            f"answers_{label}": ModelRuns(self, runner, label, folder, device, prompts).record()
            for label, folder in places.models.items()
        }
        return {"guesses": guesses, **answers}

    def dtype_of(self, folder: Path) -> str:
        return hub.dtype_of_files(folder) if self.dtype == "auto" else self.dtype

    def _places(self) -> Places:
        """Return where everything needed lies, or say all at once what is missing."""
        packages = [name for module, name in PACKAGES.items() if importlib.util.find_spec(module) is None]
        missing = [f"{' and '.join(packages)} (pip install 'icl-theory[llm]')"] if packages else []
        found: dict[hub.Source, Path] = {}
        for source in (*self.models, self._embeddings_on_hub(), self.data):
            place = source.local() or (None if packages else self._on_hub(source, missing))
            if place is not None:
                self._refuse_unfit(source, place)
                found[source] = place
            elif packages:
                missing.append(source.name)
        if missing:
            what = "; ".join(missing)
            raise Unavailable(f"figure xie/fig6 needs what is not here: {what}. {self._advice()}")
        *models, embeddings, data = found.values()
        return Places(dict(zip((s.label for s in self.models), models, strict=True)), embeddings, data)

    def _on_hub(self, source: hub.Source, missing: list[str]) -> Path | None:
        """In the hub's cache, complete, after a download if that was asked for."""
        place = source.cached()
        if self.download and (place is None or self._lack(source, place)):
            complaint = source.fetch()
            if complaint is not None:
                missing.append(complaint)
                return None
            place = source.cached()
        lack = None if place is None else self._lack(source, place)
        if place is None or lack:
            missing.append(source.name if lack is None else f"{source.name} ({lack})")
            return None
        return place

    def _lack(self, source: hub.Source, place: Path) -> str | None:
        if source.kind == "dataset":
            gone = [name for name in source.patterns if not (place / name).is_file()]
            return f"no {gone[0]}" if gone else None
        return hub.missing_part(hub.transformer_of(place))

    def _refuse_unfit(self, source: hub.Source, place: Path) -> None:
        """Refuse a folder that is here but is not what it is taken for."""
        if source.kind == "dataset":
            return
        lack = self._lack(source, place)
        if lack:
            raise InputError(f"{source.key}={source.name}: is no folder of a model: {lack}")
        if source in self.models and not hub.has_chat_template(place):
            raise InputError(
                f"{source.key}={source.name}: its tokenizer has no chat template; "
                "take a model tuned to follow instructions"
            )

    def _embeddings_on_hub(self) -> hub.Source:
        name = self.embeddings.name
        full = name if "/" in name or self.embeddings.local() else f"{EMBEDDINGS}/{name}"
        return dataclasses.replace(self.embeddings, name=full)

    def _advice(self) -> str:
        """Advise how to get it; a download that was requested and failed is not advised again."""
        fetch = f"{KEY}.download=true fetches models and data from the Hugging Face hub; or "
        own = f"{KEY}.models=[FOLDER,...] {KEY}.embeddings=FOLDER {KEY}.data=FILE.csv"
        return f"{'' if self.download else fetch}give what you have: {own}"

    def _refuse_too_large(self, places: Places, device: str) -> None:
        """Before anything is computed. What is free at the moment counts when a model is loaded."""
        from icl.experiments.xie.language import gib, total_memory

        for label, folder in places.models.items():
            size = hub.weight_bytes(folder, self.dtype_of(folder))
            for where in dict.fromkeys((device, "cpu")):  # weights come through the machine's own memory
                total = total_memory(where)
                if total is not None and size > total:
                    raise Unavailable(
                        f"{KEY}.models={label}: its weights take {gib(size)} as {self.dtype_of(folder)}, "
                        f"{where} has {gib(total)}"
                    )

    def _guesses(self, runner: Runner, task: Similarity, folder: Path, device: str) -> RunRecord:
        science = {
            "seeds": [self.seed],
            "data": task.digest,
            "embeddings": hub.folder_digest(folder),
            "guess": dataclasses.asdict(self.training),
        }

        def compute() -> dict[str, np.ndarray]:
            import torch

            from icl.experiments.xie.guess import embed, train_guess_model
            from icl.experiments.xie.language import quiet_libraries

            quiet_libraries()
            pairs = [*task.pool, *task.queries]
            embedded_N2E = embed(folder, [(pair.first, pair.second) for pair in pairs], device)
            score_N = np.array([pair.score for pair in pairs])
            pool = len(task.pool)
            labelled = embedded_N2E[:pool], torch.from_numpy(score_N[:pool]).float()
            model, losses = train_guess_model(*labelled, self.training, self.seed)
            # As they are printed in the prompts: the baseline is what the language model was told.
            guess_N = np.round(model(embedded_N2E).double().numpy(), 2)
            return {
                "guess_pool": guess_N[:pool],
                "guess_queries": guess_N[pool:],
                "score_pool": score_N[:pool],
                "score_queries": score_N[pool:],
                "loss_by_epoch": np.array(losses),
            }

        return runner.store("xie/fig6_guesses", science, compute)

    def _prompts(self, task: Similarity, guesses: RunRecord, number: int) -> Prompts:
        run = task.run(number)
        guess_pool, guess_queries = guesses.weights["guess_pool"], guesses.weights["guess_queries"]
        texts = {"without": task.prompt(run), "with": task.prompt(run, guess_pool, guess_queries)}
        truth, guess = task.queries[run.query].score, float(guess_queries[run.query])
        return Prompts(texts, run.query, run.examples, truth, guess)


class ModelRuns:
    """All runs of one language model. Runs answered together are saved one by one, as soon as they are."""

    def __init__(
        self,
        settings: Fig6,
        runner: Runner,
        label: str,
        folder: Path,
        device: str,
        prompts: Sequence[Prompts],
    ) -> None:
        self.settings, self.runner, self.label, self.folder = settings, runner, label, folder
        self.device, self.prompts = device, prompts
        self.science: dict[str, Any] = {
            "seeds": [settings.seed],
            "model": hub.folder_digest(folder),
            "dtype": settings.dtype_of(folder),
            "new_tokens": settings.new_tokens,
        }
        self._model: LanguageModel | None = None
        self._answered: dict[int, dict[str, np.ndarray]] = {}

    def record(self) -> RunRecord:
        science = {**self.science, "prompts": digest([prompt.texts for prompt in self.prompts])}
        record = self.runner.store("xie/fig6", science, self._arrays)
        self._model = None
        gc.collect()  # before the next model is loaded
        return record

    def _arrays(self) -> dict[str, np.ndarray]:
        runs = []
        for number, prompt in enumerate(track(self.prompts, self.label, len(self.prompts))):
            science = {**self.science, "prompt": digest(prompt.texts)}
            answers = functools.partial(self._answers_of, number)
            runs.append(self.runner.store("xie/fig6_runs", science, answers, ASKING).weights)
        found = {
            "truth_R": np.array([prompt.truth for prompt in self.prompts]),
            "guess_R": np.array([prompt.guess for prompt in self.prompts]),
            "query_R": np.array([prompt.query for prompt in self.prompts]),
            "examples_RC": np.array([prompt.examples for prompt in self.prompts]),
            "model": np.array(self.label),
        }
        for form in FORMS:
            texts = [str(run[f"answer_{form}"]) for run in runs]
            scores = [parse_score(text) for text in texts]
            found[f"answer_{form}_R"] = np.array(texts)
            found[f"score_{form}_R"] = np.array([np.nan if score is None else score for score in scores])
            found[f"ended_{form}_R"] = np.array([bool(run[f"ended_{form}"]) for run in runs])
        return found

    def _answers_of(self, number: int) -> dict[str, np.ndarray]:
        if number not in self._answered:
            self._answered = self._next(number)
        return self._answered[number]

    def _next(self, first: int) -> dict[int, dict[str, np.ndarray]]:
        """Answer as many runs from `first` on as make a batch."""
        batch = self.settings.batch
        numbers = range(first, min(first + max(1, batch // len(FORMS)), len(self.prompts)))
        asked = [(number, form, self.prompts[number].texts[form]) for number in numbers for form in FORMS]
        model = self._load_model()
        found: dict[int, dict[str, np.ndarray]] = {number: {} for number in numbers}
        for start in range(0, len(asked), batch):
            part = asked[start : start + batch]
            for (number, form, text), answer in zip(part, model.answers([p[2] for p in part]), strict=True):
                found[number][f"prompt_{form}"] = np.array(text)
                found[number][f"answer_{form}"] = np.array(answer.text)
                found[number][f"ended_{form}"] = np.array(answer.ended)
        return found

    def _load_model(self) -> LanguageModel:
        from icl.experiments.xie.language import LanguageModel, quiet_libraries

        if self._model is None:
            quiet_libraries()
            settings = self.settings
            self._model = LanguageModel(
                f"{KEY}.models",
                self.folder,
                device=self.device,
                dtype=self.science["dtype"],
                new_tokens=settings.new_tokens,
            )
            texts = [prompt.texts[form] for prompt in self.prompts for form in FORMS]
            need = self._model.need(texts, settings.batch)
            self.runner.info(f"{self.label}: {need}")
        return self._model


def _guess_training(settings: Mapping[str, Any]) -> GuessTraining:
    if not isinstance(settings, Mapping):
        raise InputError(f"{KEY}.guess={settings}: must hold hidden, lr, epochs and batch")
    known = [field.name for field in dataclasses.fields(GuessTraining)]
    for name in settings:
        if name not in known:
            raise InputError(f"{KEY}.guess.{name}: no such setting{nearest(str(name), known)}")
    return GuessTraining(**settings)
