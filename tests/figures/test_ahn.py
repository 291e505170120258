"""What ahn's figures compute: of weights put on the set S, and of losses made up."""

import numpy as np
import pytest
import torch
import yaml
from scipy import stats

from icl.figures.ahn import losses
from icl.figures.ahn import trained as weights_of
from icl.figures.ahn.fig3 import gathered, off_s
from icl.random import generator
from icl.runs.record import RunRecord
from icl.tasks import LinearRegression
from icl.theory.ahn.invariant_risk import InvariantRisk
from tests.commands import write
from tests.figures.bases import COMPONENTS, CONTEXTS, SCALES, base, built
from tests.records import FakeRunner, mark, record

SEEDS, STEPS = [0, 1], [0, 10, 20]
A_SCALARS, B_SCALARS = (0.539, 1.57, 11.781), (0.297, 0.948)  # near the best point of S at n = 10


def law_of(context):
    return LinearRegression(context=context, task_covariance="inverse").law(SEEDS)


def on_s(law, a_RL, b_L=None):
    """Return A_l = a_l Sigma^-1 and B_l = b_l I of every seed."""
    a_RL = torch.as_tensor(a_RL, dtype=torch.float64).expand(len(SEEDS), -1)
    found = {"A": a_RL[..., None, None] * torch.linalg.inv(law.Sigma_RDD)[:, None]}
    if b_L is not None:
        b_L = torch.tensor(b_L, dtype=torch.float64)
        found["B"] = (b_L[:, None, None] * torch.eye(law.dim)).expand(len(SEEDS), -1, -1, -1)
    return found


@pytest.fixture
def trained(tmp_path):
    """Return what makes a finished run that began at small weights and went in a straight line to these."""

    def make(law, end, name="0", **metrics):
        task = {"_target_": "icl.tasks.LinearRegression", "context": [*law.context_R]}
        task |= {"task_covariance": "inverse"}
        model = {"_target_": f"icl.models.Sparse{''.join(end)}", "layers": end["A"].shape[1]}
        arrays = {key: M.numpy() for key, M in end.items()}
        for key, M in [*arrays.items()]:
            start = 1e-4 * np.random.default_rng(7).standard_normal(M.shape)
            arrays[f"{key}_history"] = np.stack([start + t / STEPS[-1] * (M - start) for t in STEPS], 1)
        path = write(tmp_path / name, {"config.yaml": yaml.safe_dump({"task": task, "model": model})})
        np.savez(path / "weights.npz", history_steps=STEPS, **arrays, **law.arrays())
        return RunRecord(path, mark(name, SEEDS) | {"metrics": metrics})

    return make


def exact_of(figure, run):
    return figure.runs(FakeRunner(lambda *asked: run, "laptop"))["exact"].weights


def test_figure_1_at_the_optimum(trained):
    """Compare words of Wishart moments at the weights with the polynomial on S, and at no weights."""
    law, a_L = law_of(20), InvariantRisk(5, 20, 3).optimum().a_L
    exact = exact_of(built("ahn/fig1"), trained(law, on_s(law, a_L[[1, 0, 2]])))
    inverse = np.array([1, 1, 4, 16, 1.0])
    off = np.linalg.norm(inverse - inverse.mean()) / np.linalg.norm(inverse)
    assert np.allclose(exact["dist_inverse_R"], off)
    assert np.allclose(exact["risk_RT"][:, -1], exact["optimal_risk"], rtol=1e-9)
    assert np.allclose(exact["risk_RT"][:, 0], exact["null_risk"], rtol=1e-2)
    assert np.allclose(exact["white_RLDD"], exact["a_RL"][..., None, None] * np.eye(5), atol=1e-9)


def test_figure_3_on_s(trained, monkeypatch):
    """On S the weights are their own projection, and both see the same prompts; where the risk is tame
    batches show it."""
    monkeypatch.setattr(weights_of, "BATCH", 4000)
    law, figure = law_of(10), built("ahn/fig3", starts=16, batches=2)
    ends = [on_s(law, [-size * a for a in A_SCALARS], [size * b for b in B_SCALARS]) for size in (1.0, 0.2)]
    exact, tame = (exact_of(figure, trained(law, end, str(i))) for i, end in enumerate(ends))
    assert np.allclose(exact["a_RL"], A_SCALARS) and exact["lower_bound"] <= exact["best_risk"]
    a_L, b_L = 0.2 * np.array(A_SCALARS), 0.2 * np.array(B_SCALARS)
    risk = InvariantRisk(5, 10, 3, with_b=True).value(a_L.tolist(), (a_L[:2] * b_L).tolist())
    assert np.allclose(tame["plain_projected_batch_RK"].mean(1), risk, rtol=0.1)
    assert (np.abs(tame["risk_R"] - risk) < 5 * tame["risk_stderr_R"]).all()


def test_figure_3_shows_all_steps_and_says_where_training_ended():
    """At the paper's size it ends off S."""
    steps_T, y_RT = np.array([0, 1, 10, 11, 12, 100]), np.array([[5, 1, 2, 9, 3, 4], [5, 1, 2, 8, 0, 4.0]])
    at_K, found_KQ = gathered(steps_T, y_RT)
    assert at_K.tolist() == [0, 1, 10, 12, 100] and found_KQ[3].tolist() == [0, 5.5, 9]
    words = [off_s(np.array([0.0, off])) for off in (0.11, 0.09)]
    assert words == ["ends off S", ""]
    figure, records = base("ahn/fig4")
    assert "ends off S" in [axes.get_xlabel() for axes in figure.picture(records).axes]


# Figures 6 and 7: losses of weights and of descent


def test_means_are_weighted_medians_are_of_plain_contexts_and_risks_of_the_mean_over_seeds():
    rng = np.random.default_rng(2)
    weight_RC, loss_RC = rng.uniform(0.5, 1.5, (2, CONTEXTS)), rng.lognormal(0, 0.5, (2, CONTEXTS))
    found = losses.summary(dict.fromkeys(SCALES, loss_RC), weight_RC, [COMPONENTS] * 2)
    np.testing.assert_allclose(found["mean_gd_one"], np.mean(weight_RC * loss_RC, axis=1))
    np.testing.assert_allclose(found["median_gd_one"], np.median(loss_RC[:, ::COMPONENTS], axis=1))
    half, risk_RI = 0.1 / 2**0.5, np.array([[1.4, 1.5, 1.6], [0.4, 0.5, 0.6]])
    found |= {"context": np.array([8, 8]), "risk_trained": risk_RI, "exact_ab_best": np.ones(2)}
    seen = losses.Losses({"losses": record(weights=found)}, "context")
    assert seen.over_best(8) == pytest.approx((1 - half, 1, 1 + half))


@pytest.mark.parametrize("count", [25, 1001])
def test_intervals_are_the_sign_tests_and_the_normal_one(count):
    sample = np.random.default_rng(count).exponential(size=count)
    low, median, high = losses.median_interval(sample)
    wanted = stats.quantile_test(sample, q=0, p=0.5).confidence_interval(losses.LEVEL)
    assert (low, high) == pytest.approx((wanted.low, wanted.high)) and low < median < high
    if count > 100:
        ends = stats.norm.interval(losses.LEVEL, sample.mean(), stats.sem(sample))
        assert losses.mean_interval(sample)[::2] == pytest.approx(ends)


def test_searched_steps_are_near_the_optimum_and_shared_at_the_same_length():
    seeds = [*SEEDS, 5]
    law = LinearRegression(context=[20, 6, 20], task_covariance="inverse").law(seeds)
    contexts_RCDD = law.covariate_grams([generator(seed, "search") for seed in seeds], 3000)
    etas_RL = losses.search_steps(law, contexts_RCDD, 2)
    for r, n in enumerate(law.context_R):
        risk = InvariantRisk(5, n, 2)
        assert risk.value(etas_RL["pgd_steps"][r].tolist()) <= 1.01 * risk.optimum().risk
        assert etas_RL["pgd_one"][r].unique().numel() == 1
    for eta_RL in etas_RL.values():
        assert torch.equal(eta_RL[0], eta_RL[2]) and not torch.equal(eta_RL[0], eta_RL[1])


def test_best_values_and_the_published_baseline():
    """Compare E tr(I - eta S)^2 = d (1 - 2 eta + eta^2 (n + d + 1) / n), by hand; Theorem 1 at its
    minimum."""
    d, n = 5, 20
    found, deeper = losses.best_values(d, n, 1), losses.best_values(d, n, 2)
    risks = [d * (1 - 2 * 19 * e + (19 * e) ** 2 * (19 + d + 1) / 19) for e in losses.PUBLISHED_ETAS]
    assert found["pgd_optimum"] == pytest.approx(d * (1 - n / (n + d + 1)), rel=1e-12)
    assert found["pgd_fewer"] == pytest.approx(d * (1 - 19 / 25), rel=1e-9)
    assert found["pgd_published"] == pytest.approx(min(risks))
    assert found["ab_best"] == found["pgd_optimum"]
    assert deeper["ab_best"] < deeper["pgd_optimum"] < deeper["pgd_fewer"]


def test_weights_that_are_pgd_have_its_losses(trained, monkeypatch):
    """Apply Lemma 1 few contexts at a time. OLS of minimum norm in whitened coordinates has loss max(d - N,
    0) on every context."""
    monkeypatch.setattr(losses, "CHUNK", 3)
    law = law_of([8, 3])
    for layers in (1, 2):
        contexts_RCDD = law.covariate_grams([generator(seed, "search") for seed in SEEDS], 50)
        eta_RL = losses.search_steps(law, contexts_RCDD, layers)["pgd_steps"]
        run = trained(law, on_s(law, -eta_RL, [0.0] * (layers - 1)), str(layers))
        arrays = losses.comparison([run], run, 7, 50, 0)
        np.testing.assert_allclose(arrays["mean_trained"], arrays["mean_pgd_steps"], rtol=1e-8)
        np.testing.assert_array_equal(arrays["median_plain"], arrays["median_trained"])
        np.testing.assert_allclose(arrays["median_ols"], [0, 2], atol=1e-9)
        assert arrays["context"].tolist() == [8, 3] and arrays["layers"].tolist() == [layers] * 2


def test_the_weighted_mean_is_the_exact_risk(trained, monkeypatch):
    """Compare three layers of (11) on S, whose mean loss plain contexts miss, with the polynomial of theory,
    within 99.9 % intervals."""
    monkeypatch.setattr(losses, "STARTS", 1)
    law, a_L, beta_L = law_of([10, 4]), [0.7, 0.9, 1.1], [0.2, 0.3]
    run = trained(law, on_s(law, [-a for a in a_L], np.divide(beta_L, a_L[:2])))
    for draws in (0, 2):
        arrays = losses.comparison([run], run, 1500, 20, draws)
        for n, (low, middle, high) in zip(law.context_R, arrays["risk_trained"], strict=True):
            risk = InvariantRisk(5, n, 3, with_b=True).value(a_L, beta_L)
            assert low < risk < high < 1.5 * risk and low < middle < high
    assert len(set(arrays["exact_pgd_one"])) == 2


def test_of_each_seed_the_start_of_least_loss_counts(trained):
    law, runs = law_of(8), []
    for k, by_seed in enumerate(([2.0, 1.0], [1.0, np.nan], [3.0, 0.5])):
        end = {name: torch.full((2, layers, 5, 5), float(k)) for name, layers in (("A", 2), ("B", 1))}
        runs.append(trained(law, end, str(k), loss={"by_seed": dict(zip("01", by_seed, strict=True))}))
    best = losses.best_start(runs)
    assert [best[name][r].mean() for name in "AB" for r in (0, 1)] == [1, 2] * 2
