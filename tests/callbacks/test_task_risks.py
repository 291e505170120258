"""Tests of the risks on old and new tasks, in runs with finitely many."""

import pytest
import torch

from icl.callbacks import TaskRisks
from icl.callbacks.critical_point import CriticalPoint
from icl.metrics import kind_of
from icl.models import SparseAB
from tests.plans import train_one

TASKS = {"tasks": 3, "context": 8}
DEEP = {"family": lambda dim: SparseAB(dim, 2, 0.1), "task": {**TASKS, "dim": 3}}


def metrics_of(run):
    return {name: list(entry["by_seed"].values()) for name, entry in run.run["metrics"].items()}


@pytest.mark.parametrize("estimator", ["expected", "population"])
def test_they_are_exact_where_the_risk_is(make_plan, estimator):
    train = {"estimator": estimator} | ({"batch": None} if estimator == "population" else {})
    plan = make_plan(task=TASKS, train=train, callbacks={"more": [TaskRisks(1)]}, name=estimator)
    run = train_one(plan).record
    found, model = metrics_of(run), plan.model
    model.parametrization.load({"A": torch.from_numpy(run.weights["A"])})
    for name, law in (("risk_old", plan.law), ("risk_new", plan.law.new_tasks)):
        assert found[name] == pytest.approx(law.exact_risk(model)(model).tolist())
        assert found[f"{name}_stderr"] == [0, 0] and kind_of(name, found[f"{name}_stderr"]) == "exact"
    assert found["risk_old"] == found["exact_risk"] != found["risk_new"]
    assert set(run.metrics["step"]) >= {0, 12} and len(run.metrics["risk_old"]) == len(run.metrics["step"])


def test_they_are_sampled_with_an_error_elsewhere(make_plan):
    """Compare with many prompts; the errors of old and new are of the same contexts."""
    plan = make_plan(**DEEP, callbacks={"more": [TaskRisks(0, samples=2000)]})
    record = train_one(plan).record
    found, model = metrics_of(record), plan.model
    model.parametrization.load({name: torch.from_numpy(record.weights[name]) for name in "AB"})
    for name, law in (("risk_old", plan.law), ("risk_new", plan.law.new_tasks)):
        assert kind_of(name, found[f"{name}_stderr"]) == "sampled" and found["exact_risk"] == [None, None]
        risk_R, stderr_R = CriticalPoint(model, law, (7, 8), 10_000).risk(model, 0)
        error_R = (torch.tensor(found[f"{name}_stderr"]) ** 2 + stderr_R**2).sqrt()
        assert ((torch.tensor(found[name]) - risk_R).abs() < 6 * error_R).all()


def test_runs_of_all_tasks_have_neither(make_plan):
    record = train_one(make_plan(callbacks={"more": [TaskRisks()]})).record
    assert not {name for name in record.run["metrics"] if name.startswith(("risk_old", "risk_new"))}
