"""xie, Figure 6: squared error of language models on STS-Benchmark, with and without an initial guess.

Examples of a prompt come from the pool the guess model was trained on (the train split), queries from pairs
it has not seen (the test split): the guesses beside the examples are somewhat better than the query's.
Every answer is kept as it comes; one that gives no plain score is missing: counted, never replaced.

R trials, N pairs, M language models.
"""

import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from scipy import stats

from icl.errors import InputError, Unavailable, one_of, real, whole
from icl.figures.claims import Claim, Decision
from icl.figures.figure import Figure, Layout, Panels, Records
from icl.figures.runner import Runner
from icl.figures.style import BLUE, GREEN, GREY, ORANGE
from icl.progress import track
from icl.random import generator
from icl.runs.record import RunRecord
from language_models.similarity import HIGH, LOW, Similarity, parse_score, read_pairs

DTYPES = ("float32", "bfloat16", "float16")
SHOWN, LEVEL = 0.95, 0.999  # of the intervals drawn, and of those that decide
LEAST_PAIRS = 30  # below it a bootstrap says little about the tails
FORMS = {"without": (ORANGE, "without a guess"), "with": (BLUE, "with a guess")}
WIDTH = 0.36  # of a bar


class Fig6(Figure):
    """Records: `guesses` of the small model, and `answers_NAME` of each language model."""

    def __init__(
        self, models: Sequence[str], embeddings: str | None, data: str | None, trials: int, examples: int,
        new_tokens: int, device: str, dtype: str, seed: int, hidden: int, lr: float, epochs: int, batch: int,
    ) -> None:  # fmt: skip
        if isinstance(models, str) or not isinstance(models, Sequence):
            raise InputError(f"figure.models={models}: must be a list of folders")
        self.models = [_folder("models", model, "config.json") for model in models]
        if len({folder.name for folder in self.models}) < len(self.models):
            raise InputError(f"figure.models={list(models)}: two folders have one name")
        self.embeddings = None if embeddings is None else _folder("embeddings", embeddings, "config.json")
        self.data = None if data is None else _folder("data", data, "test.csv")
        counts = {"trials": trials, "examples": examples, "new_tokens": new_tokens}
        counts |= {"hidden": hidden, "epochs": epochs, "batch": batch}
        for name, value in counts.items():
            whole(f"figure.{name}", value, 1)
        self.trials, self.examples, self.new_tokens = trials, examples, new_tokens
        self.device = one_of("figure.device", device, ("cpu", "cuda", "mps"))
        self.dtype = one_of("figure.dtype", dtype, DTYPES)
        self.seed = whole("figure.seed", seed, 0)
        lr = real("figure.lr", lr, 0, open_low=True)
        self.training = {"hidden": hidden, "lr": lr, "epochs": epochs, "batch": batch}

    def runs(self, runner: Runner) -> Records:
        if not self.models or self.embeddings is None or self.data is None:
            given = "figure.models=[DIR] figure.embeddings=DIR figure.data=DIR"
            raise Unavailable(f"figure xie/fig6 needs language models, embeddings and data: {given}")
        pool, queries = (read_pairs(self.data / f"{part}.csv") for part in ("train", "test"))
        task = Similarity(pool, queries, self.examples, self.seed)
        whole("figure.trials", self.trials, 1, len(queries))
        guesses = self._guesses(runner, task, self.embeddings)
        shown = guesses.weights["guess_pool"], guesses.weights["guess_queries"]
        trials = [task.trial(number) for number in range(self.trials)]
        prompts = [(task.prompt(trial), task.prompt(trial, shown)) for trial in trials]
        given = {
            "truth_R": np.array([queries[trial.query].score for trial in trials]),
            "guess_R": np.array([shown[1][trial.query] for trial in trials]),
            "query_R": np.array([trial.query for trial in trials]),
            "examples_RC": np.array([trial.examples for trial in trials]),
        }
        found = {"guesses": guesses}
        for folder in self.models:
            found[f"answers_{folder.name}"] = self._answers(runner, folder, prompts, given)
        return found

    def _guesses(self, runner: Runner, task: Similarity, folder: Path) -> RunRecord:
        from language_models.models import embed, folder_digest, train_guess_model

        science = {
            "seeds": [self.seed],
            "data": _digest([*task.pool, *task.queries]),
            "embeddings": folder_digest(folder),
            **self.training,
        }

        def compute() -> dict[str, np.ndarray]:
            import torch

            pairs, pool = [*task.pool, *task.queries], len(task.pool)
            embedded_N2E = embed(folder, [pair[:2] for pair in pairs], self.device)
            score_N = np.array([pair.score for pair in pairs])
            labelled = embedded_N2E[:pool], torch.from_numpy(score_N[:pool]).float()
            model = train_guess_model(*labelled, **self.training, seed=self.seed)
            # As they are printed in the prompts: the baseline is what the language model was told.
            guess_N = np.round(model(embedded_N2E).double().numpy(), 2)
            return {"guess_pool": guess_N[:pool], "guess_queries": guess_N[pool:], "score_N": score_N}

        return runner.store("xie/fig6_guesses", science, compute)

    def _answers(
        self,
        runner: Runner,
        folder: Path,
        prompts: Sequence[tuple[str, str]],
        given: Mapping[str, np.ndarray],
    ) -> RunRecord:
        """Ask a model; each trial is stored as soon as it is answered."""
        from language_models import models

        science = {"seeds": [self.seed], "model": models.folder_digest(folder), "dtype": self.dtype}
        science["new_tokens"] = self.new_tokens
        load = functools.cache(lambda: models.LanguageModel(folder, self.device, self.dtype, self.new_tokens))

        def ask(prompt: tuple[str, str]) -> dict[str, np.ndarray]:
            found: dict[str, np.ndarray] = {}
            for form, text, (answer, ended) in zip(FORMS, prompt, load().answers(prompt), strict=True):
                found[f"prompt_{form}"], found[f"answer_{form}"] = np.array(text), np.array(answer)
                found[f"ended_{form}"] = np.array(ended)
            return found

        def ask_all() -> dict[str, np.ndarray]:
            asked = [
                runner.store(
                    "xie/fig6_trials", science | {"prompt": _digest(prompt)}, functools.partial(ask, prompt)
                ).weights
                for prompt in track(prompts, folder.name, len(prompts))
            ]
            names = [f"{part}_{form}" for part in ("answer", "ended") for form in FORMS]
            return {f"{name}_R": np.array([trial[name] for trial in asked]) for name in names} | given

        return runner.store("xie/fig6", science | {"prompts": _digest(prompts)}, ask_all)

    def layout_of(self, records: Records) -> Layout:
        return Layout(("mse", "difference"), (1.6 + 0.9 * max(len(Answers.all_of(records)), 2), 2.6))

    def draw(self, panels: Panels, records: Records) -> None:
        every = Answers.all_of(records)
        bars, differences = panels["mse"], panels["difference"]
        for m, answers in enumerate(every):
            _draw_errors(bars, m, answers)
            _draw_differences(differences, m, answers)
        for axes in (bars, differences):
            axes.set_xticks(range(len(every)), [answers.name for answers in every])
            axes.set_xlim(-0.6, len(every) - 0.4)
            axes.legend()
        bars.set(title="(a) mean squared error", ylabel="MSE")
        differences.axhline(0, color=GREY, linewidth=0.8, zorder=1.9)  # below the marks
        differences.set(title="(b) paired differences", ylabel="difference of MSE")

    def claims(self, records: Records) -> list[Claim]:
        sentences = {
            "the squared error falls when initial guesses are in the prompt (section 5.3)": "without",
            "the refined answer has a smaller squared error than the guess alone (section C.3)": "guess",
        }
        every = Answers.all_of(records)
        return [_lower(answers, text, than) for text, than in sentences.items() for answers in every]


def _folder(name: str, value: Any, has: str) -> Path:
    found = Path(value).expanduser().absolute() if isinstance(value, str) else None
    if found is None or not (found / has).is_file():
        raise InputError(f"figure.{name}={value}: must be a folder with {has}")
    return found


def _digest(value: Any) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class Answers:
    """Squared errors of a model and of the guesses it was told; NaN where an answer has no score."""

    name: str
    truth_R: np.ndarray
    loss_R: Mapping[str, np.ndarray]  # without, with, guess
    cut_off: Mapping[str, int]  # answers that the limit on new tokens ended

    @classmethod
    def all_of(cls, records: Records) -> list["Answers"]:
        return [
            cls._of(name.removeprefix("answers_"), record.weights)
            for name, record in records.items()
            if name.startswith("answers_")
        ]

    @classmethod
    def _of(cls, name: str, stored: Mapping[str, np.ndarray]) -> "Answers":
        truth_R, loss_R = stored["truth_R"], {}
        for form in FORMS:
            scores = [parse_score(str(text)) for text in stored[f"answer_{form}_R"]]
            loss_R[form] = (np.array([np.nan if s is None else s for s in scores]) - truth_R) ** 2
        loss_R["guess"] = (stored["guess_R"] - truth_R) ** 2
        return cls(name, truth_R, loss_R, {form: int((~stored[f"ended_{form}_R"]).sum()) for form in FORMS})

    def present(self, form: str) -> np.ndarray:
        return self.loss_R[form][~np.isnan(self.loss_R[form])]

    def error(self, form: str) -> float:
        return float(self.present(form).mean()) if len(self.present(form)) else np.nan

    def difference(self, than: str) -> np.ndarray:
        """Loss with guesses less another, of the trials in which both are there."""
        both = self.loss_R["with"] - self.loss_R[than]
        return both[~np.isnan(both)]

    def bounds(self, than: str) -> tuple[float, float]:
        """Low and high ends of the difference's interval, whatever scores the missing answers would give."""
        worst_R = np.maximum(self.truth_R - LOW, HIGH - self.truth_R) ** 2
        one_R, other_R = self.loss_R["with"], self.loss_R[than]
        least = mean_interval(_filled(one_R, 0.0) - _filled(other_R, worst_R), LEVEL)
        most = mean_interval(_filled(one_R, worst_R) - _filled(other_R, 0.0), LEVEL)
        return float(least[0]), float(most[2])

    def verdict(self, than: str) -> str:
        """Is the difference below zero? Only what no missing answer could overturn is decided."""
        if len(self.difference(than)) < LEAST_PAIRS:
            return "undecided"
        low, high = self.bounds(than)
        return "holds" if high < 0 else "fails" if low > 0 else "undecided"


def _filled(loss_R: np.ndarray, value: Any) -> np.ndarray:
    return np.where(np.isnan(loss_R), value, loss_R)


def mean_interval(sample_R: np.ndarray, level: float) -> np.ndarray:
    """Return the mean between the ends of its bias-corrected bootstrap; NaN of too few values."""
    middle = float(sample_R.mean()) if len(sample_R) else np.nan
    if len(sample_R) < 2 or np.ptp(sample_R) == 0:
        return np.array([np.nan, middle, np.nan])
    rng = generator(0, "bootstrap", len(sample_R))
    how: dict[str, Any] = {"confidence_level": level, "n_resamples": 20_000, "batch": 1000, "rng": rng}
    found = stats.bootstrap((sample_R,), np.mean, **how).confidence_interval
    return np.array([found.low, middle, found.high])


def _lower(answers: Answers, text: str, than: str) -> Claim:
    low, middle, high = mean_interval(answers.difference(than), LEVEL).tolist()
    asked = [form for form in ("without", "with") if form in (than, "with")]
    trials = len(answers.truth_R)
    measured: dict[str, Any] = {
        **{f"MSE {form}": answers.error(form) for form in dict.fromkeys([*asked, "guess"])},
        "difference": middle,
        "interval": [low, high],
        "pairs": f"{len(answers.difference(than))} of {trials}",
        **{f"no score {form}": f"{trials - len(answers.present(form))} of {trials}" for form in asked},
        **{f"cut off {form}": f"{answers.cut_off[form]} of {trials}" for form in asked},
        "interval whatever the missing scores": list(answers.bounds(than)),
    }
    bound = (
        f"paired difference below 0, {LEVEL:.1%} bootstrap interval, at least {LEAST_PAIRS} pairs, whatever "
        "scores the answers without one would have given"
    )
    return Claim.of(f"{answers.name}: {text}", measured, Decision(answers.verdict(than), "sampled", bound))


def _draw_errors(axes: Axes, m: int, answers: Answers) -> None:
    for place, (form, (colour, label)) in zip((-0.5, 0.5), FORMS.items(), strict=True):
        loss, x = answers.present(form), m + place * WIDTH
        axes.bar(x, np.nan_to_num(answers.error(form)), WIDTH, color=colour, label="" if m else label)
        _whisker(axes, x, mean_interval(loss, SHOWN), "black")
        top = float(np.nanmax([0.0, *mean_interval(loss, SHOWN)]))
        number = f"{len(loss)}/{len(answers.truth_R)}"
        axes.annotate(number, (x, top), (0, 2), textcoords="offset points", ha="center")
    guess, label = answers.error("guess"), "" if m else "guess alone"
    axes.hlines(guess, m - 0.45, m + 0.45, color="black", linestyle="--", label=label)


def _draw_differences(axes: Axes, m: int, answers: Answers) -> None:
    shown = (("without", BLUE, "o", "with $-$ without"), ("guess", GREEN, "s", "with $-$ guess alone"))
    for place, (than, colour, marker, label) in zip((-0.12, 0.12), shown, strict=True):
        interval, (low, high) = mean_interval(answers.difference(than), LEVEL), answers.bounds(than)
        _whisker(axes, m + place, np.array([low, interval[1], high]), colour, linewidth=0.5)
        _whisker(axes, m + place, interval, colour, marker=marker, label="" if m else label)


def _whisker(axes: Axes, x: float, interval: np.ndarray, colour: str, **style: Any) -> None:
    """Draw an interval, and its mean where `style` has a marker."""
    axes.plot([x, x], interval[[0, 2]], color=colour, linewidth=style.pop("linewidth", 1.4))
    axes.plot([x], [interval[1]], color=colour, linestyle="none", **style)
