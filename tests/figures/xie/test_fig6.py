"""Tests of bars, intervals and verdicts from given answers."""

import json

import numpy as np
import pytest
from scipy import stats

from icl.figures.xie import fig6
from icl.figures.xie.fig6 import Answers, Difference, Fig6, mean_interval
from icl.runs.documents import dumps
from icl.runs.record import RunRecord


def stored(folder, name="some-model-7B-Instruct", runs=100, **errors):
    """Return answers off the truth by normal errors of the given sizes; `missing` of each form have no
    score."""
    rng = np.random.default_rng(4)
    sizes = {"without": 1.2, "with": 0.4, "guess": 1.6} | {k: v for k, v in errors.items() if k != "missing"}
    truth_R = rng.uniform(0, 5, runs)
    off = {form: truth_R + size * rng.standard_normal(runs) for form, size in sizes.items()}
    arrays = {"truth_R": truth_R, "guess_R": off["guess"], "model": np.array(name)}
    for form in ("without", "with"):
        score_R = off[form].clip(0, 5)
        score_R[: errors.get("missing", {}).get(form, 0)] = np.nan
        arrays |= {f"score_{form}_R": score_R, f"ended_{form}_R": ~np.isnan(score_R)}
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "weights.npz", **arrays)
    return RunRecord(folder, {})


def records(folder, **settings):
    return {"guesses": RunRecord(folder / "none", {}), "answers_model": stored(folder, **settings)}


def verdicts(folder, **settings):
    """Return the verdicts of the two claims: with below without, with below the guess alone."""
    return [claim.verdict for claim in Fig6().claims(records(folder, **settings))]


def test_claims_can_hold_fail_and_be_undecided(tmp_path):
    assert verdicts(tmp_path) == ["holds", "holds"]
    assert verdicts(tmp_path, without=0.3, **{"with": 1.6}, guess=0.2) == ["fails", "fails"]
    assert verdicts(tmp_path, without=1.0, **{"with": 1.0}, guess=1.0) == ["undecided", "undecided"]
    assert verdicts(tmp_path, without=0.3, **{"with": 1.0}, guess=2.5) == ["fails", "holds"]
    assert verdicts(tmp_path, runs=20) == ["undecided", "undecided"], "too few for a verdict at 99.9 %"


def test_missing_scores_count_against_every_verdict(tmp_path):
    good = {"without": 2.0, "with": 0.1, "guess": 2.0}
    assert verdicts(tmp_path, **good, missing={"with": 2}) == ["holds", "holds"]
    assert verdicts(tmp_path, missing={"with": 20}) == ["undecided", "undecided"]
    close = {"without": 2.0, "with": 0.9, "guess": 2.5}
    assert verdicts(tmp_path, **close) == ["holds", "holds"]
    assert verdicts(tmp_path, **close, missing={"without": 60}) == ["undecided", "holds"]
    assert verdicts(tmp_path, missing={"with": 100, "without": 100}) == ["undecided", "undecided"]
    bad = {"without": 0.8, "with": 1.4, "guess": 0.7}
    assert verdicts(tmp_path, **bad, missing={"with": 1}) == ["fails", "fails"]
    assert verdicts(tmp_path, **bad, missing={"with": 60}) == ["undecided", "undecided"]


def test_what_is_missing_is_counted_and_what_is_there_is_averaged(tmp_path):
    found = records(tmp_path, missing={"with": 3, "without": 5})
    claim, _ = Fig6().claims(found)
    answers = Answers.all_of(found)[0]
    both = slice(5, None)
    square = {form: (answers.score_R[form] - answers.truth_R) ** 2 for form in ("with", "without")}
    assert claim.measured["MSE with"] == pytest.approx(square["with"][3:].mean())
    assert claim.measured["MSE without"] == pytest.approx(square["without"][5:].mean())
    assert claim.measured["MSE guess"] == pytest.approx(((answers.guess_R - answers.truth_R) ** 2).mean())
    difference = (square["with"][both] - square["without"][both]).mean()
    assert claim.measured["difference"] == pytest.approx(difference)
    assert claim.measured["pairs"] == "95 of 100"
    assert (claim.measured["no score with"], claim.measured["no score without"]) == ("3 of 100", "5 of 100")
    assert claim.measured["cut off with"] == "3 of 100"
    low, high = claim.measured["interval whatever the missing scores"]
    assert low < claim.measured["interval"][0] < claim.measured["interval"][1] < high
    assert claim.expected == "holds" and claim.trained
    json.loads(dumps(claim.measured))


def test_bounds_contain_every_way_to_fill_in(tmp_path):
    answers = Answers.all_of(records(tmp_path, missing={"with": 10, "without": 4}))[0]
    difference = answers.less_without()
    low, high = difference.bounds(0.99)
    rng = np.random.default_rng(0)
    means = []
    for _ in range(200):
        square = {}
        for form, score_R in answers.score_R.items():
            drawn_R = rng.choice([0, 5, *rng.uniform(0, 5, 3)], len(score_R))
            square[form] = (np.where(np.isnan(score_R), drawn_R, score_R) - answers.truth_R) ** 2
        means.append((square["with"] - square["without"]).mean())
    assert low < min(means) and max(means) < high
    extreme_R = np.where(answers.truth_R < 2.5, 5.0, 0.0)
    np.testing.assert_allclose(answers.worst_R, (extreme_R - answers.truth_R) ** 2)


def test_the_interval_is_a_bootstrap_of_the_mean():
    sample_R = np.random.default_rng(1).normal(2, 3, 400)
    found = mean_interval(sample_R, 0.95)
    half = stats.norm.ppf(0.975) * sample_R.std() / 20
    np.testing.assert_allclose(
        found, [2, 2, 2] + (sample_R.mean() - 2) + half * np.array([-1, 0, 1]), atol=0.03
    )
    assert mean_interval(sample_R, 0.95) == found
    rng = np.random.default_rng(2)
    means = rng.choice(sample_R, (5000, 400)).mean(1)
    np.testing.assert_allclose([found.low, found.high], np.quantile(means, [0.025, 0.975]), atol=0.04)
    wider = mean_interval(sample_R, 0.999)
    assert wider.low < found.low and found.high < wider.high


def test_samples_without_an_interval():
    assert np.isnan(mean_interval(np.array([]), 0.95)).all()
    low, middle, high = mean_interval(np.array([3.0]), 0.95)
    assert middle == 3 and np.isnan([low, high]).all()
    assert mean_interval(np.full(50, 1.5), 0.95) == (1.5, 1.5, 1.5)
    empty = Difference(np.full(3, np.nan), np.full(3, np.nan), np.ones(3))
    assert empty.verdict() == "undecided" and len(empty.pairs_R) == 0


def test_everything_drawn_is_in_the_table(tmp_path):
    found = {
        "guesses": RunRecord(tmp_path / "none", {}),
        "answers_a": stored(tmp_path / "a", "Llama-3.1-8B-Instruct", missing={"with": 3}),
        "answers_b": stored(tmp_path / "b", "Qwen2.5-7B-Instruct"),
    }
    figure = Fig6()
    rows = figure.table(found)
    bars = [row for row in rows if row["panel"] == "mse"]
    assert [(row["model"][:5], row["series"], row["count"]) for row in bars] == [
        ("Llama", "without", 100), ("Llama", "with", 97), ("Llama", "guess", 100),
        ("Qwen2", "without", 100), ("Qwen2", "with", 100), ("Qwen2", "guess", 100),
    ]  # fmt: skip
    runs = [row for row in rows if row["panel"] == "run"]
    assert len(runs) == 200 and [row["score_with"] for row in runs[:3]] == [""] * 3
    drawing = figure.draw(found)
    left, right = drawing.axes
    heights = [patch.get_height() for patch in left.patches]
    wanted = [row["value"] for row in bars if row["series"] != "guess"]
    assert heights == pytest.approx(wanted)
    assert {text.get_text() for text in left.texts} == {"100/100", "97/100"}
    points = sorted(float(line.get_ydata()[0]) for line in right.lines[:-1])  # the last is at 0
    wanted = sorted(row["value"] for row in rows if row["panel"] == "difference")
    assert points == pytest.approx(wanted)
    ticks = [tick.get_text() for tick in left.get_xticklabels()]
    assert ticks == ["Llama-3.1-\n8B-Instruct", "Qwen2.5-\n7B-Instruct"]


def test_it_can_be_drawn_without_a_single_score(tmp_path):
    found = records(tmp_path, runs=4, missing={"with": 4, "without": 4})
    drawing = Fig6().draw(found)
    drawing.canvas.draw()
    assert {text.get_text() for text in drawing.axes[0].texts} == {"0/4"}
    assert fig6.Fig6().claims(found)[0].measured["difference"] is None
