"""Tests of what a config may list for the trainer: handed through, or refused with what to do instead."""

from typing import Any

import pytest
import pytorch_lightning as pl
from pytorch_lightning.callbacks import ModelCheckpoint, TQDMProgressBar
from pytorch_lightning.profilers import SimpleProfiler

from icl.errors import InputError
from icl.training.build import REFUSED, build_callbacks, build_trainer_settings
from icl.training.settings import make_trainer

NODE = {"accelerator": "cpu", "precision": "64-true", "devices": 1, "threads": None}


def test_options_are_handed_to_the_trainer() -> None:
    profiler = {"_target_": "pytorch_lightning.profilers.SimpleProfiler"}
    more: dict[str, Any] = {"detect_anomaly": True, "log_every_n_steps": 7, "profiler": profiler}
    trainer = make_trainer(build_trainer_settings(NODE | more))
    assert (trainer._detect_anomaly, trainer.log_every_n_steps) == (True, 7)
    assert isinstance(trainer.profiler, SimpleProfiler) and trainer.precision == "64-true"
    plain = make_trainer(build_trainer_settings(NODE))
    assert (plain._detect_anomaly, plain.max_epochs, plain.num_devices) == (False, 1, 1)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_what_there_is(name: str) -> None:
    with pytest.raises(InputError, match=rf"trainer\.{name}: not here: .*\b\w+"):
        build_trainer_settings(NODE | {name: 2})


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"accumulate_grad_batches": 2}, r"train\.batch"),
        ({"max_epochs": 3}, r"train\.steps"),
        ({"fast_dev_run": True}, "debug=fast"),
        ({"overfit_batches": 1}, "debug=overfit"),
        ({"limit_train_batches": 2}, "debug=limit"),
        ({"devices": 0}, r"trainer\.devices=0: must be a number of at least 1, or a list"),
        ({"devices": "auto"}, r"trainer\.devices=auto: must be a number"),
        ({"num_nodes": 0}, r"trainer\.num_nodes=0: must be"),
        ({"strategy": "fsdp"}, r"trainer\.strategy=fsdp: must be one of auto, ddp"),
        (
            {"detect_anomly": True},
            r"trainer\.detect_anomly: pl\.Trainer has no such option; did you mean",
        ),
        ({"profiler": "slow"}, "trainer: "),
    ],
)
def test_refusals(more: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_trainer_settings(NODE | more)


def test_every_refused_option_is_one_of_the_trainers() -> None:
    """Compare with the trainer's own options: a list that outlived Lightning's would refuse nothing."""
    import inspect

    assert set(REFUSED) <= set(inspect.signature(pl.Trainer).parameters)


def test_lightnings_own_callbacks_bring_what_they_need() -> None:
    nodes = {
        "bar": {"_target_": "pytorch_lightning.callbacks.TQDMProgressBar", "refresh_rate": 5},
        "off": None,
        "best": {"_target_": "pytorch_lightning.callbacks.ModelCheckpoint", "dirpath": "somewhere"},
    }
    found = build_callbacks(nodes)
    assert [type(callback) for callback in found] == [TQDMProgressBar, ModelCheckpoint]
    trainer = make_trainer(build_trainer_settings(NODE), found)
    assert set(found) <= set(trainer.callbacks)
    plain = make_trainer(build_trainer_settings(NODE)).callbacks
    assert not any(isinstance(callback, TQDMProgressBar | ModelCheckpoint) for callback in plain)
