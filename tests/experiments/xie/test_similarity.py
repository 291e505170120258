"""Tests of sentence pairs: read, split and put into prompts."""

import gzip
import json
import re
from pathlib import Path

import pytest

from icl.errors import InputError
from icl.experiments.xie.similarity import Pair, Similarity, read_pairs, read_split

PAIRS = Path(__file__).parent / "data" / "pairs.csv"
KEY = "figure.experiment.data"


def task(seed=0, examples=10):
    return Similarity(*read_split(KEY, PAIRS, seed), examples, seed)


def test_formats_hold_the_same_pairs(tmp_path):
    pairs = read_pairs(KEY, PAIRS)
    oil = "The price of oil fell again on Monday.", "Oil prices dropped once more on Monday."
    assert len(pairs) == 42 and pairs[8] == Pair(*oil, 4.8)
    text = PAIRS.read_text()
    bare, other = tmp_path / "stsb-en-train.csv", tmp_path / "columns.csv"
    bare.write_text(text.partition("\n")[2])
    lines = [
        json.dumps({"genre": "x", "score": p.score, "sentence2": p.second, "sentence1": p.first})
        for p in pairs
    ]
    packed = tmp_path / "train.jsonl.gz"
    packed.write_bytes(gzip.compress("\n".join(lines).encode()))
    rows = [f'"{p.second}",{p.score},"{p.first}",x' for p in pairs]
    other.write_text("\ufeffsentence2,similarity_score,sentence1,genre\n" + "\n".join(rows))
    assert read_pairs(KEY, bare) == read_pairs(KEY, packed) == read_pairs(KEY, other) == pairs


def test_a_folder_says_itself_what_is_held_out(tmp_path):
    (tmp_path / "stsb-en-train.csv").write_text("A b.,B a.,3\nC d.,D c.,2\nE f.,F e.,1.5\n")
    (tmp_path / "stsb-en-test.csv").write_text("G h.,H g.,4\nB a.,A b.,3\n")
    found = Similarity(*read_split(KEY, tmp_path, 0), 2, 0)
    assert [pair.first for pair in found.queries] == ["G h.", "B a."]
    # A query, turned round, is not left in the pool.
    assert [pair.first for pair in found.pool] == ["C d.", "E f."]
    (tmp_path / "train2.csv").write_text("A,B,3\n")
    with pytest.raises(InputError, match="more than one train"):
        read_split(KEY, tmp_path, 0)


def test_one_file_is_split_without_overlap_and_filed_under_its_content(tmp_path):
    found = task()
    assert len(found.queries) == 9 and len(found.pool) == 33
    assert not {p.key for p in found.queries} & {p.key for p in found.pool}
    assert {p.key for p in task(seed=1).queries} != {p.key for p in found.queries}
    moved, changed, twice = (tmp_path / f"{name}.csv" for name in ("moved", "changed", "twice"))
    moved.write_text(PAIRS.read_text())
    changed.write_text(PAIRS.read_text().replace("4.8", "4.7", 1))
    digests = [Similarity(*read_split(KEY, path, 0), 10, 0).digest for path in (PAIRS, moved, changed)]
    assert digests[0] == digests[1] != digests[2]
    twice.write_text(PAIRS.read_text() + PAIRS.read_text().partition("\n")[2])
    again = Similarity(*read_split(KEY, twice, 0), 10, 0)
    # A repeated pair may be in one part only, and once.
    assert len(again.queries) == 9 and len(again.pool) == 33


def test_runs_have_distinct_queries_and_examples_and_depend_on_nothing_else():
    found = task()
    runs = [found.run(i) for i in range(9)]
    assert sorted(run.query for run in runs) == list(range(9))
    assert all(len(set(run.examples)) == 10 for run in runs)
    assert len({run.examples for run in runs}) == 9
    assert found.run(4) == task().run(4) and found.run(4) != task(seed=3).run(4)
    with pytest.raises(InputError, match="runs=10: the data hold 9 queries"):
        found.run(9)


def test_both_forms_show_the_same_pairs():
    found = task()
    run = found.run(2)
    guess_pool, guess_query = [i / 100 for i in range(33)], [4 + i / 100 for i in range(9)]
    plain, guessed = found.prompt(run), found.prompt(run, guess_pool, guess_query)
    assert "guess" not in plain.lower() and "refine the initial guess" in guessed
    shown = re.findall(r"Initial guess: (.*)", guessed)
    assert shown == [f"{guess_pool[i]:.2f}" for i in run.examples] + [f"{guess_query[run.query]:.2f}"]
    for text in (plain, guessed):
        scores = re.findall(r"Score: (\d.*)", text)
        assert [float(score) for score in scores] == [found.pool[i].score for i in run.examples]
        sentences = re.findall(r"Sentence 1: (.*)\nSentence 2: (.*)", text)
        pairs = [*(found.pool[i] for i in run.examples), found.queries[run.query]]
        assert sentences == [(pair.first, pair.second) for pair in pairs]
        assert "between 0 and 5" in text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "holds no pairs"), ("sentence1,sentence2,score\n", "holds no pairs"),
        ("A,B\n", "line 1: has 2 columns"), ("A,B,3\nA,B,six\n", "line 2: must be two sentences"),
        ("A,B,5.5\n", "score between 0 and 5"), ("A,B,nan\n", "score between 0 and 5"),
        ("A,,3\n", "must be two sentences"), ("A,B,0.4\nC,D,1.0\n", "scores end at 1"),
        ("A,B,3\n\x00\xff", "cannot be read|columns"),
    ],
)  # fmt: skip
def test_what_is_no_pairs_is_refused(tmp_path, content, message):
    path = tmp_path / "data.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_pairs(KEY, path)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"sentence1": "A"}')
    (tmp_path / "b.jsonl.gz").write_bytes(b"no gzip")
    for name in ("a.jsonl", "b.jsonl.gz", "none.csv"):
        with pytest.raises(InputError, match=name):
            read_pairs(KEY, tmp_path / name)
    with pytest.raises(InputError, match="no train file"):
        read_split(KEY, tmp_path, 0)
    with pytest.raises(InputError, match="examples=40: the data hold 33"):
        task(examples=40)
