"""Tests of lds' figures: claims on training that ended at the optimum, and elsewhere; what they compute."""

from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.patches import Rectangle
from scipy.optimize import minimize

from icl.algorithms import GradientDescent
from icl.config.compose import compose
from icl.config.search_path import ConfigDirs
from icl.figures.lds.extra import Extra, head
from icl.figures.lds.fig3 import Fig3
from icl.figures.lds.gauge import canonical, jaccard, masks, matching_scales, outside, supports
from icl.figures.lds.local_minimum import LocalMinimum, descend
from icl.figures.lds.protocol import Protocol, best_step, effective_weight, measure_weights
from icl.figures.lds.value_search import gap, search_values
from icl.figures.lds.weights import Weights
from icl.models import Full, LinearTransformer
from icl.random import generator
from icl.tasks import DynamicalSystem
from icl.tasks.dynamical_system import gram_prompts
from icl.tasks.sequence_moments import covariances_of_independent_modes, moments
from tests.figures.drawn import unbuilt
from tests.records import FakeRunner, mark, record

SEEDS, STEPS = [666013, 1], np.array([0, 10, 20])
VALUES = {1: 0.06, 2: 0.047, 3: 0.0465, 4: 0.046}


def records(arrays):
    def made(part):
        config = {"train": {"estimator": part.get("estimator", "population")}, "task": {"setting": "a"}}
        weights = {key: np.asarray(value) for key, value in part.items()}
        return record(weights=weights, run={"seeds": SEEDS}, config=config)

    return {name: made(part) for name, part in arrays.items()}


def window(s, estimator="population"):
    """Return both seeds at the optimum, of pattern (13), after 20 steps."""
    mask_P, mask_KP = masks(s)
    b_P, a_KP = np.where(mask_P, 1.5, 0.0), np.where(mask_KP, 1.2, 0.0)
    fall = np.array([1.4, 1.1, 1.0])
    ended = np.tile([1.0, 0.5, 0.0], (2, 1))
    return {
        f"AR{s}": {"estimator": estimator},
        f"AR{s}_exact": {
            "steps_S": STEPS, "risk_RS": VALUES[s] * np.array([fall, fall * [1, 1, 1.001]]),
            "b_RP": np.stack([b_P] * 2), "a_RKP": np.stack([a_KP] * 2),
            "weight_R": np.full(2, 1.8) if s == 1 else np.zeros(0),
            **{name: ended for name in ("raw_V_RS", "raw_QK_RS", "V_RS", "QK_RS")},
            "minimum_V_R": np.zeros(2), "minimum_QK_R": np.zeros(2), "minimum_scales_R2": [[0.1, 2.0]] * 2,
            "outside_R": np.full(2, 1e-3), "minimum_outside_R": np.full(2, 1e-12),
            "minimum_reached_R": [True, True], "minimum_curvature_R": np.full(2, 1e-4),
        },
        f"AR{s}_optimum": {
            "value": VALUES[s], "step": 1.8, "any_heads": 0.99 * VALUES[s], "b_P": b_P, "a_KP": a_KP,
            "mask_P": mask_P, "mask_KP": mask_KP,
        },
    }  # fmt: skip


def weights(*windows, estimator="population"):
    return {name: arrays for s in windows for name, arrays in window(s, estimator).items()}


def comparison():
    arrays = {f"a_{name}": part for name, part in weights(1, 2).items()}
    test = {"windows_W": np.array([1, 2]), "step_exact_W": np.array([VALUES[1], 0.055])}
    above = {
        "step": [0.02, 0.018], "pcg": [0.015, 0.005], "least_squares": [0.015, 0.014],
        "optimum": [0.02, 0.007],
    }  # fmt: skip
    for name, more in above.items():
        test[f"{name}_above_W"] = np.array(more)
    test["trained_above_W"] = np.array([[0.02, 0.0201], [0.0071, 0.0072]])
    for name in (*above, "trained"):
        test[f"{name}_W"] = 0.037 + test[f"{name}_above_W"]
        test[f"{name}_above_stderr_W"] = np.full_like(test[f"{name}_W"], 1e-4)
    return arrays | {"a_test": test | {"kalman_W": np.array([0.037])}}


def claims(figure, arrays):
    return {claim.claim: claim.verdict for claim in figure.claims(records(arrays))}


@pytest.mark.parametrize(
    ("cls", "made", "count"),
    [(Weights, weights(1, 2, 3), 5), (Fig3, weights(1, 2, 3), 3), (Extra, comparison(), 5)],
)
def test_claims_hold_at_the_optimum(cls, made, count):
    found = claims(unbuilt(cls), made)
    assert set(found.values()) == {"holds"} and len(found) == count
    unbuilt(cls).picture(records(made)).canvas.draw()


MUTATIONS = [
    ("AR2_exact", "risk_RS", lambda y: y * np.array([[1, 1, 1], [1, 1, 1.03]]), "training ends", "fails"),
    ("AR2_exact", "risk_RS", lambda y: np.nan * y, "training ends", "undecided"),
    ("AR2_optimum", "any_heads", lambda y: 0.97 * y, "training ends", "undecided"),
    ("AR1_exact", "weight_R", lambda y: y * [1, 1.03], "constant of (14)", "fails"),
    ("AR1_exact", "weight_R", lambda y: np.nan * y, "constant of (14)", "undecided"),
    ("AR1_exact", "minimum_outside_R", lambda y: np.add(y, [0, 2e-5]), "vanishes", "fails"),
    ("AR2_exact", "minimum_outside_R", lambda y: np.nan * y, "vanishes", "undecided"),
    ("AR2_exact", "minimum_reached_R", lambda y: [True, False], "vanishes", "undecided"),
    ("AR2_exact", "minimum_reached_R", lambda y: [True, False], "the supports of W_QK", "undecided"),
    ("AR2_exact", "minimum_V_R", lambda y: np.add(y, [0, 0.5]), "the supports of W_QK", "fails"),
    ("AR1_exact", "minimum_QK_R", lambda y: np.add(y, [0.1, 0]), "the supports of W_QK", "fails"),
]
CONTRADICTED = [
    ("a_AR2_optimum", "value", lambda y: np.array(np.nan), "best single head's", "undecided"),
    ("a_AR2_optimum", "value", lambda y: np.array(0.061), "best single head's", "undecided"),
    ("a_AR2_optimum", "any_heads", lambda y: np.array(0.061), "best single head's", "fails"),
    ("a_AR2_exact", "risk_RS", lambda y: y * [[1, 1, 1], [1, 1, 1.5]], "so does the trained", "fails"),
    ("a_AR2_exact", "risk_RS", lambda y: np.nan * y, "so does the trained", "undecided"),
    ("a_test", "step_exact_W", lambda y: 1.03 * y, "s = 1", "fails"),
    ("a_test", "step_exact_W", lambda y: np.nan * y, "s = 1", "undecided"),
    ("a_test", "step_above_W", lambda y: y - [0, 0.015], "one gradient step", "fails"),
    ("a_test", "step_above_stderr_W", lambda y: 100 * y, "one gradient step", "undecided"),
    ("a_test", "pcg_above_W", lambda y: y - [0, -0.015], "two PCG steps", "fails"),
    ("a_test", "pcg_above_stderr_W", lambda y: 100 * y, "two PCG steps", "undecided"),
]


@pytest.mark.parametrize(
    ("cls", "made", "part", "array", "change", "claim", "verdict"),
    [(Weights, lambda: weights(1, 2), *row) for row in MUTATIONS]
    + [(Extra, comparison, *row) for row in CONTRADICTED],
)
def test_a_claim_follows_the_data(cls, made, part, array, change, claim, verdict):
    arrays = made()
    arrays[part][array] = change(arrays[part][array])
    found = claims(unbuilt(cls), arrays)
    assert [text for text in found if claim in text and found[text] == verdict], found


@pytest.mark.parametrize("estimator", ["population", "sampled"])
def test_entries_that_only_nearly_vanish_when_training_stops_are_decided_at_the_minimum(estimator):
    """Take new systems, as the paper trained: there the end of training counts as well."""
    arrays = weights(3, estimator=estimator)
    arrays["AR3_exact"]["raw_QK_RS"] = arrays["AR3_exact"]["raw_QK_RS"] + 0.2
    arrays["AR3_exact"]["minimum_scales_R2"] = np.array([[0.06, 0.935], [2.0, 1.0]])
    _, supported, vanishes = unbuilt(Weights).claims(records(arrays))
    assert (
        supported.verdict == ("fails" if estimator == "sampled" else "holds") and vanishes.verdict == "holds"
    )
    assert supported.measured["AR(3)"]["factors on W_V that match"] == ["0.06 to 0.94", "none"]


def test_every_seed_and_every_free_entry_is_drawn():
    drawn = unbuilt(Weights).picture(records(weights(1, 2)))
    images = [axes for axes in drawn.axes if axes.images]
    assert len(images) == 2 * 2 * (1 + len(SEEDS)), "two windows, W_QK and W_V, the optimum and every seed"
    for i, axes in enumerate(images):
        outlined = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
        rows, columns = axes.images[0].get_array().shape
        of_keys = i % (2 * (1 + len(SEEDS))) <= len(SEEDS)
        mask_P, mask_KP = masks(rows if of_keys else rows - 1)
        assert columns == (rows + 1 if of_keys else 1)
        assert len(outlined) == (mask_KP if of_keys else mask_P).sum()


SIZE = {"dim": 2, "length": 8, "seeds": [0, 4], "steps": 40, "systems": 20}


class StoringRunner(FakeRunner):
    """A runner that returns random weights of two seeds, and finds again what it has stored."""

    def __init__(self):
        super().__init__(lambda experiment, overrides: run_of(overrides["task.window"]))
        self.stored: dict[str, Any] = {}

    def store(self, name, science, *given):
        key = f"{name} {science}"
        if key not in self.stored:
            self.stored[key] = super().store(f"s{len(self.stored)}", science, *given)
        return self.stored[key]


def run_of(window, steps=3):
    rng = np.random.default_rng(window)
    P, Q = rng.standard_normal((2, 2, steps, 1, window + 1, window + 1))
    arrays = {"P_history": P, "Q_history": Q, "history_steps": np.arange(steps)}
    return record(run=mark(f"f{window}", [0, 4]), weights=arrays)


def composed(protocol, window, *more):
    """Return the settings of the run that is requested."""
    runner = StoringRunner()
    protocol.train(runner, window)
    ((experiment, asked),) = runner.asked
    overrides = [f"{key}={'null' if value is None else value}" for key, value in asked.items()]
    return compose(ConfigDirs(), "train", [f"experiment={experiment}", *overrides, *more]).settings


def test_figures_of_one_setting_share_runs_and_optima():
    runner = StoringRunner()
    first = Weights("a", [1, 2], **SIZE).runs(runner)
    assert set(first) == {f"AR{s}{part}" for s in (1, 2) for part in ("", "_exact", "_optimum")}
    count = len(runner.stored)
    assert Weights("a", [2], **SIZE).runs(runner)["AR2_optimum"] is first["AR2_optimum"]
    test = Extra(settings=["a"], windows=[1, 2], sequences=400, **SIZE).runs(runner)["a_test"].weights
    assert len(runner.stored) == count + 1, "the comparison adds its own arrays only"
    for name in ("step", "pcg", "least_squares", "optimum", "trained"):
        np.testing.assert_allclose(test[f"{name}_W"] - test["kalman_W"], test[f"{name}_above_W"], rtol=1e-9)
        assert (test[f"{name}_above_W"] > 0).all(), "no predictor is better than the Kalman filter"
    np.testing.assert_allclose(test["pcg_W"][0], test["least_squares_W"][0])
    assert (np.abs(test["step_W"] - test["step_exact_W"]) < 4.5 * test["step_stderr_W"]).all()


@pytest.mark.parametrize(
    ("setting", "lr", "betas", "low", "pool"),
    [("a", 9e-2, [0.1, 0.55], 1e-4, None), ("c", 7e-3, [0.92, 0.96], 1e-5, 20)],
)
def test_runs_follow_the_tables(setting, lr, betas, low, pool):
    """Compose AR(3) in (a) and (c), whose tables differ."""
    settings = composed(Protocol(setting, **SIZE), 3, "scale=laptop")
    assert settings["optimizer"]["lr"] == lr and list(settings["optimizer"]["betas"]) == betas
    assert settings["optimizer"]["schedule"]["min_lr"] == low and settings["task"]["systems"] == pool
    assert settings["train"]["estimator"] == "population" and settings["train"]["batch"] is None


@pytest.mark.parametrize("window", [1, 2, 3, 4])
def test_the_experiments_train_at_paper_scale_as_the_figures_do(window):
    name = "lds/ar" if window == 1 else f"lds/ar{window}"
    of_figure = composed(Protocol("a", 5, 30, [666013, 1, 0], 8001, 2000, fresh=True), window, "scale=paper")
    own = compose(ConfigDirs(), "train", [f"experiment={name}", "scale=paper"]).settings
    for part in ("task", "optimizer", "train", "trainer"):
        for settings in (own, of_figure):
            settings[part].pop("log_every", None)
        assert own[part] == of_figure[part]
    assert own["seeds"] == of_figure["seeds"] and of_figure["train"]["estimator"] == "sampled"
    assert own["model"]["init_std"] == pytest.approx(of_figure["model"]["init_std"], rel=1e-3)


def test_what_is_measured_is_the_exact_risk_and_the_weights_of_the_end():
    protocol, window, run = Protocol("a", **SIZE), 2, run_of(2)
    found, law = measure_weights(run, protocol.risk(window), window), protocol.law(window)
    for s in range(3):
        family = Full(window, layers=1)
        family.load({name: torch.from_numpy(run.weights[f"{name}_history"][:, s]) for name in "PQ"})
        model = LinearTransformer(family)
        risk = law.exact_risk(model)
        np.testing.assert_allclose(found["risk_RS"][:, s], risk(model).detach().numpy(), rtol=1e-12)
    # The head in the gauge predicts what the layer does.
    prompt = gram_prompts(law.sequences([generator(3, "eval")], 20).expand(2, -1, -1), window)
    given = prompt.gram_RBPP[1], prompt.query_RBP[1, :, :window]
    heads = head(found["b_RP"][1], found["a_RKP"][1], *given)
    np.testing.assert_allclose(heads.numpy(), model.predict(prompt).detach().numpy()[1], rtol=1e-10)


def test_each_seed_has_the_minimum_that_its_weights_descend_to():
    """Start near the best head of (13), and near its mirror: the entries outside vanish in both."""
    protocol = Protocol("a", **SIZE)
    optimum = protocol.runs(StoringRunner(), 1)["AR1_optimum"].weights
    b, a = optimum["b_P"] + [0.02, 0.05], optimum["a_KP"] + [[0.03, -0.04]]
    P, Q = np.zeros((2, 2, 1, 1, 2, 2))
    P[0, 0, 0, -1], Q[0, 0, 0, :, 0] = 2 * b, a[0] / 2
    P[1, 0, 0, -1], Q[1, 0, 0, :, 0] = a[0], b
    arrays = {"P_history": P, "Q_history": Q, "history_steps": np.zeros(1)}
    found = measure_weights(record(run=mark("f", [0, 4]), weights=arrays), protocol.risk(1), 1)
    assert found["minimum_reached_R"].all() and (found["minimum_curvature_R"] > 1e-4).all()
    np.testing.assert_allclose(found["minimum_risk_R"], optimum["value"], rtol=1e-12)
    assert (found["outside_R"] > 0.01).all() and (found["minimum_outside_R"] < 1e-10).all()
    assert found["minimum_V_R"].tolist() == found["minimum_QK_R"].tolist() == [0, 1], "as they are"
    (least, most), (low, high) = found["minimum_scales_R2"]
    assert least < 1 < most and low > high


def test_the_best_step_is_the_best_and_at_one_window_the_constant_of_14():
    """Compare with one step of gradient descent, the moments, and the best head, or its mirror."""
    protocol = Protocol("b", **SIZE)
    risk = protocol.risk(2)
    eta, value = best_step(risk, 2)
    b, a = torch.tensor([[0.0, 0, 1]]).double(), torch.zeros(1, 3, 3).double()
    a[0, :2, :2] = torch.eye(2)
    assert value == pytest.approx(float(risk.value_of_heads(b, eta * a)), rel=1e-10)
    assert min(float(risk.value_of_heads(b, other * eta * a)) for other in (0.99, 1.01)) > value
    prompt = gram_prompts(protocol.law(2).sequences([generator(1, "eval")], 30), 2)
    mine = head(b[0].numpy(), (eta * a)[0, :2].numpy(), prompt.gram_RBPP[0], prompt.query_RBP[0, :, :2])
    torch.testing.assert_close(mine, GradientDescent(eta, 1).predict(prompt)[0])

    protocol = Protocol("a", **SIZE)
    found = moments(covariances_of_independent_modes(**protocol.law(1).mode_arguments()), 1)
    eta, _ = best_step(protocol.risk(1), 1)
    assert eta == pytest.approx(float(found.linear_KS[0, 1] / found.form_KSKS[0, 1, 0, 1]), rel=1e-10)
    optimum = protocol.runs(StoringRunner(), 1)["AR1_optimum"].weights
    assert effective_weight(optimum["b_P"], optimum["a_KP"]) == pytest.approx(eta, rel=1e-6)
    assert optimum["step"] == pytest.approx(eta, rel=1e-12)


def risk_of(window, setting="a"):
    return DynamicalSystem(2, 10, window, setting).law([0]).quadratic_risk


def test_the_best_head_is_found():
    """Compare with alternating least squares, the bound, and a scan over the angle of two free entries."""
    risk, every = risk_of(2), torch.ones(3, dtype=torch.bool)
    found = search_values(risk, np.random.default_rng(0), 4, every)
    other = risk.best_with_heads(1, np.random.default_rng(1), 2, iterations=300)
    assert risk.convex_bound().value - risk.convex_bound().rounding <= found.value <= other.value * (1 + 1e-9)
    assert float(risk.value_of_heads(found.b_HP, found.a_HKP)) == pytest.approx(found.value, rel=1e-10)
    found = search_values(risk, np.random.default_rng(0), 4, torch.tensor([True, False, True]))
    angles = torch.linspace(0, torch.pi, 721).double()
    scan = [risk.best_with_values(torch.stack([t.cos(), 0 * t, t.sin()])[None]).value for t in angles]
    assert found.value <= min(scan) and found.value == pytest.approx(min(scan), rel=1e-5)
    assert float(found.b_HP[0, 1]) == 0
    x = np.random.default_rng(3).standard_normal(3)
    steps = 1e-5 * np.eye(3)
    slopes = [(gap(x + step, risk, every)[0] - gap(x - step, risk, every)[0]) / 2e-5 for step in steps]
    np.testing.assert_allclose(gap(x, risk, every)[1], slopes, rtol=1e-5, atol=1e-10)


@pytest.mark.parametrize(("window", "setting"), [(1, "a"), (2, "b")])
def test_the_descent_ends_where_lbfgs_ends_and_at_the_scale_of_gradient_flow(window, setting):
    risk, rng = risk_of(window, setting), np.random.default_rng(window)
    best = search_values(risk, generator(0, "search", window), 2, torch.ones(window + 1, dtype=torch.bool))
    b, a = best.b_HP[0].numpy(), best.a_HKP[0, :window].numpy()
    scale = np.sqrt(np.linalg.norm(a) / np.linalg.norm(b))
    start_b, start_a = (
        M + 0.02 * rng.standard_normal(M.shape) * np.abs(M).max() for M in (b * scale, a / scale)
    )
    found = descend(risk, start_b, start_a)
    assert found.reached and found.step < 1e-8 and found.value <= best.value * (1 + 1e-12)

    def value(x):
        at = torch.from_numpy(x).requires_grad_()
        rows = torch.cat([at[window + 1 :], at.new_zeros(window + 1)]).view(-1, window + 1)
        risk.value_of_heads(at[None, : window + 1], rows[None]).backward()
        with torch.no_grad():
            return float(risk.value_of_heads(at[None, : window + 1], rows[None])), at.grad.numpy()

    options = {"maxcor": 30, "ftol": 0, "gtol": 1e-11 * risk.constant, "maxiter": 20_000, "maxfun": 40_000}
    start = np.concatenate([start_b, start_a.ravel()])
    end = minimize(value, start, jac=True, method="L-BFGS-B", options=options)
    assert end.fun == pytest.approx(found.value, rel=1e-9)
    products = end.x[: window + 1, None, None] * end.x[window + 1 :].reshape(a.shape)
    np.testing.assert_allclose(products, found.b_P[:, None, None] * found.a_KP, atol=1e-3 * scale**2 * 9)
    conserved = np.square(start_b).sum() - np.square(start_a).sum()
    assert np.square(found.b_P).sum() - np.square(found.a_KP).sum() == pytest.approx(conserved, rel=1e-9)


def test_the_descent_leaves_a_saddle_and_does_not_call_one_a_minimum():
    """Take b = 0, a = 0, which is critical and no minimum."""
    risk = risk_of(2)
    found = descend(risk, np.full(3, 1e-6), np.full((2, 3), 1e-6))
    assert found.reached and found.value < 0.99 * risk.constant
    for step, curvature in ((1e-12, -1e-3), (1e-3, 1e-3)):
        assert not LocalMinimum(1.0, found.b_P, found.a_KP, step, curvature).reached


@pytest.mark.parametrize("window", [1, 2, 4])
def test_the_gauge_is_balanced_and_changes_no_prediction(window):
    """The layer predicts with the symmetric parts of b a_k^T."""
    rng = np.random.default_rng(window)
    b_XP, a_XKP = rng.standard_normal((6, window + 1)), rng.standard_normal((6, window, window + 1))
    found_b, found_a = canonical(b_XP, a_XKP)
    forms = [a[..., None] * b[:, None, None] for b, a in ((found_b, found_a), (b_XP, a_XKP))]
    one, other = (form + form.swapaxes(-1, -2) for form in forms)
    np.testing.assert_allclose(one, other, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(found_b, axis=-1), np.linalg.norm(found_a, axis=(-2, -1)))
    last = [b[np.abs(b) >= 0.1 * np.abs(b).max()][-1] for b in found_b]
    assert min(last) > 0
    for mine, yours in zip(canonical(-7 * b_XP, -a_XKP / 7), (found_b, found_a), strict=True):
        np.testing.assert_allclose(mine, yours, atol=1e-12)
    assert not any(M.any() for M in canonical(np.zeros(3), np.zeros((2, 3)))), "zero weights stay"
    keys, corner = np.array([1.7, 0.1]), np.array([0.2, 1.3])
    mirrors = canonical(corner, keys[None]), canonical(keys, corner[None])
    for mine, yours in zip(*mirrors, strict=True):
        np.testing.assert_allclose(mine, yours, atol=1e-12)


def test_supports_their_distances_and_the_masks():
    free_P, free_KP = masks(3)
    assert free_P.tolist() == [False, True, False, True]
    assert free_KP.astype(int).tolist() == [[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]]
    M = np.array([[2.0, 0.15], [0.099, -0.3]])
    assert supports(M, relative=False).tolist() == [[True, True], [False, True]]
    assert supports(M, relative=True).tolist() == [[True, False], [False, True]]
    A, B = np.array([[1, 1], [0, 1]], dtype=bool), np.array([[1, 0], [0, 1]], dtype=bool)
    assert jaccard(np.stack([A, B, ~B, 0 * B > 0]), B).tolist() == pytest.approx([1 / 3, 0, 1, 1])
    b, a = np.array([0.02, 2.0]), np.array([[4.0, 0.1]])
    assert outside(b, a) == outside(3 * b, a / 3) == pytest.approx(0.025) and outside(b[::-1], a) == 1


@pytest.mark.parametrize(("window", "rest"), [(2, 0.01), (3, 0.0), (3, 0.3)])
def test_scales_at_which_the_supports_match_are_found(window, rest):
    """Compare with supports at many scales."""
    rng, (mask_P, mask_KP) = np.random.default_rng(0), masks(window)
    b = np.where(mask_P, 1, rest) * rng.uniform(0.5, 2, window + 1)
    a = np.where(mask_KP, 1, rest) * rng.uniform(0.5, 2, (window, window + 1))
    least, most = matching_scales(b, a)
    for c in np.geomspace(1e-2, 1e2, 400):
        match = np.array_equal(supports((c * b)[:, None], False)[:, 0], mask_P)
        assert (match and np.array_equal(supports(a / c, False), mask_KP)) == (least <= c <= most)
