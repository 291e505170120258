"""Tests of a callback in a user's package: one override lists it, and it gets every hook."""

import json
from pathlib import Path

import pytest

from tests.commands import Run

CODE = """
import collections
import json

import pytorch_lightning as pl

OURS = ["on_weights", "on_step_end", "on_rows"]
HOOKS = [name for name in dir(pl.Callback) if name.startswith("on_")] + OURS


class Counter(pl.Callback):
    def __init__(self, path: str) -> None:
        self.path, self.calls = path, collections.Counter()

    def on_fit_end(self, trainer, pl_module):
        with open(self.path, "w") as file:
            json.dump(self.calls | {"global_step": trainer.global_step}, file)


def counted(name, before):
    def hook(self, *args):
        self.calls[name] += 1
        if before is not None:
            before(self, *args)
    return hook


for name in HOOKS:
    setattr(Counter, name, counted(name, vars(Counter).get(name)))


class NoCallback:
    pass
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "counting_lab.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(tmp_path))
    return f"+callbacks.mine={{_target_:counting_lab.Counter,path:{tmp_path / 'calls.json'}}}"


def test_it_sees_every_hook(tiny: Run, tmp_path: Path, mine: str) -> None:
    first = tiny("format=json").json
    assert tiny(mine, "format=json").json["cached"]
    again = tiny(mine, "force=true", "format=json").json
    assert again["metrics"] == first["metrics"] and again["fingerprint"] == first["fingerprint"]
    calls = json.loads((tmp_path / "calls.json").read_text())
    steps = ("on_before_backward", "on_after_backward", "on_before_optimizer_step", "on_step_end")
    once = ("on_fit_start", "on_train_start", "on_train_epoch_start", "on_train_epoch_end", "on_train_end")
    expected = dict.fromkeys(steps, 4) | dict.fromkeys((*once, "on_fit_end"), 1)
    expected |= {"on_train_batch_start": 2, "on_train_batch_end": 2, "on_weights": 5, "on_rows": 3}
    expected["global_step"] = 4
    assert calls == expected


def test_callbacks_are_switched_off_by_name(tiny: Run) -> None:
    first = tiny("format=json", "callbacks.gradient.count=2").json
    assert first["metrics"]["gradient_norm"]["mean"] is not None
    for off in ("~callbacks.gradient", "callbacks.gradient=null"):
        document = tiny("format=json", "force=true", off).json
        assert document["fingerprint"] == first["fingerprint"], off
        assert "gradient_norm" not in document["metrics"], off
        assert document["metrics"]["exact_risk"] == first["metrics"]["exact_risk"], off
