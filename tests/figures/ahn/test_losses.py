"""Tests of comparisons on the same contexts: intervals, verdicts and drawings."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from icl.figures.ahn import losses
from icl.figures.ahn.fig6 import Fig6
from icl.figures.ahn.fig7 import Fig7
from icl.figures.ahn.losses import Losses
from icl.runs.record import RunRecord

CONTEXTS = 400
COMPONENTS = 2
SCALES = {"trained": 0.25, "plain": 0.5, "pgd_steps": 1.0, "pgd_one": 2.0, "gd_steps": 4.0, "gd_one": 5.0}
EXACT = {"ols": 0.0, "pgd_one": 2.0, "pgd_steps": 1.001, "pgd_optimum": 1.0, "pgd_published": 3.0}
EXACT |= {"pgd_fewer": 2.5, "ab_best": 0.2, "ab_bound": 0.1}


def stored(tmp_path, varied, values, **changed):
    """Return two replicas for each value; each loss a scale times the same context's own size."""
    rng = np.random.default_rng(0)
    x_R = np.repeat(values, 2)
    size_RC = rng.lognormal(0, 0.5, (len(x_R), CONTEXTS))
    noise = {name: rng.lognormal(0, 0.1, size_RC.shape) for name in SCALES}
    arrays = {f"loss_{name}": scale * size_RC * noise[name] for name, scale in SCALES.items()}
    arrays |= {f"exact_{name}": np.full(len(x_R), value) for name, value in EXACT.items()}
    arrays |= {varied: x_R, "seeds": np.arange(len(x_R))}
    arrays |= {"weight": np.ones_like(size_RC), "components": np.full(len(x_R), COMPONENTS)}
    if varied == "context":
        left_R = np.maximum(5 - x_R, 0).astype(float)
        arrays["exact_ols"] = left_R
        arrays["loss_ols"] = left_R[:, None] + np.zeros_like(size_RC)
        arrays["loss_ols_raw"] = arrays["loss_ols"] * 1.1
        for name in SCALES:
            arrays[f"loss_{name}"] += left_R[:, None]
    path = tmp_path / "weights.npz"
    np.savez(path, **arrays | changed)
    (tmp_path / "config.yaml").write_text("{}")
    return {"trained": RunRecord(tmp_path / "none", {}), "losses_all": RunRecord(tmp_path, {})}


def claims(figure, records):
    """Return verdicts by the start of the claim."""
    return {claim.claim: claim.verdict for claim in figure.claims(records)}


@pytest.mark.parametrize(
    ("figure", "varied", "values"), [(Fig6(), "context", [2, 8]), (Fig7(), "layers", [1, 2, 3])]
)
def test_every_claim_can_hold_and_is_plain_data(tmp_path, figure, varied, values):
    arrays = stored(tmp_path, varied, values)["losses_all"].weights
    plain_RC, loss_RC = arrays["loss_plain"].copy(), arrays["loss_trained"].copy()
    plain_RC[-1, 7] = 1e9  # one context carries it all
    one_R = arrays[varied] == 1  # where trained weights can only equal PGD
    loss_RC[one_R] = arrays["loss_pgd_steps"][one_R]
    pgd_R, best_R = arrays["loss_pgd_steps"].mean(1), loss_RC.mean(1)
    best = {"exact_ab_best": best_R, "exact_pgd_optimum": pgd_R / 1.001, "exact_pgd_steps": pgd_R}
    found = figure.claims(stored(tmp_path, varied, values, loss_trained=loss_RC, loss_plain=plain_RC, **best))
    assert {claim.verdict for claim in found} == {"holds"}, [c for c in found if c.verdict != "holds"]
    json.dumps([claim.measured for claim in found])
    assert {claim.trained for claim in found} == {True, False}
    assert all(claim.trained == ("rain" in claim.claim) for claim in found)
    assert {claim.whose for claim in found} == {"paper", "project"}


@pytest.mark.parametrize(
    ("name", "factor", "broken"),
    [
        ("trained", 100.0, "trained < PGD (eta per step) at L = 2, 3, median"),
        ("trained", 100.0, "trained < PGD (eta per step) at L = 2, 3, mean"),
        ("trained", 100.0, "trained < PGD (one eta)"),
        ("trained", 100.0, "Training ends near the best point"),
        ("plain", 100.0, "trained on plain batches < PGD (eta per step)"),
        ("plain", 1.0, "Trained on plain batches of this size"),
        ("gd_steps", 0.01, "PGD (eta per step) < GD (eta per step)"),
        ("gd_one", 0.01, "PGD (one eta) < GD (one eta)"),
    ],
)
def test_order_claims_fail_when_the_order_is_wrong(tmp_path, name, factor, broken):
    good = stored(tmp_path, "layers", [2, 3])["losses_all"].weights[f"loss_{name}"].copy()
    good[1] *= factor  # one replica is enough
    verdicts = claims(Fig7(), stored(tmp_path, "layers", [2, 3], **{f"loss_{name}": good}))
    assert [v for claim, v in verdicts.items() if claim.startswith(broken)] == ["fails"]


@pytest.mark.parametrize(
    ("exact", "broken"),
    [
        ({"exact_pgd_steps": np.full(4, 1.03)}, "PGD's searched step sizes"),
        ({"exact_pgd_steps": np.full(4, 0.99)}, "PGD's searched step sizes"),
        ({"exact_pgd_published": np.full(4, 1.9)}, "The published PGD baseline"),
        ({"loss_ols": np.full((4, CONTEXTS), 3.1)}, "OLS of minimum norm"),
        ({"loss_gd_one": np.full((4, CONTEXTS), 2.9)}, "OLS of minimum norm"),
    ],
)
def test_exact_claims_fail_when_the_numbers_are_wrong(tmp_path, exact, broken):
    verdicts = claims(Fig6(), stored(tmp_path, "context", [2, 8], **exact))
    assert [v for claim, v in verdicts.items() if claim.startswith(broken)] == ["fails"]


def test_one_layer_must_come_close_to_pgd(tmp_path):
    pgd_RC = stored(tmp_path, "layers", [1, 2])["losses_all"].weights["loss_pgd_steps"]
    for factor, verdict in ((1.01, "holds"), (1.03, "fails")):
        found = Fig7().claims(stored(tmp_path, "layers", [1, 2], loss_trained=factor * pgd_RC))
        assert found[0].claim.startswith("At L = 1") and found[0].verdict == verdict


def test_few_contexts_leave_an_order_undecided(tmp_path):
    records = stored(tmp_path, "layers", [2])
    found = Losses.of(records, "layers")
    few = replace(found, loss_RC={k: v[:, :10] for k, v in found.loss_RC.items()})
    assert losses.compare_medians(few, "trained", "pgd_one", "L", [2]).verdict == "undecided"


def test_a_mean_that_one_context_makes_decides_nothing(tmp_path):
    """Put 15 % of all differences in one context; by its standard error alone the mean would still decide."""
    arrays = stored(tmp_path, "layers", [2])["losses_all"].weights
    loss_RC = arrays["loss_trained"].copy()
    loss_RC[0, 3] = 0.15 * arrays["loss_gd_one"][0].sum()
    terms_C = loss_RC[0] - arrays["loss_gd_one"][0]
    assert terms_C.mean() + 3.3 * terms_C.std() / CONTEXTS**0.5 < 0
    found = Losses.of(stored(tmp_path, "layers", [2], loss_trained=loss_RC), "layers")
    assert losses.compare_means(found, "trained", "gd_one", "L", [2]).verdict == "undecided"


@pytest.mark.parametrize(("mean", "verdict"), [(1e5, "holds"), (50.0, "undecided"), (0.5, "fails")])
def test_a_mean_on_one_context_is_certain_by_markov_alone(tmp_path, mean, verdict):
    """Set two replicas, PGD's optimum 1: more than 2,000 is needed at 99.9 %."""
    loss_RC = stored(tmp_path, "layers", [2])["losses_all"].weights["loss_plain"].copy()
    loss_RC[0, 3] += max(mean - 0.5, 0) * CONTEXTS
    found = Losses.of(stored(tmp_path, "layers", [2], loss_plain=loss_RC), "layers")
    assert losses.claim_missed_tail(found, "L", [2]).verdict == verdict


def test_means_are_weighted_and_medians_are_of_plain_contexts(tmp_path):
    rng = np.random.default_rng(2)
    weight_RC = rng.uniform(0.5, 1.5, (2, CONTEXTS))
    found = Losses.of(stored(tmp_path, "layers", [2], weight=weight_RC), "layers")
    loss_RC = found.loss_RC["gd_one"]
    np.testing.assert_allclose(found.means("gd_one"), np.mean(weight_RC * loss_RC, axis=1))
    np.testing.assert_allclose(found.medians("gd_one"), np.median(loss_RC[:, ::COMPONENTS], axis=1))
    inside = found.difference("trained", "gd_one", 0)
    assert inside.middle == pytest.approx(found.means("trained")[0] / found.means("gd_one")[0] - 1)


@pytest.mark.parametrize(
    ("over_best", "stderr", "verdict"), [(1.1, 0.01, "holds"), (1.1, 0.1, "undecided"), (1.4, 0.01, "fails")]
)
def test_the_trained_risk_against_the_best_point(tmp_path, over_best, stderr, verdict):
    """Give two replicas half as much more and less; the mean counts, from further draws where there are."""
    risk_R = EXACT["ab_best"] * over_best * np.array([1.5, 0.5])
    stderr_R = np.full(2, stderr * EXACT["ab_best"])
    found = stored(tmp_path, "context", [8], risk_R=risk_R, risk_stderr_R=stderr_R)
    interval = Losses.of(found, "context").trained_over("ab_best", 8)
    assert interval.middle == pytest.approx(over_best)
    assert interval.high - interval.middle == pytest.approx(stats.norm.isf(0.0005) * stderr / 2**0.5)
    assert (
        claims(Fig6(), found)["Training ends near the best point known on S at N = 8, in the mean over seeds"]
        == verdict
    )


def test_without_further_draws_the_trained_risk_is_that_of_the_contexts(tmp_path):
    found = Losses.of(stored(tmp_path, "layers", [2]), "layers")
    interval = found.trained_over("ab_best", 2)
    mean_R, error_R = found.means("trained"), stats.sem(found.loss_RC["trained"], axis=1)
    assert interval.middle == pytest.approx(mean_R.mean() / EXACT["ab_best"])
    half = stats.norm.isf(0.0005) * np.linalg.norm(error_R) / 2 / EXACT["ab_best"]
    assert interval.high - interval.middle == pytest.approx(half, rel=0.05)


@pytest.mark.parametrize("count", [25, 100, 1001])
def test_median_interval_is_the_sign_tests(count):
    """Compare with scipy's quantile test."""
    sample = np.random.default_rng(count).exponential(size=count)
    found = losses.median_interval(sample)
    wanted = stats.quantile_test(sample, q=0, p=0.5).confidence_interval(losses.LEVEL)
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high))
    assert found.low < found.middle < found.high


def test_mean_interval_is_the_normal_one():
    sample = np.random.default_rng(1).exponential(size=5000)
    found = losses.mean_interval(sample)
    low, high = stats.norm.interval(losses.LEVEL, sample.mean(), stats.sem(sample))
    assert (found.low, found.middle, found.high) == pytest.approx((low, sample.mean(), high))


def test_replicas_of_several_runs_are_put_together(tmp_path):
    parts = {}
    for n in (8, 2):
        (tmp_path / str(n)).mkdir()
        parts[f"losses_N{n}"] = stored(tmp_path / str(n), "context", [n])["losses_all"]
    found = Losses.of(parts, "context")
    assert found.values == [2, 8] and found.at(2).tolist() == [2, 3]
    assert found.exact("ols", 2) == 3
    assert found.loss_RC["trained"].shape == (4, CONTEXTS)


@pytest.mark.parametrize(
    ("figure", "varied", "values", "letter"),
    [(Fig6(), "context", [2, 8], "N"), (Fig7(), "layers", [1, 2, 3], "L")],
)
def test_everything_drawn_is_in_the_table(tmp_path, figure, varied, values, letter):
    records = stored(tmp_path, varied, values)
    rows = figure.table(records)
    in_table = {round(row["loss"], 12) for row in rows}
    arrays = records["losses_all"].weights
    for name in SCALES:
        mine = [row for row in rows if row["series"] == name and row["panel"] == "median"]
        plain_RC = arrays[f"loss_{name}"][:, ::COMPONENTS]
        np.testing.assert_allclose([row["loss"] for row in mine], np.median(plain_RC, axis=1))
    drawing = figure.draw(records)
    mean, median = drawing.axes
    assert {axis.get_yscale() for axis in drawing.axes} == {"log"}
    assert median.get_ylim() == mean.get_ylim()
    assert [row[letter] for row in mine] == np.repeat(values, 2).tolist()
    circles = [line for line in mean.lines if line.get_label() == "plain batches, each seed's mean"]
    assert {round(float(y), 12) for y in circles[0].get_ydata()} <= in_table
    exact = [line for line in mean.lines if line.get_label() == "PGD, exact optimum"]
    assert list(exact[0].get_ydata()) == [1.0] * len(values)


def test_means_beyond_the_panel_are_arrows_and_zeros_are_left_out(tmp_path):
    records = stored(tmp_path, "context", [2, 8])
    loss_RC = records["losses_all"].weights["loss_plain"].copy()
    loss_RC[3] = 1e9
    drawing = Fig6().draw(stored(tmp_path, "context", [2, 8], loss_plain=loss_RC))
    mean, median = drawing.axes
    arrows = [line for line in mean.lines if line.get_marker() == r"$\uparrow$"]
    assert list(arrows[0].get_xdata()) == [8] and mean.get_ylim()[1] == 8
    ols = [line for line in median.lines if line.get_label() == "OLS, whitened"]
    assert list(ols[0].get_xdata()) == [2]
    loss_RC[:] = 1e9
    for axis in Fig6().draw(stored(tmp_path, "context", [2, 8], loss_plain=loss_RC)).axes:
        assert all(len(line.get_xdata()) for line in axis.lines), "upsets the layout"
