"""Tests of the answers that give a score."""

import pytest

from icl.experiments.xie.answers import parse_score

GIVEN = [
    ("Score: 3.5", 3.5), ("**4**", 4), ("3.5/5", 3.5), ("3.5 out of 5", 3.5), ("Score: **4.2**", 4.2),
    ("**Score:** 4.0", 4), ("score is 3.", 3), ("Score: 3.5\n\nScore: 3.5", 3.5),
    ("Initial guess: 2.90\nScore: 3.4", 3.4), ("I would refine the initial guess of 2.9 to 3.4.", 3.4),
    ("The initial guess was 2.9. My refined guess is 3.4", 3.4), ("Refined score: 3.6", 3.6),
    ("Final answer: 2.25.", 2.25), ("The similarity score of the query is 4.", 4),
    ("On a scale from 0 to 5, I would rate the similarity 3.8.", 3.8),
    ("Score: 4 (the sentences say the same)", 4),
    ("Score: 3.5\n\nExample 2 had a score of 2.0, so this is higher.", 3.5), ("\\boxed{3.5}", 3.5),
    ("$\\boxed{4}$", 4), ("Score:\n3.2", 3.2), ("Score: 4/5", 4), ("4.0/5.0", 4), ("Score: 0", 0), ("5", 5),
    ("Score: 5.0", 5), ("The score should be around 3.5", 3.5), ("~3.5", 3.5),
    ("The similarity score between Sentence 1 and Sentence 2 is 2.75.", 2.75), ("I'd give this a 4", 4),
    ("Score: 2\n\nThe score for the query is 2, since", 2), ("score=4.25", 4.25),
    ("1. Both mention dogs.\n2. Both run.\nScore: 4.5", 4.5), ("4.", 4), ("Similarity: 3", 3),
    ("Score: 3.5, because 3 of 5 words match", 3.5), ("Query 11\nScore: 2.4", 2.4),
    ("Between 0 and 5: 3.3", 3.3), (" Score: 3.25 ", 3.25), ('"Score: 3.5"', 3.5), ("Score: .5", 0.5),
    ("Refined guess: 3.1", 3.1), ("Refined: 3.1", 3.1),
    ("I think the answer is 3.5 out of 5 because of the 2 dogs", 3.5),
    ("The refined similarity score is: 3.75", 3.75), ("Score 3.5", 3.5),
    ("The first sentence mentions 2 dogs and the second 3.\n\n**Final Score: 2.75/5**", 2.75),
    ("Considering the examples, I would adjust the initial guess of 2.10 and rate this pair 3.2.", 3.2),
    ("Refined similarity score (0-5): 4.1", 4.1), ("Answer: `1.8`", 1.8),
]  # fmt: skip
NOT_GIVEN = [
    "Score: between 3 and 4", "between 3 and 4", "3-4", "3 - 4", "Score: 3 to 4", "Score: 7", "-1",
    "Score: -1", "I cannot rate these 2 sentences.", "", "I'm sorry, I can't help.", "Score: 3.5\nScore: 4",
    "Initial guess: 2.9", "35%", "Score: 35%", "Score: 3.5/10", "Score: 0.8/1", "3,5", "Score: 3.5 ± 0.5",
    "5.1", "Sentence 1 and Sentence 2 are close.", "N/A", "Score: X", "Score: four", "nan", "3.5.2", "10",
    "The score is either 3 or 4", "The initial score of 2.9 is fair.", "The guess of 2.9 seems right.",
    "Score: 1e3", "Score: 2.9 is the initial guess; refined score: 3.4", "Example 3: 2.5", "Score: 3.5-4.0",
    "I would rate this between 2.5 and 3.5.", "Score: 2/3", "Score: 3 or 4",
    "As a language model I am unable to rate them.", "The scores of the examples range from 0 to 5.",
    "Score: 3.5\nRefined score: 4.0", "KRate$K RateRate 2 sim dog$ Ratep 3",
    # Backtracking would take minutes here and meet the suite's time limit.
    "Score: " * 60, "1 " * 300, "between " * 60, "the so thus " * 60 + "x", "*" * 900,
]  # fmt: skip


@pytest.mark.parametrize(("text", "score"), GIVEN)
def test_a_plain_score_is_read(text, score):
    assert parse_score(text) == score


@pytest.mark.parametrize("text", NOT_GIVEN)
def test_anything_else_is_none(text):
    assert parse_score(text) is None
