"""What giannou's figures compute, of weights that are not trained, and which runs they ask for."""

from itertools import product

import numpy as np
import pytest
import torch

from icl.algorithms import newton_iteration
from icl.algorithms.coordinates import moments
from icl.algorithms.newton import transpose_start
from icl.figures.giannou.family import exact_problem, family_best, newton_losses, sampled_problem
from icl.figures.giannou.outputs import clipped_predictions, range_of, share_within
from icl.figures.giannou.regression import Stack
from icl.models import LSA, Encoder, LinearTransformer
from icl.random import generator
from icl.tasks import ConditionedRegression, LogisticRegression
from icl.tasks.logistic_loss import LogisticLoss
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.theory.giannou.scalar_family import risks
from tests.figures.bases import built
from tests.records import FakeRunner, mark, record

SEEDS, MASKS = [0, 4], ("unmasked", "masked")


@pytest.fixture(autouse=True)
def runs_without_a_folder(monkeypatch):
    for module in ("logistic", "regression"):
        monkeypatch.setattr(f"icl.figures.giannou.{module}.restored", lambda run: run)


def untrained_encoder(experiment, overrides):
    assert experiment == "giannou/logistic" and overrides["seeds"] == SEEDS
    settings = {"layers": overrides["model.layers"], "width": 4, "heads": 2, "hidden": 0}
    model = Encoder(3, **settings, reads="parameter", init_std=0.5)
    model.parametrization.initialise(SEEDS)
    law = LogisticRegression(3, overrides["task.context"], 0.1).law(SEEDS)
    return record(run=mark(settings["layers"], SEEDS), law=law, transformer=model.requires_grad_(False))


def test_logistic_losses_are_those_of_the_outputs():
    size = {"layers": [2, 1], "seeds": SEEDS, "dim": 3, "context": 8, "newton_steps": 3, "prompts": 40}
    records = built("giannou/fig1", **size).runs(FakeRunner(untrained_encoder))
    assert [*records] == ["L=1", "L=2", "losses"]
    found, law = records["losses"].weights, records["L=2"].law
    prompt, best_RBD = law.prompts_and_targets([generator(seed, "eval") for seed in SEEDS], 40)
    loss = LogisticLoss(prompt.context_RBNP[1, ..., :-1], prompt.context_RBNP[1, ..., -1], 0.1)
    x_BD = torch.zeros(40, 3, dtype=torch.float64)
    for step in range(4):
        assert found["newton_TR"][step, 1] == pytest.approx(float(loss.value(x_BD).mean()), rel=1e-12)
        x_BD = loss.damped_step(x_BD)
    assert found["least_R"][1] == pytest.approx(float(loss.value(best_RBD[1]).mean()), rel=1e-12)
    trained_B = loss.value(records["L=2"].transformer.read(prompt)[1])
    assert found["trained_LR"][1, 1] == pytest.approx(float(trained_B.mean()), rel=1e-12)


SIZE = {"dim": 2, "context": 6, "layers": [3, 2, 1], "seeds": SEEDS, "steps": 10, "grown": False, "starts": 1}
LAYERNORM = {"layernorm_layers": [1], "layernorm_steps": 10}


def untrained(experiment, asked):
    """Return a stack, or one that begins at the given point."""
    if experiment == "giannou/lsa_ln":
        model = Encoder(SIZE["dim"], asked["model.layers"], 4, 2, "linear", hidden=0, init_std=0.3)
    else:
        names = ("layers", "mask", "read_in", "scalars")
        settings = {"heads": 1} | {k: asked[f"model.{k}"] for k in names if f"model.{k}" in asked}
        family = LSA(SIZE["dim"], **settings, init_std=asked.get("model.init_std", 0.1) * 1e-3)
        model = LinearTransformer(family)
    model.parametrization.initialise(SEEDS)
    return record(run=mark(experiment, SEEDS), transformer=model.requires_grad_(False))


def test_losses_of_figure_2():
    """A stack has the loss of the family's best point where it begins there, and predicts nothing where it is
    not trained."""
    runner = FakeRunner(untrained)
    figure = built("giannou/fig2", **SIZE, started_steps=10, prompts=3000, **LAYERNORM)
    records = figure.runs(runner)
    known, losses = records["baselines"].weights, records["losses"].weights
    (*_, (_, last)) = (asked for asked in runner.asked if "model.scalars" in asked[1])
    assert last["model.scalars"] == known["family_masked_theta_LV"][2].tolist()
    for mask, layers in product(MASKS, (1, 2)):
        best = known[f"family_{mask}_risk_L"][layers - 1]
        mean, error = (losses[f"kappa1_{mask}_started_L{layers}_{of}"] for of in ("mean", "error"))
        error = np.hypot(error, known[f"family_{mask}_error_L"][layers - 1])
        assert (np.abs(mean - best) < 5 * error).all() and (error < 0.2 * best).all()
        assert np.allclose(losses[f"kappa1_{mask}_L{layers}_mean"], 1, atol=0.2)  # E <w, x>^2 / d
    assert figure.claims(records)[0].verdict == "undecided", "above order 2, longer training may mend"


def test_no_run_begins_where_noise_takes_the_loss_away():
    """Take the best point of four layers, without a mask, at d = 10 and n = 50."""
    deep = [-2.522, -0.6426, 3.509, 9.2, 0.1895, 0.5033, 1.403, 1.267]
    figure = built("giannou/fig2", **SIZE | {"dim": 10, "context": 50, "layers": [4]})
    known = record(weights={"family_unmasked_theta_LV": np.array([deep])})
    assert figure.started(FakeRunner(), known, False) == {}


def test_a_stack_that_grew():
    """Take the first layers after a depth, and of each seed the start that went on."""
    families = {}
    for step in (0, 3, 4, 8):
        families[step] = LSA(2, 3, 1, init_std=0.1 + step)
        families[step].initialise(range(6))
    stored = [(step, LinearTransformer(family.requires_grad_(False))) for step, family in families.items()]
    config = {"callbacks": {"growth": {"every": 4, "first": 2, "starts": 3}}}
    run = record(run=mark("grown", range(6)), config=config, stored_models=lambda: stored)
    for depth, step in ((2, 4), (3, 8)):
        stack = Stack(run, depth, 3)
        assert stack.transformer.parametrization.layers == depth and stack.seeds == 2
        for name, M in stack.transformer.parametrization.matrices().items():
            whole = families[step].matrices()[name]
            assert torch.equal(M, (whole[:, :depth] if name in "PQ" else whole)[::3])
    assert Stack(run, 2, 3).identity != Stack(run, 3, 3).identity


def test_outputs_by_two_routes():
    """Compare Gram matrices and tokens; the masked outputs are affine, the others not."""
    figure = built("giannou/fig5", **SIZE | LAYERNORM | {"layers": [1, 2]})
    records = figure.runs(FakeRunner(untrained))
    found = records["outputs"].weights
    for mask in MASKS:
        by_gram, by_tokens = found[f"kappa1_{mask}_L2_RKG"], found[f"kappa1_{mask}_L2_clipped_RG"]
        within = np.abs(found["x_G"]) < 10  # so that the clip has no part
        assert np.allclose(by_gram.mean(1)[:, within], by_tokens[:, within], rtol=1e-9)
        bend = np.abs(np.diff(by_gram[..., 61:], 2, axis=-1)).max() / np.abs(by_gram).max()
        assert (bend < 1e-9) == (mask == "masked")
    newton = found["newton_transpose_3_TKG"]
    assert np.abs(newton[2] - found["line_G"]).max() < np.abs(newton[1] - found["line_G"]).max()
    assert [claim.verdict for claim in figure.claims(records)] == ["undecided"]


@pytest.mark.parametrize("heads", [{"heads": 1}, {"heads": 3, "width": 7, "rank": 2}], ids=str)
@pytest.mark.parametrize("mask", [False, True])
def test_the_clip_bounds_every_entry(heads, mask):
    family = LSA(2, 2, **heads, mask=mask, init_std=1.0)
    family.initialise(SEEDS)
    of = ConditionedRegression(2, 6, largest=(1.0, 1.0), constant=True).law(SEEDS)
    prompt = of.token_prompts([generator(seed, "eval") for seed in SEEDS], 5)
    free = clipped_predictions(family, prompt, np.inf)
    assert torch.allclose(free, LinearTransformer(family).predict(prompt), rtol=1e-10)
    clipped = clipped_predictions(family, prompt, 0.5)
    assert (clipped.abs() <= 0.5 * family.o.abs().sum(-1)[:, 0] + 1e-12).all()
    assert not torch.equal(free, clipped)


def test_what_the_range_holds():
    assert range_of(1.0, 1.0) == pytest.approx(2.5758, abs=1e-4)
    x_B = generator(0, "check").uniform(1, 100, 10**6) ** 0.5 * generator(1, "check").standard_normal(10**6)
    assert share_within(14.9, 1.0, 100.0) == pytest.approx((np.abs(x_B) < 14.9).mean(), abs=2e-3)


D, N, SIGMAS = 3, 9, 5.0
THETA = np.array([0.25, 0.4, 0.15, 0.9])
TASKS = {"largest": (1.0, 9.0), "label_noise": 0.5}, {"condition": 4.0, "largest": (1.0, 2.0)}


def law(**task):
    return ConditionedRegression(D, N, **({"largest": (1.0, 1.0)} | task)).law([0])


def assert_agree(share_B, other):
    """Compare the means of two samples, or of one with a number, closer than a tenth."""
    error = np.hypot(*(np.std(y_B) / np.size(y_B) ** 0.5 for y_B in (share_B, other)))
    assert abs(np.mean(share_B) - np.mean(other)) < SIGMAS * error < 0.1 * np.mean(other)


def errors_of(predicted_RB, prompt):
    return (predicted_RB - prompt.target_RB)[0].detach().square().numpy() / D


@pytest.mark.parametrize("mask", [True, False])
@pytest.mark.parametrize("task", TASKS, ids=str)
def test_risk_is_that_of_the_transformer(mask, task):
    """Compare spectra, weighted and with w integrated out, with prompts of which everything is sampled, and
    with the exact rule if the law has one."""
    of, prompts, theta_V = law(**task), 60_000, THETA / np.mean(task["largest"])
    problem, _ = sampled_problem(of, mask, 2, 0, "check", prompts)
    family = LSA(D, 2, 1, mask=mask, scalars=theta_V.tolist(), init_std=0.0)
    family.initialise([0])
    prompt, risk_B = of.gram_prompts([generator(1, "check")], prompts), risks(theta_V, problem) * prompts
    assert_agree(risk_B, errors_of(LinearTransformer(family).predict(prompt), prompt))
    exact = exact_problem(of, 2)
    assert (exact is None) == ("condition" in task)
    if exact is not None and mask:
        assert_agree(risk_B, risks(theta_V, exact).sum())


def test_best_points():
    """Compare best points: with a mask not above ahn's search without c, nor below any polynomial; without
    not below the floor."""
    for layers in (1, 2, 3):
        with_b = InvariantRisk(D, N, layers, with_b=True)
        searched = with_b.minimise(generator(0, "search"), 16)[0].risk / D
        found = family_best(law(), True, list(range(1, layers + 1)), 0, 200, 200)["risk_L"][-1]
        assert float(with_b.lower_bound()) / D * (1 - 1e-9) < found < searched * (1 + 1e-9)
    deep = family_best(law(), True, [3, 4, 6], 0, 4000, 400)
    assert abs(deep["risk_L"][0] - found) < 1e-9 * found
    assert (deep["error_L"] > 0).tolist() == [False, False, True]
    assert deep["theta_LV"][2, [5, 10]].tolist() == [0, 0] and np.isnan(deep["theta_LV"][0, 6:]).all()
    own = family_best(law(), False, [1, 2], 0, 20_000, 1000)
    assert own["risk_L"][0] > own["risk_L"][1] > own["floor"] - SIGMAS * own["floor_error"]
    other = family_best(law(), False, [1], 1, 20_000, 1000)
    assert 0 < abs(own["floor"] - other["floor"]) < SIGMAS * 2**0.5 * own["floor_error"]


def test_newton_by_the_spectrum_is_newton():
    of, prompts = law(condition=4.0, largest=(1.0, 2.0), label_noise=0.3), 40_000
    found, _ = newton_losses(of, 0, prompts, 2)
    prompt = of.gram_prompts([generator(1, "check")], prompts)
    S_RBDD, g_RBD, x_RBD = moments(prompt, None)
    s_RBD = torch.linalg.svdvals(S_RBDD)
    identity_RBDD = (2 / (s_RBD[..., 0] + s_RBD[..., -1]))[..., None, None] * torch.eye(D).double()
    for name, order, start in (("transpose_2", 2, transpose_start(S_RBDD)), ("identity_3", 3, identity_RBDD)):
        for step, X_RBDD in enumerate(newton_iteration(S_RBDD, start, order, 2)):
            predicted_RB = torch.einsum("rbi,rbij,rbj->rb", g_RBD, X_RBDD, x_RBD)
            assert_agree(found[name][step], errors_of(predicted_RB, prompt))
