"""Tests of losses of trained weights and of baselines on the same contexts."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
import yaml

from icl.algorithms import GradientDescent, LeastSquares
from icl.experiments.ahn import paired
from icl.models import Full, LinearTransformer, SparseA, SparseAB
from icl.runs.record import RunRecord
from icl.tasks import LinearRegression
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.weighted import stratified_error
from tests.records import FakeRunner

SEEDS = [3, 8]


def make_law(context=8):
    return LinearRegression(context=context, task_covariance="inverse").law(SEEDS)


def make_run(tmp_path, law, weights):
    """Return a finished run of sparse_ab with these weights."""
    layers = weights["A"].shape[1]
    contexts = list(law.context_R) if len(set(law.context_R)) > 1 else law.context_R[0]
    task = {"_target_": "icl.tasks.LinearRegression", "context": contexts, "task_covariance": "inverse"}
    model = {"_target_": "icl.models.SparseAB", "layers": layers, "init_std": 0.1, "path": "gram"}
    config = {"task": task, "model": model}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    arrays = {name: tensor.numpy() for name, tensor in weights.items()}
    law_arrays = {"Sigma": law.Sigma_RDD.numpy(), "Sigma_w": law.Sigma_w_RDD.numpy(), "U": law.U_RDD.numpy()}
    np.savez(tmp_path / "weights.npz", context=np.array(law.context_R), **arrays, **law_arrays)
    return RunRecord(tmp_path, {"seeds": SEEDS, "fingerprint": "f" * 12, "digest": "d", "attempt": 1})


@pytest.mark.parametrize("family_of", [SparseA, SparseAB, Full])
@pytest.mark.parametrize(("dim", "layers", "context"), [(5, 3, 8), (1, 1, 1), (2, 4, 1), (6, 2, 3)])
def test_model_loss_is_its_conditional_expectation(family_of, dim, layers, context):
    """Compare the closed form in S that training uses with what the model predicts on the basis prompts."""
    law = LinearRegression(dim=dim, context=context, task_covariance="inverse").law(SEEDS)
    family = family_of(dim, layers, init_std=0.3)
    family.initialise(SEEDS)
    model = LinearTransformer(family.requires_grad_(False))
    S_RCDD = paired.contexts(law, SEEDS, "eval", 5)
    both = {"closed": model, "predicted": SimpleNamespace(predict=model.predict)}
    found = paired.context_losses(both, law, S_RCDD)
    np.testing.assert_allclose(found["closed"], found["predicted"], rtol=1e-10)


def test_descent_loss_is_that_of_its_error_matrix():
    """Compare with tr(K K^T) in whitened coordinates, K = prod(I - eta S), written with numpy."""
    law, eta_L = make_law(), [0.4, 0.9]
    S_RCDD = paired.contexts(law, SEEDS, "eval", 4)
    pgd = GradientDescent(eta_L, 2, law.Sigma_RDD)
    found_RC = paired.context_losses({"pgd": pgd}, law, S_RCDD)["pgd"]
    for r, c in np.ndindex(2, 4):
        inverse_DD = np.linalg.inv(law.root_RDD[r].numpy())
        white_DD = inverse_DD @ S_RCDD[r, c].numpy() @ inverse_DD
        K_DD = (np.eye(5) - eta_L[0] * white_DD) @ (np.eye(5) - eta_L[1] * white_DD)
        assert found_RC[r, c] == pytest.approx(np.trace(K_DD @ K_DD.T), rel=1e-9)


def test_basis_prompts_are_gram_matrices_of_tokens():
    """Compare with x_i and y_i = <w, x_i> of a real context, which give the same G."""
    law = make_law(context=4)
    x_NRD = torch.randn(4, 2, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    S_R1DD = (torch.einsum("nri,nrj->rij", x_NRD, x_NRD) / 4)[:, None]
    prompt = paired.basis_prompts(law, S_R1DD)
    for r in range(2):
        w_D = law.task_root_RDD[r, :, 2]
        z_NP = torch.cat([x_NRD[:, r], (x_NRD[:, r] @ w_D)[:, None]], dim=1)
        torch.testing.assert_close(prompt.gram_RBPP[r, 2 * 5 + 4], z_NP.mT @ z_NP / 4)
        torch.testing.assert_close(prompt.query_RBP[r, 2 * 5 + 4, :5], law.root_RDD[r, :, 4])


def test_chunks_do_not_change_the_losses(monkeypatch):
    law = make_law()
    S_RCDD = paired.contexts(law, SEEDS, "eval", 5)
    predictors = {"ols": LeastSquares(law.context_R), "gd": GradientDescent(0.3, 2)}
    whole = paired.context_losses(predictors, law, S_RCDD)
    monkeypatch.setattr(paired, "CHUNK", 2)
    chunked = paired.context_losses(predictors, law, S_RCDD)
    # Another chunk may take another kernel, so the last bits differ. Least squares without noise has errors
    # that are rounding themselves: eps cond(S) in an entry of the error matrix, so its square in a loss.
    eps = np.finfo(np.float64).eps
    rounding = (100 * eps * float(torch.linalg.cond(S_RCDD).max())) ** 2 * law.dim**2
    assert rounding < 1e-12
    np.testing.assert_allclose(whole["ols"], chunked["ols"], rtol=0, atol=rounding)
    np.testing.assert_allclose(whole["gd"], chunked["gd"], rtol=1e-12)


def test_steps_are_searched_on_other_contexts_near_the_optimum_and_shared_at_the_same_length():
    seeds = [*SEEDS, 5]
    law = LinearRegression(context=[20, 6, 20], task_covariance="inverse").law(seeds)
    search_RCDD, eval_RCDD = (paired.contexts(law, seeds, role, 3000) for role in ("search", "eval"))
    assert not np.isin(search_RCDD[0, :, 0, 0], eval_RCDD[0, :, 0, 0]).any()
    etas_RL = paired.search_steps(law, search_RCDD, 2)
    for r, n in enumerate(law.context_R):
        risk = InvariantRisk(5, n, 2)
        assert risk.value(etas_RL["pgd_steps"][r].tolist()) <= 1.01 * risk.optimum().risk
        assert etas_RL["pgd_one"][r].unique().numel() == 1
    for eta_RL in etas_RL.values():
        assert torch.equal(eta_RL[0], eta_RL[2]) and not torch.equal(eta_RL[0], eta_RL[1])


def test_best_values_of_one_step():
    """Compare E tr(I - eta S)^2 = d (1 - 2 eta + eta^2 (n + d + 1) / n), by hand; Theorem 1 at its
    minimum."""
    d, n = 5, 20
    found = paired.best_values(d, n, 1)

    def risk(eta, examples):
        return d * (1 - 2 * eta + eta**2 * (examples + d + 1) / examples)

    assert found["pgd_optimum"] == pytest.approx(d * (1 - n / (n + d + 1)), rel=1e-12)
    assert found["pgd_fewer"] == pytest.approx(d * (1 - 19 / 25), rel=1e-9)
    assert found["pgd_published"] == pytest.approx(min(risk(19 * e, 19) for e in paired.PUBLISHED_ETAS))
    assert found["ab_best"] == found["ab_bound"] == found["pgd_optimum"]
    assert (found["ols"], paired.best_values(d, 2, 1)["ols"]) == (0, 3)


def test_published_baseline_at_four_layers():
    """Compare with the paper's Figure 7: .258 for PGD at L = 4, one draw of what is .261; with all
    examples .163."""
    found = paired.best_values(5, 20, 2)
    assert found["pgd_optimum"] < found["pgd_fewer"] < found["pgd_published"]
    assert found["ab_bound"] <= found["ab_best"] < found["pgd_optimum"]
    fewer = InvariantRisk(5, 19, 4)
    assert min(fewer.value([19 * eta] * 4) for eta in paired.PUBLISHED_ETAS) == pytest.approx(0.261, abs=5e-4)


@pytest.mark.parametrize("layers", [1, 2])
def test_weights_that_are_pgd_have_its_losses(tmp_path, layers):
    """Apply Lemma 1 through the store: A_l = -eta_l Sigma^{-1}, B = 0 in the sign of (11)."""
    law = make_law(context=[8, 3])
    eta_RL = paired.search_steps(law, paired.contexts(law, SEEDS, "search", 50), layers)["pgd_steps"]
    weights = {"A": -eta_RL[..., None, None] * torch.linalg.inv(law.Sigma_RDD)[:, None]}
    if layers > 1:
        weights["B"] = torch.zeros(2, layers - 1, 5, 5, dtype=torch.float64)
    run = make_run(tmp_path, law, weights)
    arrays = paired.comparison([run], run, paired.Sizes(7, 50), least_squares=True)
    np.testing.assert_allclose(arrays["loss_trained"], arrays["loss_pgd_steps"], rtol=1e-8)
    np.testing.assert_array_equal(arrays["loss_plain"], arrays["loss_trained"])
    assert arrays["loss_ols"].shape == arrays["weight"].shape == (2, 7)
    np.testing.assert_allclose(arrays["loss_ols"], [[0] * 7, [2] * 7], atol=1e-9)
    assert arrays["context"].tolist() == [8, 3] and arrays["layers"].tolist() == [layers] * 2


def test_the_weighted_mean_is_the_exact_risk(tmp_path):
    """Compare three layers of (11) on S, whose mean loss plain contexts miss, with the polynomial of
    theory, within 99.9 % intervals. Contexts of the first component are plain."""
    law = make_law(context=[10, 4])
    a_L, beta_L = [0.7, 0.9, 1.1], [0.2, 0.3]
    inverse_RDD, identity_DD = torch.linalg.inv(law.Sigma_RDD), torch.eye(5, dtype=torch.float64)
    A_RLDD = torch.stack([-a * inverse_RDD for a in a_L], dim=1)
    b_L = [beta / a for beta, a in zip(beta_L, a_L, strict=False)]
    B_RLDD = torch.stack([b * identity_DD.expand(2, 5, 5) for b in b_L], dim=1)
    run = make_run(tmp_path, law, {"A": A_RLDD, "B": B_RLDD})
    arrays = paired.comparison([run], run, paired.Sizes(3000, 20, draws=2))
    for r, n in enumerate(law.context_R):
        risk = InvariantRisk(5, n, 3, with_b=True).value(a_L, beta_L)
        assert abs(arrays["risk_R"][r] - risk) < 3.3 * arrays["risk_stderr_R"][r] < 0.2 * risk
        components = int(arrays["components"][r])
        assert components > 1
        once = InvariantRisk(5, n, 3).value(arrays["eta_pgd_one"][r].tolist())
        exact = {"trained": InvariantRisk(5, n, 3, with_b=True).value(a_L, beta_L), "pgd_one": once}
        for name, risk in exact.items():
            terms_C = arrays["weight"][r] * arrays[f"loss_{name}"][r]
            assert abs(terms_C.mean() - risk) < 3.3 * stratified_error(terms_C, components)
        plain_C = arrays["loss_pgd_one"][r, ::components]
        assert abs(plain_C.mean() - once) < 3.3 * plain_C.std(ddof=1) / len(plain_C) ** 0.5


def test_what_is_stored_is_filed_under_the_run_and_the_sizes(tmp_path):
    law, runner, filed = make_law(), FakeRunner(), []
    run = make_run(tmp_path, law, {"A": torch.zeros(2, 1, 5, 5, dtype=torch.float64)})
    runner.store = lambda name, science, compute: filed.append((name, dict(science), compute))
    for sizes in (paired.Sizes(4, 20), paired.Sizes(5, 20)):
        paired.compare(runner, "mine", [run], run, sizes)
    assert [name for name, _, _ in filed] == ["mine", "mine"] and not runner.asked, "nothing is trained"
    assert filed[0][1] != filed[1][1] and filed[0][1]["seeds"] == SEEDS
    np.testing.assert_allclose(filed[0][2]()["loss_trained"], 5, rtol=1e-12)  # nothing is predicted: tr I


def test_of_each_seed_the_start_of_least_loss_counts(tmp_path):
    law, runs = make_law(), []
    for k, losses in enumerate(([2.0, 1.0], [1.0, np.nan], [3.0, 0.5])):
        weights = {"A": torch.full((2, 2, 5, 5), float(k)), "B": torch.full((2, 1, 5, 5), float(k))}
        (tmp_path / str(k)).mkdir()
        run = make_run(tmp_path / str(k), law, weights)
        run.run["metrics"] = {"loss": {"by_seed": dict(zip(map(str, SEEDS), losses, strict=True))}}
        runs.append(run)
    best = paired.best_start(runs)
    assert [best["A"][r].mean() for r in (0, 1)] == [best["B"][r].mean() for r in (0, 1)] == [1, 2]
