"""Tests of runs in this process: ensembles against single seeds, steps and rows, failures, resuming."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from icl.callbacks.critical_point import CriticalPointGradient
from icl.models import Encoder, Full, SparseA, SparseAB
from icl.runs.record import find_done
from icl.runs.store import RunStore
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.training.module import Diverged
from icl.training.optimizers import ReplicaOptimizer
from icl.training.plan import TrainingPlan
from icl.training.schedules import StepHalving
from tests.plans import MakePlan, assert_identical, stopped_at, train_one

ADAM, ADAMW, SGD, LBFGS = torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD, torch.optim.LBFGS
OPTIMIZERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "adam": (ADAM, {"lr": 0.02, "betas": [0.9, 0.99]}),
    "adamw": (ADAMW, {"lr": 0.02, "weight_decay": 0.1}),
    "sgd": (SGD, {"lr": 0.5}),
    "momentum": (SGD, {"lr": 0.5, "momentum": 0.9}),
    "lbfgs": (LBFGS, {"lr": 1.0, "max_iter": 3, "line_search_fn": "strong_wolfe"}),
}
ENCODERS: dict[str, dict[str, Any]] = {
    "softmax": {"hidden": 6, "init_std": 0.3},
    "lsa": {"hidden": 0, "attention": "linear", "norm": "none", "init_std": 0.3},
}
MODELS = [
    *((name, "expected") for name in OPTIMIZERS),
    ("adam", "sampled"),
    *((e, "encoder") for e in ENCODERS),
]


def planned(make: MakePlan, kind: str, estimator: str, **more: Any) -> TrainingPlan:
    """Return a plan with an optimizer and an estimator of these names, or of an encoder of this name."""
    train = {"clip": None if kind == "lbfgs" else 0.01} | more.pop("train", {})
    if estimator == "encoder":
        model = Encoder(2, layers=2, width=4, heads=2, **ENCODERS[kind])
        train |= {"estimator": "sampled", "steps_per_batch": 1, "clip": 1.0}
        return dataclasses.replace(make(train=train, optimizer=OPTIMIZERS["adam"], **more), model=model)
    given = {"family": lambda dim: SparseAB(dim, 2, 0.05), "optimizer": OPTIMIZERS[kind]} | more
    return make(train=train | {"estimator": estimator}, **given)


def assert_same(together: Mapping[str, np.ndarray], r: int, alone: Mapping[str, np.ndarray]) -> None:
    for name in alone:
        if alone[name].dtype == float:
            gap = np.abs(together[name][r] - alone[name][0]).max()
            assert gap <= 1e-6 * np.abs(alone[name]).max(), name


@pytest.mark.parametrize(("name", "estimator"), MODELS)
def test_an_ensemble_is_its_seeds_trained_apart(make_plan: Any, name: str, estimator: str) -> None:
    together = train_one(planned(make_plan, name, estimator, seeds=(3, 0), name="together")).record
    for r, seed in enumerate((3, 0)):
        alone = train_one(planned(make_plan, name, estimator, seeds=(seed,), name=f"alone{seed}")).record
        assert_same(together.weights, r, alone.weights)
        assert np.allclose(together.metrics["loss"][r::2], alone.metrics["loss"], rtol=1e-6)
    first, *_ = (array for key, array in together.weights.items() if key.endswith("_history"))
    assert np.abs(first[0] - first[1]).max() > 1e-3 and np.abs(first[:, 0] - first[:, -1]).max() > 1e-3


@pytest.mark.parametrize("name", ["sgd", "lbfgs"])
def test_a_draw_in_pieces_trains_the_same(make_plan: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Train 2 steps on each of two sets of prompts: later, rounding decides where a line search ends."""
    train = {"steps": 4, "steps_per_batch": 2, "clip": None if name == "lbfgs" else 0.01}
    common = {"optimizer": OPTIMIZERS[name], "train": train}
    whole = train_one(make_plan(name="whole", **common)).record
    monkeypatch.setattr("icl.tasks.law.CACHE_BYTES", 200)
    pieces = train_one(make_plan(name="pieces", **common)).record
    assert_same(whole.weights, 0, {key: array[:1] for key, array in pieces.weights.items()})
    assert np.allclose(pieces.metrics["loss"], whole.metrics["loss"], rtol=1e-9)


@pytest.mark.parametrize(
    ("family", "task", "present"),
    [
        (lambda d: SparseA(d, 2, 0.1), {}, {"exact_risk", "risk_on_s", "gradient_norm_A1", "dist_plain_A1"}),
        (lambda d: SparseAB(d, 2, 0.1), {"dim": 3}, {"risk_estimate", "dist_B0", "gradient_norm_B0_stderr"}),
        (lambda d: Full(d, 2, 0.1), {"label_noise": 0.1}, {"risk_estimate_stderr", "gradient_norm_Q1"}),
    ],
)
def test_columns_are_complete_and_the_same_throughout(
    make_plan: Any, family: Any, task: dict, present: set[str]
) -> None:
    """Write a column that begins late, too, from the first row on."""
    late = CriticalPointGradient(steps=[7], samples=64)
    record = train_one(make_plan(family=family, task=task, callbacks={"count": 0, "more": [late]})).record
    assert present <= set(record.metrics)
    assert all(any(v is not None for v in column) for column in record.metrics.values())
    lines = (record.path / "metrics.csv").read_text().splitlines()
    assert len({line.count(",") for line in lines}) == 1 and len(lines) == 1 + 2 * 13
    metrics = record.run["metrics"]
    for name in ("loss", "exact_risk", "dist_preconditioned", "dist_plain"):
        assert set(metrics[name]["by_seed"]) == {"0", "1"}
    assert set(record.metrics) - {"step", "seed", "lr"} <= set(metrics)
    for name, column in record.metrics.items():
        if name in metrics:
            assert list(metrics[name]["by_seed"].values()) == column[-2:]


def test_a_loss_that_is_no_number_fails_the_run(make_plan: Any) -> None:
    plan = make_plan(optimizer=(SGD, {"lr": 1e30}), train={"clip": None, "log_every": 3})
    for attempt in (1, 2):
        with pytest.raises(
            Diverged, match=r"the loss of seeds \[0, 1\] is not finite at step \d+: lower optimizer\.lr"
        ):
            train_one(plan)
        store = RunStore(plan.outputs)
        folder = store.path(plan.experiment, plan.fingerprint)
        assert "Diverged" in (folder / "traceback.txt").read_text()
        assert find_done(folder, plan.digest) is None
        run = (folder / "run.json").read_text()
        assert '"status": "failed"' in run and f'"attempt": {attempt}' in run


def test_a_bad_seed_is_named_and_the_others_finish(make_plan: Any) -> None:
    """Compare the others, to the bit, with the numbers and weights that they have beside a seed that is
    sound."""
    asked: list[Any] = []
    both = make_plan(optimizer=(SGD, {"lr": [0.01, 1e30]}), train={"clip": None, "log_every": 3})
    tame = make_plan(optimizer=(SGD, {"lr": 0.01}), train={"clip": None, "log_every": 3}, name="tame")
    record = train_one(both, judge=lambda *given: asked.append(given) or []).record
    sound = train_one(tame).record
    assert not asked  # about both seeds nothing can be said
    (step,) = {record.run["diverged"].pop("1")}
    assert record.run["diverged"] == {} and 0 < step < 12
    (sentence,) = [note for note in record.run["notes"] if "finite" in note]
    assert sentence.startswith(f"the loss of seeds [1] is not finite at step {step}: lower optimizer.lr")
    for name, column in record.metrics.items():
        for row, (seed, at) in enumerate(zip(record.metrics["seed"], record.metrics["step"], strict=True)):
            if seed == 0:
                assert column[row] == sound.metrics[name][row], (name, at)
            elif at >= step and name not in ("step", "seed"):
                assert column[row] is None, (name, at)
    for name, entry in record.run["metrics"].items():
        assert entry["by_seed"] == {"0": sound.run["metrics"][name]["by_seed"]["0"], "1": None}, name
        assert entry["mean"] is None
    assert np.array_equal(record.A[0], sound.A[0]) and not np.isfinite(record.A[1]).all()


def test_a_loss_that_is_no_number_from_the_start(make_plan: Any) -> None:
    with pytest.raises(Diverged, match="at step 0: its prompts or first weights are too large"):
        train_one(make_plan(family=lambda dim: SparseA(dim, 2, 1e300)))


def test_the_judge_sees_the_final_weights(make_plan: Any) -> None:
    seen: list[np.ndarray] = []
    record = train_one(
        make_plan(), judge=lambda model, law: seen.append(model.parametrization.A.detach().numpy()) or []
    ).record
    assert np.array_equal(seen[0], record.weights["A"])


RESUMED: list[tuple[str, str, dict[str, Any]]] = [
    *((name, "expected", {}) for name in OPTIMIZERS),
    ("adam", "sampled", {"trainer": {"precision": "32-true"}}),
    ("adam", "tilted", {"train": {"coordinates": "whitened"}}),
    *((name, "population", {"train": {"batch": None}}) for name in ("adam", "lbfgs")),
    ("softmax", "encoder", {}),
]


@pytest.mark.parametrize(("name", "estimator", "more"), RESUMED)
def test_every_optimizer_resumes_bit_for_bit(
    make_plan: Any, name: str, estimator: str, more: dict[str, Any]
) -> None:
    """Interrupt in the middle of a set, resume, and interrupt again at the start of one."""
    common = {"callbacks": {"seconds": 1000.0}, "schedule": StepHalving(3)} | more
    if estimator == "population":
        common["family"] = lambda dim: SparseA(dim, 2, 0.05)
    whole = train_one(planned(make_plan, name, estimator, name="whole", **common)).record
    for stop in (3, 10):
        with stopped_at(stop):
            train_one(planned(make_plan, name, estimator, **common))
    record = train_one(planned(make_plan, name, estimator, **common)).record
    assert record.run["resumed"] == 2
    assert_identical(record, whole)


def test_the_thread_count_is_recorded_and_restored(make_plan: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    used: list[int] = []
    set_rates = ReplicaOptimizer.set_rates

    def watch(self: ReplicaOptimizer, number: int) -> None:
        used.append(torch.get_num_threads())
        set_rates(self, number)

    monkeypatch.setattr(ReplicaOptimizer, "set_rates", watch)
    with stopped_at(4):
        train_one(make_plan(trainer={"threads": 2}))
    record = train_one(make_plan(trainer={"threads": 1})).record
    assert set(used) == {2} and len(used) == 12
    assert record.run["threads"] == 2
    assert torch.get_num_threads() == before


def test_a_finished_loss_is_near_the_optimum_on_s(make_plan: Any) -> None:
    """Train L=2 in d=2 from small weights to within 2 % of Theorem 3's optimum."""
    train = {"steps": 300, "batch": 1000, "clip": None, "log_every": 50}
    plan = make_plan(optimizer=(ADAM, {"lr": 0.05}), schedule=StepHalving(60), train=train)
    record = train_one(plan).record
    optimum = InvariantRisk(2, 6, 2).optimum().risk
    for value in record.run["metrics"]["exact_risk"]["by_seed"].values():
        assert optimum * (1 - 1e-9) <= value < 1.02 * optimum
    assert all(math.isfinite(loss) for loss in record.metrics["loss"])
