"""Tests of Figures 2, 3, 4 and 8: the runs they request, the numbers computed from them, and their claims."""

import dataclasses

import numpy as np
import pytest
import torch

from icl.errors import InputError
from icl.experiments.giannou.fig2 import Fig2
from icl.experiments.giannou.fig8 import Fig8
from icl.experiments.giannou.fig9 import Fig9
from icl.experiments.giannou.outputs import OutputsLayerNorm, clipped_predictions, range_of, share_within
from icl.experiments.giannou.regression import (
    PromptLaw,
    RegressionSize,
    Trained,
    best_model,
    layernorm,
    prompt_losses,
    risks,
    runs_of,
    train_by_depth,
    train_from_best,
)
from icl.figures.giannou import fig2, fig3, fig4, fig5, fig6, fig8, fig9, regression
from icl.models import LSA, Encoder, LinearTransformer
from icl.random import generator
from icl.tasks import ConditionedRegression
from tests.records import FakeRunner, mark, record

SEEDS = [0, 4]
SIZE = {"dim": 2, "context": 6, "layers": [2, 1], "seeds": SEEDS, "steps": 10}
LAYERNORM = {"layernorm_layers": [1], "layernorm_steps": 10}
PAPER = PromptLaw(1.0, (1.0, 1.0), 0.0)


def untrained(experiment, asked):
    """Return a stack, or one that begins at the given point."""
    if experiment == "giannou/lsa_ln":
        model = Encoder(SIZE["dim"], asked["model.layers"], 4, 2, "linear", hidden=0, init_std=0.3)
    else:
        assert experiment == "giannou/lsa"
        names = ("layers", "mask", "read_in", "scalars")
        settings = {"heads": 1} | {k: asked[f"model.{k}"] for k in names if f"model.{k}" in asked}
        family = LSA(SIZE["dim"], **settings, init_std=asked.get("model.init_std", 0.1) * 1e-3)
        model = LinearTransformer(family)
    model.parametrization.initialise(SEEDS)
    return record(run=mark(experiment, SEEDS), transformer=model.requires_grad_(False))


@pytest.fixture(scope="module", autouse=True)
def restored():
    """Restore a run that has no folder."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("regression", "outputs"):
            patch.setattr(f"icl.experiments.giannou.{module}.restored", lambda run: run)
        yield


@pytest.fixture(scope="module")
def second(restored):
    runner = FakeRunner(untrained)
    return runner, Fig2(**SIZE, started_steps=10, prompts=3000, **LAYERNORM).records(runner)


@pytest.fixture(scope="module")
def third(restored):
    figure = OutputsLayerNorm(**SIZE, contexts=100, near=14.9, far=100.0, tokens=20, **LAYERNORM)
    return figure.records(FakeRunner(untrained))


def verdicts(claims):
    return [claim.verdict for claim in claims]


def test_which_runs_figure_2_asks_for(second):
    runner, records = second
    plain = [a for experiment, a in runner.asked if experiment == "giannou/lsa"]
    asked = [(a["model.mask"], a["model.layers"], "model.scalars" in a) for a in plain]
    both = (False, True)
    assert asked == [(mask, layers, begun) for mask in both for begun in both for layers in (1, 2)]
    assert {a["train.estimator"] for a in plain if a["model.mask"]} == {"expected"}
    known = records["baselines"].weights
    assert plain[-1]["model.scalars"] == known["family_masked_theta_LV"][1].tolist()


@pytest.mark.parametrize(
    ("dim", "context", "scalars", "noise"),
    [
        (5, 25, [0.8, 1.0], 0.005),
        # The best points of four and six layers, without a mask, at d = 10 and n = 50.
        (10, 50, [-2.522, -0.6426, 3.509, 9.2, 0.1895, 0.5033, 1.403, 1.267], None),
        (10, 50, [-4.64, -2.14, 0.0, 4.54, 11.4, 0.0, 0.186, 0.179, 0.657, 1.72, 0.0, 1.27], None),
    ],
)
def test_no_run_begins_where_noise_takes_the_loss_away(dim, context, scalars, noise):
    layers = len(scalars) // 2
    size = RegressionSize(dim, context, [layers], SEEDS, 10, 100, 10)
    known = record(weights={"depths_L": np.array([layers]), "family_unmasked_theta_LV": np.array([scalars])})
    runner = FakeRunner()
    started = train_from_best(runner, size, PAPER, False, known, [layers])
    assert len(started) == (noise is not None)
    assert [asked["model.init_std"] for _, asked in runner.asked] == [noise] * len(started)


def test_a_stack_that_grew():
    """Take the first layers after a depth, and of each seed the start that went on."""
    growth = {"every": 4, "first": 2, "starts": 3}
    families = {}
    for step in (0, 3, 4, 8):
        family = LSA(2, 3, 1, init_std=0.1 + step)
        family.initialise(range(6))
        families[step] = family.requires_grad_(False)
    stored = [(step, LinearTransformer(family)) for step, family in families.items()]
    run = record(
        run=mark("grown", range(6)), config={"callbacks": {"growth": growth}}, stored_models=lambda: stored
    )
    for depth, step in ((2, 4), (3, 8)):
        stack = Trained(run, depth, 3)
        assert stack.transformer.parametrization.layers == depth and stack.seeds == 2
        for name, M in stack.transformer.parametrization.matrices().items():
            whole = families[step].matrices()[name]
            assert torch.equal(M, (whole[:, :depth] if name in "PQ" else whole)[::3])
    assert Trained(run, 2, 3).identity != Trained(run, 3, 3).identity


def test_which_run_grows():
    runner = FakeRunner(lambda experiment, asked: record(run=mark(str(asked))))
    size = RegressionSize(**SIZE | {"layers": [1, 2, 3]}, prompts=100, grown=True, starts=2)
    stacks = train_by_depth(runner, size, PAPER, True)
    (_, alone), (_, grown) = sorted(runner.asked, key=lambda request: request[1]["model.layers"])
    assert alone["model.layers"] == 1 and "callbacks.growth.every" not in alone
    assert grown["seeds"] == [0, 1000, 4, 1004] and grown["train.steps"] == 20 and grown["model.layers"] == 3
    assert grown["callbacks.growth.every"] == grown["optimizer.schedule.every"] == 10
    assert list(runs_of(stacks)) == ["kappa1_masked_L1", "kappa1_masked_grown"]
    tilted = dataclasses.replace(size, tilted=True)
    for mask in (False, True):
        tilted.grow(runner, PAPER, mask)
    assert [asked["train.estimator"] for _, asked in runner.asked[-2:]] == ["tilted", "expected"]
    for wrong in ({"starts": 2}, {"tilted": True}):
        with pytest.raises(InputError, match=r"(starts=2|tilted=true): needs figure\.experiment\.grown=true"):
            RegressionSize(**SIZE, prompts=100, **wrong)


def test_losses_beside_the_best_point(second):
    """Begin at the best point with hardly any noise, where a stack has its loss; untrained, it predicts
    nothing."""
    _, records = second
    known, found = records["baselines"].weights, records["losses"].weights
    for mask in ("masked", "unmasked"):
        for i, layers in enumerate((1, 2)):
            more = np.abs(found[f"kappa1_{mask}_started_L{layers}_more_mean"])
            assert (more < 1e-2 * known[f"family_{mask}_risk_L"][i]).all()
            mean, error = (found[f"kappa1_{mask}_started_L{layers}_{of}"] for of in ("mean", "error"))
            error = np.hypot(error, known[f"family_{mask}_error_L"][i])
            assert (np.abs(mean - known[f"family_{mask}_risk_L"][i]) < 5 * error).all()
            nothing = found[f"kappa1_{mask}_L{layers}_mean"]
            assert (np.abs(nothing - 1) < 0.2).all()  # E <w, x>^2 / d


def test_risks_beside_the_best_point(second):
    """Compare untrained stacks, of risk 1, and those that begin there with that point; show a tail that plain
    prompts do not."""
    _, records = second
    known, found = records["baselines"].weights, records["risks"].weights
    assert {name for name in found if "usual" in name and "started" in name} == set()
    for mask in ("masked", "unmasked"):
        least = known[f"family_{mask}_risk_L"][1]
        assert np.allclose(found[f"kappa1_{mask}_L2_usual"] * least, 1, atol=0.3)
        assert (found[f"kappa1_{mask}_L2_capped_mean"] < 1).all()
        assert np.allclose(found[f"kappa1_{mask}_L2_more_mean"], 1 - least, atol=0.2)
        assert (np.abs(found[f"kappa1_{mask}_started_L2_more_mean"]) < 1e-2 * least).all()
    size = RegressionSize(**SIZE, prompts=4000)
    family = LSA(2, 2, 1, scalars=[-2.0, -2.0, 2.0, 1.0], init_std=0.0)
    family.initialise([0])
    steep, trained = (
        Trained(record(run=mark("steep", [0]), transformer=LinearTransformer(family))),
        "kappa1_L2",
    )
    made = risks(FakeRunner(untrained), size, PAPER, {trained: steep}, {}, records["baselines"]).weights
    size = dataclasses.replace(size, prompts=16_000)
    plain = prompt_losses(LinearTransformer(family), 1, size, PAPER)
    assert made["kappa1_L2_more_mean"] > 2 * np.sort(plain[0])[:-16].mean()


def of_risks(**changes):
    """Return what four layers have at laptop, by and large, with changes."""
    arrays = {}
    for mask, usual in (("masked", 20.0), ("unmasked", 0.85)):
        for layers in (2, 3, 4):
            name = f"kappa1_{mask}_L{layers}"
            arrays[f"{name}_usual"] = np.full(3, usual if layers == 4 else 0.95)
            arrays[f"{name}_usual_error"] = np.full(3, 0.005)
            arrays[f"{name}_best_seed"] = np.array(1)
            arrays |= {f"{name}_capped_mean": np.full(3, 0.1), f"{name}_capped_error": np.full(3, 0.003)}
    arrays["kappa1_unmasked_started_L3_more_mean"] = np.array([0.01, -0.003, 0.01])
    arrays["kappa1_unmasked_started_L3_more_error"] = np.full(3, 0.0003)
    return arrays | changes


BEST = {
    mask: {layers: regression.Value(risk, 1e-5) for layers in (1, 2, 3, 4)}
    for mask, risk in (("masked", 1e-3), ("unmasked", 0.022))
}
FLOOR = {"family_unmasked_floor": np.array(0.0215), "family_unmasked_floor_error": np.array(1e-5)}


@pytest.mark.parametrize(
    ("changes", "seen"),  # which are undecided
    [
        ({}, []),
        ({"kappa1_unmasked_L4_usual": np.full(3, 0.87)}, [0]),
        ({"kappa1_masked_L3_usual": np.array([1.0, 5.2, 1.0])}, [1]),
        ({"kappa1_masked_L3_usual": np.array([60.0, 1.0, 60.0])}, []),
        ({"kappa1_unmasked_L4_capped_mean": np.array([0.1, 0.1, 0.03])}, [2]),
        ({"kappa1_masked_L4_capped_mean": np.full(3, 0.035)}, [2]),
        ({"kappa1_unmasked_started_L3_more_mean": np.full(3, -0.001)}, [3]),
    ],
)
def test_what_four_layers_come_to(changes, seen):
    arrays = of_risks(**changes)
    claims = [
        *fig2._deeper(arrays, [1, 2, 3, 4], False),
        *fig2._above_in_risk(arrays, BEST),
        *fig2._below_the_floor(arrays, BEST, FLOOR),
    ]
    assert len(claims) == 4
    assert [i for i, verdict in enumerate(verdicts(claims)) if verdict == "undecided"] == seen
    assert fig2._deeper(arrays, [1], False) == []


def test_a_stack_with_layernorm_that_grows():
    def grown(experiment, asked):
        family = Encoder(2, 2, 4, 2, "linear", hidden=0, init_std=0.3)
        family.parametrization.initialise(SEEDS)
        growth = {name.rpartition(".")[2]: value for name, value in asked.items() if ".growth." in name}
        return record(
            run=mark(experiment, SEEDS),
            config={"callbacks": {"growth": growth}},
            stored_models=lambda: [(step, family.requires_grad_(False)) for step in (0, 10, 20)],
        )

    runner = FakeRunner(grown)
    found = layernorm(runner, RegressionSize(**SIZE, prompts=100, grown=True), PAPER)
    [(experiment, asked)] = runner.asked
    assert experiment == "giannou/lsa_ln" and asked["callbacks.growth.first"] == 1
    assert (asked["train.steps"], asked["model.layers"]) == (20, 2)
    arrays = found["losses_kappa1_layernorm"].weights
    assert set(found) == {"kappa1_layernorm_grown", "losses_kappa1_layernorm"}
    assert (arrays["kappa1_layernorm_L1_mean"] != arrays["kappa1_layernorm_L2_mean"]).all()


def test_prompts_are_the_same_for_all():
    size = RegressionSize(**SIZE, prompts=200)
    family = LSA(2, 1, 1, mask=True, init_std=0.0)
    family.initialise(SEEDS)
    loss_RB = prompt_losses(LinearTransformer(family), 2, size, PAPER)
    of = ConditionedRegression(2, 6, largest=(1.0, 1.0), constant=True).law([0])
    target_B = of.gram_prompts([generator(0, "eval")], 200).target_RB[0].numpy()
    assert np.allclose(loss_RB, target_B**2 / 2) and loss_RB.shape == (2, 200)
    known = {"depths_L": np.array([1]), "family_masked_theta_LV": np.array([[0.5, 1.0]])}
    assert best_model(size, known, True, 1).parametrization.scalars == [0.5, 1.0]


def test_figure_2_says_where_losses_lie(second):
    _, records = second
    paper, *_ = fig2.Fig2().claims(records)
    assert paper.verdict == "undecided" and "above order 2" in paper.measured["1 layer"]
    assert verdicts(fig2.Fig2(decisive=True).claims(records))[0] == "fails"
    known, found = records["baselines"].weights, dict(records["losses"].weights)
    for depth in (1, 2):
        low, high = (known[f"newton_transpose_{order}_mean"][depth] for order in (3, 2))
        found[f"kappa1_unmasked_L{depth}_mean"] = np.full(2, (low + high) / 2)
        found[f"kappa1_unmasked_L{depth}_error"] = np.full(2, 1e-6)
    known = dict(known) | {k: v * 0 for k, v in known.items() if k.startswith("newton") and "error" in k}
    between = {**records, "losses": record(weights=found), "baselines": record(weights=known)}
    assert verdicts(fig2.Fig2(decisive=True).claims(between))[0] == "holds"
    assert verdicts(fig2.Fig2().claims(between))[0] == "undecided"
    found["kappa1_unmasked_L1_mean"] = found["kappa1_unmasked_L1_mean"] * 0
    assert verdicts(fig2.Fig2().claims(between))[0] == "fails"
    figure = fig2.Fig2().draw(records)
    assert len(figure.axes) == 2 and fig2.Fig2().table(records)


def test_outputs_by_two_routes(third):
    """Compare Gram matrices and tokens; the masked outputs are affine, the others not."""
    found = third["outputs"].weights
    near = np.abs(found["x_G"]) <= 14.9
    for mask in ("masked", "unmasked"):
        by_gram, by_tokens = found[f"kappa1_{mask}_L2_RKG"].mean(1), found[f"kappa1_{mask}_L2_same_RG"]
        assert np.allclose(by_gram[:, near], by_tokens[:, near], rtol=1e-9)
    assert verdicts(fig4.Fig4().claims(third))[1] == "holds"
    bent = dict(found) | {"kappa1_masked_L2_RKG": found["kappa1_masked_L2_RKG"] + 1e-3 * found["x_G"] ** 2}
    assert verdicts(fig4.Fig4().claims({"outputs": record(weights=bent)}))[1] == "fails"
    follows = {f"kappa1_masked_L{depth}_same_RG": found["line_G"] + np.zeros((2, 1)) for depth in (1, 2)}
    lost = {f"kappa1_masked_L{depth}_clipped_RG": np.zeros((2, len(found["x_G"]))) for depth in (1, 2)}
    kept = {name.replace("same", "clipped"): line for name, line in follows.items()}
    wrong = {name.replace("clipped", "same"): zero for name, zero in lost.items()}
    for arrays, verdict in (
        (lost | wrong, "undecided"),
        (kept | wrong, "undecided"),
        (lost | follows, "holds"),
        (kept | follows, "fails"),
    ):
        claims = fig4.Fig4().claims({"outputs": record(weights=dict(found) | arrays)})
        assert claims[2].verdict == verdict, "a model that leaves the line without the clip decides nothing"
    newton = found["newton_identity_3_TKG"][2].mean(0)
    assert np.abs(newton - found["line_G"]).max() < 0.2 * np.abs(found["line_G"]).max()


@pytest.mark.parametrize("heads", [{"heads": 1}, {"heads": 3, "width": 7, "rank": 2}], ids=str)
@pytest.mark.parametrize("mask", [False, True])
def test_the_clip_bounds_every_entry(heads, mask):
    family = LSA(2, 2, **heads, mask=mask, init_std=1.0)
    family.initialise(SEEDS)
    of = ConditionedRegression(2, 6, largest=(1.0, 1.0), constant=True).law(SEEDS)
    prompt = of.token_prompts([generator(seed, "eval") for seed in SEEDS], 5)
    free = clipped_predictions(family, prompt, None)
    assert torch.allclose(free, LinearTransformer(family).predict(prompt), rtol=1e-10)
    clipped = clipped_predictions(family, prompt, 0.5)
    assert (clipped.abs() <= 0.5 * family.o.abs().sum(-1)[:, 0] + 1e-12).all()
    assert not torch.equal(free, clipped)


def test_figure_3_says_what_the_range_holds(third):
    assert range_of(1.0, 1.0) == pytest.approx(2.5758, abs=1e-4)
    size, sign = generator(0, "check").uniform(1, 100, 10**6), generator(1, "check").standard_normal(10**6)
    inside = (np.abs(np.sqrt(size) * sign) < 14.9).mean()
    assert share_within(14.9, 1.0, 100.0) == pytest.approx(inside, abs=2e-3)
    assert verdicts(fig3.Fig3().claims(third)) == ["fails", "undecided", "holds"]
    found = dict(third["outputs"].weights)
    line = found["kappa1_unmasked_L1_RKG"] * 0 + found["line_G"]
    straight = {"outputs": record(weights=found | {"kappa1_unmasked_L1_RKG": line})}
    assert verdicts(fig3.Fig3().claims(straight))[1] == "fails"
    assert len(fig3.Fig3().draw(third).axes) == 8 and fig4.Fig4().table(third)


def test_figure_8():
    records = Fig8(**SIZE, prompts=1000, conditions=[4.0], noises=[0.0, 0.5]).records(FakeRunner(untrained))
    drawing = fig8.Fig8()
    assert fig8.laws_of(records) == ["kappa4", "kappa4_noise0.5"]
    higher, _, family = drawing.claims(records)
    assert higher.verdict == "undecided" and family.whose == "project"
    assert float(records["baselines_kappa4_noise0.5"].weights["least_squares"]) > 0
    found = {k: v * 1e-6 for k, v in records["losses_kappa4"].weights.items()}
    good = {name: record(weights=found) if name == "losses_kappa4" else run for name, run in records.items()}
    del good["losses_kappa4_noise0.5"], good["baselines_kappa4_noise0.5"]
    higher, between, _ = drawing.claims(good)
    assert (higher.verdict, between.verdict) == ("holds", "fails")
    assert len(drawing.draw(records).axes) == 2 and drawing.table(records)


def test_layernorm(second, third):
    """Decide nothing on too little training; a model nearer to the line everywhere does decide."""
    assert fig2.Fig2().claims(second[1])[-1].verdict == "undecided"
    found, plain = third["layernorm_outputs"].weights, third["outputs"].weights
    assert np.allclose(found["line_G"], plain["line_G"])
    assert found["kappa1_layernorm_L1_RKG"].shape[:2] == (2, 20)
    assert verdicts(fig5.Fig5().claims(third)) == ["undecided"]
    lost, few = fig6.Fig6().claims(third)
    assert (lost.verdict, few.verdict) == ("undecided", "undecided")
    line = found["kappa1_layernorm_L1_RKG"] * 0 + found["line_G"]
    near = np.where(np.abs(found["x_G"]) <= 14.9, line, 0)
    bounded = dict(found) | {"kappa1_layernorm_L1_RKG": near}
    claims = fig6.Fig6().claims({**third, "layernorm_outputs": record(weights=bounded)})
    assert claims[0].verdict == "holds", "it follows the line in distribution, and not beyond"
    good = {**third, "layernorm_outputs": record(weights=dict(found) | {"kappa1_layernorm_L1_RKG": line})}
    assert verdicts(fig5.Fig5().claims(good)) == ["holds"]
    assert fig6.Fig6().claims(good)[0].verdict == "fails"
    assert len(fig5.Fig5().draw(third).axes) == 3 and fig6.Fig6().table(third)
    for misses, verdict in (((1, 2, 2, 2), "holds"), ((3, 4, 4, 1), "fails"), ((1, 1.2, 2, 2), "undecided")):
        by_depth = dict(
            zip((5, 7, 10, 12), misses, strict=True)
        )  # of the first seed, 1.5 times it of the other
        outputs = {
            f"kappa1_layernorm_L{depth}_RKG": line * np.array([1 + miss, 1 + 1.5 * miss])[:, None, None]
            for depth, miss in by_depth.items()
        }
        arrays = dict(found) | outputs | {"depths_L": np.array(list(by_depth))}
        claims = fig6.Fig6().claims({**third, "layernorm_outputs": record(weights=arrays)})
        assert claims[1].verdict == verdict
    records = Fig9(**SIZE, conditioned_steps=10, prompts=200, conditions=[1.0, 4.0], noises=[0.5]).records(
        FakeRunner(untrained)
    )
    assert verdicts(fig9.Fig9().claims(records)) == ["undecided"]
    assert verdicts(fig9.Fig9(decisive=True).claims(records)) == ["fails"]
    small = dict(records)
    for name in small:
        if name.startswith("losses"):
            weights = small[name].weights.items()
            small[name] = record(weights={k: v if k == "depths_L" else v * 1e-6 for k, v in weights})
    assert verdicts(fig9.Fig9().claims(small)) == ["holds"]
    assert len(fig9.Fig9().draw(records).axes) == 2 and fig9.Fig9().table(records)
