"""Sentence similarity in context (xie, sections 5.3 and C.3): scored pairs, prompts, scores in answers.

A trial is one prompt in two forms: labelled examples from the pool and one query, with the guesses of a small
model beside every pair, and without. Both forms have the same examples and the same query.
"""

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from icl.errors import InputError, whole
from icl.random import generator

LOW, HIGH = 0.0, 5.0
_SENTENCES = "sentence1", "sentence2"
_NUMBER = r"(\d+(?:\.\d+)?|\.\d+)"
_LINE = re.compile(  # Score: 3.5, or the number alone
    rf"[^\w.+-]*(?:(?:(?:the|my|final|refined|similarity|query)\s+)*score\s*(?:is|[:=])*\s*)?{_NUMBER}"
    r"\s*(?:(?:/|out of)\s*5(?:\.0*)?)?[\s.]*",
    re.IGNORECASE,
)


class Pair(NamedTuple):
    """Two sentences, and how close in meaning people found them."""

    first: str
    second: str
    score: float


class Trial(NamedTuple):
    """A query, and examples of the pool in their order."""

    query: int
    examples: tuple[int, ...]


class Similarity:
    """The pool (examples come from it, the guess model is trained on it) and the queries, disjoint."""

    def __init__(self, pool: Sequence[Pair], queries: Sequence[Pair], examples: int, seed: int) -> None:
        asked = {frozenset(pair[:2]) for pair in queries}
        self.queries = list(queries)
        self.pool = [pair for pair in pool if frozenset(pair[:2]) not in asked]
        self.examples, self.seed = whole("figure.examples", examples, 1, len(self.pool)), seed
        self._order = generator(seed, "eval").permutation(len(self.queries))

    def trial(self, number: int) -> Trial:
        """Return a trial's query and examples; they do not depend on the number of trials."""
        drawn = generator(self.seed, "task", number).choice(len(self.pool), self.examples, replace=False)
        return Trial(int(self._order[number]), tuple(map(int, drawn)))

    def prompt(self, trial: Trial, guesses: tuple[Sequence[float], Sequence[float]] | None = None) -> str:
        """Return the text for the language model, with guesses of pool and queries or without."""
        parts = ["Rate how similar in meaning two sentences are, from 0 (unrelated) to 5 (the same meaning)."]
        if guesses is not None:
            parts[0] += " Every pair comes with an initial guess of its score, made by a simple model."
        for number, i in enumerate(trial.examples, 1):
            pair, guess = self.pool[i], None if guesses is None else guesses[0][i]
            parts.append(f"Example {number}\n{_shown(pair, guess)}\nScore: {pair.score:g}")
        guess = None if guesses is None else guesses[1][trial.query]
        parts.append(f"Query\n{_shown(self.queries[trial.query], guess)}")
        task = "give" if guesses is None else "refine the initial guess of the query and give"
        parts.append(
            f"With the help of the examples, {task} the similarity score of the query between 0 and 5. "
            'Answer in the form "Score: X", where X is a number.'
        )
        return "\n\n".join(parts)


def _shown(pair: Pair, guess: float | None) -> str:
    lines = [f"Sentence 1: {pair.first}", f"Sentence 2: {pair.second}"]
    return "\n".join(lines if guess is None else [*lines, f"Initial guess: {guess:.2f}"])


def parse_score(text: str) -> float | None:
    """Return the one score in [0, 5] that an answer gives in the form asked for, or None.

    Lines that are a score and nothing else ("Score: 3.5", "**4**", "3.5/5") must agree; a score in running
    text, a range, a number outside [0, 5] or on another scale are no score.
    """
    lines = re.sub(r"[*_`$\"]", "", text).splitlines()
    found = {float(match[1]) for match in map(_LINE.fullmatch, lines) if match}
    score = found.pop() if len(found) == 1 else None
    return score if score is not None and LOW <= score <= HIGH else None


def read_pairs(path: Path) -> list[Pair]:
    """Return the pairs of a CSV file with the columns sentence1, sentence2, score."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
        pairs = [Pair(*(row[name].strip() for name in _SENTENCES), float(row["score"])) for row in rows]
    except (OSError, KeyError, TypeError, ValueError, AttributeError, csv.Error) as error:
        raise InputError(f"figure.data={path}: no pairs of sentence1, sentence2, score ({error})") from None
    if not pairs or not all(first and second and LOW <= score <= HIGH for first, second, score in pairs):
        raise InputError(f"figure.data={path}: must hold pairs of sentences with scores between 0 and 5")
    if max(pair.score for pair in pairs) <= 1:
        raise InputError(f"figure.data={path}: scores end at 1; they must be those from 0 to 5, not rescaled")
    return pairs
