"""Sentence similarity in context (xie, sections 5.3 and C.3): pairs scored from 0 to 5, and prompts of them.

A run is one prompt in two forms: C labelled examples from the pool and one query, with the guesses of a
small model beside every pair, and without. Both forms have the same examples and the same query.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from icl.errors import InputError, whole
from icl.random import generator
from icl.ranges import MOST_PROMPTS

LOW, HIGH = 0.0, 5.0
HELD_OUT = 0.2  # of a single file, kept from the guess model: the queries
SUFFIXES = (".csv", ".jsonl", ".jsonl.gz")
_NAMES = ("sentence1", "sentence2", "score")


@dataclass(frozen=True)
class Pair:
    """Two sentences, and how close in meaning people found them."""

    first: str
    second: str
    score: float

    @property
    def key(self) -> frozenset[str]:
        """The same pair in either order."""
        return frozenset((self.first, self.second))


@dataclass(frozen=True)
class SimilarityRun:
    """Query, and examples of the pool in their order."""

    query: int
    examples: tuple[int, ...]


class Similarity:
    """The pool (examples come from it, the guess model is trained on it) and the queries, disjoint."""

    def __init__(self, pool: Sequence[Pair], queries: Sequence[Pair], examples: int, seed: int) -> None:
        asked = {pair.key for pair in queries}
        self.queries = list(queries)
        self.pool = [pair for pair in pool if pair.key not in asked]
        self.examples = whole("figure.experiment.examples", examples, 1, MOST_PROMPTS)
        if len(self.pool) < self.examples:
            raise InputError(
                f"figure.experiment.examples={examples}: the data hold {len(self.pool)} to draw from"
            )
        self.seed = seed
        self._order = generator(seed, "eval").permutation(len(self.queries))

    def run(self, number: int) -> SimilarityRun:
        """Return a run's query and examples. They do not depend on the number of runs."""
        if number >= len(self.queries):
            raise InputError(
                f"figure.experiment.runs={number + 1}: the data hold {len(self.queries)} queries"
            )
        drawn = generator(self.seed, "task", number).choice(len(self.pool), self.examples, replace=False)
        return SimilarityRun(int(self._order[number]), tuple(int(i) for i in drawn))

    def prompt(
        self,
        run: SimilarityRun,
        guess_pool: Sequence[float] | np.ndarray | None = None,
        guess_query: Sequence[float] | np.ndarray | None = None,
    ) -> str:
        """Return the text for the language model, with guesses of all pairs or without. The wording is
        ours."""
        guessed = guess_pool is not None and guess_query is not None
        parts = ["Rate how similar in meaning two sentences are, from 0 (unrelated) to 5 (the same meaning)."]
        if guessed:
            parts[0] += " Every pair comes with an initial guess of its score, made by a simple model."
        for number, i in enumerate(run.examples, 1):
            guess = None if guess_pool is None else guess_pool[i]
            parts.append(f"Example {number}\n{_format(self.pool[i], guess)}\nScore: {self.pool[i].score:g}")
        guess = None if guess_query is None else guess_query[run.query]
        parts.append(f"Query\n{_format(self.queries[run.query], guess)}")
        task = "refine the initial guess of the query and give" if guessed else "give"
        parts.append(
            f"With the help of the examples, {task} the similarity score of the query between 0 and 5. "
            'Answer in the form "Score: X", where X is a number.'
        )
        return "\n\n".join(parts)

    @property
    def digest(self) -> str:
        """Digest of every pair, in order."""
        return digest([[(p.first, p.second, p.score) for p in pairs] for pairs in (self.pool, self.queries)])


def _format(pair: Pair, guess: float | None) -> str:
    lines = [f"Sentence 1: {pair.first}", f"Sentence 2: {pair.second}"]
    return "\n".join(lines if guess is None else [*lines, f"Initial guess: {guess:.2f}"])


def digest(value: object) -> str:
    """Sixteen hexadecimal digits that depend on plain data alone."""
    return hashlib.sha256(json.dumps(value, separators=(",", ":")).encode()).hexdigest()[:16]


def read_split(key: str, path: Path, seed: int) -> tuple[list[Pair], list[Pair]]:
    """(pool, queries) of a folder with a train and a test file, or of one file, a fifth of it as queries."""
    if path.is_dir():
        train, test = (_only_file(key, path, part) for part in ("train", "test"))
        return read_pairs(key, train), read_pairs(key, test)
    pairs = read_pairs(key, path)
    distinct = list({pair.key: pair for pair in pairs}.values())
    order = generator(seed, "eval", 1).permutation(len(distinct))
    held = math.ceil(HELD_OUT * len(distinct))
    return [distinct[i] for i in order[held:]], [distinct[i] for i in order[:held]]


def _only_file(key: str, folder: Path, part: str) -> Path:
    found = [path for path in sorted(folder.iterdir()) if part in path.name and path.name.endswith(SUFFIXES)]
    if len(found) != 1:
        what = "no" if not found else "more than one"
        raise InputError(f"{key}={folder}: has {what} {part} file; wanted one like {part}.csv")
    return found[0]


def read_pairs(key: str, path: Path) -> list[Pair]:
    """Pairs of JSON lines, or of a CSV file of sentence1, sentence2, score, whose header may be missing."""
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        text = content.decode("utf-8-sig")
        rows = _json_rows(text) if ".jsonl" in path.suffixes else _csv_rows(text)
    except (OSError, EOFError, UnicodeDecodeError, csv.Error, ValueError, KeyError) as error:
        raise InputError(f"{key}={path}: cannot be read as sentence pairs ({error})") from None
    if not rows:
        raise InputError(f"{key}={path}: holds no pairs; wanted the columns {', '.join(_NAMES)}")
    pairs = [_pair(f"{key}={path}", line, row) for line, row in rows]
    if max(pair.score for pair in pairs) <= 1:
        raise InputError(f"{key}={path}: scores end at 1; they must be those from 0 to 5, not rescaled")
    return pairs


def _json_rows(text: str) -> list[tuple[int, list[str]]]:
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    return [(number, [str(json.loads(line)[name]) for name in _NAMES]) for number, line in lines]


def _csv_rows(text: str) -> list[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""))
    rows = [(reader.line_num, row) for row in reader if row]
    head = [name.strip().lower().replace("similarity_score", "score") for name in rows[0][1]] if rows else []
    if set(_NAMES) <= set(head):
        places = [head.index(name) for name in _NAMES]
        return [(line, [row[i] if i < len(row) else "" for i in places]) for line, row in rows[1:]]
    return rows


def _pair(where: str, line: int, row: Sequence[str]) -> Pair:
    if len(row) != len(_NAMES):
        raise InputError(f"{where}, line {line}: has {len(row)} columns, must have {', '.join(_NAMES)}")
    first, second = (" ".join(sentence.split()) for sentence in row[:2])
    try:
        score = float(row[2])
    except ValueError:
        score = math.nan
    if not first or not second or not LOW <= score <= HIGH:
        raise InputError(f"{where}, line {line}: must be two sentences and a score between 0 and 5")
    return Pair(first, second, score)
