"""Tests of Lightning's monitors in a run: stopped early, resumed to the same bits, the best weights kept."""

from typing import Any

import pytest
import torch

from icl.callbacks import EarlyStopping, ModelCheckpoint
from icl.errors import InputError
from icl.training.plan import TrainingPlan
from tests.commands import Run
from tests.plans import MakePlan, assert_identical, stopped_at, train_one

END = 40  # of 60 steps, 5 on each set of prompts


def stopping(make: MakePlan, name: str, **early: Any) -> TrainingPlan:
    monitor = EarlyStopping(**{"every": 2, "patience": 1, "min_delta": 1e-3, **early})
    return make(
        name=name,
        train={"steps": 60},
        optimizer=(torch.optim.SGD, {"lr": 3.0}),
        callbacks={"count": 2, "seconds": 1000.0, "more": [monitor]},
    )


@pytest.mark.parametrize("stop", [30, 32, 35, 39], ids=["end of a look", "in a set", "end of a set", "last"])
def test_it_ends_a_run_which_resumes_to_the_same_bits(make_plan: MakePlan, stop: int) -> None:
    whole = train_one(stopping(make_plan, "whole")).record
    assert (whole.run["steps"], whole.metrics["step"][-1]) == (END, END)
    assert whole.run["warnings"] == [f"stopped early, after {END} of 60 steps"]
    assert None not in whole.run["metrics"]["exact_risk"]["by_seed"].values()
    with stopped_at(stop):
        train_one(stopping(make_plan, "stopped"))
    assert_identical(train_one(stopping(make_plan, "stopped")).record, whole)


def test_it_looks_at_what_a_continued_run_has(make_plan: MakePlan) -> None:
    with pytest.raises(InputError, match=r"EarlyStopping\.monitor=loss: must be"):
        stopping(make_plan, "loss", monitor="loss")


def test_lightnings_checkpoints_are_the_runs(make_plan: MakePlan) -> None:
    """Change nothing that is trained."""
    best = ModelCheckpoint(monitor="loss", filename="best", save_last=True, every_n_train_steps=5)
    record = train_one(make_plan(name="kept", callbacks={"more": [best]})).record
    assert {path.name for path in (record.path / "checkpoints").iterdir()} == {"best.ckpt", "last.ckpt"}
    assert_identical(record, train_one(make_plan(name="plain")).record)


def test_as_users_type_them(tiny: Run) -> None:
    plain, kept, early = (
        tiny(f"callbacks=[default{more}]", "format=json").json
        for more in ("", ",model_checkpoint", ",early_stopping")
    )
    assert plain["fingerprint"] == kept["fingerprint"] != early["fingerprint"] and not early["cached"]
